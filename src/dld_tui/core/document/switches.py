"""Casts there and back that a run can turn on and off, node by node.

A model with them gives in one session what :func:`~dld_tui.core.document.rounding.plan_rounding`
gives in a copy for each choice of nodes: what a node takes and makes is rounded, or not, as an
input of the model says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import onnx

from dld_tui.core.document.casting import Changes, FreshNames, changes_of
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.primitives import SetLinks, Splice
from dld_tui.core.document.values import dtype_number
from dld_tui.core.document.wiretext import set_text, set_texts

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope

_SMALL = 1 << 12
"""Elements."""
_SELECTED = ("float32", "float64")
"""Types of which ONNX Runtime's ``Where`` takes values on a CPU."""


def add_switches(
    document: Document, precisions: Mapping[Node, str], switches: Mapping[Node, str]
) -> set[Node]:
    """Give nodes rounded inputs and outputs, each by the switch of the node.

    Args:
        document: The document, which is changed. Types have to be known.
        precisions: The nodes that are meant, and the precision of each.
        switches: The name of the switch of each, one for several nodes if need be. They become
            inputs of the model: scalars, true to round. The names must be free.

    Returns:
        The nodes that a precision changes; the others have no switch.
    """
    names = FreshNames(document)
    found: dict[Node, Changes] = {}
    for node, precision in precisions.items():
        changes = changes_of(node, precision)
        if not isinstance(changes, str) and (changes.inputs or changes.outputs):
            found[node] = changes
    transaction = Transaction("add_switches", {})
    for scope in dict.fromkeys(node.scope for node in found):
        mine = {node: found[node] for node in scope.nodes if node in found}
        _Switching(scope, names, transaction).add(mine, switches)
    main = document.main
    for switch in dict.fromkeys(switches[node] for node in found):
        info = onnx.helper.make_tensor_value_info(switch, onnx.TensorProto.BOOL, ())
        transaction.do(Splice(main, "input", len(main.records["input"]), [], [info]))
    return set(found)


class _Switching:
    """Adds the switches of one scope."""

    def __init__(self, scope: Scope, names: FreshNames, transaction: Transaction) -> None:
        self._scope = scope
        self._names = names
        self._transaction = transaction

    def add(self, changes: Mapping[Node, Changes], switches: Mapping[Node, str]) -> None:
        scope, added = self._scope, 0
        for at, node in enumerate([*scope.nodes]):
            if node not in changes:
                continue
            inputs, before = self._inputs(node, changes[node], switches[node])
            outputs, after = self._outputs(node, changes[node], switches[node])
            self._transaction.do(SetLinks(scope, node, "input", inputs))
            self._transaction.do(SetLinks(scope, node, "output", outputs))
            for index, protos in ((at + added, before), (at + added + 1 + len(before), after)):
                nodes = [scope.new_node(proto) for proto in protos]
                self._transaction.do(Splice(scope, "node", index, [], nodes))
            added += len(before) + len(after)

    def _inputs(
        self, node: Node, changes: Changes, switch: str
    ) -> tuple[tuple[str, ...], list[onnx.NodeProto]]:
        names, protos = list(node.inputs), list[onnx.NodeProto]()
        chosen: dict[str, str] = {}
        for index, before in changes.inputs:
            value = names[index]
            if value not in chosen:
                chosen[value] = self._names.take(f"{value}_chosen")
                protos += self._choice(switch, value, chosen[value], value, before, changes.dtype)
            names[index] = chosen[value]
        return tuple(names), protos

    def _outputs(
        self, node: Node, changes: Changes, switch: str
    ) -> tuple[tuple[str, ...], list[onnx.NodeProto]]:
        names, protos = list(node.outputs), list[onnx.NodeProto]()
        for index, before in changes.outputs:
            value = names[index]
            names[index] = exact = self._names.take(f"{value}_exact")
            protos += self._choice(switch, exact, value, value, before, changes.dtype)
        return tuple(names), protos

    def _choice(
        self, switch: str, source: str, target: str, value: str, before: str, dtype: str
    ) -> list[onnx.NodeProto]:
        """Return nodes that round a value or pass it on.

        What is not chosen costs nothing, unless the value is small. Then both are computed, as
        ONNX Runtime may be wrong about the shapes of such values, scalars above all, and its
        ``If`` relies on them.
        """
        middle, rounded = (self._names.take(f"{target}_{what}") for what in (dtype, "rounded"))
        casts = [_node("Cast", [source], middle, dtype), _node("Cast", [middle], rounded, before)]
        if before in _SELECTED and self._is_small(value):
            return [*casts, _node("Where", [switch, rounded, source], target)]
        same = self._names.take(f"{target}_same")
        proto = _node("If", [switch], target)
        for name, nodes, made in (
            ("then_branch", casts, rounded),
            ("else_branch", [_node("Identity", [source], same)], same),
        ):
            body = onnx.GraphProto(name=name, node=nodes)
            info = body.output.add()
            set_text(info, "name", made)
            info.type.tensor_type.elem_type = dtype_number(before) or 0
            proto.attribute.append(onnx.helper.make_attribute(name, body))
        return [proto]

    def _is_small(self, value: str) -> bool:
        known = self._scope.value_type(value)
        if known is None or known.dims is None:
            return False
        sizes = [dim for dim in known.dims if isinstance(dim, int)]
        return len(sizes) == len(known.dims) and math.prod(sizes) <= _SMALL


def _node(op_type: str, sources: list[str], target: str, to: str = "") -> onnx.NodeProto:
    proto = onnx.NodeProto(op_type=op_type)
    set_texts(proto, "input", sources)
    set_texts(proto, "output", [target])
    if to:
        proto.attribute.append(onnx.helper.make_attribute("to", dtype_number(to)))
    return proto
