"""Links between nodes, and the context menu."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dld_tui.core import fmt
from dld_tui.core.document import Node
from dld_tui.core.document.operator_palette import operator_palette
from dld_tui.core.document.traverse import depends_on
from dld_tui.core.document.wiring import Wiring
from dld_tui.core.operators.matching import mismatch
from dld_tui.core.operators.palette import PaletteOperator
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace_change import MANY
from dld_tui.screens.workspace_menu import Pointing, by_scope, chosen_nodes
from dld_tui.screens.workspace_operators import Operating
from dld_tui.widgets.add_node import AddNode
from dld_tui.widgets.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.terminal_picker import NodePicker, TerminalPicker
from dld_tui.widgets.terminals import Terminal
from dld_tui.widgets.value_picker import ValuePicker

_NEAR = 8
"""Values made just before a node that are offered first."""


class Linking(Pointing, Operating):
    """The part of the workspace for links between nodes, and the context menu."""

    # --- connect --------------------------------------------------------------------------------

    def action_connect(self) -> None:
        """Connect the terminal under the cursor, or one of the node's after asking which."""
        terminal, node = self.terminal, self.node
        if terminal is not None:
            self._connect(terminal)
        elif node is not None:
            picker = TerminalPicker(node, title=f"Connect {_label(node)}: which end?")
            self.app.push_screen(picker, lambda found: self._connect(found) if found else None)

    def _connect(self, terminal: Terminal) -> None:
        if terminal.node is None and terminal.side == "output":
            self._connect_result(terminal)
        elif terminal.side == "input" and terminal.node is not None:
            self.connect_input(terminal.node, terminal.index)
        elif terminal.user is not None:
            self._ask_input_of(terminal.user, terminal)
        else:
            self._ask_consumer(terminal)

    def connect_input(self, node: Node, index: int) -> None:
        """Ask for a value and connect it to an input of a node."""
        present = node.inputs[index] if index < len(node.inputs) else ""
        terminal = Terminal(node.scope, "input", present, node, index)
        own = {name for name in node.outputs if name}
        picker = ValuePicker(
            node.scope,
            title=f"Connect to {terminal.label} of {_label(node)}",
            wanted=lambda value_type: mismatch(node, index, value_type),
            exclude=own | {present},
            first=_values_before(node),
            empty_label="" if terminal.is_required or not present else "nothing: leave it out",
        )

        def chosen(value: str | None) -> None:
            if value is not None:
                self._link(node, index, value)

        self.app.push_screen(picker, chosen)

    def _link(self, node: Node, index: int, value: str) -> None:
        why_not = mismatch(node, index, node.scope.value_type(value)) if value else None
        if not self.try_edit(
            "set_input",
            scope=list(node.scope.path),
            node=node.ref,
            index=index,
            value=value,
            sort=True,
        ):
            return
        if why_not:
            message = f"Connected, but the types differ: {visible(why_not)}"
            self.notify(message, severity="warning", timeout=6, markup=False)

    def _ask_consumer(self, terminal: Terminal) -> None:
        """Ask which node is to use a value, and at which input."""
        source = terminal.node
        picker = NodePicker(
            terminal.scope,
            title=f"Which node takes {visible(terminal.value)}?",
            first=_nodes_after(source) if source is not None else (),
            exclude=source,
        )

        def chosen(node: Node | None) -> None:
            if node is None:
                return
            if depends_on(node, terminal.value):
                self.notify("That would make a cycle: the value comes from it", timeout=4)
                return
            self._ask_input_of(node, terminal)

        self.app.push_screen(picker, chosen)

    def _ask_input_of(self, node: Node, terminal: Terminal) -> None:
        value = terminal.value
        picker = TerminalPicker(
            node,
            title=f"Which input of {_label(node)} takes {visible(value)}?",
            side="input",
            value_type=terminal.scope.value_type(value),
        )

        def chosen(found: Terminal | None) -> None:
            if found is not None:
                self._link(node, found.index, value)

        self.app.push_screen(picker, chosen)

    def _connect_result(self, terminal: Terminal) -> None:
        """Ask which value a graph output is to give instead."""
        picker = ValuePicker(
            terminal.scope,
            title=f"Which value instead of output {visible(terminal.value)}?",
            exclude=set(terminal.scope.outputs),
        )

        def chosen(value: str | None) -> None:
            if value:
                scope: list[JSON] = list(terminal.scope.path)
                self.try_edit("replace_output", scope=scope, name=terminal.value, by=value)

        self.app.push_screen(picker, chosen)

    def action_add_terminal(self) -> None:
        """Connect a value to one more input of an operator that takes any number."""
        node = self.node
        if node is not None:
            self.connect_input(node, len(node.inputs))

    # --- disconnect -----------------------------------------------------------------------------

    def action_disconnect(self) -> None:
        """Disconnect the terminal under the cursor; asks where that leaves an error."""
        terminal = self.terminal
        if terminal is None or not terminal.value:
            return
        if terminal.node is None:
            self._disconnect_value(terminal)
        elif terminal.side == "input":
            self._disconnect_input(terminal)
        elif terminal.user is not None:
            user = terminal.user
            index = user.inputs.index(terminal.value)
            self._disconnect_input(Terminal(user.scope, "input", terminal.value, user, index))
        else:
            self._disconnect_value(terminal)

    def _disconnect_input(self, terminal: Terminal) -> None:
        node = terminal.node
        if node is None:
            return
        cut = partial(self._link, node, terminal.index, "")
        if not terminal.is_required:
            cut()
            return
        choices = [
            Choice("c", "connect another value instead", "connect"),
            Choice("d", "disconnect it, and leave the error to be repaired", "cut"),
            Choice("k", "keep", ""),
        ]

        def answered(answer: str | None) -> None:
            if answer == "connect":
                self.connect_input(node, terminal.index)
            elif answer == "cut":
                cut()

        message = f"{visible(node.op_type)} needs its {terminal.label}: without it the model is "
        self.app.push_screen(ChoiceDialog("Disconnect", message + "not valid.", choices), answered)

    def _disconnect_value(self, terminal: Terminal) -> None:
        uses = terminal.scope.users(terminal.value)
        if not uses:
            self.notify("No node uses it", timeout=3)
            return
        scope: list[JSON] = list(terminal.scope.path)
        choices = [
            Choice("d", f"disconnect it from {fmt.plural(len(uses), 'input')}", "cut"),
            Choice("k", "keep", ""),
        ]

        def answered(answer: str | None) -> None:
            if answer:
                self.try_edit("disconnect_value", scope=scope, value=terminal.value)

        name = clip(visible(terminal.value), 50, keep="middle")
        message = f"{name} is used in {fmt.plural(len(uses), 'place')}. Inputs that an operator "
        self.app.push_screen(
            ChoiceDialog("Disconnect", message + "needs become errors.", choices), answered
        )

    # --- rewire ---------------------------------------------------------------------------------

    def action_replace_uses(self) -> None:
        """Give all users of the value under the cursor another value."""
        value, scope = self.value, self.value_scope
        found = scope.resolve(value) if scope is not None and value else None
        if scope is None or not value:
            return
        home = found.scope if found is not None else scope
        uses = home.users(value)
        if not uses:
            self.notify("No node uses it", timeout=3)
            return
        first = uses[0]

        def chosen(by: str | None) -> None:
            if by:
                step = partial(
                    self.document.apply, "replace_uses", scope=list(home.path), value=value, by=by
                )
                self.change("Replacing the uses", [step], large=len(uses) > MANY)

        picker = ValuePicker(
            home,
            title=f"Use which value instead of {visible(value)}?",
            wanted=lambda value_type: mismatch(first.node, first.index, value_type),
            exclude={value},
            first=_values_before(first.node),
        )
        self.app.push_screen(picker, chosen)

    def action_insert_on_link(self) -> None:
        """Put a new node behind the value under the cursor, or on the one link of an input."""
        terminal, value, scope = self.terminal, self.value, self.value_scope
        if scope is None or not value:
            return
        users: list[JSON] | None = None
        user = terminal.user if terminal is not None else None
        if terminal is not None and terminal.node is not None:
            if terminal.side == "input":
                users = [[terminal.node.ref, terminal.index]]
            elif user is not None and user.scope is scope:
                users = [[user.ref, at] for at, name in enumerate(user.inputs) if name == value]

        def chosen(item: PaletteOperator | None) -> None:
            if item is not None:
                wiring = Wiring(scope, item, value, inserts=True, users_of=users)
                if wiring.missing() or wiring.bodies:
                    self.ask_wiring(wiring)  # weights and the like
                else:
                    self.add_wired(wiring)

        palette = operator_palette(scope, self.explorer.model.count_kinds())
        self.app.push_screen(AddNode(palette, f"Insert behind {value}"), chosen)

    def action_bypass(self) -> None:
        """Lead the values past the marked nodes, or the one under the cursor."""
        nodes = chosen_nodes(self)
        steps = [
            partial(self.document.apply, "bypass_nodes", scope=list(scope.path), nodes=refs)
            for scope, refs in by_scope(nodes).items()
        ]
        if steps:
            self.change("Bypassing", steps, large=len(nodes) > MANY)


def _label(node: Node) -> str:
    """Return the operator and the name of a node: visible text."""
    name = visible(node.name or next(filter(None, node.outputs), ""))
    return f"{visible(node.op_type)} {clip(name, 40, keep='middle')}"


def _values_before(node: Node) -> list[str]:
    """Return what the nodes right before a node make, the nearest first."""
    nodes = node.scope.nodes
    at = node.scope.index_of(node)
    near = nodes[max(0, at - _NEAR) : at][::-1]
    return [name for other in near for name in other.outputs if name]


def _nodes_after(node: Node) -> Sequence[Node]:
    """Return the nodes right after a node."""
    at = node.scope.index_of(node)
    return node.scope.nodes[at + 1 : at + 1 + _NEAR]
