"""Weights in Constant nodes made initializers, for libraries that look for weights only there."""

from __future__ import annotations

import onnx

from dld_tui.core.document.document import Document
from dld_tui.core.document.edits.attributes import find_attribute
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.parts import is_constant
from dld_tui.core.document.primitives import Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.values import dtype_name
from dld_tui.core.document.wiretext import set_text, text_of

_SINCE_IR = 4
"""The version of the format from which an initializer need not be an input as well."""
_FLOATS = ("float32", "float16", "bfloat16", "float64")


def lift_constants(copy: Document) -> int:
    """Make initializers of the Constant nodes that hold floating point tensors.

    The documentation and metadata of a node become those of its initializer. Functions have no
    initializers and stay what they are, as does a model in an old version of the format.

    Args:
        copy: A copy of a document, which is changed.

    Returns:
        How many there were.
    """
    if copy.model.ir_version < _SINCE_IR:
        return 0
    transaction = Transaction("lift_constants", {})
    return sum(_lift(transaction, scope) for scope in copy.main.walk())


def _lift(transaction: Transaction, scope: Scope) -> int:
    made: list[onnx.TensorProto] = []
    places = [*enumerate(scope.nodes)]
    for index, node in reversed(places):  # from the end, so that places stay what they are
        proto = _initializer_of(node)
        if proto is not None:
            made.append(proto)
            transaction.do(Splice(scope, "node", index, [node], []))
    if made:
        end = len(scope.records["initializer"])
        transaction.do(Splice(scope, "initializer", end, [], made[::-1]))
    return len(made)


def _initializer_of(node: Node) -> onnx.TensorProto | None:
    if not is_constant(node) or len(node.outputs) != 1 or node.outputs[0] in node.scope.outputs:
        return None
    _, attribute = find_attribute(node, "value")
    if attribute is None or not attribute.HasField("t"):
        return None
    if dtype_name(attribute.t.data_type) not in _FLOATS:
        return None
    proto = onnx.TensorProto()
    proto.CopyFrom(attribute.t)
    set_text(proto, "name", node.outputs[0])
    if node.proto.HasField("doc_string") and not proto.HasField("doc_string"):
        set_text(proto, "doc_string", text_of(node.proto.doc_string))
    proto.metadata_props.extend(node.proto.metadata_props)
    return proto
