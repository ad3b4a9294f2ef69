"""Who uses an initializer: going there, connecting, switching and disconnecting uses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.document import Node, Scope
from dld_tui.core.document.scope import Use
from dld_tui.core.text import clip, visible
from dld_tui.screens.page_work import PageWork
from dld_tui.widgets.dialogs.search import PickDialog, PickItem
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.operators.styles import operator_style
from dld_tui.widgets.parameters.model import formal_name, node_schema
from dld_tui.widgets.tasks import task
from dld_tui.widgets.tensors.initializers import InitializerRow, initializer_rows

_OPERATOR_CELLS = 14

if TYPE_CHECKING:

    class _Base(PageWork):
        @property
        def row(self) -> InitializerRow | None: ...
else:
    _Base = PageWork


class InitializerLinks(_Base):
    """A mixin for the list of initializers."""

    # --- users ----------------------------------------------------------------------------------

    @task()
    async def action_users(self) -> None:
        """Go to a node that uses the initializer."""
        row = self.row
        if row is None:
            return
        if not row.scope.users(row.name):
            said = "It is an output of the graph" if row.uses else "Nothing uses it"
            self.notify(said, timeout=3)
            return
        use = await self._pick_use(row, "Go to a user")
        if use is not None:
            self.dismiss(None)
            self.workspace.navigation.go_to(use.node)

    async def _pick_use(self, row: InitializerRow, title: str) -> Use | None:
        """Ask which use is meant when there are several."""
        uses = row.scope.users(row.name)
        if not uses:
            self.notify("No node uses it", timeout=3)
        if len(uses) < 2:
            return uses[0] if uses else None
        items = [_use_item(at, use.node, use.index) for at, use in enumerate(uses)]
        key = await self.tasks.ask(PickDialog(title, lambda: items, placeholder="node"))
        return uses[key] if isinstance(key, int) else None

    # --- connecting -----------------------------------------------------------------------------

    @task()
    async def action_connect(self) -> None:
        """Choose a node input that takes the initializer."""
        row = self.row
        if row is None:
            return
        places: list[tuple[Node, int]] = []

        def items() -> Iterator[PickItem]:
            places.clear()
            for node, index in node_inputs(row.scope, row.name):
                places.append((node, index))
                yield _use_item(len(places) - 1, node, index)

        title = f"Give {clip(visible(row.name), 30, keep='middle')} to"
        placeholder = "operator, node, input or its present value"
        key = await self.tasks.ask(PickDialog(title, items, placeholder=placeholder))
        if isinstance(key, int):
            node, index = places[key]
            self._connect(node, index, row.name)

    @task()
    async def action_switch(self) -> None:
        """Give one of the users another initializer."""
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
        """Take the initializer from one of its users."""
        row = self.row
        use = await self._pick_use(row, "Disconnect which use?") if row is not None else None
        if use is not None:
            self._connect(use.node, use.index, "")

    def _connect(self, node: Node, index: int, value: str) -> None:
        made = self.try_edit(
            "set_input", scope=list(node.scope.path), node=node.ref, index=index, value=value
        )
        if made:
            verb = "Connected to" if value else "Disconnected from"
            label = clip(visible(node.name or node.ref), 60, keep="middle")
            self.notify(f"{verb} {label}", timeout=3, markup=False)


def node_inputs(scope: Scope, name: str) -> Iterator[tuple[Node, int]]:
    """Yield the node inputs that may take a value of a scope, and one more than each node has."""
    for inner in scope.reach(name):
        for node in inner.nodes:
            schema = node_schema(node)
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
    schema = node_schema(node)
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
