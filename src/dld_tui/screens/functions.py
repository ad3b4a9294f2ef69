"""The list of local functions: signatures, attributes, who calls them; and what is done to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.document import Change, Node, Scope, Transaction
from dld_tui.core.document.function_table import FunctionRow, function_rows
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.function_dialogs import AttributesDialog, create_dialog, names_dialog
from dld_tui.screens.page_work import PageWork
from dld_tui.screens.workspace.history import MANY
from dld_tui.widgets import glyphs
from dld_tui.widgets.commands import bindings_for
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.page import SubPage
from dld_tui.widgets.parameter_links import place_text
from dld_tui.widgets.pick_dialog import PickDialog, PickItem
from dld_tui.widgets.row_table import RowTable
from dld_tui.widgets.styled import Rows
from dld_tui.widgets.table_view import Cell, Column, TableView
from dld_tui.widgets.wrap import wrap

if TYPE_CHECKING:
    from dld_tui.screens.workspace.history import History

_COLUMNS = (
    Column("name", "Name", None, min_width=14, keep="middle"),
    Column("domain", "Domain", 14, priority=3),
    Column("overload", "Overload", 9, priority=6),
    Column("inputs", "In", 4, align="right", priority=4),
    Column("outputs", "Out", 4, align="right", priority=4),
    Column("attributes", "Attributes", None, min_width=18, priority=5),
    Column("nodes", "Nodes", 6, align="right", priority=2, descending=True),
    Column("instances", "Instances", 9, align="right", descending=True),
)
_PROBLEM = Column("problem", "Problem", 22, priority=1)
_DETAIL_ROWS = 3


class FunctionList(Frame, TableView):
    """The table of the functions."""

    HELP = (
        "The local functions of the model. Enter opens one in the workspace. A function is called "
        "by nodes of its domain and name; its attributes are what a call may set."
    )


class FunctionsScreen(PageWork, SubPage):
    """The page; gives the scope or node to go to, or None.

    Args:
        workspace: The workspace of the document.
        start: The function that the cursor begins on.
    """

    SCOPE = "functions"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("functions")
    AUTO_FOCUS = "FunctionList"
    tab_title = "functions"

    def __init__(self, workspace: History, start: Scope | None = None) -> None:
        super().__init__()
        self.workspace = workspace
        self._start = start
        self._rows: list[FunctionRow] = []
        self.chosen: Scope | Node | None = None
        """Where to go when the page is closed."""

    def body(self) -> Iterable[Widget]:
        """Return the table and the details of the row under the cursor."""
        view = FunctionList(_COLUMNS, empty="The model has no local functions. a adds one.")
        view.frame("Functions", "Enter open")
        yield view
        details = Rows([[]] * _DETAIL_ROWS, id="signature")
        details.styles.height = _DETAIL_ROWS
        details.styles.padding = (0, 1)
        yield details

    def on_mount(self) -> None:
        """List the functions."""
        self.document.on_change.append(self._document_changed)
        self._list()
        if self._start is not None:
            self.table.go_to_key(self._start)

    def on_unmount(self) -> None:
        """Hear no more of changes, and stop what runs."""
        self.cancel_work()
        if self._document_changed in self.document.on_change:
            self.document.on_change.remove(self._document_changed)

    @property
    def table(self) -> FunctionList:
        """The table."""
        return self.query_one(FunctionList)

    @property
    def row(self) -> FunctionRow | None:
        """The row under the cursor."""
        at = self.table.row_at_cursor()
        return self._rows[at] if at is not None and at < len(self._rows) else None

    def facts(self) -> set[str]:
        """Return what holds for its commands."""
        row, history = self.row if self.is_mounted else None, self.document.history
        known = {
            "function": row is not None,
            "called": row is not None and bool(row.instances),
            "can_undo": bool(history.done),
            "can_redo": bool(history.undone),
        }
        return super().facts() | {name for name, holds in known.items() if holds}

    # --- what is shown --------------------------------------------------------------------------

    def _document_changed(self, change: Change) -> None:
        if self.is_attached:
            self._list()

    def _list(self) -> None:
        self._rows = function_rows(self.document)
        table: RowTable[FunctionRow] = RowTable(
            self._rows, _CELLS, key=lambda row: row.scope, sort_values=_SORT_VALUES
        )
        has_problems = any(row.problem for row in self._rows)
        self.table.set_columns((*_COLUMNS, _PROBLEM) if has_problems else _COLUMNS)
        self.table.set_table(table)
        self.table.frame(f"Functions ({len(self._rows)})", "Enter open")
        self._describe()

    def _describe(self) -> None:
        row = self.row
        lines: list[list[Piece]] = []
        if row is not None:
            width = max(20, self.app.size.width - 4)
            lines = [[(text, "name")] for text in wrap(row.signature, width)[:1]]
            declared = ", ".join(attribute.text for attribute in row.attributes)
            lines += [[(text, "dim")] for text in wrap(declared or "no attributes", width)[:1]]
            if row.problem:
                mark = glyphs.current().error
                lines.append([(f"{mark} {visible(row.problem)}", "bad")])
        lines += [[] for _ in range(_DETAIL_ROWS - len(lines))]
        self.query_one("#signature", Rows).set_rows(lines)
        self.crumb(visible(row.scope.title) if row is not None else "")
        self.refresh_bindings()

    @on(LineView.CursorMoved)
    def moved(self) -> None:
        """Describe the function under the cursor."""
        self._describe()

    def on_resize(self) -> None:
        """Break the lines again."""
        self._describe()

    # --- going ----------------------------------------------------------------------------------

    @on(LineView.Activated)
    def activated(self, event: LineView.Activated) -> None:
        """Open the function."""
        event.stop()
        self.action_open()

    def action_open(self) -> None:
        """Show the nodes of the function in the workspace."""
        if self.row is not None:
            self._leave(self.row.scope)

    def action_instances(self) -> None:
        """Go to a node that calls the function; asks which when there are several."""
        row = self.row
        if row is None:
            return
        calls = list(row.instances)
        if len(calls) == 1:
            self._leave(calls[0])
            return

        def chosen(place: object) -> None:
            if isinstance(place, int):
                self._leave(calls[place])

        items = partial(_items, calls)
        title = f"{fmt.plural(len(calls), 'instance')} of {visible(row.scope.title)}"
        self.app.push_screen(PickDialog(title, items, placeholder="name or place"), chosen)

    def _leave(self, place: Scope | Node) -> None:
        self.chosen = place
        self.dismiss(None)

    # --- edits ----------------------------------------------------------------------------------

    def _edit(self, name: str, /, **arguments: JSON) -> Transaction:
        transaction = self.edit(name, **arguments)
        self._tell(transaction)
        return transaction

    def _tell(self, transaction: Transaction) -> None:
        text = visible(transaction.title)
        self.notify(text[:1].upper() + text[1:], timeout=4, markup=False)

    def _try(self, name: str, /, **arguments: JSON) -> None:
        try:
            self._edit(name, **arguments)
        except DldError as error:
            self.complain(error)

    def action_create(self) -> None:
        """Add a function without nodes."""
        self.app.push_screen(create_dialog(self._edit))

    def action_rename(self) -> None:
        """Rename the function and its instances."""
        if self.row is not None:
            message = f"{fmt.plural(len(self.row.instances), 'instance')} of it will follow."
            self.app.push_screen(
                names_dialog(self._edit, self.row.scope, "rename_function", "Rename", message)
            )

    def action_duplicate(self) -> None:
        """Add a copy under another name."""
        if self.row is not None:
            message = "Nothing calls the copy yet. Give it another name, domain or overload."
            scope = self.row.scope
            self.app.push_screen(
                names_dialog(self._edit, scope, "duplicate_function", "Duplicate", message)
            )

    def action_delete(self) -> None:
        """Delete the function; undo brings it back."""
        if self.row is not None:
            self._try("delete_function", scope=list(self.row.scope.path))

    def action_inline_all(self) -> None:
        """Replace every instance by the nodes of the function."""
        row = self.row
        if row is None:
            return
        pairs: list[JSON] = [[list(node.scope.path), node.ref] for node in row.instances]
        if len(row.instances) * row.nodes <= MANY:
            self._try("inline_function", nodes=pairs)
            return
        step = partial(self.document.apply, "inline_function", nodes=pairs)
        self.edit_on_thread(f"Inlining {row.key[1]}", [step])

    def action_attributes(self) -> None:
        """Declare attributes of the function."""
        if self.row is not None:
            self.app.push_screen(AttributesDialog(self.row.scope, self.edit))

    def action_close(self) -> None:
        """Stop what runs, or go back."""
        if not self.cancel_work():
            self.dismiss(None)

    def action_undo(self) -> None:
        """Take back the last edit."""
        self.workspace.undo()

    def action_redo(self) -> None:
        """Do again what was taken back."""
        self.workspace.redo()


def _items(calls: list[Node]) -> Iterable[PickItem]:
    for at, node in enumerate(calls):
        name, place = visible(node.name or node.ref), place_text(node.scope)
        yield PickItem(at, [(name, "name"), (f"  {place}", "dim")], f"{name} {place}")


def _attributes(row: FunctionRow) -> Cell:
    return ", ".join(attribute.text for attribute in row.attributes)


def _name(row: FunctionRow) -> Cell:
    return (visible(row.key[1]), "bad" if row.problem else "name")


_CELLS: dict[str, Callable[[FunctionRow], Cell]] = {
    "name": _name,
    "domain": lambda row: row.key[0],
    "overload": lambda row: row.key[2],
    "inputs": lambda row: str(len(row.scope.inputs)),
    "outputs": lambda row: str(len(row.scope.outputs)),
    "attributes": lambda row: (visible(str(_attributes(row))), "dim"),
    "nodes": lambda row: fmt.count(row.nodes),
    "instances": lambda row: fmt.count(len(row.instances)),
    "problem": lambda row: (visible(row.problem), "bad"),
}
_SORT_VALUES: dict[str, Callable[[FunctionRow], int]] = {
    "inputs": lambda row: len(row.scope.inputs),
    "outputs": lambda row: len(row.scope.outputs),
    "nodes": lambda row: row.nodes,
    "instances": lambda row: len(row.instances),
}
