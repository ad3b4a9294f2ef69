"""Operators are added, and connected; inputs and outputs of graphs, and their types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.model.tensors.value_types import ValueType, format_type, parse_type
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.history import MANY, EditHistory
from dld_tui.screens.workspace.inference import Inference
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import by_scope
from dld_tui.widgets.tasks import on_thread, task

if TYPE_CHECKING:
    from dld_tui.core.model.document import Node, Scope
    from dld_tui.core.model.edits import wiring as wirings
    from dld_tui.widgets.parameters.terminals import Terminal


_NEAR = 8
"""Values made just before a node that are offered first."""
_TYPE_HINT = "float32[N, 3, 224, 224]"


@dataclass(eq=False)
class Wiring(Controller):
    """Adds operators, connects and disconnects."""

    COMMAND_TABLE = (
        *table(
            "workspace",
            ("node.add", "wiring.add", "a,ctrl+space,ctrl+@", "", "add",
             "Add an operator and choose its inputs.",
             "add node, new node, insert operator, create node"),
            ("model.opsets", "wiring.show_opsets", "V", "", "opset imports",
             "Add, update or remove opset imports.",
             "operator sets, opset import, imports of operators, domains"),
            common="document", footer="node.add", menus={"node.add": "node output"},
        ),
        *table(
            "workspace",
            ("link.connect", "wiring.connect", "c", "end", "connect",
             "Connect the node, input or output at the cursor; search for the other end.",
             "wire, link, attach"),
            ("link.disconnect", "wiring.disconnect", "K", "wired", "disconnect",
             "Disconnect this input, or all consumers of this output.", "unwire, unlink, detach"),
            ("link.replace", "wiring.replace_uses", "R", "value", "replace uses",
             "Make all consumers of this tensor use another one.", "rewire, redirect"),
            ("link.insert", "wiring.insert_on_link", "I", "value", "insert on link",
             "Insert a node on this link, or between an output and all its consumers.",
             "insert, insert node, add between"),
            ("link.bypass", "wiring.bypass", "", "nodes", "bypass",
             "Reroute tensors around the marked nodes; keep the nodes.",
             "skip node, remove and reconnect, short circuit"),
            ("link.add", "wiring.add_terminal", "", "variadic", "add input",
             "Connect another tensor to an operator with a variable number of inputs."),
            ("link.remove", "wiring.remove_terminal", "", "item", "remove terminal",
             "Remove the input or output from its list; later ones move up."),
            ("link.graph_input", "wiring.make_input", "", "input", "make graph input",
             "Create a graph input and connect it here."),
            ("link.graph_output", "wiring.make_output", "", "value", "make graph output",
             "Make the tensor a graph output."),
            ("link.type", "wiring.declare_type", "T", "value", "set type",
             "Declare the type and shape of the tensor."),
            ("link.earlier", "wiring.move_terminal -1", "shift+up", "boundary", "move up",
             "Move the graph input or output up in its list."),
            ("link.later", "wiring.move_terminal 1", "shift+down", "boundary", "move down",
             "Move the graph input or output down in its list."),
            common="document", footer="link.connect",
            menus={"link.replace": "node", "link.insert": "node", "link.graph_output": "node"},
        ),
    )  # fmt: skip

    panes: Panes
    navigation: Navigation
    history: EditHistory
    inference: Inference

    @task()
    async def connect(self) -> None:
        """Connect the terminal under the cursor, or one of the node's after asking which."""
        from dld_tui.widgets.dialogs.wiring import TerminalPicker

        terminal, node = self.cursor.terminal, self.cursor.node
        if terminal is None and node is not None:
            picker = TerminalPicker(node, title=f"Connect {_label(node)}: which end?")
            terminal = await self.ask(picker)
        if terminal is None:
            return
        if terminal.node is None and terminal.side == "output":
            await self._connect_result(terminal)
        elif terminal.side == "input" and terminal.node is not None:
            await self.connect_input(terminal.node, terminal.index)
        else:
            await self._connect_output(terminal)

    async def connect_input(self, node: Node, index: int) -> None:
        """Ask for a value and connect it to an input of a node."""
        from dld_tui.core.model.document.operator_matching import mismatch
        from dld_tui.widgets.dialogs.wiring import ValuePicker
        from dld_tui.widgets.parameters.terminals import Terminal

        present = node.inputs[index] if index < len(node.inputs) else ""
        terminal = Terminal(node.scope, "input", present, node, index)
        own = {name for name in node.outputs if name}
        await self.inference.typed(always=True)
        picker = ValuePicker(
            node.scope,
            title=f"Connect to {terminal.label} of {_label(node)}",
            wanted=lambda value_type: mismatch(node, index, value_type),
            exclude=own | {present},
            first=_values_before(node),
            empty_label="" if terminal.is_required or not present else "nothing: leave it out",
        )
        value = await self.ask(picker)
        if value is not None:
            self._link(node, index, value)

    def _link(self, node: Node, index: int, value: str) -> None:
        from dld_tui.core.model.document.operator_matching import mismatch
        from dld_tui.core.model.edits import links

        why_not = mismatch(node, index, node.scope.value_type(value)) if value else None
        if not self.history.try_edit(
            links.set_input(
                scope=node.scope.path,
                node=node.ref,
                index=index,
                value=value,
                sort=True,
            )
        ):
            return
        if why_not:
            message = f"Connected, but the types differ: {visible(why_not)}"
            self.say(message, 6, warning=True)

    async def _connect_output(self, terminal: Terminal) -> None:
        """Ask which node is to use a value, where that is not known, and at which input."""
        from dld_tui.core.model.document.traversal import depends_on
        from dld_tui.widgets.dialogs.wiring import NodePicker, TerminalPicker

        node, source, value = terminal.user, terminal.node, terminal.value
        if node is None:
            node = await self.ask(
                NodePicker(
                    terminal.scope,
                    title=f"Which node takes {visible(value)}?",
                    first=_nodes_after(source) if source is not None else (),
                    exclude=source,
                )
            )
            if node is None:
                return
            if depends_on(node, value):
                self.say("That would create a cycle: the value depends on this node", 4)
                return
        picker = TerminalPicker(
            node,
            title=f"Which input of {_label(node)} takes {visible(value)}?",
            side="input",
            value_type=terminal.scope.value_type(value),
        )
        taker = await self.ask(picker)
        if taker is not None:
            self._link(node, taker.index, value)

    async def _connect_result(self, terminal: Terminal) -> None:
        """Ask which value a graph output is to give instead."""
        from dld_tui.core.model.edits import links
        from dld_tui.widgets.dialogs.wiring import ValuePicker

        picker = ValuePicker(
            terminal.scope,
            title=f"Which value instead of output {visible(terminal.value)}?",
            exclude=set(terminal.scope.outputs),
        )
        value = await self.ask(picker)
        if value:
            scope = terminal.scope.path
            self.history.try_edit(links.replace_output(scope=scope, name=terminal.value, by=value))

    @task()
    async def add_terminal(self) -> None:
        """Connect a value to one more input of an operator that takes any number."""
        node = self.cursor.node
        if node is not None:
            await self.connect_input(node, len(node.inputs))

    @task()
    async def disconnect(self) -> None:
        """Disconnect the terminal under the cursor; asks where that leaves an error."""
        from dld_tui.widgets.parameters.terminals import Terminal

        terminal = self.cursor.terminal
        if terminal is None or not terminal.value:
            return
        user = terminal.user
        if user is not None and terminal.node is not None and terminal.side == "output":
            index = user.inputs.index(terminal.value)
            terminal = Terminal(user.scope, "input", terminal.value, user, index)
        if terminal.node is not None and terminal.side == "input":
            await self._disconnect_input(terminal.node, terminal)
        else:
            await self._disconnect_value(terminal)

    async def _disconnect_input(self, node: Node, terminal: Terminal) -> None:
        answer: str | None = "disconnect"
        if terminal.is_required:
            answer = await self.pick(
                "Disconnect",
                f"{visible(node.op_type)} needs its {terminal.label}: without it the model is not "
                "valid.",
                [
                    ("c", "connect another value instead", "connect"),
                    ("d", "disconnect it anyway and repair the model later", "disconnect"),
                    ("k", "keep", ""),
                ],
            )
        if answer == "connect":
            await self.connect_input(node, terminal.index)
        elif answer == "disconnect":
            self._link(node, terminal.index, "")

    async def _disconnect_value(self, terminal: Terminal) -> None:
        from dld_tui.core.model.edits import links

        uses = terminal.scope.users(terminal.value)
        if not uses:
            self.say("No node uses it")
            return
        name = clip(visible(terminal.value), 50, keep="middle")
        is_wanted = await self.pick(
            "Disconnect",
            f"{name} is used in {fmt.plural(len(uses), 'place')}. Operators that require it as an "
            "input become invalid.",
            [
                ("d", f"disconnect it from {fmt.plural(len(uses), 'input')}", True),
                ("k", "keep", False),
            ],
        )
        if is_wanted:
            scope = terminal.scope.path
            self.history.try_edit(links.disconnect_value(scope=scope, value=terminal.value))

    @task()
    async def replace_uses(self) -> None:
        """Give all users of the value under the cursor another value."""
        from dld_tui.core.model.document.operator_matching import mismatch
        from dld_tui.core.model.edits import links
        from dld_tui.widgets.dialogs.wiring import ValuePicker

        value, scope = self.cursor.value, self.cursor.scope
        definition = scope.resolve(value) if scope is not None and value else None
        if scope is None or not value:
            return
        home = definition.scope if definition is not None else scope
        uses = home.users(value)
        if not uses:
            self.say("No node uses it")
            return
        first = uses[0]
        await self.inference.typed(always=True)
        picker = ValuePicker(
            home,
            title=f"Use which value instead of {visible(value)}?",
            wanted=lambda value_type: mismatch(first.node, first.index, value_type),
            exclude={value},
            first=_values_before(first.node),
        )
        by = await self.ask(picker)
        if by and not links.replaceable_uses(home, value, by):
            self.say("That would create a cycle: the value depends on these nodes", 4)
        elif by:
            edit = links.replace_uses(scope=home.path, value=value, by=by)
            step = partial(self.document.apply, edit)
            self.history.change("Replacing the uses", [step], large=len(uses) > MANY)

    @task()
    async def insert_on_link(self) -> None:
        """Put a new node behind the value under the cursor, or on the one link of an input."""
        from dld_tui.core.model.document.operator_listing import operator_palette
        from dld_tui.core.model.edits import wiring as wirings
        from dld_tui.widgets.dialogs.wiring import AddNode

        terminal, value, scope = self.cursor.terminal, self.cursor.value, self.cursor.scope
        if scope is None or not value:
            return
        users: list[JSON] | None = None
        user = terminal.user if terminal is not None else None
        if terminal is not None and terminal.node is not None:
            if terminal.side == "input":
                users = [[terminal.node.ref, terminal.index]]
            elif user is not None and user.scope is scope:
                users = [[user.ref, at] for at, name in enumerate(user.inputs) if name == value]

        palette = operator_palette(scope, self.model.listing.count_kinds())
        item = await self.ask(AddNode(palette, f"Insert after {value}"))
        if item is not None:
            wiring = wirings.NodeWiring(scope, item, value, inserts=True, users_of=users)
            needs_more = bool(wiring.missing() or wiring.bodies)  # weights and the like
            await self.add_wired(wiring, asks=needs_more)

    def bypass(self) -> None:
        """Lead the values past the marked nodes, or the one under the cursor."""
        from dld_tui.core.model.edits import links

        nodes = self.model.chosen_nodes
        steps = [
            partial(self.document.apply, links.bypass_nodes(scope=scope.path, nodes=refs))
            for scope, refs in by_scope(nodes).items()
        ]
        if steps:
            self.history.change("Bypassing", steps, large=len(nodes) > MANY)

    @task()
    async def make_input(self) -> None:
        """Make a new graph input and connect it to the node's input under the cursor."""
        from dld_tui.core.model.edits import links
        from dld_tui.core.model.edits.links import exposed_type
        from dld_tui.widgets.parameters.edit_bar import EditBar

        terminal = self.cursor.terminal
        if terminal is None or terminal.node is None or terminal.side != "input":
            return
        node, index = terminal.node, terminal.index
        scope = terminal.scope.path

        def make(wanted: ValueType | None) -> None:
            if wanted is None or wanted.dtype is None or wanted.dims is None:
                raise UsageError("element type and dimensions are needed", hint=_TYPE_HINT)
            dims = wanted.dims
            self.history.edit(
                links.expose_input(
                    scope=scope,
                    node=node.ref,
                    index=index,
                    dtype=wanted.dtype,
                    dims=dims,
                )
            )

        await self.inference.typed(always=True)
        known = exposed_type(node, index)
        is_known = known.dtype is not None and known.dims is not None
        if is_known or terminal.scope.is_function:
            self.history.try_edit(links.expose_input(scope=scope, node=node.ref, index=index))
            return
        shown = "" if known.dtype is None else f"{known.dtype}[...]"
        self.panes.mount_bar(
            EditBar(
                "type of the input",
                shown,
                lambda text: make(parse_type(text)),
                placeholder=_TYPE_HINT,
            )
        )

    def make_output(self) -> None:
        """Make the value under the cursor an output of the graph that defines it."""
        from dld_tui.core.model.edits import inputs_outputs

        value, scope = self.cursor.value, self.cursor.scope
        definition = scope.resolve(value) if scope is not None and value else None
        if scope is None or not value:
            return
        home = definition.scope if definition is not None else scope
        self.history.try_edit(inputs_outputs.add_output(scope=home.path, name=value))

    def remove_terminal(self) -> None:
        """Take the terminal under the cursor out of its list."""
        from dld_tui.core.model.edits import inputs_outputs, links

        terminal = self.cursor.terminal
        if terminal is None:
            return
        scope = terminal.scope.path
        if terminal.node is None:
            is_input = terminal.side == "input"
            remove = inputs_outputs.remove_input if is_input else inputs_outputs.remove_output
            self.history.try_edit(remove(scope=scope, name=terminal.value))
        else:
            self.history.try_edit(
                links.remove_terminal(
                    scope=scope,
                    node=terminal.node.ref,
                    side=terminal.side,
                    index=terminal.index,
                )
            )

    def move_terminal(self, step: str) -> None:
        """Move the graph's input or output under the cursor up or down by one."""
        from dld_tui.core.model.edits import links

        terminal = self.cursor.terminal
        if terminal is None or terminal.node is not None:
            return
        scope, side = terminal.scope, terminal.side
        # Inputs that have an initializer are listed apart: the neighbour of the same list counts.
        order = scope.inputs if side == "input" else scope.outputs
        known = scope.named("initializer") if side == "input" else ()
        names = [name for name in order if (name in known) == (terminal.value in known)]
        at = names.index(terminal.value)
        if not 0 <= at + int(step) < len(names):
            self.say(f"It is the {'first' if int(step) < 0 else 'last'} {side} of the graph")
            return
        to = order.index(names[at + int(step)])
        moved = self.history.try_edit(
            links.move_terminal(scope=scope.path, side=side, name=terminal.value, to=to)
        )
        if moved and self.cursor.in_parameters:
            self.panes.parameters.list.cursor += int(step)

    def declare_type(self) -> None:
        """Edit the declared type of the value under the cursor; an empty text takes it away."""
        from dld_tui.widgets.parameters.edit_bar import EditBar

        value, scope = self.cursor.value, self.cursor.scope
        if scope is None or not value:
            return
        definition = scope.resolve(value)
        home = definition.scope if definition is not None else scope
        known = home.value_type(value)
        if known is not None and known.container:
            self.say("Only tensor types can be edited as text", 4)
            return
        self.panes.mount_bar(
            EditBar(
                f"type of {visible(value)}",
                format_type(known),
                lambda text: self._set_type(home, value, text),
                placeholder=_TYPE_HINT,
            )
        )

    def _set_type(self, home: Scope, value: str, text: str) -> None:
        from dld_tui.core.model.edits import inputs_outputs

        wanted = parse_type(text)
        if wanted is None and home.value_type(value) is None:
            raise UsageError("a type is missing", hint=f"For example {_TYPE_HINT}")
        dtype = wanted.dtype if wanted is not None else None
        known = wanted.dims if wanted is not None else None
        self.history.edit(
            inputs_outputs.set_value_type(scope=home.path, value=value, dtype=dtype, dims=known)
        )

    async def warm_up(self) -> None:
        """Read the schemas on a thread: a tenth of a second that the first rows do not wait."""
        from dld_tui.core.model.document.operator_listing import warm_up

        await on_thread(warm_up)
        if self.page.is_attached:
            self.panes.graph.boxes.name_ports()

    @task()
    async def add(self) -> None:
        """Choose an operator, then what feeds it, and add it."""
        from dld_tui.core.model.document.operator_listing import operator_palette
        from dld_tui.core.model.edits import wiring as wirings
        from dld_tui.widgets.dialogs.wiring import AddNode

        scope = self._home
        palette = operator_palette(scope, self.model.listing.count_kinds())
        source = self._source(scope)
        item = await self.ask(AddNode(palette))
        if item is not None:
            await self.add_wired(wirings.NodeWiring(scope, item, source))

    @property
    def _home(self) -> Scope:
        """The scope that new nodes go to."""
        from dld_tui.core.model.document import Scope

        node = self.cursor.node
        if node is not None:
            return node.scope
        subject = self.cursor.subject
        return subject if isinstance(subject, Scope) else self.model.listing.root

    def _source(self, scope: Scope) -> str:
        """Return the value that a new node most likely uses, ``""`` when there is none."""
        row = self.cursor.row
        if row is not None and row.name_of == "value" and scope.resolve(row.copied) is not None:
            return row.copied
        node = self.cursor.node
        names = node.outputs if node is not None else scope.inputs
        return next(filter(None, names), "")

    async def add_wired(self, wiring: wirings.NodeWiring, *, asks: bool = True) -> None:
        """Add a node and go to it.

        Args:
            wiring: The node, and what feeds it.
            asks: Whether to ask what feeds it, once the types of what could are known; asked
                again where the node cannot be added, so that nothing that was chosen is lost.
        """
        from dld_tui.core.model.document import Node
        from dld_tui.core.model.edits.nodes import added_node
        from dld_tui.widgets.dialogs.wiring import WiringDialog

        while True:
            if asks:
                await self.inference.typed(always=True)
                answer = await self.ask(WiringDialog(wiring))
                if answer is None:
                    return
                wiring = answer
            try:
                transaction = self.history.edit(wiring.edit())
                break
            except DldError as error:
                self.complain(error)
                asks = True
        node = added_node(transaction)
        if isinstance(node, Node):
            self.navigation.go_to(node)

    def show_opsets(self) -> None:
        """Show the imported operator sets; import, change or remove one."""
        from dld_tui.screens.model.opset_dialogs import OpsetDialog

        self.push(OpsetDialog(self.document, self.history.try_edit))


def _label(node: Node) -> str:
    """Return the operator and the name of a node: visible text."""
    name = visible(node.name or next(filter(None, node.outputs), ""))
    return f"{visible(node.op_type)} {clip(name, 40, keep='middle')}"


def _values_before(node: Node) -> list[str]:
    """Return what the nodes right before a node make, the nearest first."""
    nodes = node.scope.nodes
    at = node.scope.index_of(node)
    preceding = nodes[max(0, at - _NEAR) : at][::-1]
    return [name for other in preceding for name in other.outputs if name]


def _nodes_after(node: Node) -> Sequence[Node]:
    """Return the nodes right after a node."""
    at = node.scope.index_of(node)
    return node.scope.nodes[at + 1 : at + 1 + _NEAR]
