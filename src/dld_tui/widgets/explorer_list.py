"""The list inside the explorer: rows and keys; what the keys do is the explorer's."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from dld_tui.core.document.node import Node
from dld_tui.widgets.commands import bindings_for
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.line_view import LineView

if TYPE_CHECKING:
    from dld_tui.widgets.explorer import Explorer


class ExplorerList(LineView):
    """The rows; its owner is the :class:`Explorer` around it."""

    SCOPE = "explorer"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_for("explorer"),
        Binding("escape", "clear", "clear", show=False, id="explorer.clear"),
    ]
    HELP = (
        "The nodes of the model. / filters while you type, f filters by operator type and "
        "attributes, b lists by scope, type, name or file order. Enter shows a node's parameters "
        "or unfolds a branch, s opens a subgraph, Backspace goes back. Space marks."
    )

    def __init__(self, explorer: Explorer) -> None:
        super().__init__(empty="No node passes the filter. Esc clears it.", id="explorer-list")
        self.explorer = explorer
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

    def action_activate(self) -> None:
        """Open a node, fold or unfold a branch."""
        self.explorer.activate()

    def action_cursor_right(self) -> None:
        """Unfold, or go to the first row below."""
        self.explorer.unfold()

    def action_cursor_left(self) -> None:
        """Fold, or go to the row above that holds this one."""
        self.explorer.fold()

    def action_toggle_fold(self) -> None:
        """Fold or unfold the branch under the cursor."""
        self.explorer.toggle_fold()

    def action_unfold_all(self) -> None:
        """Unfold everything."""
        self.explorer.unfold_all(True)

    def action_fold_all(self) -> None:
        """Fold everything."""
        self.explorer.unfold_all(False)

    def action_sort_next(self) -> None:
        """Sort in the next order."""
        self.explorer.cycle_sort()

    def action_sort_reverse(self) -> None:
        """Reverse the order."""
        self.explorer.reverse_sort()

    def action_search(self) -> None:
        """Type a filter."""
        self.explorer.type_filter()

    def action_search_next(self) -> None:
        """Go to the next node that the last filter text fits."""
        self.explorer.find(1)

    def action_search_previous(self) -> None:
        """Go to the previous node that the last filter text fits."""
        self.explorer.find(-1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to others while there is nothing to clear."""
        if action == "clear":
            return self.explorer.can_clear
        return super().check_action(action, parameters)

    def action_clear(self) -> None:
        """Clear the filter text, or else the marks, or else the advanced filter."""
        self.explorer.clear()

    def action_mark(self) -> None:
        """Mark the node, or every node below the branch, and move down."""
        self.explorer.mark()

    def set_marks(self, marks: set[Hashable]) -> None:
        """Replace the marks; only nodes can be marked, and not the branches between them."""
        super().set_marks({mark for mark in marks if isinstance(mark, Node)})
