"""What pages of results share: panes on number keys, reading, saving, and the model they are of."""

from __future__ import annotations

import asyncio
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

from textual import events

from dld_tui.core.document.transactions import Transaction
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.home.palette import open_menu
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.dialogs.dialogs import PromptDialog
from dld_tui.widgets.dialogs.overwrite import ask_file
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell.page import Page, host
from dld_tui.widgets.tasks import on_thread, with_progress

if TYPE_CHECKING:
    from dld_tui.core.document import Document
    from dld_tui.core.report.records import Layer
    from dld_tui.widgets.shell.page import Front, Page


_LARGE = (150, 40)
"""Columns and rows from which a screen is large."""
_MEDIUM = (100, 32)


class PaneStrip(Rows):
    """The row that names the panes and shows which one is chosen."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names
        self.current = names[0]

    def content(self, width: int) -> list[Line]:
        line: Line = [(" ", "bar-row")]
        for number, name in enumerate(self.names, 1):
            chosen = name == self.current
            line.append((f" {number} ", "current key" if chosen else "bar-row key"))
            line.append((f"{name} ", "current" if chosen else "bar-row"))
        return [[*line, (" " * width, "bar-row")]]


class Panes(Page):
    """A page about the layers in a file: it shows the panes that fit.

    A subclass says which there are, and where the focus goes.
    """

    PANES: ClassVar[tuple[str, ...]] = ()
    """Ids of the panes, in the order of the keys."""
    AUTO_FOCUS = ""
    _awaited_layer: int | None = None
    FOCUS: ClassVar[dict[str, str]] = {}
    """The widget in a pane that takes the focus, where it is not the pane itself."""
    _arranged: tuple[set[str], str] | None = None

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.tab_title = path.name
        self.pane = "summary"
        self.maximised = False

    @property
    def size_class(self) -> str:
        """``large``, ``medium`` or ``small``."""
        width, height = self.app.size
        for name, (columns, rows) in (("large", _LARGE), ("medium", _MEDIUM)):
            if width >= columns and height >= rows:
                return name
        return "small"

    def visible_panes(self) -> set[str]:
        """Return the panes that are seen at this size."""
        raise NotImplementedError

    def place_panes(self, shown: set[str]) -> None:
        """Arrange what holds the panes, after other panes are seen."""

    def on_resize(self, event: events.Resize) -> None:
        """Show what fits."""
        self.arrange_panes()

    def arrange_panes(self) -> None:
        """Show the panes that fit."""
        shown, size = self.visible_panes(), self.size_class
        if (shown, size) != self._arranged:
            self._arranged = (shown, size)
            for name in self.PANES:
                self.query_one(f"#{name}").display = name in shown
            self.set_class(len(shown) == 1, "-single")
            self.set_class(size == "large", "-large")
            self.place_panes(shown)
        self._name_pane()

    def _name_pane(self) -> None:
        strip = self.query_one(PaneStrip)
        if strip.current != self.pane:
            strip.current = self.pane
            strip.refresh()

    def action_pane(self, number: str) -> None:
        self.show_pane(self.PANES[int(number) - 1])

    def show_pane(self, name: str) -> None:
        """Show a pane and put the focus into it."""
        self.pane = name
        self.arrange_panes()
        self.focus_pane()
        self.facts_changed()

    def focus_pane(self) -> None:
        """Put the focus into the chosen pane."""
        self.query_one(self.FOCUS.get(self.pane, f"#{self.pane}")).focus()

    def action_maximise_pane(self) -> None:
        self.maximise(not self.maximised)

    def maximise(self, maximised: bool) -> None:
        """Give the focused pane all the room, or take it back."""
        self.maximised = maximised
        self.arrange_panes()

    # --- the layers -----------------------------------------------------------------------------

    @abstractmethod
    def layer_at_cursor(self) -> Layer | None:
        """Return the layer that commands are about."""

    def action_context_menu(self) -> None:
        layer = self.layer_at_cursor()
        if layer is not None:
            open_menu(self.app, self, "layer", layer.name)

    def on_line_view_menu_asked(self, event: LineView.MenuAsked) -> None:
        """Show the menu on a right click."""
        event.stop()
        self.call_after_refresh(self.action_context_menu)

    def layer_count(self) -> int | None:
        """Return how many layers there are; None while the files are being read."""
        return None

    def show_in_table(self, index: int | None) -> None:
        """Go to a layer in the table; None is the whole engine."""

    def reveal_layer(self, index: int) -> None:
        """Go to a layer in the table, as soon as the files are read."""
        self._awaited_layer = index
        self.show_awaited_layer()

    def show_awaited_layer(self) -> None:
        """Go to the layer that was asked for before the files were read."""
        index, count = self._awaited_layer, self.layer_count()
        if index is not None and count is not None:
            self._awaited_layer = None
            if 0 <= index < count:
                self.show_in_table(index)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Name the pane that has the focus."""
        for node in event.widget.ancestors_with_self:
            if node.id in self.PANES and node.id != self.pane:
                self.pane = str(node.id)
                self._name_pane()


T = TypeVar("T")


async def read_or_close(
    page: Page,
    read: Callable[[ProgressCallback, CancelCheck], T],
    report: ProgressCallback = lambda done, total: None,
) -> T:
    """Return what is read on a thread; a page that has nothing to show closes its tab.

    Args:
        page: Its file cannot be shown when this fails or is stopped; the app shows why.
        read: Called on the thread with what tells its progress, and whether to stop.
        report: Told the progress, on the event loop.
    """
    try:
        return await with_progress(read, report)
    except (Exception, asyncio.CancelledError):
        host(page).close_page(page)
        raise


Write: TypeAlias = Callable[[Path, bool], "Sequence[str]"]
"""Writes a file, replacing one if the second argument is True, and returns remarks."""


def ask_where(screen: Front, title: str, about: str, name: str, write: Write) -> None:
    """Ask for a path, and for permission to replace a file, and write.

    Args:
        screen: What asks.
        title: The question.
        about: What will be written.
        name: The path that is offered.
        write: Writes it, on a thread; what it raises is shown by the app.
    """
    screen.tasks.start(_ask_where(screen, title, about, name, write), "dialog")


async def _ask_where(screen: Front, title: str, about: str, name: str, write: Write) -> None:
    chosen = await ask_file(screen.tasks, lambda start: PromptDialog(title, about, start), name)
    if chosen is not None:
        path, replaced = chosen
        screen.tasks.start(_write(screen, path, bool(replaced), write), "save")


async def _write(screen: Front, path: Path, overwrite: bool, write: Write) -> None:
    for text in (f"Wrote {path}", *await on_thread(write, path, overwrite)):
        screen.notify(visible(text), timeout=4, markup=False)


@dataclass(frozen=True)
class ModelState:
    """A model in a tab, as it was when a job began."""

    page: Page
    title: str
    """Its name in results, such as ``model.onnx as edited``. Untrusted text."""
    document: weakref.ref[Document]
    last: Transaction | None
    """The last edit that is in it; None when there is none."""

    @classmethod
    def edited(cls, page: Page, document: Document) -> ModelState:
        """Return the state that a tab shows now."""
        done = document.history.done
        return cls(page, f"{model_name(document)} as edited", weakref.ref(document),
                   done[-1] if done else None)  # fmt: skip

    @classmethod
    def saved(cls, page: Page, document: Document) -> ModelState:
        """Return the state that the file of a tab has."""
        return cls(page, model_name(document), weakref.ref(document), document.history.saved_at)

    @property
    def is_open(self) -> bool:
        """Whether the tab still shows the model."""
        document = self.document()
        is_shown = document is not None and self.page.edited_document is document
        return is_shown and self.page in host(self.page).pages

    @property
    def is_current(self) -> bool:
        """Whether the model is as it was."""
        document = self.document()
        if document is None or not self.is_open:
            return False
        done = document.history.done
        return (done[-1] if done else None) is self.last

    def reveal(self, scope: Sequence[str], node_ref: str) -> bool:
        """Show a node in the tab; False when that is closed."""
        if not self.is_open:
            return False
        host(self.page).show_page(self.page)
        self.page.reveal(scope, node_ref)
        return True


def model_name(document: Document) -> str:
    """Return the file name of a model. Untrusted text."""
    path = document.path
    return path.name if path is not None else "new.onnx"


class ResultModel:
    """The model that a page of results is about.

    Args:
        page: The page.
        activity: What gives such results.
        path: The file in which nodes are shown.
    """

    def __init__(self, page: Page, activity: str, path: Path) -> None:
        self.page, self.activity, self.path = page, activity, path
        self.state: ModelState | None = None
        """The state of a tab that was run; None when a file was."""

    def is_of(self, document: Document) -> bool:
        """Return whether it is about an open document."""
        if self.state is not None and self.state.is_open:
            return self.state.document() is document
        return document.path is not None and document.path.absolute() == self.path.absolute()

    @property
    def is_outdated(self) -> bool:
        """Whether the model was edited since."""
        return self.state is not None and self.state.is_open and not self.state.is_current

    def again(self) -> None:
        """Show the form again."""
        if self.state is not None and self.state.is_open:
            page: Page = self.state.page
            host(self.page).show_page(page)
            page.show_activity(self.activity)
        else:
            host(self.page).start_activity(self.activity, {"model": str(self.path)})

    def show_node(self, scope: Sequence[str], node_ref: str) -> None:
        """Show a node in the tab of the model, which is opened first when it is not."""
        if self.state is None or not self.state.reveal(scope, node_ref):
            host(self.page).reveal(self.path, scope, node_ref)


def model_of(values: Mapping[str, JSON]) -> Path:
    """Return the model in the settings of a job."""
    return Path(str(values.get("model")))
