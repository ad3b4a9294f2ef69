"""The form of an activity, made from its request, with presets and guessed input shapes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, TypeAlias

from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.activities import registry as activities
from dld_tui.activities.machine.tensorrt_libraries import Result as LibrariesResult
from dld_tui.activities.registry import request_data
from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.accuracy.engine_settings import EngineSettings, needs_tensorrt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError, UsageError
from dld_tui.core.llm.folder import open_document
from dld_tui.core.machine import providers
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.metadata import profiles_of
from dld_tui.core.model.inputs.guess import Guess, InputGuess, guess_inputs, input_specs
from dld_tui.core.model.inputs.shapes import parse_shapes
from dld_tui.core.params import (
    command_line,
    from_json,
    problem_of_form,
    settings_of,
    to_json,
    written_files,
)
from dld_tui.core.process.plugins import resolve
from dld_tui.core.settings import state
from dld_tui.core.tensorrt.capabilities import (
    AUTO,
    MODULES,
    RTX_VERSION,
    LibraryCapabilities,
    trtexec_version,
)
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.trtexec import print_command
from dld_tui.core.text import clip, visible
from dld_tui.core.types import ENGINE_SUFFIXES, JSON, CancelCheck
from dld_tui.screens.results.views import View, show_view
from dld_tui.screens.targets import TargetsDialog
from dld_tui.screens.workspace.jobs import Watch
from dld_tui.styles import STYLES
from dld_tui.targets import registry
from dld_tui.targets import registry as targets
from dld_tui.targets.registry import requests_for
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog, QuestionDialog
from dld_tui.widgets.dialogs.overwrite import may_write
from dld_tui.widgets.forms.command_rows import CommandRows
from dld_tui.widgets.forms.param_form import ChoiceField, LabelledRow, ParamForm
from dld_tui.widgets.lists.styled import Rows, wrap
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.page import AppServices, CommandScreen, Page, host
from dld_tui.widgets.tasks import on_thread, task

_SECTION = state.PRESETS
_PRESET_KEYS = "123456789abcdefghijklmnopqrstuvwxyz"
_LONGEST = 60
LOW = 20
"""Rows of a screen below which the settings need those of other things."""
NARROW = 60
"""Columns of a screen below which values need those of labels."""


def _problem(name: str) -> str | None:
    if not name.strip():
        return "needed"
    return f"at most {_LONGEST} characters" if len(name) > _LONGEST else None


_FIELDS = ("shape", "opt_shapes")
"""Settings that give shapes; the first one that a form has is filled in by Enter."""
_RANGES = ("opt_shapes", "max_shapes", "min_shapes")
_MOST_TEXT = 20_000
"""Characters of shapes that Enter fills in at most."""


@dataclass(frozen=True)
class _Question:
    """What a guess depends on."""

    model: str
    shapes: tuple[str, ...]
    sizes: tuple[str, ...]
    batch: int | None
    ranged: bool
    """Whether it is for an engine, whose model may define its own ranges."""
    is_open: bool
    """Whether it is about the open model, edits included."""


class Presets:
    """Settings of a form that are kept under names.

    Args:
        page: The form.
        key: Under which its presets are remembered.
    """

    def __init__(self, page: CommandScreen, key: str) -> None:
        self._page, self._key = page, key
        self.tasks = page.tasks

    @property
    def by_name(self) -> dict[str, dict[str, JSON]]:
        """The presets of this form by name."""
        presets = host(self._page).state.get(_SECTION, self._key)
        return {name: values for name, values in presets.items() if isinstance(values, dict)}

    @task()
    async def save(self) -> None:
        """Ask for a name and keep the settings under it that are not of the model alone."""
        message = (
            "Settings of one model, such as files, shapes and names, are not part of a preset."
            " An existing preset of this name is overwritten."
        )
        name = await self.tasks.ask(PromptDialog("Save as preset", message, check=_problem))
        if name is None:
            return
        form = self._page.query_one(ParamForm)
        preset: JSON = {
            key: value
            for key, value in form.values().items()
            if value is not None and not form.rows[key].setting.of_model
        }
        state = host(self._page).state
        state.put(_SECTION, self._key, {**state.get(_SECTION, self._key), name.strip(): preset})
        self._page.notify(f"Saved as {visible(name.strip())}", timeout=3, markup=False)
        self._page.refresh_bindings()

    @task()
    async def load(self) -> None:
        """Ask which preset to fill the form with."""
        presets = self.by_name
        choices = [
            Choice(key, visible(name), name)
            for key, name in zip(_PRESET_KEYS, sorted(presets), strict=False)
        ]
        name = await self.tasks.ask(ChoiceDialog("Load a preset", "Which one?", choices))
        if name is not None:
            self._page.query_one(ParamForm).set_values(presets[name])


class GuessedShapes:
    """Works the guess out on a thread and shows it.

    Args:
        screen: The form.
        document: Returns the open model, where the form is about one.
    """

    def __init__(self, screen: CommandScreen, document: Callable[[], Document | None]) -> None:
        self._screen, self._document = screen, document
        self._asked: _Question | None = None
        self._guess: Guess | None = None
        self._problem = ""
        self._label = ""
        self._opened: tuple[str, Document] | None = None
        self._gone = False
        self.rows = Rows([], id="guess")

    def leave(self) -> None:
        """Give back the model."""
        self._gone = True
        if self._opened is not None:
            self._opened[1].close(keep_journal=True)
            self._opened = None

    def ask(self, form: ParamForm) -> None:
        """Work it out for what the form has now, unless that is known."""
        name = _field(form)
        self._label = form.rows[name].setting.param.label if name is not None else ""
        document = self._document()
        question = _question(form, is_open=document is not None)
        if question == self._asked:
            return
        self._asked = question
        if question is None:
            self._answered(None, None, "")
            return
        self._screen.tasks.start(self._work(question, document), "guess", replace=True)

    async def _work(self, question: _Question, document: Document | None) -> None:
        guess, problem = None, ""
        try:
            if document is None:
                document = await on_thread(self._open, question.model)
            guess = await on_thread(_guess, document, question)
        except DldError as error:
            problem = str(error)
        self._answered(question, guess, problem)

    def _open(self, model: str) -> Document:
        if self._opened is None or self._opened[0] != model:
            document = open_document(Path(model).expanduser())
            if self._opened is not None:
                self._opened[1].close(keep_journal=True)
            self._opened = (model, document)
        return self._opened[1]

    def _answered(self, question: _Question | None, guess: Guess | None, problem: str) -> None:
        if self._gone or question != self._asked or not self.rows.is_attached:
            return
        self._guess, self._problem = guess, problem
        self.show()
        options = [] if guess is None else guess.options
        is_short = sum(map(len, options)) <= _MOST_TEXT
        for form in self._screen.query(ParamForm):
            name = _field(form)
            if name is not None:
                form.suggest(name, options if is_short else [])

    def show(self) -> None:
        """Show it again, after the size of the screen has changed."""
        size = self._screen.app.size
        most = 1 if size.height < LOW else 3 if size.height < 36 else 8
        lines = self._lines(max(20, size.width - 6), most)
        self.rows.styles.height = len(lines)
        self.rows.set_rows([[(line, "dim")] for line in lines])

    def _lines(self, width: int, most: int) -> list[str]:
        if self._problem:
            return wrap(self._problem, width)[:most]
        if self._guess is None:
            return []
        lines: list[str] = []
        guessed = [guess for guess in self._guess.inputs if guess.is_guessed or guess.follows]
        alike: dict[tuple[tuple[int, ...], str], list[InputGuess]] = {}
        for guessed_shape in guessed:
            alike.setdefault((guessed_shape.shape, guessed_shape.why), []).append(guessed_shape)
        groups = list(alike.values())
        for at, same in enumerate(groups):
            more = f" and {len(same) - 1} like it" if len(same) > 1 else ""
            hint = ""
            if at == 0 and same[0].is_guessed:
                bound = len(self._guess.bound_to(same[0]))
                also = f" and {bound} that follow{'s' if bound == 1 else ''}" if bound else ""
                hint = f"; Enter in {self._label} changes it{also}"
            rows = wrap(f"{same[0].text[:-1]}{hint}){more}", width - 2)
            rest = len(groups) - at
            room = most - (rest > 1) - len(lines)
            if hint and len(rows) > room:
                rows = wrap(f"{same[0].text}{more}", width - 2)
            if len(rows) > room:
                if most == 1:
                    return [clip(same[0].text, width)]
                if not lines:
                    lines = [clip(f"{same[0].text}{more}", width - 2)]
                rest_text = fmt.plural(rest - (len(lines) == 1), "more shape")
                return [*lines[: most - 1], f"and {rest_text}"]
            lines += [rows[0], *(f"  {row}" for row in rows[1:])]
        return lines


def _field(form: ParamForm) -> str | None:
    return next((name for name in _FIELDS if name in form.rows), None)


def _question(form: ParamForm, *, is_open: bool) -> _Question | None:
    """Return what to guess for a form; None where nothing is guessed."""
    if _field(form) is None or "model" not in form.rows:
        return None
    values = form.values()
    model = values.get("model") or form.rows["model"].text
    if values.get("inputs") or not model:
        return None
    ranged = "opt_shapes" in form.rows
    shapes = next((values[name] for name in (*_RANGES, "shape") if values.get(name)), None)
    batch = values.get("batch")
    return _Question(
        str(model),
        _texts(shapes),
        _texts(values.get("dim")),
        batch if isinstance(batch, int) else None,
        ranged,
        is_open,
    )


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _guess(document: Document, question: _Question) -> Guess | None:
    if question.ranged and not question.shapes and profiles_of(document):
        return None
    specs = input_specs(document)
    known_shapes = parse_shapes(question.shapes, [spec.name for spec in specs])
    sizes = _sizes(question.sizes)
    return guess_inputs(
        specs, document, known_shapes, sizes, batch=question.batch, empty=not question.ranged
    )


def _sizes(texts: tuple[str, ...]) -> Mapping[str, int]:
    sizes = {}
    for text in texts:
        name, _, size = text.rpartition("=")
        with contextlib.suppress(ValueError):
            sizes[name] = int(size)
    return sizes


ACTIVITY = "tensorrt_libraries"


def is_tensorrt(request: Any) -> bool:
    """Return whether a request class has the settings of a build with TensorRT."""
    return isinstance(request, type) and issubclass(request, BuildSettings)


def has_engines(request: Any) -> bool:
    """Return whether a request class has settings of engines that it builds where asked to."""
    return isinstance(request, type) and issubclass(request, EngineSettings)


class Libraries:
    """The libraries of a target, asked for by a job beside the form."""

    def __init__(self, screen: CommandScreen, changed: Callable[[], None]) -> None:
        self._screen = screen
        self._changed = changed
        self._left = Event()
        self._asked: set[tuple[str, str]] = set()
        self._target = ""
        self.known: list[LibraryCapabilities] = []
        self.problem = ""
        """Why nothing is known."""
        self._nothing_asked = asyncio.Event()
        self._nothing_asked.set()

    @property
    def waiting(self) -> bool:
        """Whether the target has still to answer."""
        return not self._nothing_asked.is_set()

    async def answered(self) -> None:
        """Wait for the answer: what can be set depends on it."""
        await self._nothing_asked.wait()

    def leave(self) -> None:
        """Stop asking."""
        self._left.set()

    def ask(self, target: str, path: str = "") -> None:
        """Ask a target for its libraries, and for the one of a folder; once each."""
        if target != self._target:
            self._target, self.known, self.problem = target, [], ""
            self._asked.clear()
        if (target, path) in self._asked:
            return
        self._asked.add((target, path))
        self._nothing_asked.clear()
        request: dict[str, JSON] = {"paths": [path] if path else []}
        self._screen.tasks.start(self._ask(target, request), "libraries")

    async def _ask(self, target: str, request: Mapping[str, JSON]) -> None:
        libraries, problem = [], ""
        try:
            libraries = await on_thread(_libraries, target, request, self._left.is_set)
        except CancelledError:
            return
        except DldError as error:
            problem = error.message
        self._answered(target, libraries, problem)

    def _answered(self, target: str, libraries: list[LibraryCapabilities], problem: str) -> None:
        if self._left.is_set() or target != self._target:
            return
        self.known, self.problem = libraries, problem
        self._nothing_asked.set()
        self._changed()

    def chosen(self, choice: str) -> LibraryCapabilities | None:
        """Return the library that the form names; None when nothing is known of it."""
        if choice in ("", AUTO):
            usable = [
                capabilities
                for capabilities in self.known
                if capabilities.usable and capabilities.name in MODULES
            ]
            return usable[0] if usable else None
        return next(
            (capabilities for capabilities in self.known if capabilities.name == choice), None
        )

    def remark(self, choice: str, *, runs: bool = False) -> str:
        """Return what to say beside the choice of a library. Fit for a terminal.

        Args:
            choice: As the form has it.
            runs: Whether engines will be run, too, which needs a driver.
        """
        capabilities = self.chosen(choice)
        if capabilities is not None:
            no_driver = ", no driver" if runs and capabilities.no_driver else ""
            return visible(
                f"{capabilities.title}{no_driver}" if capabilities.usable else capabilities.why
            )
        if self.waiting:
            return "looking …"
        if self.problem:
            return visible(self.problem)
        return "none is installed on the target" if choice in ("", AUTO) and self.known else ""


def library_folder(form: ParamForm) -> str:
    """Return the folder that the form names as its library, or nothing."""
    choice = str(form.values().get("library") or "")
    try:
        is_folder = "/" in choice and Path(choice).is_dir()
    except (OSError, ValueError):
        is_folder = False
    return choice if is_folder else ""


def trtexec_line(request: type[Any], values: Mapping[str, JSON], libraries: Libraries) -> str:
    """Return the equal command of trtexec; empty while a setting cannot be read. Untrusted text."""
    choice = str(values.get("library") or AUTO)
    capabilities = libraries.chosen(choice)
    version = trtexec_version(choice)
    if capabilities is not None and capabilities.usable:
        version = capabilities.version if capabilities.module == "tensorrt" else RTX_VERSION
    try:
        known_values: dict[str, JSON] = {
            name: value for name, value in values.items() if value is not None
        }
        settings = from_json(request, known_values)
    except DldError:
        return ""
    return print_command(settings, version) if isinstance(settings, BuildSettings) else ""


def _libraries(
    target: str, request: Mapping[str, JSON], cancelled: CancelCheck
) -> list[LibraryCapabilities]:
    with (
        registry.get(target).start(ACTIVITY, request_data(ACTIVITY, request)) as job,
        Watch(job.cancel, cancelled),
    ):
        return job.result(kind=LibrariesResult).libraries


_CHOICE_KEYS = "123456789abcdefghijklmnoprstuvwxyz"


async def choose_activity(services: AppServices, values: Mapping[str, JSON]) -> None:
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


def trust_dialog(engine: str) -> QuestionDialog:
    """Return the question; its answer is :data:`TRUST` where the engine may be loaded."""
    name = clip(visible(engine), _PATH_CELLS, keep="middle")
    return QuestionDialog(
        "Load the engine?",
        f"{name} can hold code that runs when it is loaded. Load it only if you trust who made it.",
        [Choice("k", "do not load it", ""), Choice("l", "load it", TRUST)],
    )


_KEYS = ("{activity.run} run", "{page.close} close")
_COPY = ("{activity.copy} copies it", "{activity.copy_trtexec} copies it")
_PAGE_KEY, _LIST_KEY = "{activity.next_page} page", "{activity.tick} list"
Reasons: TypeAlias = "Callable[[Mapping[str, JSON], LibraryCapabilities | None], dict[str, str]]"
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
    COMMAND_TABLE = table(
        "activity",
        ("activity.run", "run", "f5", "valid", "run", "Run with these settings."),
        ("activity.run_on", "run_on", "f6", "targets", "run on …",
         "Choose several targets, run on all of them, and compare the reports."),
        ("activity.next_page", "next_page", "ctrl+pagedown", "", "next page",
         "Show the next page."),
        ("activity.previous_page", "previous_page", "ctrl+pageup", "", "previous page",
         "Show the previous page."),
        ("activity.tick", "tick", "f2", "tickable", "choose from list",
         "Choose values for the field at the cursor from a list of the model's."),
        ("activity.defaults", "defaults", "f8", "", "defaults",
         "Reset every field to its default."),
        ("activity.copy", "copy_command", "f9", "", "copy command",
         "Copy the equivalent command line."),
        ("activity.copy_trtexec", "copy_trtexec", "f7", "trtexec", "copy trtexec",
         "Copy the equivalent trtexec command."),
        ("activity.save_preset", "presets.save", "ctrl+s", "valid", "save as preset",
         "Save these settings under a name."),
        ("activity.load_preset", "presets.load", "f4", "presets", "load preset",
         "Fill the form from a saved preset."),
        priority=True, footer="activity.run activity.next_page activity.defaults activity.copy",
    )  # fmt: skip
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
        self.box = ActivityBox()
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
        field = ChoiceField(names, chosen if chosen in names else names[0])
        target = LabelledRow("Target", field, id="target")
        rows = list(self.own_rows())
        box = ActivityBox(
            target,
            *rows,
            ParamForm(self.activity.request, values, self.own_reasons(values)),
            self.guessed.rows,
            CommandRows(*_COPY),
        )
        box.set_class(bool(rows), "-stated")
        target.display = len(names) > 1
        self.box = box
        yield box

    @property
    def frame_title(self) -> str:
        """What stands in the border."""
        return self.activity.title

    def _show_frame(self) -> None:
        """Name in the border what works here."""
        form = self.query_one(ParamForm)
        run, *others = _KEYS
        pages = [_PAGE_KEY] if len(form.shown_pages) > 1 else []
        lists = [_LIST_KEY] if "tickable" in self.conditions() else []
        self.box.frame.show(self.frame_title, "  ".join([run, *pages, *lists, *others]))

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
        remembered = {name: value for name, value in values.items() if name != TRUST}
        settings = settings_of(self.activity.request)
        state.keep(host(self).state, self.activity.id, settings, remembered)

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
        capabilities = None
        if self.libraries is not None:
            capabilities = self.libraries.chosen(str(values.get("library") or AUTO))
        return {name: visible(why) for name, why in self._reasons(values, capabilities).items()}

    def on_mount(self) -> None:
        """Go to the first field."""
        form = self.query_one(ParamForm)
        form.set_here(self._target() == targets.LOCAL)
        form.focus_first()
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
        """Break the lines about guessed shapes again, and give the settings what room there is."""
        self.set_class(self.app.size.height < LOW, "-low")
        self.set_class(self.app.size.width < NARROW, "-narrow")
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

    def conditions(self) -> set[str]:
        forms = self.query(ParamForm)
        conditions = {"valid"} if forms and forms.first().valid else set()
        if len(targets.names()) > 1:
            conditions.add("targets")
        conditions |= {"trtexec"} if self.has_trtexec else set()
        conditions |= {"presets"} if self.is_mounted and self.presets.by_name else set()
        return super().conditions() | conditions

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Show the equal command line, and what the chosen library lacks."""
        self._let_go(event.form)
        self._ask_libraries(event.form)
        self._grey(event.form)
        self._show_commands()
        self._show_frame()
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
        missing = self.missing
        lines = [(missing, "warn") if missing else (self.command_line, "dim")]
        if self.has_trtexec:
            lines.append((visible(self.trtexec_command), "dim"))
        self.query_one(CommandRows).set_commands(lines)

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
        """The command of trtexec that does the same. Untrusted text."""
        if self.libraries is None or not self.has_trtexec:
            return ""
        values = self.query_one(ParamForm).values()
        return trtexec_line(self.activity.request, values, self.libraries)

    @property
    def command_line(self) -> str:
        """The shell command that does the same."""
        values = self.asked_values()
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
        """Run it; asks whether an engine is trusted, and before an output is overwritten.

        First the target has to say what its library can do: else what runs would depend on how
        soon the key comes.
        """
        if self.libraries is not None and self.libraries.waiting:
            message = f"Looking for TensorRT on {visible(self._target())} …"
            self.notify(message, timeout=3, markup=False)
            await self.libraries.answered()
        if missing := self.missing:
            host(self).show_error(UsageError(missing))
            return
        more: dict[str, JSON] = {}
        if engine := untrusted_engine(self.query_one(ParamForm).values()):
            if await self.tasks.ask(trust_dialog(engine)) != TRUST:
                return
            more = {TRUST: True}
        answer = await may_write(self.tasks, self.written(), renames=False)
        if answer.allowed:
            self._start(more, [str(path.absolute()) for path in answer.replaces])

    def written(self) -> list[Path]:
        """Return all files that it may write, named or not."""
        try:
            request = from_json(self.activity.request, self.asked_values())
            chosen = self._targets()
            requests = [request] if len(chosen) == 1 else requests_for("", request, chosen)
            return [path for own in requests for path in written_files(own)]
        except DldError:
            return []  # it is said when it is started

    def _start(self, more: Mapping[str, JSON], replaces: Sequence[str]) -> None:
        values = self.query_one(ParamForm).values() | dict(more)
        self._keep(values)
        chosen = self._targets()
        if len(chosen) > 1:
            self.start_on_several(chosen, values, replaces)
        else:
            self.start_job(values, chosen[0], replaces)

    def start_job(self, values: Mapping[str, JSON], target: str, replaces: Sequence[str]) -> None:
        """Run it on one target; `replaces` are the files that it may replace."""
        about = self.activity
        host(self).run_job(
            about.id, values, self.open_result, title=about.title, target=target, replaces=replaces
        )

    def start_on_several(
        self, chosen: list[str], values: Mapping[str, JSON], replaces: Sequence[str]
    ) -> None:
        """Run it on several targets at once."""
        from dld_tui.screens.activity.jobs import ManyJobsScreen

        about = self.activity
        try:
            request = from_json(self.activity.request, dict(values))
            requests = requests_for(about.id, request, chosen)
            starts = [
                (name, partial(targets.get(name).start, about.id, to_json(own, replaces)))
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
        from dld_tui.screens.results.table import TableResult  # lazy: a form needs no charts

        owner = host(self)
        values = self.query_one(ParamForm).values()
        self.dismiss(None)
        view = self.result_view(result, values)
        if isinstance(view, TableResult):
            view.form = self.activity.id, values
        show_view(owner, view)

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
