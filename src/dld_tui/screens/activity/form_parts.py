"""What a form works out beside its fields: presets, guessed input shapes, TensorRT libraries."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from dld_tui.activities.machine.tensorrt_libraries import Result as LibrariesResult
from dld_tui.activities.registry import request_data
from dld_tui.core import fmt
from dld_tui.core.accuracy.engine_settings import EngineSettings
from dld_tui.core.document.document import Document
from dld_tui.core.document.metadata import profiles_of
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.inputs.guess import Guess, InputGuess, guess_inputs, input_specs
from dld_tui.core.inputs.shapes import parse_shapes
from dld_tui.core.params import from_json
from dld_tui.core.tensorrt.facts import AUTO, MODULES, RTX_VERSION, LibraryFacts, trtexec_version
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.trtexec import print_command
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.workspace.jobs import Watch
from dld_tui.targets import registry
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.lists.styled import Rows, wrap
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import Front
from dld_tui.widgets.tasks import on_thread, task

_SECTION = "presets"
_KEYS = "123456789abcdefghijklmnopqrstuvwxyz"
_LONGEST = 60


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

    def __init__(self, page: Front, key: str) -> None:
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
        kept: JSON = {
            key: value
            for key, value in form.values().items()
            if value is not None and not form.rows[key].setting.of_model
        }
        state = host(self._page).state
        state.put(_SECTION, self._key, {**state.get(_SECTION, self._key), name.strip(): kept})
        self._page.notify(f"Saved as {visible(name.strip())}", timeout=3, markup=False)
        self._page.refresh_bindings()

    @task()
    async def load(self) -> None:
        """Ask which preset to fill the form with."""
        presets = self.by_name
        choices = [
            Choice(key, visible(name), name)
            for key, name in zip(_KEYS, sorted(presets), strict=False)
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

    def __init__(self, screen: Front, document: Callable[[], Document | None]) -> None:
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
            document = Document.open(Path(model).expanduser())
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
        most = 3 if size.height < 36 else 8
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
        for one in guessed:
            alike.setdefault((one.shape, one.why), []).append(one)
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
                if not lines:
                    lines = [clip(f"{same[0].text}{more}", width - 2)]
                left = fmt.plural(rest - (len(lines) == 1), "more shape")
                return [*lines[: most - 1], f"and {left}"]
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
    given = next((values[name] for name in (*_RANGES, "shape") if values.get(name)), None)
    batch = values.get("batch")
    return _Question(
        str(model),
        _texts(given),
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
    given = parse_shapes(question.shapes, [spec.name for spec in specs])
    sizes = _sizes(question.sizes)
    return guess_inputs(
        specs, document, given, sizes, batch=question.batch, empty=not question.ranged
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

    def __init__(self, screen: Front, changed: Callable[[], None]) -> None:
        self._screen = screen
        self._changed = changed
        self._left = Event()
        self._asked: set[tuple[str, str]] = set()
        self._target = ""
        self.known: list[LibraryFacts] = []
        self.problem = ""
        """Why nothing is known."""
        self.waiting = False

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
        self.waiting = True
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

    def _answered(self, target: str, libraries: list[LibraryFacts], problem: str) -> None:
        if self._left.is_set() or target != self._target:
            return
        self.known, self.problem, self.waiting = libraries, problem, False
        self._changed()

    def chosen(self, choice: str) -> LibraryFacts | None:
        """Return the facts of a library as the form names it; None when they are not known."""
        if choice in ("", AUTO):
            usable = [facts for facts in self.known if facts.usable and facts.name in MODULES]
            return usable[0] if usable else None
        return next((facts for facts in self.known if facts.name == choice), None)

    def remark(self, choice: str, *, runs: bool = False) -> str:
        """Return what to say beside the choice of a library. Fit for a terminal.

        Args:
            choice: As the form has it.
            runs: Whether engines will be run, too, which needs a driver.
        """
        facts = self.chosen(choice)
        if facts is not None:
            no_driver = ", no driver" if runs and facts.no_driver else ""
            return visible(f"{facts.title}{no_driver}" if facts.usable else facts.why)
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
    """Return the equal command of trtexec; empty while a setting cannot be read. Foreign text."""
    choice = str(values.get("library") or AUTO)
    facts = libraries.chosen(choice)
    version = trtexec_version(choice)
    if facts is not None and facts.usable:
        version = facts.version if facts.module == "tensorrt" else RTX_VERSION
    try:
        given: dict[str, JSON] = {
            name: value for name, value in values.items() if value is not None
        }
        settings = from_json(request, given)
    except DldError:
        return ""
    return print_command(settings, version) if isinstance(settings, BuildSettings) else ""


def _libraries(
    target: str, request: Mapping[str, JSON], cancelled: CancelCheck
) -> list[LibraryFacts]:
    with (
        registry.get(target).start(ACTIVITY, request_data(ACTIVITY, request)) as job,
        Watch(job.cancel, cancelled),
    ):
        return job.result(kind=LibrariesResult).libraries
