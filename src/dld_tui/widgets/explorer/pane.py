"""The explorer pane: the nodes of the model as rows, with a filter as one types.

Enter on a node posts :class:`Explorer.Opened`, on a branch it folds and unfolds. What the cursor
is on goes out as :class:`Explorer.Selected`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, partial
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.tensors.value_types import alias_legend
from dld_tui.widgets.explorer.branches import ExplorerEntry, Item, Rows, Sort, View
from dld_tui.widgets.explorer.rows import ExplorerRows, counts_text, view_title
from dld_tui.widgets.explorer.state import (
    NOTHING,
    ExplorerModel,
    Figures,
    Found,
    all_nodes,
    below,
    deep_words,
    next_match,
    reveal,
    set_all_unfolded,
    unfold_to_fill,
)
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.search import FilterBar, LineSearch
from dld_tui.widgets.lists.styled import Piece
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.tasks import Tasks

if TYPE_CHECKING:
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.document.transactions import DocumentChange
    from dld_tui.widgets.explorer.node_filter import NodeFilter


class NodeSearch(LineSearch):
    """Asking types a filter; the next match is a node that the last filter fits."""

    def __init__(self, view: ExplorerList) -> None:
        super().__init__(view)
        self.explorer = view.explorer
        self.open_filter = self.explorer.type_filter

    def next(self) -> None:
        """Go to the next node that the last filter text fits."""
        self.explorer.find(1)

    def previous(self) -> None:
        """Go to the previous one."""
        self.explorer.find(-1)


class ExplorerList(LineView):
    """The rows; its owner is the :class:`Explorer` around it."""

    SCOPE = "explorer"
    COMMAND_TABLE = (
        *table(
            "explorer",
            ("explorer.fold", "explorer.toggle_fold", "z", "", "fold",
             "Fold or unfold the branch."),
            palette=False,
        ),
        *table(
            "explorer",
            ("explorer.sort", "explorer.cycle_sort", "o", "", "sort", "Sort by the next column."),
            ("explorer.reverse", "explorer.reverse_sort", "tilde", "", "reverse order",
             "Reverse the sort order."),
            ("explorer.unfold_all", "unfold_all", "Z", "", "unfold all", "Unfold every branch."),
            ("explorer.fold_all", "fold_all", "", "", "fold all", "Fold every branch."),
        ),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "clear", "clear", show=False, id="explorer.clear"),
    ]
    HELP = (
        "The nodes of the model. {list.search} filters as you type, {view.filter} filters by "
        "operator type and attributes, {view.by} lists by scope, type, name or file order. "
        "{list.activate} shows a node's parameters or unfolds a branch, {go.body} opens a "
        "subgraph, {go.back} goes back. {list.mark} marks nodes."
    )

    def __init__(self, explorer: Explorer) -> None:
        super().__init__(empty="No node matches the filter. Esc clears it.", id="explorer-list")
        self.explorer = explorer
        self.finder = NodeSearch(self)
        self.header_rows = 1

    def on_resize(self) -> None:
        """Unfold as much as there is room for, the first time."""
        self.explorer.fill()

    def header_line(self, width: int) -> Sequence[Piece]:
        """Return how the list is arranged and the columns' names."""
        return self.explorer.header(width)

    def header_clicked(self, cell: int) -> None:
        """Arrange the list in the next way."""
        self.explorer.cycle_view()

    def activate(self) -> None:
        """Open a node, fold or unfold a branch."""
        self.explorer.activate()

    def go_right(self) -> None:
        """Unfold, or go to the first row below."""
        self.explorer.unfold()

    def go_left(self) -> None:
        """Fold, or go to the row above that holds this one."""
        self.explorer.fold()

    def action_unfold_all(self) -> None:
        self.explorer.unfold_all(True)

    def action_fold_all(self) -> None:
        self.explorer.unfold_all(False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to others while there is nothing to clear."""
        if action == "clear":
            return self.explorer.can_clear
        return super().check_action(action, parameters)

    def action_clear(self) -> None:
        """Clear the filter text, or else the marks, or else the advanced filter."""
        self.explorer.clear()

    def mark(self) -> None:
        """Mark the node, or every node below the branch, and move down."""
        self.explorer.mark()

    def may_mark(self, key: Hashable) -> bool:
        """Return whether a node is in the model, listed or not."""
        return isinstance(key, Node) and key in key.scope.nodes

    def set_marks(self, marks: set[Hashable]) -> None:
        """Replace the marks; only nodes can be marked, and not the branches between them."""
        super().set_marks({mark for mark in marks if isinstance(mark, Node)})


_SLICE_S = 0.015
"""How long an advanced filter may keep the event loop before it lets others run."""
_LEAST_FILLED = 24
"""Rows that are unfolded at first even if fewer are seen."""
_VIEWS = list(View)


class Explorer(Framed, Vertical):
    """The pane: filter line, column names, rows."""

    tasks = cached_property(Tasks)
    """Its long work."""

    @dataclass
    class Selected(Message):
        """The cursor is on a node, or on a branch of `scope`."""

        node: Node | None
        scope: Scope

    @dataclass
    class Opened(Message):
        """Enter on a node."""

        node: Node

    @dataclass
    class Arranged(Message):
        """The user chose another view, sort order or whether constants are shown."""

        view: View
        sort: Sort
        descending: bool

    def __init__(self, model: ExplorerModel, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model = model
        self.node_filter: NodeFilter | None = None
        self._last_text = self._typed = ""
        self._found: Found = {}
        """What is known so far of the shapes and values in the text that was typed."""
        self._rows = Rows()
        self._edits = 0
        """How many the filter has heard of."""
        self._filled = False
        self.list = ExplorerList(self)

    def compose(self) -> ComposeResult:
        yield FilterBar("type, name, shape 3x224x224, value axis=1 or =0.5")
        yield self.list

    def on_mount(self) -> None:
        """Show the first rows."""
        self.rebuild()

    def fill(self) -> None:
        """Unfold as much as there is room for, once, when that is known."""
        if not self._filled and not self.model.filtering:
            self._filled = True
            if unfold_to_fill(self.model, max(self.list.page, _LEAST_FILLED)):
                self.rebuild()

    def rebuild(self) -> None:
        """Ask the model for its rows again; the cursor stays on its node."""
        self._rows = self.model.rows()
        rows = ExplorerRows(self._rows, self._fold_state, self.model, self._is_context)
        self.list.set_lines(rows)
        self._say_counts()

    def _fold_state(self, item: Item) -> bool | None:
        return self.model.is_unfolded(item) if self.model.can_unfold(item) else None

    def _is_context(self, entry: ExplorerEntry) -> bool:
        """Whether a node is only shown because of what is in it."""
        model = self.model
        return entry.bodies > 0 and model.filtering and not model.is_match(entry)

    def header(self, width: int) -> Sequence[Piece]:
        """Return the row with the columns' names."""
        rows = self.list.lines
        if not isinstance(rows, ExplorerRows):
            return ()
        title = view_title(self.model.view, self.model.sort, self.model.descending)
        return rows.header(title, width)

    def _say_counts(self) -> None:
        root = self.model.root
        place = (
            "" if root is self.model.document.main else f" {glyphs.current().crumb} {root.title}"
        )
        filters = self.node_filter.active if self.node_filter is not None else 0
        aliases = alias_legend(root.document.shown_types.aliases(root))
        self.border_subtitle = Content(glyphs.shown(aliases))
        self.frame.show(f"Nodes{place}", counts_text(self.model, filters, len(self.list.marks)))

    @property
    def item(self) -> Item | None:
        """What the cursor is on."""
        return self._rows.items[self.list.cursor] if self._rows.items else None

    @property
    def node(self) -> Node | None:
        """The node that the cursor is on, or None."""
        return self.item.node if isinstance(self.item, ExplorerEntry) else None

    @property
    def marked(self) -> list[Node]:
        """The marked nodes, in the order of the file within each scope."""
        marks = self.list.marks
        return [node for node in all_nodes(self.model) if node in marks] if marks else []

    @on(LineView.CursorMoved)
    def cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Post what the cursor is on."""
        event.stop()
        item = self.item
        if isinstance(item, ExplorerEntry):
            self.post_message(self.Selected(item.node, item.node.scope))
        elif item is not None:
            self.post_message(self.Selected(None, item.scope or self.model.root))

    @on(LineView.Activated)
    def row_activated(self, event: LineView.Activated) -> None:
        """Stop the list's own message; :meth:`activate` posted a better one."""
        event.stop()

    def activate(self) -> None:
        """Open a node, show the constants, fold or unfold a branch."""
        item = self.item
        if isinstance(item, ExplorerEntry):
            self.post_message(self.Opened(item.node))
        elif item is not None and item.key == NOTHING:
            self.clear_filters()
        elif item is not None and item.kind == "note":
            self.toggle_constants()
        else:
            self.toggle_fold()

    def toggle_fold(self) -> None:
        """Fold or unfold what the cursor is on."""
        item = self.item
        if item is not None and self.model.can_unfold(item):
            self.model.set_unfolded(item, not self.model.is_unfolded(item))
            self.rebuild()

    def unfold_all(self, unfolded: bool) -> None:
        """Unfold or fold every branch; a cursor whose row goes is on the first row then."""
        set_all_unfolded(self.model, unfolded)
        node = self.node
        self.rebuild()
        if self.node is not node:
            self.list.cursor = 0

    def unfold(self) -> None:
        """Unfold what the cursor is on, or go to the first row below it."""
        item = self.item
        if item is None or not self.model.can_unfold(item):
            return
        if self.model.is_unfolded(item):
            self.list.cursor += 1
        else:
            self.toggle_fold()

    def fold(self) -> None:
        """Fold what the cursor is on, or go to the row that holds it."""
        item, at = self.item, self.list.cursor
        if item is None:
            return
        if self.model.can_unfold(item) and self.model.is_unfolded(item):
            self.toggle_fold()
            return
        depth = self._rows.depths[at]
        while at > 0 and self._rows.depths[at] >= depth > 0:
            at -= 1
        self.list.cursor = at

    def reveal(self, node: Node) -> bool:
        """Move the cursor to a node and unfold what hides it; False when a filter leaves it out."""
        if self.model.entry(node).constant and not self.model.shows_constant(node):
            self.set_constants([node], True)
        elif self.list.go_to_key(node):
            return True  # it is seen: nothing to unfold
        if not reveal(self.model, node):
            return False
        self.rebuild()
        return self.list.go_to_key(node)

    def show_root(self, scope: Scope) -> None:
        """Show another scope; the cursor goes to its first node."""
        self.model.set_root(scope)
        unfold_to_fill(self.model, max(self.list.page, _LEAST_FILLED))
        self.rebuild()
        self.list.cursor = 1 if len(self._rows) > 1 else 0

    def cycle_view(self) -> None:
        """List in the next way: by scope, type, name, file order."""
        view = _VIEWS[(_VIEWS.index(self.model.view) + 1) % len(_VIEWS)]
        self.list_by(view, self.model.sort, self.model.descending)

    def cycle_sort(self) -> None:
        """Sort in the next order."""
        sorts = [sort for sort in Sort if sort is not Sort.FIGURE or self.model.figures is not None]
        at = sorts.index(self.model.sort) if self.model.sort in sorts else -1
        self.list_by(self.model.view, sorts[(at + 1) % len(sorts)])

    def set_figures(self, figures: Figures | None) -> None:
        """Show figures of the nodes in a column of their own; None for no such column."""
        if figures is not None or self.model.figures is not None:
            self.model.set_figures(figures)
            self.rebuild()

    def reverse_sort(self) -> None:
        """Reverse the order of the rows; the cursor stays on its node."""
        self.list_by(self.model.view, self.model.sort, not self.model.descending)

    def list_by(self, view: View, sort: Sort, descending: bool = False) -> None:
        """List and sort in a given way."""
        node = self.node
        self.model.view, self.model.sort, self.model.descending = view, sort, descending
        if node is not None:
            reveal(self.model, node)
        self.rebuild()
        self._say_arranged()

    def toggle_constants(self) -> None:
        """Show or hide the Constant nodes."""
        self.model.set_show_constants(not self.model.show_constants)
        self.rebuild()
        self._say_arranged()

    def set_constants(self, nodes: Sequence[Node], shown: bool) -> None:
        """Show or hide some constants; a cursor whose row goes stays where it was."""
        self.model.set_constants(nodes, shown)
        self.rebuild()
        self._say_arranged()

    def _say_arranged(self) -> None:
        model = self.model
        self.post_message(self.Arranged(model.view, model.sort, model.descending))

    def type_filter(self) -> None:
        """Put the keys into the filter line."""
        self.query_one(FilterBar).ask(self.model.text)

    @on(FilterBar.Changed)
    def filter_typed(self, event: FilterBar.Changed) -> None:
        """Show what fits the text so far."""
        event.stop()
        self._set_text(event.text)

    @on(FilterBar.Left)
    def filter_left(self, event: FilterBar.Left) -> None:
        """Give the keys back to the list."""
        event.stop()
        if event.clear:
            self._set_text("")
        elif self._typed != self.model.text:  # keys for the list wait for what it will show
            self.tasks.start(self._look(self._typed), "search", replace=True)
        self.list.focus()
        self.query_one(FilterBar).show(self._typed)

    def _set_text(self, text: str) -> None:
        if text == self._typed:
            return
        self._last_text = text.strip() or self._last_text
        self._typed, self._found = text, {}
        self._show_typed()

    def _show_typed(self) -> None:
        """Show what fits the text: at once, or when shapes and values have been looked at."""
        if deep_words(self._typed):
            self.frame.show("Nodes", "searching …")
            self.tasks.start(self._look(self._typed), "preview", replace=True)
        else:
            self._show_text(self._typed, None)

    async def _look(self, text: str) -> None:
        """Look for shapes and values in slices between which keys are answered."""
        found = self._found

        def steps() -> Iterator[None]:
            for _ in self.model.look(text, found):
                if found is not self._found:
                    return  # another text was typed
                yield

        await self._in_slices(steps)
        if found is self._found:
            self._show_text(text, found)

    async def _in_slices(self, steps: Callable[[], Iterator[None]]) -> None:
        """Take steps between which keys are answered; all of them again after an edit."""
        deadline, began = monotonic() + _SLICE_S, -1
        while began != self._edits:
            began = self._edits
            for _ in steps():
                if monotonic() > deadline:
                    await asyncio.sleep(0)
                    if began != self._edits:
                        break
                    deadline = monotonic() + _SLICE_S

    def _show_text(self, text: str, found: Found | None) -> None:
        node, is_other = self.node, text != self.model.text
        self.model.set_text(text, found)
        self.list.finder.pattern = text.strip() if len(text.split()) == 1 else ""
        if node is not None and not self.model.filtering:
            reveal(self.model, node)
        self.rebuild()
        if is_other:
            self._go_to_match(node)

    def _go_to_match(self, former: Node | None) -> None:
        """Put the cursor on the first node found, unless it is on one and was on it before."""
        item, model = self.item, self.model
        if not model.filtering:
            return
        if isinstance(item, ExplorerEntry) and item.node is former and model.is_match(item):
            return
        for at, other in enumerate(self._rows.items):
            if isinstance(other, ExplorerEntry) and model.is_match(other):
                self.list.cursor = at
                return

    def clear(self) -> None:
        """Clear the filter text, or else the marks, or else the advanced filter."""
        if self._typed:
            self._set_text("")
            self.query_one(FilterBar).show("")
        elif self.list.marks:
            self.list.set_marks(set())
        else:
            self.set_filter(None)

    @property
    def can_clear(self) -> bool:
        """Whether Esc has something to clear."""
        return bool(self._typed or self.list.marks or self.node_filter)

    def clear_filters(self) -> None:
        """Clear the filter text and the advanced filter."""
        self.node_filter = None
        self.model.set_condition(None)
        self.clear()
        self.rebuild()

    def set_filter(self, node_filter: NodeFilter | None, *, is_typed: bool = False) -> None:
        """Show only nodes that an advanced filter lets through.

        Args:
            node_filter: The filter, or None.
            is_typed: Whether it is being typed elsewhere: keys do not wait for the list then.
        """
        active = node_filter is not None and node_filter.active > 0
        self.node_filter = node_filter if active else None
        group = "preview" if is_typed else "filter"
        self.tasks.start(self._judge(self.node_filter), group, replace=True)

    async def _judge(self, node_filter: NodeFilter | None) -> None:
        """Ask the filter about every node, in slices between which keys are answered."""
        verdicts: dict[Node, bool] = {}
        await self._in_slices(partial(self._verdicts, node_filter, verdicts))
        if node_filter is not self.node_filter:
            return  # another one was chosen meanwhile
        before = self.node
        self.model.set_condition(node_filter, verdicts)
        self.rebuild()
        self._go_to_match(before)

    def _verdicts(
        self, node_filter: NodeFilter | None, verdicts: dict[Node, bool]
    ) -> Iterator[None]:
        verdicts.clear()
        if node_filter is not None:
            yield from node_filter.prepare(self.model.document)
            for node in all_nodes(self.model):
                verdicts[node] = node_filter(node)
                yield

    def types_changed(self) -> None:
        """Draw types again, and apply a filter that uses types again."""
        self.list.invalidate()
        self._look_again()
        if self.node_filter is not None and self.node_filter.needs_types:
            self.set_filter(self.node_filter)

    def _look_again(self) -> None:
        """Look for shapes and values again: they may be others."""
        self._found = {}
        if deep_words(self._typed):
            self._show_typed()

    def find(self, step: int) -> None:
        """Go to the next (1) or previous (-1) node that fits the last filter text."""
        text = self._last_text
        if not text:
            self.notify(hint("No search yet. Press {list.search} and type."), timeout=3)
            return
        self.tasks.start(self._find(text, step), "search", replace=True)

    async def _find(self, text: str, step: int) -> None:
        await self._in_slices(partial(self.model.look, text, self.model.found))
        node = next_match(self.model, self._rows, self.list.cursor, step, text)
        if node is None:
            self.notify(f"Not found: {text[:60]}", timeout=3, markup=False)
        elif not self.list.go_to_key(node):
            self.reveal(node)

    @on(LineView.MarksChanged)
    def marks_changed(self) -> None:
        """Show how many are marked."""
        self._say_counts()

    def mark(self) -> None:
        """Mark or unmark the node, or all nodes below the branch, and move down."""
        item = self.item
        if item is None:
            return
        if isinstance(item, ExplorerEntry):
            LineView.mark(self.list)
            return
        inside: set[Hashable] = {entry.node for entry in below(self.model, item)}
        marks = self.list.marks
        self.list.set_marks(marks - inside if inside <= marks else marks | inside)
        self.list.cursor += 1

    def apply_change(self, change: DocumentChange, anew: ExplorerModel | None = None) -> None:
        """Take in an edit, undo or redo: only what it touched is read again, or all is `anew`."""
        from dld_tui.core.model.document.transactions import Splice
        from dld_tui.widgets.explorer.state import model_anew

        transaction = change.transaction
        self._edits += 1
        if self.node_filter is not None:
            self.model.doubt(self.node_filter.follow(change))
        if transaction is None or transaction.is_whole:
            self.model = anew or model_anew(self.model)
            self.rebuild()
            self._look_again()
            return
        moved = {
            primitive.scope
            for primitive in transaction.primitives
            if isinstance(primitive, Splice) and primitive.list_name in ("node", "function")
        }
        if self.model.refresh(transaction.nodes, moved):
            self.rebuild()
        else:
            self.list.invalidate()
        self._look_again()
        if moved and self.list.marks:
            self.list.set_marks(self.list.marks & set(all_nodes(self.model)))
