"""Inputs and outputs of a model in float16 or bfloat16, and what a model declares of its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from dld_tui.core.conversion.agreement import NarrowType
from dld_tui.core.conversion.copies import is_graph_output, relink, relink_users
from dld_tui.core.document.casting import FreshNames
from dld_tui.core.document.document import Document
from dld_tui.core.document.edits.attributes import find_attribute
from dld_tui.core.document.edits.nodes import free_node_name
from dld_tui.core.document.edits.tensor_targets import place_of
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.wiretext import set_text, set_texts, text_of
from dld_tui.core.text import visible

_FLOAT = onnx.TensorProto.FLOAT


def redeclare(document: Document, renamed: Mapping[str, str], narrow: NarrowType) -> None:
    """Make ``value_info`` right: drop what is no more, and tell what is narrow now.

    Args:
        document: The document; its records are changed in place.
        renamed: Values that are narrow now, as the values of the table.
        narrow: The type.
    """
    halved = set(renamed.values())
    half = element_type(narrow)
    for scope in document.main.walk():
        for record in scope.records["input"]:
            if _is_half(scope, text_of(record.name), half) and record.type.HasField("tensor_type"):
                record.type.tensor_type.elem_type = half
        kept, changed = [], False
        for record in scope.records["value_info"]:
            name = text_of(record.name)
            if scope.definition(name) is None:
                changed = True
                continue
            if name in halved or _is_half(scope, name, half):
                record.type.tensor_type.elem_type = half
            kept.append(record)
        if changed:
            old = list(scope.records["value_info"])
            Splice(scope, "value_info", 0, old, kept).do()


def element_type(narrow: NarrowType) -> int:
    """Return the number of a type in ONNX."""
    return onnx.TensorProto.DataType.Value(narrow.dtype.upper())


def _is_half(scope: Scope, name: str, half: int) -> bool:
    """Return whether a value is a weight in the narrow type."""
    node = scope.producer(name)
    if node is None:
        tensor = scope.initializer(name)
        return tensor is not None and tensor.proto.data_type == half
    if node.op_type not in ("Constant", "ConstantOfShape"):
        return False
    _, value = find_attribute(node, "value")
    return value is not None and value.t.data_type == half


def halve_borders(copy: Document, transaction: Transaction, narrow: NarrowType) -> list[str]:
    """Give the inputs and outputs of a model the narrow type; return what could not be done."""
    names, half = FreshNames(copy), element_type(narrow)
    notes = []
    for side, halve in (("input", _halve_input), ("output", _halve_output)):
        for record in list(copy.main.records[side]):
            if record.type.tensor_type.elem_type != _FLOAT:
                continue
            name = text_of(record.name)
            if side == "input" and name in copy.main.named("initializer"):
                continue  # a weight that could be given: it follows the weight
            if not halve(copy.main, transaction, names, name, half):
                notes.append(f"{side} {visible(name)} stays float32: a body below gives it out")
                continue
            _declare_half(copy.main, transaction, side, record, half)
    return notes


def _halve_input(
    main: Scope, transaction: Transaction, names: FreshNames, name: str, half: int
) -> bool:
    if any(name in reached.outputs for reached in main.reach(name)):
        return False
    users = list(dict.fromkeys(use.node for use in main.users(name)))
    casts = [node for node in users if node.op_type == "Cast"]  # they take any type
    if len(casts) < len(users):
        wide = names.take(f"{name}_float32")
        relink_users(transaction, main, name, wide, but=casts)
        _add_cast(transaction, main, 0, name, wide, _FLOAT)
    for cast in casts:
        target = cast.outputs[0]
        if _cast_type(cast) == half and not is_graph_output(cast.scope, target):
            _remove(transaction, cast)
            relink_users(transaction, cast.scope, target, name)
    return True


def _halve_output(
    main: Scope, transaction: Transaction, names: FreshNames, name: str, half: int
) -> bool:
    node = main.producer(name)
    if node is None or any(name in s.outputs for s in main.reach(name) if s is not main):
        return node is None and _is_half(main, name, half)
    wide = names.take(f"{name}_float32")
    users = main.users(name)
    source = node.inputs[0] if node.op_type == "Cast" and node.inputs else ""
    maker = main.producer(source) if source and _is_cast_of_half(node, source, half) else None
    if maker is not None and not is_graph_output(main, source):
        if users:
            relink_users(transaction, main, name, wide)
            relink(transaction, node, "output", name, wide)
        else:
            _remove(transaction, node)
        relink(transaction, maker, "output", source, name)
        relink_users(transaction, main, source, name)
        return True
    relink_users(transaction, main, name, wide)
    relink(transaction, node, "output", name, wide)
    _add_cast(transaction, main, main.index_of(node) + 1, wide, name, half)
    return True


def _is_cast_of_half(node: Node, source: str, half: int) -> bool:
    # Named so by the plan of casts: what comes out of a node that computes in the narrow type.
    dtype = onnx.TensorProto.DataType.Name(half).lower()
    return _cast_type(node) == _FLOAT and source.startswith(f"{node.outputs[0]}_{dtype}")


def _cast_type(node: Node) -> int:
    if node.op_type != "Cast":
        return 0
    return next((int(a.i) for a in node.proto.attribute if a.name == "to"), 0)


def _remove(transaction: Transaction, node: Node) -> None:
    transaction.do(Splice(node.scope, "node", node.scope.index_of(node), [node], []))


def _add_cast(
    transaction: Transaction, scope: Scope, place: int, source: str, target: str, to: int
) -> None:
    proto = onnx.NodeProto(op_type="Cast")
    set_text(proto, "name", free_node_name(scope, f"{target}_cast"))
    set_texts(proto, "input", [source])
    set_texts(proto, "output", [target])
    proto.attribute.append(onnx.helper.make_attribute("to", to))
    transaction.do(Splice(scope, "node", place, [], [scope.new_node(proto)]))


def _declare_half(
    scope: Scope, transaction: Transaction, side: str, record: Any, half: int
) -> None:
    changed = onnx.ValueInfoProto()
    changed.CopyFrom(record)
    changed.type.tensor_type.elem_type = half
    transaction.do(Splice(scope, side, place_of(scope, side, record), [record], [changed]))
