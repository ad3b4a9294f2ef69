"""What screens and widgets may ask of the app, without importing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from dld_tui.core.config import Config
from dld_tui.core.state import State
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.widget import Widget

    from dld_tui.core.document.fragment import Fragment
    from dld_tui.widgets.page import Page


class Host(Protocol):
    """The app, as the rooms below it see it."""

    config: Config
    state: State
    copied_nodes: Fragment | None
    """What was copied last in any tab, to be pasted in any."""

    def use_config(self, config: Config) -> None:
        """Show the program with other settings."""

    @property
    def pages(self) -> Sequence[Page]:
        """The open tabs, in order."""

    @property
    def page(self) -> Page:
        """The tab that is seen, or the start page."""

    def open_path(self, path: Path | str) -> None:
        """Recognise a file and open it in a tab; an error is shown in a dialog."""

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

    def start_activity(self, activity: str, values: Mapping[str, JSON]) -> None:
        """Show the form of an activity, some of its fields filled."""

    def run_job(
        self,
        activity: str,
        request: Mapping[str, JSON],
        on_result: Callable[[dict[str, JSON]], None],
        *,
        title: str = "",
        target: str | None = None,
    ) -> None:
        """Run an activity on a target, this machine by default, and show its progress."""


def host(node: Widget | Screen[object]) -> Host:
    """Return the app of a widget or screen."""
    return cast("Host", node.app)
