"""What screens and widgets may ask of the app, without importing it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from dld_tui.core import fmt
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.state import State
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.widget import Widget

    from dld_tui.core.document.parts.fragment import Fragment
    from dld_tui.widgets.shell.page import Page
    from dld_tui.widgets.tasks import Tasks


class Host(Protocol):
    """The app, as the rooms below it see it."""

    config: Config
    state: State
    copied_nodes: Fragment | None
    """What was copied last in any tab, to be pasted in any."""

    def use_config(self, config: Config) -> None:
        """Show the program with other settings."""

    @property
    def tasks(self) -> Tasks:
        """Long work and dialogs that belong to no screen."""

    @property
    def pages(self) -> Sequence[Page]:
        """The open tabs, in order."""

    @property
    def page(self) -> Page:
        """The tab that is seen, or the start page."""

    def open_path(self, path: Path | str, then: Callable[[Page], None] | None = None) -> None:
        """Recognise a file and open it in a tab; an error is shown in a dialog.

        Args:
            path: The file.
            then: Is told the page.
        """

    def open_all(self, paths: Sequence[Path | str]) -> None:
        """Open files in tabs, in their order, and show the first."""

    def reveal(self, path: Path | str, scope_path: Sequence[str], node_ref: str) -> None:
        """Show a node of a model, which is opened first when it is not."""

    def reveal_layer(self, path: Path | str, index: int) -> None:
        """Show a layer of a report, which is opened first when it is not."""

    def add_page(self, page: Page) -> None:
        """Open a new tab and show it."""

    def show_page(self, page: Page) -> None:
        """Show an open tab."""

    def close_page(self, page: Page) -> None:
        """Close a tab without asking, e.g. after its file could not be opened."""

    def page_changed(self) -> None:
        """Draw the tabs again after a title or an unsaved mark changed."""

    def show_error(self, error: BaseException, title: str = "") -> None:
        """Show an error in a dialog whose text can be copied."""

    @property
    def is_used(self) -> bool:
        """Whether the user types or points just now, so that other work should wait."""

    @property
    def ended_jobs(self) -> Collection[EndedJob]:
        """The jobs that have ended in this session, the newest last."""

    def job_ended(self, job: EndedJob) -> None:
        """Keep what stays of a job."""

    def start_activity(self, activity: str, values: Mapping[str, JSON]) -> None:
        """Show the form of an activity, some of its fields filled."""

    def run_job(
        self,
        activity: str,
        request: Mapping[str, JSON],
        on_result: Callable[[Any], None],
        *,
        title: str = "",
        target: str | None = None,
    ) -> None:
        """Run an activity on a target, this machine by default, and show its progress."""


_RESULT_FILES = ("report", "engine", "output", "path", "script")
"""Keys of results that are files, the one to open first."""
_MOST_LOG = 2000


@dataclass(frozen=True)
class EndedJob:
    """What stays of a job when its page has closed."""

    number: int
    title: str
    """Untrusted text, as all texts here."""
    end: str
    """``done``, ``stopped`` or ``failed``."""
    time: str
    """Of the day, when it ended."""
    result: tuple[tuple[str, str], ...]
    """Names and values; of tables the number of rows."""
    files: tuple[str, ...]
    log: tuple[str, ...]

    @classmethod
    def of(cls, title: str, end: str, result: Mapping[str, JSON], log: Sequence[str]) -> EndedJob:
        """Return what stays of a job."""
        shown = [
            (name.replace("_", " "), _shown(value))
            for name, value in result.items()
            if value not in (None, "", [], {})
        ]
        files = [value for name in _RESULT_FILES if isinstance(value := result.get(name), str)]
        clock = time.strftime("%H:%M:%S")
        number = next(_NUMBERS)
        return cls(number, title, end, clock, tuple(shown), tuple(files), tuple(log[-_MOST_LOG:]))


_NUMBERS = itertools.count(1)


def _shown(value: JSON) -> str:
    if isinstance(value, list) and any(isinstance(item, (list, dict)) for item in value):
        return fmt.plural(len(value), "row")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_shown(item)}" for name, item in value.items())
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def offer_rules(owner: Host, model: Path, rules: Sequence[str]) -> None:
    """Open a model and show what rules of ``dld rewrite`` would change in it."""
    names = " ".join(rules)
    owner.open_path(model, lambda page: page.when_open(lambda: page.offer_rules(names)))


def host(node: Widget | Screen[object]) -> Host:
    """Return the app of a widget or screen."""
    return cast("Host", node.app)
