"""What a graph takes and gives: its inputs and outputs, their order, and the types of values."""

from __future__ import annotations

from dld_tui.core.document import Node, Scope
from dld_tui.core.document.type_text import format_type, parse_type
from dld_tui.core.errors import UsageError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace_edit import Editing
from dld_tui.widgets.edit_bar import EditBar
from dld_tui.widgets.parameter_rows import ParameterLines
from dld_tui.widgets.terminals import Terminal, takes_more, terminal_at

_TYPE_HINT = "float32[N, 3, 224, 224]"


class Terminals(Editing):
    """The part of the workspace for inputs and outputs of graphs, and value types."""

    @property
    def terminal(self) -> Terminal | None:
        """The input or output under the cursor of the parameters pane."""
        return terminal_at(self.subject, self.parameters.row) if self.in_parameters else None

    def facts(self) -> set[str]:
        """Return what holds of the terminal or value under the cursor, too."""
        facts = super().facts()
        if not self.is_open:
            return facts
        terminal, node = self.terminal, self.node
        on_node = node is not None and not self.in_parameters
        known = {
            "end": terminal is not None or on_node,
            "value": bool(self.value),
            "input": terminal is not None and terminal.node is not None
            and terminal.side == "input",
            "wired": terminal is not None and bool(terminal.value),
            "variadic": node is not None and takes_more(node),
            "boundary": terminal is not None and terminal.node is None,
            "item": terminal is not None and terminal.user is None,
        }  # fmt: skip
        if known["boundary"]:
            facts |= {"nodes", "attribute"}  # they can be deleted, and their types edited
        return facts | {name for name, holds in known.items() if holds}

    @property
    def value(self) -> str:
        """The value under the cursor; in the explorer what the node makes first. Foreign text."""
        if not self.is_open:
            return ""
        if not self.in_parameters:
            node = self.node
            return next(filter(None, node.outputs), "") if node is not None else ""
        row = self.parameters.row
        return row.copied if row is not None and row.name_of == "value" else ""

    @property
    def value_scope(self) -> Scope | None:
        """The scope in which :attr:`value` is meant."""
        subject = self.subject if self.in_parameters else self.node
        return subject.scope if isinstance(subject, Node) else subject

    # --- inputs and outputs of graphs -----------------------------------------------------------

    def action_make_input(self) -> None:
        """Make a new graph input and connect it to the node's input under the cursor."""
        terminal = self.terminal
        if terminal is None or terminal.node is None or terminal.side != "input":
            return
        node = terminal.node
        scope: list[JSON] = list(terminal.scope.path)
        if self.try_edit("expose_input", scope=scope, node=node.ref, index=terminal.index):
            made = visible(node.inputs[terminal.index])
            self.notify(f"{made} is an input of the graph now", timeout=3, markup=False)

    def action_make_output(self) -> None:
        """Make the value under the cursor an output of the graph that defines it."""
        value, scope = self.value, self.value_scope
        found = scope.resolve(value) if scope is not None and value else None
        if scope is None or not value:
            return
        home = found.scope if found is not None else scope
        if self.try_edit("add_output", scope=list(home.path), name=value):
            self.notify(f"{visible(value)} is an output now", timeout=3, markup=False)

    def action_remove_terminal(self) -> None:
        """Take the terminal under the cursor out of its list."""
        terminal = self.terminal
        if terminal is None:
            return
        scope: list[JSON] = list(terminal.scope.path)
        if terminal.node is None:
            self.try_edit(f"remove_{terminal.side}", scope=scope, name=terminal.value)
        else:
            self.try_edit(
                "remove_terminal",
                scope=scope,
                node=terminal.node.ref,
                side=terminal.side,
                index=terminal.index,
            )

    def action_delete(self) -> None:
        """Remove the graph's input or output under the cursor, or delete nodes."""
        terminal = self.terminal
        if terminal is not None and terminal.node is None:
            self.action_remove_terminal()
        else:
            super().action_delete()

    def action_move_terminal(self, step: str) -> None:
        """Move the graph's input or output under the cursor up or down by one."""
        terminal = self.terminal
        if terminal is None or terminal.node is not None:
            return
        scope, side = terminal.scope, terminal.side
        lines = self.parameters.list.lines
        rows = lines.rows if isinstance(lines, ParameterLines) else ()
        names = [row.copied for row in rows if self._is_beside(row.key)]
        at = names.index(terminal.value)
        if not 0 <= at + int(step) < len(names):
            return
        # Inputs that have an initializer are listed apart: the neighbour that is seen counts.
        order = scope.inputs if side == "input" else scope.outputs
        to = order.index(names[at + int(step)])
        if self.try_edit(
            "move_terminal", scope=list(scope.path), side=side, name=terminal.value, to=to
        ):
            self.parameters.list.cursor += int(step)

    def _is_beside(self, key: object) -> bool:
        """Return whether a row is in the same section as the one under the cursor."""
        row = self.parameters.row
        mine = row.key if row is not None else None
        return (
            isinstance(key, tuple)
            and isinstance(mine, tuple)
            and len(key) == len(mine)
            and key[0] == mine[0]
        )

    # --- types ----------------------------------------------------------------------------------

    def action_edit(self) -> None:
        """Edit the type of the graph's input or output under the cursor, or what else is there."""
        terminal = self.terminal
        if terminal is not None and terminal.node is None:
            self.action_declare_type()
        else:
            super().action_edit()

    def action_declare_type(self) -> None:
        """Edit the declared type of the value under the cursor; an empty text takes it away."""
        value, scope = self.value, self.value_scope
        if scope is None or not value:
            return
        found = scope.resolve(value)
        home = found.scope if found is not None else scope
        known = home.value_type(value)
        if known is not None and known.container:
            self.notify("Only the types of tensors can be typed", timeout=4)
            return
        self._mount_bar(
            EditBar(
                f"type of {visible(value)}",
                format_type(known),
                lambda text: self._set_type(home, value, text),
                placeholder=_TYPE_HINT,
            )
        )

    def _set_type(self, home: Scope, value: str, text: str) -> None:
        wanted = parse_type(text)
        if wanted is None and home.value_type(value) is None:
            raise UsageError("type a type", hint=f"For example {_TYPE_HINT}")
        dtype = wanted.dtype if wanted is not None else None
        known = wanted.dims if wanted is not None else None
        dims: JSON = list(known) if known is not None else None
        self.edit("set_value_type", scope=list(home.path), value=value, dtype=dtype, dims=dims)
