"""A page of results: panes on number keys, and what all pages with layers can do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from textual import events, on
from textual.containers import Container
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.files.writer import write_text
from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.results.layer_commands import LayerCommands
from dld_tui.screens.results.pages import ask_where, in_folder
from dld_tui.styles import STYLES
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.lists.table_view import ListTable
from dld_tui.widgets.results.paragraphs import Paragraph, ParagraphsDialog, ResultHead
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.page import Page, host
from dld_tui.widgets.tasks import task, with_progress

if TYPE_CHECKING:
    from dld_tui.core.report.records import Layer, NodeLink
    from dld_tui.widgets.results.layers import LayerPane
    from dld_tui.widgets.results.report_views import ChartPane

SIZES = {"large": (150, 40), "medium": (100, 32), "small": (0, 0)}
"""Columns and rows from which a screen is of a size."""
ALWAYS = (*SIZES,)
"""The sizes of a pane that is always seen."""
_SHOW_S = 0.4
"""A file that is read sooner is painted once, in the place of what was there before."""
_FILL_S = 5.0
"""Its panes are painted when all of them are laid out; if that takes longer, one by one."""


@dataclass(frozen=True)
class Pane:
    """A pane of a page of results."""

    name: str
    """Its id, and its name in the row of panes."""
    make: Callable[[], Widget]
    """Makes the widget, which has this id."""
    place: str = "top"
    """``top``, ``main`` below it, or ``side``: right of the main panes on a large screen."""
    stays: Sequence[str] = ()
    """The sizes at which it is always seen: the others take turns in the room that is left."""
    focus: str = ""
    """Selects the widget in it that takes the focus; empty for the pane itself."""
    below: Sequence[str] = ()
    """Panes that it is seen below of: such a pane has no key."""


class PaneStrip(Rows):
    """The row that names the panes and shows which one is chosen."""

    def __init__(self, names: Sequence[str]) -> None:
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


R = TypeVar("R")
"""What is read from the file of a page."""


class ResultsPage(Page, Generic[R]):
    """A page of panes about a file: those are seen that fit.

    A kind of result names its panes, reads its file, unless what it shows is there already, and
    fills them. A pane ``layers`` is a :class:`LayerPane`, ``charts`` a :class:`ChartPane`.
    """

    CSS_PATH = STYLES / "results.tcss"
    AUTO_FOCUS: ClassVar[str | None] = ""
    panes: Sequence[Pane] = ()
    """In the order of their keys. By default the rows of :meth:`table` below :meth:`head`."""
    FIRST: ClassVar[tuple[str, str]] = ("rows", "rows")
    """The pane that has the focus first, and that on a large screen."""
    EXPORT: ClassVar[tuple[str, str]] = ("", "")
    """What an export is called, and what is said about its file name."""
    LIST_EMPTY: ClassVar[str] = ""
    """What is shown without rows."""
    MORE: ClassVar[str] = ""
    """The key that shows the whole text of :meth:`head`."""
    ROW_CONDITION: ClassVar[str] = ""
    """The condition that holds while a row is under the cursor."""
    _turn = ""
    """Of the panes that take turns on a large screen, the one that was seen last."""
    _arranged: tuple[set[str], str] | None = None

    def __init__(self, path: Path | None, title: str = "", loaded: R | None = None) -> None:
        super().__init__()
        self.path = path
        self.tab_title = path.name if path is not None else title
        self.loaded = loaded
        """What was read; None until then."""
        if not self.panes:
            self.panes = (
                Pane("head", self.make_head, stays=ALWAYS),
                Pane("rows", partial(self.make_list, "rows"), "main", ALWAYS),
            )
        self.layer_commands = LayerCommands(self)
        self.pane = self.FIRST[0]
        self.maximised = False

    def body(self) -> Iterable[Widget]:
        """Return the panes at their places."""
        places: dict[str, list[Widget]] = {"top": [], "main": [], "side": []}
        for pane in self.panes:
            places[pane.place].append(pane.make())
        main = Container(*places["main"], id="main")
        side = [Container(*places["side"], id="side")] if places["side"] else []
        lower = Container(main, *side, id="lower")
        names = [pane.name for pane in self.panes if not pane.below]
        takes_turns = any(len(pane.stays) < len(SIZES) for pane in self.panes)
        return (
            *([PaneStrip(names)] if takes_turns else []),
            Rows([[(f" reading {visible(self.tab_title)} …", "dim")]], id="loading"),
            Container(*places["top"], lower, id="panes"),
        )

    def load(self, progress: ProgressCallback, cancelled: CancelCheck) -> R:
        """Read the file, on a thread.

        Raises:
            InputError: It cannot be read.
            CancelledError: `cancelled` returned True.
        """
        raise NotImplementedError

    def fill(self, loaded: R) -> None:
        """Show what was read, or what was read again."""
        self.show_rows()

    def on_mount(self) -> None:
        """Read the file."""
        if self.loaded is not None:
            self._show(self.loaded, is_first=True)
            return
        self.query_one("#panes").display = False
        self.hold_paint(_SHOW_S)
        self.read()

    @task("load", replace=True)
    async def read(self) -> None:
        """Read the file; a page that has nothing to show closes its tab, and the app says why."""
        begin = monotonic()
        is_first = self.loaded is None
        try:
            loaded = await with_progress(
                self.load, lambda done, total: self._tell(done, total, monotonic() - begin)
            )
        except (Exception, asyncio.CancelledError):
            if is_first:
                host(self).close_page(self)
            raise
        self.loaded = loaded
        self._show(loaded, is_first)

    def _show(self, loaded: R, is_first: bool) -> None:
        self.hold_paint(_FILL_S)  # again: reading may have taken longer
        self.query_one("#loading").display = False
        self.query_one("#panes").display = True
        self.fill(loaded)
        if is_first:
            if self.has_layers:
                self.layer_commands.recall_columns()
            self.show_pane(self.FIRST[self.size_class == "large"])
        self.release_paint_when_laid_out()
        self.layer_commands.show_awaited()
        self.tab_changed()

    def _tell(self, done: int, total: int, seconds: float) -> None:
        if total and self.loaded is None and self.is_mounted:
            text = progress_text(self.tab_title, done, total, seconds)
            self.query_one("#loading", Rows).set_rows([[(text, "dim")]])

    @property
    def size_class(self) -> str:
        """``large``, ``medium`` or ``small``."""
        size = self.app.size
        return next(
            name
            for name, (columns, rows) in SIZES.items()
            if size.width >= columns and size.height >= rows
        )

    def visible_panes(self) -> set[str]:
        """Return the panes that are seen at this size."""
        panes, size = [pane for pane in self.panes if not pane.below], self.size_class
        turns = [pane.name for pane in panes if size not in pane.stays]
        if size == "large" and self.pane in turns:
            self._turn = self.pane
        if self.maximised:
            return {self.pane}
        seen = {pane.name for pane in panes if size in pane.stays}
        wanted = (self.pane, self._turn if size == "large" else "", *turns[:1])
        turn = next((name for name in wanted if name in turns), None)
        seen |= {turn} if turn is not None else set()
        return seen | {pane.name for pane in self.panes if not seen.isdisjoint(pane.below)}

    def on_resize(self, event: events.Resize) -> None:
        """Show what fits, once there are panes."""
        if self.query("#panes"):
            self.arrange_panes()

    def arrange_panes(self) -> None:
        """Show the panes that fit."""
        seen, size = self.visible_panes(), self.size_class
        if (seen, size) != self._arranged:
            self._arranged = (seen, size)
            places = dict.fromkeys(("main", "side"), False)
            has_turn = False
            for pane in self.panes:
                is_seen = pane.name in seen
                self.query_one(f"#{pane.name}").display = is_seen
                places[pane.place] = is_seen or places.get(pane.place, False)
                has_turn |= is_seen and pane.place == "side" and not pane.below
            for place, is_seen in places.items():
                for container in self.query(f"#{place}"):
                    container.display = is_seen
            self.query_one("#lower").display = places["main"] or places["side"]
            self.set_class(not has_turn, "-only-below")
            for name in SIZES:
                self.set_class(name == size, f"-{name}")
            self.set_class(len(seen) > 1, "-many")
        self._name_pane()

    def _name_pane(self) -> None:
        for strip in self.query(PaneStrip):
            if strip.current != self.pane:
                strip.current = self.pane
                strip.refresh()

    def action_pane(self, number: str) -> None:
        names = [pane.name for pane in self.panes if not pane.below]
        self.show_pane(names[min(int(number), len(names)) - 1])

    def show_pane(self, name: str) -> None:
        """Show a pane and put the focus into it."""
        self.pane = name
        self.arrange_panes()
        self.focus_pane()
        self.conditions_changed()

    def focus_pane(self) -> None:
        """Put the focus into the chosen pane."""
        pane = next(pane for pane in self.panes if pane.name == self.pane)
        self.query_one(pane.focus or f"#{pane.name}").focus()

    def action_maximise_pane(self) -> None:
        self.maximised = not self.maximised
        self.arrange_panes()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Name the pane that has the focus."""
        names = [pane.name for pane in self.panes if not pane.below]
        for node in event.widget.ancestors_with_self:
            if node.id in names and node.id != self.pane:
                self.pane = str(node.id)
                self._name_pane()

    def stop_reading(self) -> bool:
        """Stop reading; return False where all is read."""
        if self.loaded is not None:
            return False
        self.tasks.cancel("load")
        return True

    @property
    def has_layers(self) -> bool:
        """Whether it has a table of layers."""
        return any(pane.name == "layers" for pane in self.panes)

    @property
    def layer_pane(self) -> LayerPane:
        """The table of layers."""
        return cast("LayerPane", self.query_one("#layers"))

    @property
    def charts(self) -> ChartPane:
        """The charts."""
        return cast("ChartPane", self.query_one("#charts"))

    @property
    def knows_times(self) -> bool:
        """Whether layers have been read."""
        return self.loaded is not None and self.has_layers

    def layer_at_cursor(self) -> Layer | None:
        """Return the layer that commands are about."""
        return None

    def on_line_view_menu_asked(self, event: LineView.MenuAsked) -> None:
        """Show the menu of a layer on a right click."""
        event.stop()
        self.call_after_refresh(self.layer_commands.open_menu)

    def reveal_layer(self, index: int) -> None:
        """Go to a layer in the table, as soon as the file is read."""
        self.layer_commands.reveal(index)

    def on_chart_pane_layer_chosen(self, event: ChartPane.LayerChosen) -> None:
        """Show the layer of a dot."""
        self.layer_commands.show(event.index)

    def on_chart_pane_type_chosen(self, event: ChartPane.TypeChosen) -> None:
        """Show the layers of the type of a bar."""
        self.layer_commands.show_type(event.type)

    async def show_node(self, link: NodeLink) -> None:
        """Show an ONNX node in the model."""

    @property
    def result(self) -> R:
        """What is shown; only where that was known from the beginning."""
        assert self.loaded is not None
        return self.loaded

    def make_list(self, id: str) -> ListTable:
        """Return the list."""
        return ListTable(empty=hint(self.LIST_EMPTY), id=id)

    def make_head(self) -> ResultHead:
        """Return the text."""
        return ResultHead(self.head(), keys=self.MORE)

    def head(self) -> Sequence[Paragraph]:
        """Return the text of the result."""
        return ()

    def show_text(self, title: str, paragraphs: Sequence[Paragraph] | None = None) -> None:
        """Show the whole text, or another."""
        text = self.head() if paragraphs is None else paragraphs
        self.app.push_screen(ParagraphsDialog(title, text))

    def table(self) -> Table[Any]:
        """Return the rows."""
        raise NotImplementedError

    @property
    def view(self) -> ListTable:
        """The list."""
        return self.query_one(ListTable)

    @property
    def row(self) -> Any:
        """The row under the cursor."""
        views = self.query(ListTable) if self.is_mounted else None
        return views.first().item_at_cursor() if views else None

    def show_rows(self, select: Hashable | None = None) -> None:
        """List the rows as they are now, the cursor on one of them or where it was."""
        self.view.set_table(self.table())
        if select is not None:
            self.view.go_to_key(select)
        self.row_changed()

    def row_changed(self) -> None:
        """Show the commands that fit."""
        self.refresh_bindings()

    def activate(self) -> None:
        """Do what Enter and a double click on a row are for."""

    def conditions(self) -> set[str]:
        """Return what holds now."""
        has_row = bool(self.ROW_CONDITION) and self.row is not None
        return super().conditions() | ({self.ROW_CONDITION} if has_row else set())

    @on(LineView.CursorMoved, "ListTable")
    def _row_moved(self) -> None:
        self.row_changed()

    @on(LineView.Activated, "ListTable")
    def _row_activated(self, event: LineView.Activated) -> None:
        event.stop()
        self.activate()

    @property
    def stem(self) -> str:
        """What names of files that are written begin with. Fit for a terminal."""
        return visible((self.path or Path("result")).stem)

    def shown_csv(self) -> tuple[str, int, str]:
        """Return the shown table: the end of its name, its number of rows, and all as CSV."""
        return self.layer_pane.csv()

    def action_save_csv(self) -> None:
        """Ask for a path and write the table."""
        if self.loaded is None:
            return
        end, rows, text = self.shown_csv()
        about = in_folder(f"{fmt.plural(rows, 'row')} with all columns.")
        ask_where(
            self, "Save as CSV", about, f"{self.stem}{end}.csv",
            lambda path, over: write_text(path, text, overwrite=over),
        )  # fmt: skip

    def export(self, path: Path, overwrite: bool) -> Sequence[str]:
        """Write all that was read, on a thread, and return remarks."""
        raise NotImplementedError

    def action_export(self) -> None:
        """Ask for a path and write all that was read."""
        if self.loaded is not None:
            title, about = self.EXPORT
            ask_where(self, title, in_folder(about), f"{self.stem}.html", self.export)

    @task()
    async def action_compare_with(self) -> None:
        """Choose another report or engine and compare this one with it."""
        from dld_tui.screens.results.compare import ask_reports  # lazy: it needs NumPy

        await ask_reports(host(self), self.path)


def progress_text(name: str, done: int, total: int, seconds: float) -> str:
    """Return how much of a file is read, and how fast; `name` is untrusted text."""
    progress = f"{fmt.progress(done, total)} of {fmt.size(total)}"
    rate = fmt.size(int(done / seconds)) if seconds else fmt.UNKNOWN
    stop = hint("{report.clear} stops")
    return f" reading {visible(name)}: {progress}, {rate}/s   {stop}"
