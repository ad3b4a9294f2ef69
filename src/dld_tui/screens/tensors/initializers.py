"""The list of initializers: what there is, how large, where it is, who uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.widget import Widget

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.errors import DldError
from dld_tui.core.model.document import DocumentChange, Node, Scope
from dld_tui.core.model.document.operator_matching import schema_of
from dld_tui.core.model.document.scope import Use
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.screens.tensors.conversion import (
    TensorConversion,
    TensorPlace,
    external_entries_dialog,
)
from dld_tui.screens.workspace.history import PageEdits
from dld_tui.screens.workspace.state import is_alive
from dld_tui.styles import STYLES
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog
from dld_tui.widgets.dialogs.search import PickDialog, PickItem
from dld_tui.widgets.lists.line_view import LineView, ListPlace, MarksChanged
from dld_tui.widgets.lists.styled import Piece, operator_style
from dld_tui.widgets.parameters.descriptions import formal_name
from dld_tui.widgets.parameters.edit_bar import EditBar, name_editor
from dld_tui.widgets.shell.command_dispatch import hint, holding
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.tasks import task
from dld_tui.widgets.tensors.initializers import (
    DENSE,
    SPARSE,
    InitializerRow,
    InitializersPane,
    InitializersView,
    initializer_rows,
)

if TYPE_CHECKING:
    from dld_tui.core.model.document import Edit
    from dld_tui.screens.workspace.history import EditHistory


_OPERATOR_CELLS = 14


def node_inputs(scope: Scope, name: str) -> Iterator[tuple[Node, int]]:
    """Yield the node inputs that may take a value of a scope, and one more than each node has."""
    for inner in scope.reach(name):
        for node in inner.nodes:
            schema = schema_of(node)
            count = len(node.inputs)
            most = count if schema is None else len(schema.inputs)
            is_variadic = bool(schema and schema.inputs and schema.inputs[-1].option == "variadic")
            for index in range(max(count + (is_variadic or count < most), 0)):
                yield node, index


def _other_items(use: Use, name: str) -> Iterator[PickItem]:
    """Yield the initializers that a use may have instead of one."""
    scope: Scope | None = use.node.scope
    while scope is not None:
        for other in initializer_rows([scope]):
            if use.node.scope.resolve(other.name) is not None and other.name != name:
                yield _initializer_item(other)
        scope = scope.parent


def _use_item(key: int, node: Node, index: int) -> PickItem:
    schema = schema_of(node)
    formal = schema.input(index) if schema is not None else None
    label = formal_name(formal, index)
    inputs = node.inputs
    value = inputs[index] if index < len(inputs) else ""
    name = node.name or node.ref
    pieces: list[Piece] = [
        (
            visible(node.op_type)[:_OPERATOR_CELLS].ljust(_OPERATOR_CELLS),
            operator_style(node.op_type),
        ),
        (f" {clip(visible(name), 30, keep='middle')}", ""),
        (f"  {visible(label)}", "key"),
        (f" = {clip(visible(value), 24, keep='middle')}" if value else " left out", "dim"),
    ]
    return PickItem(key, pieces, f"{node.op_type} {name} {label} {value}")


def _initializer_item(row: InitializerRow) -> PickItem:
    kind = f"{row.tensor.dtype}{visible(fmt.shape(row.shape))}"
    pieces: list[Piece] = [(clip(visible(row.name), 44, keep="middle"), ""), (f"  {kind}", "dim")]
    return PickItem(row.name, pieces, f"{row.name} {kind}")


_SLICE_S = 0.015
"""How long listing may keep the event loop before it lets others run."""


class InitializersScreen(Page):
    """The page.

    Args:
        workspace: The workspace of the document.
        scope: The scope whose initializers are listed first; None lists those of all.
    """

    SCOPE = "initializers"
    COMMAND_TABLE = table(
        "initializers",
        ("initializers.edit", "edit", "e", "initializer", "edit", "Open the tensor editor."),
        ("initializers.filter", "filter", "slash", "", "filter", "Filter the list while you type."),
        ("initializers.create", "create", "a,insert", "", "create", "Create an initializer."),
        ("initializers.rename", "rename", "r", "initializer", "rename", "Rename the initializer."),
        ("initializers.delete", "delete", "d,delete", "initializers", "delete",
         "Delete the marked initializers; ask first if they are used."),
        ("initializers.delete_unused", "delete_unused", "", "", "delete unused",
         "Delete all listed initializers without a consumer."),
        ("initializers.convert", "convert", "T", "initializers", "convert type",
         "Convert the element type of the marked initializers; preview the loss."),
        ("initializers.external", "external", "x", "initializers", "to external",
         "Move the marked initializers to a data file beside the model."),
        ("initializers.inline", "inline", "I", "initializers", "to inline",
         "Move the marked initializers into the model file."),
        ("initializers.data_file", "data_file", "E", "external_initializer", "data file",
         "Change the path, offset and length of external data."),
        ("initializers.sparse", "sparse", "", "initializers", "sparse or dense",
         "Convert the marked initializers between dense and sparse."),
        ("initializers.users", "users", "s", "initializer", "go to consumer",
         "Go to a node that uses the initializer."),
        ("initializers.connect", "connect", "c", "initializer", "connect",
         "Connect the initializer to a node input."),
        ("initializers.switch", "switch", "R", "used_initializer", "switch initializer",
         "Give one consumer another initializer."),
        ("initializers.disconnect", "disconnect", "K", "used_initializer", "disconnect",
         "Disconnect the initializer from one consumer."),
        ("initializers.scopes", "toggle_scopes", "b", "", "all scopes",
         "List the initializers of this scope, or of all scopes."),
        ("initializers.constants", "toggle_constants", "C", "", "constants",
         "Also list the tensors of Constant nodes."),
        ("initializers.undo", "edits.undo", "u,ctrl+z", "can_undo", "undo", "Undo the last edit."),
        ("initializers.redo", "edits.redo", "ctrl+y,ctrl+r", "can_redo", "redo",
         "Redo the last undone edit."),
        footer="initializers.edit initializers.create initializers.convert initializers.users "
        "initializers.connect initializers.delete",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("model_page", "page")
    CSS_PATH = STYLES / "tensor.tcss"
    AUTO_FOCUS = "InitializersView"
    tab_title = "initializers"
    HELP = InitializersView.HELP

    def __init__(self, workspace: EditHistory, scope: Scope | None) -> None:
        super().__init__()
        self.edits = PageEdits(self, workspace)
        self.scope = scope
        self.all_scopes = scope is None
        self.constants = False
        self._go_to: Hashable | None = None
        """The key of the row that the cursor goes to once it is listed."""
        self._return: ListPlace | None = None
        """Where cursor and marks go once the rows are listed after an undo or redo."""

    def body(self) -> Iterable[Widget]:
        yield InitializersPane(id="initializers")

    def on_mount(self) -> None:
        """List what there is."""
        self.edits.document.on_change.append(self._document_changed)
        self.list_again()

    def on_unmount(self) -> None:
        """Stop what runs for this page."""
        if self._document_changed in self.edits.document.on_change:
            self.edits.document.on_change.remove(self._document_changed)
        self.edits.cancel_work()

    @property
    def pane(self) -> InitializersPane:
        """The pane of the list."""
        return self.query_one(InitializersPane)

    @property
    def row(self) -> InitializerRow | None:
        """The row under the cursor."""
        return self.pane.row_at_cursor() if self.is_mounted else None

    @property
    def chosen(self) -> list[InitializerRow]:
        """The marked rows that are listed, or the one under the cursor."""
        return self.pane.chosen() if self.is_mounted else []

    def go_to(self, key: Hashable) -> None:
        """Put the cursor on a row, or remember it until it is listed."""
        self._go_to = None if self.pane.table.go_to_key(key) else key

    @task("list", replace=True)
    async def list_again(self) -> None:
        """Make the rows, in slices: there may be many, and finding their users takes time."""
        if self.scope is not None and not is_alive(self.scope):
            self.scope, self.all_scopes = None, True
        scopes = [self.scope] if self.scope is not None else []
        if self.all_scopes:
            scopes = list(self.edits.document.scopes())
        rows: list[InitializerRow] = []
        deadline = monotonic() + _SLICE_S
        with collector_paused():
            for row in initializer_rows(scopes, constants=self.constants):
                rows.append(row)
                if monotonic() > deadline:
                    await asyncio.sleep(0)
                    deadline = monotonic() + _SLICE_S
        self.pane.show(rows, with_scope=self.all_scopes)
        if self._return is not None:
            self.pane.table.return_to(self._return)
            self._return = None
        self._say()
        if self._go_to is not None and self.pane.table.go_to_key(self._go_to):
            self._go_to = None
        self.refresh_bindings()
        await self._find_problems(rows)

    async def _find_problems(self, rows: list[InitializerRow]) -> None:
        """Look into each tensor in slices, so that the rows with a problem can be counted."""
        deadline = monotonic() + _SLICE_S
        pane = self.pane
        for row in rows:
            pane.problem_of(row)
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        self._say()

    def _say(self) -> None:
        scope = self.scope
        where = "all scopes" if self.all_scopes or scope is None else visible(scope.title)
        self.pane.say_title(where)
        path = () if scope is None else scope.path
        self.crumb("all scopes" if self.all_scopes else visible(" › ".join(path)) or "main")

    def _document_changed(self, change: DocumentChange) -> None:
        if self.is_attached:
            table = self.pane.table
            self._return = self.edits.returning(change, lambda: table.place) or self._return
            self.list_again()

    def conditions(self) -> set[str]:
        conditions = super().conditions()
        row = self.row
        return conditions | holding(
            initializer=row is not None,
            initializers=bool(self.chosen),
            used_initializer=row is not None and row.uses > 0,
            external_initializer=(row is not None and row.kind == DENSE and row.tensor.is_external),
            can_undo=bool(self.edits.document.history.done),
            can_redo=bool(self.edits.document.history.undone),
        )

    @on(LineView.CursorMoved)
    @on(MarksChanged)
    def moved(self) -> None:
        """Show which commands fit."""
        self.refresh_bindings()

    @on(LineView.Activated)
    def activated(self) -> None:
        """Open the tensor."""
        self.action_edit()

    def action_edit(self) -> None:
        row = self.row
        if row is None:
            return
        if row.kind == SPARSE:
            self.edit_sparse(row)
            return
        from dld_tui.screens.tensors.tensor_editor import TensorScreen

        place = TensorPlace(row.scope, row.name)
        if row.node is not None:
            place = TensorPlace(row.scope, node=row.node, attribute=row.attribute)
        self.app.push_screen(TensorScreen(self.edits.workspace, place))

    def action_filter(self) -> None:
        self.pane.open_filter()

    def action_toggle_scopes(self) -> None:
        if self.scope is None:
            self.scope, self.all_scopes = self.edits.document.main, False
        else:
            self.all_scopes = not self.all_scopes
        self.list_again()

    def action_toggle_constants(self) -> None:
        self.constants = not self.constants
        state = "are listed, too" if self.constants else "are not listed"
        self.notify(f"Tensors of Constant nodes {state}", timeout=2)
        self.list_again()

    def go_back(self) -> None:
        """Stop what runs, take back marks or the filter, or go back."""
        if not self.edits.cancel_work() and not self.pane.clear():
            self.dismiss(None)

    def total(self, rows: Iterable[InitializerRow]) -> str:
        """Return what some rows hold in all."""
        return fmt.size(sum(row.nbytes or 0 for row in rows))

    def action_create(self) -> None:
        from dld_tui.screens.tensors.create_initializer import CreateInitializer

        scope = self.scope or self.edits.document.main

        def made(name: str | None) -> None:
            if name:
                self.go_to((scope.path, DENSE, name))

        self.app.push_screen(CreateInitializer(self.edits.workspace, scope, made))

    def action_rename(self) -> None:
        from dld_tui.core.model.edits import renaming

        row = self.row
        if row is None:
            return
        shown, read = name_editor(row.name)

        def accept(text: str) -> None:
            name = read(text)
            self.edits.edit(renaming.rename_value(scope=row.scope.path, value=row.name, name=name))
            self.go_to((row.scope.path, row.kind, name))

        self.pane.mount(EditBar("name", shown, accept))

    @task()
    async def action_delete(self) -> None:
        """Delete the marked initializers; asks when they are used."""
        rows = self._initializers(self.chosen, "deleted here: delete the node in the layers")
        if not rows:
            return
        uses = sum(row.uses for row in rows)
        if not uses:
            self._delete(rows, disconnect=False)
            return
        count = fmt.plural(len(rows), "initializer")
        verb = "is" if len(rows) == 1 else "are"
        message = f"{count} {verb} used in {fmt.plural(uses, 'place')}."
        choices = [
            Choice("d", "delete and disconnect the users", "delete"),
            Choice("k", "keep", ""),
        ]

        if await self.tasks.ask(ChoiceDialog("Delete", message, choices)):
            self._delete(rows, disconnect=True)

    @task()
    async def action_delete_unused(self) -> None:
        rows = [row for row in self.pane.shown() if row.is_initializer and not row.uses]
        if not rows:
            self.notify("Every initializer of the list is used", timeout=3)
            return
        size = fmt.size(sum(row.nbytes or 0 for row in rows))
        message = f"Nothing uses {fmt.plural(len(rows), 'initializer')} of {size}."
        choices = [Choice("d", "delete them", "delete"), Choice("k", "keep", "")]

        if await self.tasks.ask(ChoiceDialog("Delete unused", message, choices)):
            self._delete(rows, disconnect=False)

    def _delete(self, rows: Sequence[InitializerRow], *, disconnect: bool) -> None:
        from dld_tui.core.model.edits.initializers import delete_initializers

        self._for_scopes("Deleting", delete_initializers, rows, disconnect=disconnect)

    def action_convert(self) -> None:
        """Convert the element type of the marked ones, after showing what is lost."""
        places = [
            TensorPlace(row.scope, row.name)
            if row.node is None
            else TensorPlace(row.scope, node=row.node, attribute=row.attribute)
            for row in self.chosen
            if row.kind != SPARSE
        ]
        if not places:
            self.notify(
                hint("A sparse one cannot be converted; {initializers.sparse} makes it dense"),
                timeout=4,
            )
            return
        TensorConversion(self, self.edits).ask(places)

    @task()
    async def action_external(self) -> None:
        from dld_tui.core.model.edits.initializers import set_external

        rows = self._initializers(self.chosen, "moved to a data file", dense=True)
        if not rows:
            return
        path = self.edits.document.path
        default = f"{path.name if path is not None else 'model.onnx'}.data"

        size = fmt.size(sum(row.nbytes or 0 for row in rows))
        about = f"The data file for {fmt.plural(len(rows), 'tensor')} of {size}, beside the model."
        location = await self.tasks.ask(PromptDialog("To external data", about, default))
        if location and location.strip():
            self._for_scopes("Moving to a data file", set_external, rows, location=location.strip())

    def action_data_file(self) -> None:
        """Change where the values of the initializer under the cursor are read from."""
        row = self.row
        dialog = None
        if row is not None and row.kind == DENSE:
            dialog = external_entries_dialog(TensorPlace(row.scope, row.name), self.edits.edit)
        if dialog is None:
            self.notify(
                hint(
                    "Its values are not in a data file; {initializers.external} moves them to one"
                ),
                timeout=4,
            )
        else:
            self.app.push_screen(dialog)

    def action_inline(self) -> None:
        from dld_tui.core.model.edits.initializers import set_inline

        rows = self._initializers(self.chosen, "external", dense=True)
        rows = [row for row in rows if row.tensor.is_external]
        if rows:
            self._for_scopes("Moving into the model", set_inline, rows)
        else:
            self.notify("It is already in the model file", timeout=3)

    def action_sparse(self) -> None:
        from dld_tui.core.model.edits.initializers import to_dense, to_sparse

        rows = self._initializers(self.chosen, "sparse")
        for kind, edit in ((DENSE, to_sparse), (SPARSE, to_dense)):
            chosen = [row for row in rows if row.kind == kind]
            if chosen:
                self._for_scopes("Sparse and dense", edit, chosen)
                return

    @task()
    async def edit_sparse(self, row: InitializerRow) -> None:
        """Edit type, dimensions, indices and values of a sparse initializer as text."""
        from dld_tui.core.model.edits import initializers
        from dld_tui.core.model.tensors.sparse import read_sparse_lines, sparse_lines
        from dld_tui.widgets.dialogs.dialogs import SPARSE_NOTE, TextDialog

        record = row.scope.named("sparse_initializer").first(row.name)
        if record is None:
            return
        try:
            text = sparse_lines(self.edits.document, record)
        except DldError as error:
            self.edits.complain(error)
            return

        title = f"Sparse initializer {row.name}"
        dialog = TextDialog(title, text, check=read_sparse_lines, note=SPARSE_NOTE)
        typed = await self.tasks.ask(dialog)
        if typed is None or typed == text:
            return
        try:
            arguments = read_sparse_lines(typed)
            self.edits.edit(
                initializers.set_sparse(scope=row.scope.path, name=row.name, **arguments)
            )
        except DldError as error:
            self.edits.complain(error)
        self.go_to(row.key)

    def _initializers(
        self, rows: Iterable[InitializerRow], verb: str, *, dense: bool = False
    ) -> list[InitializerRow]:
        """Return the rows that are initializers; shows a message if there are none."""
        initializers = list(rows)
        fitting = [
            row for row in initializers if row.is_initializer and (row.kind == DENSE or not dense)
        ]
        if initializers and not fitting:
            source = (
                "A sparse initializer"
                if initializers[0].is_initializer
                else "A Constant node's tensor"
            )
            self.notify(f"{source} cannot be {verb}", timeout=4)
        return fitting

    def _for_scopes(
        self,
        title: str,
        kind: Callable[..., Edit],
        rows: Sequence[InitializerRow],
        **arguments: JSON,
    ) -> None:
        """Make one edit in each scope, on a thread."""
        by_scope: dict[Scope, list[str]] = {}
        for row in rows:
            by_scope.setdefault(row.scope, []).append(row.name)
        steps = [
            partial(self.edits.document.apply, kind(scope=scope.path, names=names, **arguments))
            for scope, names in by_scope.items()
        ]
        self.edits.edit_on_thread(title, steps)

    @task()
    async def action_users(self) -> None:
        row = self.row
        if row is None:
            return
        if not row.scope.users(row.name):
            if row.scope.is_output(row.name):
                message = "It is an output of the graph"
            else:
                message = "A quantization annotation names it" if row.uses else "Nothing uses it"
            self.notify(message, timeout=3)
            return
        use = await self._pick_use(row, "Go to a user")
        if use is not None:
            self.dismiss(None)
            self.edits.workspace.navigation.go_to(use.node)

    async def _pick_use(self, row: InitializerRow, title: str) -> Use | None:
        """Ask which use, if there are several."""
        uses = row.scope.users(row.name)
        if not uses:
            self.notify("No node uses it", timeout=3)
        if len(uses) < 2:
            return uses[0] if uses else None
        items = [_use_item(at, use.node, use.index) for at, use in enumerate(uses)]
        key = await self.tasks.ask(PickDialog(title, lambda: items, placeholder="node"))
        return uses[key] if isinstance(key, int) else None

    @task()
    async def action_connect(self) -> None:
        row = self.row
        if row is None:
            return
        places: list[tuple[Node, int]] = []

        def items() -> Iterator[PickItem]:
            places.clear()
            for node, index in node_inputs(row.scope, row.name):
                places.append((node, index))
                yield _use_item(len(places) - 1, node, index)

        title = f"Connect {clip(visible(row.name), 30, keep='middle')} to"
        placeholder = "operator, node, input or its present value"
        key = await self.tasks.ask(PickDialog(title, items, placeholder=placeholder))
        if isinstance(key, int):
            node, index = places[key]
            self._connect(node, index, row.name)

    @task()
    async def action_switch(self) -> None:
        row = self.row
        use = await self._pick_use(row, "Switch which use?") if row is not None else None
        if row is None or use is None:
            return
        title = f"Instead of {clip(visible(row.name), 30, keep='middle')}"
        dialog = PickDialog(
            title, partial(_other_items, use, row.name), placeholder="name, type or shape"
        )
        key = await self.tasks.ask(dialog)
        if isinstance(key, str):
            self._connect(use.node, use.index, key)

    @task()
    async def action_disconnect(self) -> None:
        row = self.row
        use = await self._pick_use(row, "Disconnect which use?") if row is not None else None
        if use is not None:
            self._connect(use.node, use.index, "")

    def _connect(self, node: Node, index: int, value: str) -> None:
        from dld_tui.core.model.edits import links

        is_connected = self.edits.try_edit(
            links.set_input(scope=node.scope.path, node=node.ref, index=index, value=value)
        )
        if is_connected:
            verb = "Connected to" if value else "Disconnected from"
            label = clip(visible(node.name or node.ref), 60, keep="middle")
            self.notify(f"{verb} {label}", timeout=3, markup=False)
