"""The inputs and outputs of a node, or of a scope, that the rows of the parameters pane are of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.node import Node
from dld_tui.core.text import visible
from dld_tui.widgets.parameters.descriptions import ParameterRow, formal_name

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope


@dataclass(frozen=True)
class Terminal:
    """One input or output of a node, or of a graph or function (`node` is None)."""

    scope: Scope
    side: str
    """``input`` or ``output``."""
    value: str
    """What is connected; ``""`` when nothing is. Untrusted text."""
    node: Node | None = None
    index: int = 0
    user: Node | None = None
    """The row is about this one user of the output."""

    @property
    def label(self) -> str:
        """Return what people call it, e.g. ``input W``: visible text."""
        node = self.node
        if node is None:
            return f"{self.side} {visible(self.value)}"
        return f"{self.side} {terminal_name(node, self.side, self.index)}"

    @property
    def is_required(self) -> bool:
        """Whether the operator needs it."""
        from dld_tui.core.model.document.operator_matching import is_required

        node = self.node
        return node is not None and self.side == "input" and is_required(node, self.index)


def terminal_name(node: Node, side: str, index: int) -> str:
    """Return what the operator calls one of its inputs or outputs."""
    from dld_tui.core.model.document.operator_matching import schema_of

    schema = schema_of(node)
    formal = None
    if schema is not None:
        formal = schema.input(index) if side == "input" else schema.output(index)
    return formal_name(formal, index)


def terminal_at(subject: Node | Scope | None, row: ParameterRow | None) -> Terminal | None:
    """Return the terminal that a row of the parameters pane is about, or None."""
    key = row.key if row is not None else None
    if row is None or subject is None or not isinstance(key, tuple) or len(key) < 2:
        return None
    if not isinstance(subject, Node):
        side = {"Inputs": "input", "Inputs with a default": "input", "Outputs": "output"}.get(
            str(key[0])
        )
        return Terminal(subject, side, row.copied) if side is not None else None
    side, index = key[0], key[1]
    if side not in ("input", "output") or not isinstance(index, int):
        return None
    names = subject.inputs if side == "input" else subject.outputs
    value = names[index] if index < len(names) else ""
    user = key[2] if len(key) > 2 and isinstance(key[2], Node) else None
    return Terminal(subject.scope, side, value, subject, index, user)


def takes_more(node: Node) -> bool:
    """Return whether one more input can be connected behind those that a node has."""
    from dld_tui.core.model.document.operator_matching import schema_of

    schema = schema_of(node)
    return schema is None or schema.max_inputs is None or len(node.inputs) < schema.max_inputs


def terminals_of(node: Node) -> Iterator[Terminal]:
    """Yield the inputs of a node, those left out and one more too where it takes more; outputs."""
    from dld_tui.core.model.document.operator_matching import schema_of

    schema = schema_of(node)
    formals = schema.inputs if schema is not None else ()
    singles = sum(formal.option != "variadic" for formal in formals)
    count = max(len(node.inputs), singles)
    if takes_more(node) and count == len(node.inputs):
        count += 1
    for index in range(count):
        value = node.inputs[index] if index < len(node.inputs) else ""
        yield Terminal(node.scope, "input", value, node, index)
    for index, value in enumerate(node.outputs):
        if value:
            yield Terminal(node.scope, "output", value, node, index)
