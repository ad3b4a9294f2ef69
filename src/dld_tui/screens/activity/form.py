"""The form of an activity, made from its request; F5 runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from dld_tui.activities import registry as activities
from dld_tui.core.accuracy.engine_settings import needs_tensorrt
from dld_tui.core.document.document import Document
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.machine import providers
from dld_tui.core.params import command_line, from_json, problem_of_form, settings_of, to_json
from dld_tui.core.settings import state
from dld_tui.core.settings.plugins import resolve
from dld_tui.core.tensorrt.facts import AUTO, LibraryFacts
from dld_tui.core.tensorrt.settings import ENGINE_SUFFIXES
from dld_tui.core.text import clip, fit, visible
from dld_tui.core.types import JSON
from dld_tui.screens.activity.form_parts import (
    GuessedShapes,
    Libraries,
    Presets,
    has_engines,
    is_tensorrt,
    library_folder,
    trtexec_line,
)
from dld_tui.screens.results.table import View, show_view
from dld_tui.screens.targets import TargetsDialog
from dld_tui.styles import STYLES
from dld_tui.targets import registry as targets
from dld_tui.targets.registry import requests_for
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.forms.param_form import ChoiceField, ParamForm
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell.command_dispatch import bindings_for
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.host import Host, host
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.tasks import on_thread, task

_CHOICE_KEYS = "123456789abcdefghijklmnoprstuvwxyz"


async def choose_activity(services: Host, values: Mapping[str, JSON]) -> None:
    """Ask which activity to start, and show its form."""
    offered = [activity for activity in activities.activities() if activity.offered]
    choices = []
    for key, activity in zip(_CHOICE_KEYS, offered, strict=False):
        why_not = activities.why_unavailable(activity)
        choices.append(Choice(key, activity.title, activity.id, why_not or activity.help))

    answer = await services.tasks.ask(ChoiceDialog("Activities", "What to run?", choices))
    if answer is not None and not services.page.show_activity(answer):
        services.start_activity(answer, values)


TRUST = "trust"
"""The setting, and the answer."""
_PATH_CELLS = 60


def untrusted_engine(values: Mapping[str, JSON]) -> str:
    """Return the engines that a form would load without trust, as text; empty when none."""
    if values.get(TRUST) is not False:
        return ""
    engines = []
    for name in ("engine", "model", "against"):
        path = values.get(name)
        if not isinstance(path, str) or not path.strip():
            continue
        if name == "engine" or Path(path).suffix.lower() in ENGINE_SUFFIXES:
            engines.append(path)
    return " and ".join(engines)


def trust_dialog(engine: str) -> ChoiceDialog:
    """Return the question; its answer is :data:`TRUST` or None."""
    name = clip(visible(engine), _PATH_CELLS, keep="middle")
    return ChoiceDialog(
        "Load the engine?",
        f"{name} can hold code that runs when it is loaded. Load it only if you trust who made it.",
        [Choice("l", "load it", TRUST)],
    )


_KEYS = "{activity.run} run  {activity.next_page} page  {activity.copy} copy  {page.close} close"
Reasons: TypeAlias = "Callable[[Mapping[str, JSON], LibraryFacts | None], dict[str, str]]"
_AND = " + "
"""Between the names of several targets; no name holds a blank."""


class ActivityBox(Framed, Vertical):
    """The frame of the form."""


class ActivityScreen(Page):
    """Asks for the settings of one activity and runs it.

    Raises:
        DldError: The activity cannot be loaded here.
    """

    SCOPE = "activity"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("page", "activity")
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "form.tcss"
    tab_title = "activity"
    HELP = (
        "Change the settings that you need; an empty field shows its default. {activity.run} "
        "starts the job, {activity.next_page} shows the next page of settings. {activity.copy} "
        "copies the equivalent command line, {activity.copy_trtexec} that of trtexec. "
        "{activity.save_preset} saves the settings under a name, {activity.load_preset} loads "
        "them. {activity.run_on} runs on several targets at once."
    )

    def __init__(self, activity: str, values: Mapping[str, JSON]) -> None:
        super().__init__()
        self.activity = activities.load(activity)
        self.given = dict(values)
        self._reasons: Reasons | None = resolve(self.activity.reasons)
        self.presets = Presets(self, self.activity.id)
        self.guessed = GuessedShapes(self, self.open_document)
        self.libraries: Libraries | None = None
        """The TensorRT libraries, where the form is about them."""
        self._recalled: dict[str, JSON] = {}  # that belongs to the model of the last time
        self.has_trtexec = is_tensorrt(self.activity.request)
        if self.has_trtexec or has_engines(self.activity.request):
            self.libraries = Libraries(self, self._libraries_changed)

    @property
    def setting_names(self) -> list[str]:
        """The names of the settings."""
        return [setting.name for setting in settings_of(self.activity.request)]

    def body(self) -> Iterable[Widget]:
        values = self._remembered() | self.given
        names = targets.names()
        chosen = host(self).config.target
        target = Horizontal(
            Rows([[(fit("Target", 19), "dim")]], classes="label"),
            ChoiceField(names, chosen if chosen in names else names[0]),
            id="target",
        )
        rows = list(self.own_rows())
        box = ActivityBox(
            target,
            *rows,
            ParamForm(self.activity.request, values, self.own_reasons(values)),
            self.guessed.rows,
            Rows([[]] * self._command_rows, id="command"),
        )
        box.set_class(bool(rows), "-stated")
        box.frame.show(self.activity.title, _KEYS)
        yield box

    def _remembered(self) -> dict[str, JSON]:
        """Return the settings of the last time; what belongs to a model only for that one."""
        settings = settings_of(self.activity.request)
        name, model = self.activity.id, self.given.get("model")
        remembered = state.recall(host(self).state, name, settings, model)
        self._recalled = {
            s.name: remembered[s.name] for s in settings if s.of_model and s.name in remembered
        }
        return remembered

    def _keep(self, values: Mapping[str, JSON]) -> None:
        """Remember the settings for the next time; whether an engine is trusted is always asked."""
        kept = {name: value for name, value in values.items() if name != TRUST}
        settings = settings_of(self.activity.request)
        state.keep(host(self).state, self.activity.id, settings, kept)

    def _let_go(self, form: ParamForm) -> None:
        """Take back what belongs to the model of the last time, once another one is typed."""
        model = self._recalled.get("model")
        if model is None or form.rows["model"].text == model:
            return
        recalled, self._recalled = self._recalled, {}
        own = {n: v for n, v in recalled.items() if n != "model" and n not in self.given}
        values = form.values()
        form.set_back(name for name, value in own.items() if values[name] == value)

    def own_rows(self) -> Iterable[Widget]:
        """Return what is asked for before the settings."""
        return ()

    def own_reasons(self, values: Mapping[str, JSON]) -> dict[str, str]:
        """Return why some settings cannot be used while the form has these values, by name."""
        return {name: why for name, why in self._all_reasons(values).items() if name}

    def _all_reasons(self, values: Mapping[str, JSON]) -> dict[str, str]:
        if self._reasons is None:
            return {}
        facts = None
        if self.libraries is not None:
            facts = self.libraries.chosen(str(values.get("library") or AUTO))
        return {name: visible(why) for name, why in self._reasons(values, facts).items()}

    def on_mount(self) -> None:
        """Go to the first field."""
        form = self.query_one(ParamForm)
        form.set_here(self._target() == targets.LOCAL)
        form.focus_first()
        self.query_one("#command").styles.height = self._command_rows
        self._ask_libraries(form)
        self.guessed.ask(form)
        if "provider" in form.rows:
            self._ask_providers(form)

    @task("providers")
    async def _ask_providers(self, form: ParamForm) -> None:
        await on_thread(providers.find_installed)
        if form.is_attached:
            form.check()

    def open_document(self) -> Document | None:
        """Return the open model that is to run; None where its file is to be read."""
        return None

    def on_resize(self) -> None:
        """Break the lines about guessed shapes again."""
        self.guessed.show()

    def _ask_libraries(self, form: ParamForm) -> None:
        """Ask the target what it has of TensorRT, where the form needs it."""
        if self.libraries is not None and (
            self.has_trtexec or needs_tensorrt(form.values())
        ):  # fmt: skip
            self.libraries.ask(self._target(), library_folder(form))

    def on_unmount(self) -> None:
        """Ask no longer."""
        if self.libraries is not None:
            self.libraries.leave()
        self.guessed.leave()

    @property
    def _command_rows(self) -> int:
        return 2 if self.has_trtexec else 1

    def _libraries_changed(self) -> None:
        if self.is_mounted:
            self._grey(self.query_one(ParamForm))
            self._show_commands()

    def _grey(self, form: ParamForm) -> None:
        """Grey what cannot be used, with the reasons."""
        values = form.values()
        if self.libraries is not None and (self.has_trtexec or needs_tensorrt(values)):
            chosen = str(values["library"] or AUTO)
            remark = self.libraries.remark(chosen, runs="seed" in values)
            form.set_remarks({"library": remark})
        form.set_reasons(self.own_reasons(values))

    def facts(self) -> set[str]:
        forms = self.query(ParamForm)
        facts = {"valid"} if forms and forms.first().valid else set()
        if len(targets.names()) > 1:
            facts.add("targets")
        facts |= {"trtexec"} if self.has_trtexec else set()
        facts |= {"presets"} if self.is_mounted and self.presets.by_name else set()
        return super().facts() | facts

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Show the equal command line, and what the chosen library lacks."""
        self._let_go(event.form)
        self._ask_libraries(event.form)
        self._grey(event.form)
        self._show_commands()
        self.refresh_bindings()
        self.guessed.ask(event.form)

    def on_choice_field_changed(self, event: ChoiceField.Changed) -> None:
        """Ask another target for its libraries."""
        event.stop()
        form = self.query_one(ParamForm)
        form.set_here(self._target() == targets.LOCAL)
        self._ask_libraries(form)
        self._grey(form)
        self._show_commands()
        self.guessed.ask(form)

    def _show_commands(self) -> None:
        room = max(20, self.app.size.width - 6)
        missing = self.missing
        lines = [(missing, "warn") if missing else (self.command_line, "dim")]
        if self.has_trtexec:
            lines.append((visible(self.trtexec_command), "dim"))
        rows: list[list[Piece]] = [[(clip(line, room), style)] for line, style in lines]
        self.query_one("#command", Rows).set_rows(rows)

    @property
    def missing(self) -> str:
        """What is missing before it can run; empty when nothing is."""
        values = self.asked_values()
        reason = self._all_reasons(values).get("", "")
        return reason or visible(problem_of_form(self.activity.request, values))

    def asked_values(self) -> dict[str, JSON]:
        """Return the settings as they will be asked for."""
        return self.query_one(ParamForm).values()

    @property
    def trtexec_command(self) -> str:
        """The command of trtexec that does the same. Foreign text."""
        if self.libraries is None or not self.has_trtexec:
            return ""
        values = self.query_one(ParamForm).values()
        return trtexec_line(self.activity.request, values, self.libraries)

    @property
    def command_line(self) -> str:
        """The shell command that does the same."""
        values = self.query_one(ParamForm).values()
        chosen = self._targets()
        line = command_line(self.activity.words, self.activity.request, values)
        return " ".join([line, *(f"--target {n}" for n in chosen if chosen != [targets.LOCAL])])

    def _targets(self) -> list[str]:
        return self.query_one("#target ChoiceField", ChoiceField).value.split(_AND)

    def _target(self) -> str:
        return self._targets()[0]

    @task()
    async def action_run_on(self) -> None:
        field = self.query_one("#target ChoiceField", ChoiceField)
        names = await self.tasks.ask(TargetsDialog(targets.names(), self._targets()))
        if names:
            field.choices = (*targets.names(), *([_AND.join(names)] if names[1:] else ()))
            field.value = _AND.join(names)

    @task()
    async def action_run(self) -> None:
        """Run it; asks whether an engine is trusted, and before an output is overwritten."""
        if missing := self.missing:
            host(self).show_error(UsageError(missing))
            return
        more: dict[str, JSON] = {}
        if engine := untrusted_engine(self.query_one(ParamForm).values()):
            if await self.tasks.ask(trust_dialog(engine)) != TRUST:
                return
            more = {TRUST: True}
        if taken := self._taken():
            choices = [Choice("o", "overwrite it", "overwrite")]
            question = ChoiceDialog("Overwrite?", f"{taken[0]} exists.", choices)
            if await self.tasks.ask(question) != "overwrite":
                return
        self._start(more)

    def _taken(self) -> list[str]:
        """Return the outputs that are there already."""
        form = self.query_one(ParamForm)
        given = {name: value for name, value in form.values().items() if value}
        outputs = {n for n in given if form.rows[n].setting.param.kind == "output"}
        chosen = self._targets()
        if len(chosen) == 1:
            return [str(given[name]) for name in outputs if exists(str(given[name]))]
        paths: list[Path] = []
        with suppress(DldError):  # said when it is started
            requests_for("", from_json(self.activity.request, form.values()), chosen, paths.append)
        return [str(path) for path in paths if exists(str(path))]

    def _start(self, more: Mapping[str, JSON]) -> None:
        values = self.query_one(ParamForm).values() | dict(more)
        self._keep(values)
        chosen = self._targets()
        if len(chosen) > 1:
            self.start_on_several(chosen, values)
        else:
            self.start_job(values, chosen[0])

    def start_job(self, values: Mapping[str, JSON], target: str) -> None:
        """Run it on one target."""
        about = self.activity
        host(self).run_job(about.id, values, self.open_result, title=about.title, target=target)

    def start_on_several(self, chosen: list[str], values: Mapping[str, JSON]) -> None:
        """Run it on several targets at once."""
        from dld_tui.screens.activity.jobs import ManyJobsScreen

        about = self.activity
        try:
            request = from_json(self.activity.request, dict(values))
            requests = requests_for(about.id, request, chosen)
            starts = [
                (name, partial(targets.get(name).start, about.id, to_json(own)))
                for name, own in zip(chosen, requests, strict=True)
            ]
        except DldError as error:
            host(self).show_error(error)
            return
        self.app.push_screen(ManyJobsScreen(about.title, starts))

    def result_view(self, result: object, values: Mapping[str, JSON]) -> View:
        """Return what to show of a result."""
        view: View = resolve(self.activity.result_view)(result, values)
        return view

    def open_result(self, result: object) -> None:
        """Close the form and show the result."""
        owner = host(self)
        values = self.query_one(ParamForm).values()
        self.dismiss(None)
        show_view(owner, self.result_view(result, values))

    def action_next_page(self) -> None:
        self.query_one(ParamForm).step_page(1)

    def action_previous_page(self) -> None:
        self.query_one(ParamForm).step_page(-1)

    def action_defaults(self) -> None:
        self.query_one(ParamForm).reset()

    def action_copy_command(self) -> None:
        self.app.copy_to_clipboard(self.command_line)

    def action_copy_trtexec(self) -> None:
        if command := self.trtexec_command:
            self.app.copy_to_clipboard(command)


def exists(path: str) -> bool:
    """Return whether something is at a path that was typed."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False
