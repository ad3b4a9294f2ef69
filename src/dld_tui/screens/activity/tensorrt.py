"""What a form knows of TensorRT: which libraries there are, what they lack, and trtexec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

from dld_tui.activities.machine.tensorrt_libraries import Result as LibrariesResult
from dld_tui.activities.registry import request_data
from dld_tui.core.accuracy.engine_settings import EngineSettings
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.params import from_json
from dld_tui.core.tensorrt.build_settings import BuildSettings
from dld_tui.core.tensorrt.facts import AUTO, MODULES, RTX_VERSION, LibraryFacts, trtexec_version
from dld_tui.core.tensorrt.trtexec import print_command
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.workspace.jobs import Watch
from dld_tui.targets import registry
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.shell.front import Front
from dld_tui.widgets.tasks import on_thread

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
        self.found: list[LibraryFacts] = []
        self.problem = ""
        """Why nothing is known."""
        self.waiting = False

    def leave(self) -> None:
        """Stop asking."""
        self._left.set()

    def ask(self, target: str, path: str = "") -> None:
        """Ask a target for its libraries, and for the one of a folder; once each."""
        if target != self._target:
            self._target, self.found, self.problem = target, [], ""
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
        self.found, self.problem, self.waiting = libraries, problem, False
        self._changed()

    def chosen(self, choice: str) -> LibraryFacts | None:
        """Return the facts of a library as the form names it; None when they are not known."""
        if choice in ("", AUTO):
            usable = [facts for facts in self.found if facts.usable and facts.name in MODULES]
            return usable[0] if usable else None
        return next((facts for facts in self.found if facts.name == choice), None)

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
        return "none is installed there" if choice in ("", AUTO) and self.found else ""


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
