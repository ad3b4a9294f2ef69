"""A model in float16 made one in float32, so that none of its values is limited to float16's range.

The inputs and outputs of the model keep float16, by casts at the border. Weights become float32
exactly, and so does every declared type and every type that an attribute asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

import numpy as np
import onnx

from dld_tui.core.conversion.copies import make_dense, relink, relink_users
from dld_tui.core.files.proto_fields import set_text, text_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import SetAttribute, Splice, Transaction
from dld_tui.core.model.edits.casting import FreshNames
from dld_tui.core.model.edits.initializers import list_as_input
from dld_tui.core.model.edits.nodes import new_cast
from dld_tui.core.model.edits.tensors import location_of, put_payload, without_values
from dld_tui.core.model.tensors.elements import PART_ELEMENTS, encode_elements
from dld_tui.core.model.tensors.tensor import Tensor

_HALF, _FLOAT = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
_TYPE_ATTRIBUTES = (
    "to", "dtype", "output_dtype", "output_datatype", "stash_type", "softmax_precision",
)  # fmt: skip
"""Attributes whose integer is an element type."""


def widen(copy: Document) -> list[str]:
    """Give the values of a model that are in float16 float32, all but its inputs and outputs.

    Args:
        copy: A copy without calls of local functions, which is changed. Its types are to be
            inferred afterwards.

    Returns:
        The values in float32 that casts at the inputs and outputs make or take.

    Raises:
        InputError: A weight cannot be read.
        SaveError: There is no room for the new weights.
    """
    transaction, names = Transaction("widen", {}), FreshNames(copy)
    if any(copy.main.records["sparse_initializer"]):
        make_dense(copy)
    borders = _cast_borders(copy.main, transaction, names)
    kept = {*copy.main.inputs, *copy.main.outputs}
    for scope in copy.main.walk():
        _widen_weights(copy, scope, transaction, names)
        for side in ("input", "output", "value_info"):
            for record in list(scope.records[side]):
                is_border = scope is copy.main and side != "value_info"
                if is_border and text_of(record.name) not in copy.main.named("initializer"):
                    continue
                if scope is copy.main and text_of(record.name) in kept and side != "input":
                    continue
                changed = deepcopy(record)
                if _widen_type(changed.type):
                    transaction.replace(scope, side, record, changed)
        for node in list(scope.nodes):
            if node.outputs and (node.inputs[:1], node.outputs[0]) in borders.values():
                continue
            for place, attribute in enumerate(node.proto.attribute):
                wide = _widened_attribute(copy, attribute)
                if wide is not None:
                    transaction.do(SetAttribute(node, place, deepcopy(attribute), wide))
    copy.forget_types()
    return [*borders]


def _cast_borders(
    main: Scope, transaction: Transaction, names: FreshNames
) -> dict[str, tuple[tuple[str, ...], str]]:
    """Add casts at the inputs and outputs in float16; return their values in float32.

    With each go the input and the output of its cast.
    """
    borders: dict[str, tuple[tuple[str, ...], str]] = {}
    for record in list(main.records["input"]):
        name = text_of(record.name)
        if not _is_half(record) or name in main.named("initializer") or not main.users(name):
            continue
        wide = names.take(f"{name}_float32")
        relink_users(transaction, main, name, wide)
        transaction.do(Splice(main, "node", 0, [], [new_cast(main, name, wide, _FLOAT)]))
        borders[wide] = (name,), wide
    for record in list(main.records["output"]):
        name = text_of(record.name)
        node = main.producer(name)
        if not _is_half(record) or node is None:
            continue
        wide = names.take(f"{name}_float32")
        relink_users(transaction, main, name, wide)
        relink(transaction, node, "output", name, wide)
        at = main.index_of(node) + 1
        transaction.do(Splice(main, "node", at, [], [new_cast(main, wide, name, _HALF)]))
        borders[wide] = (wide,), name
    return borders


def _is_half(record: onnx.ValueInfoProto) -> bool:
    return record.type.tensor_type.elem_type == _HALF


def _widen_type(kind: onnx.TypeProto) -> bool:
    """Give a type float32 wherever it has float16; return whether it had."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(kind, which)
        if tensor.elem_type != _HALF:
            return False
        tensor.elem_type = _FLOAT
        return True
    if which == "map_type":
        return _widen_type(kind.map_type.value_type)
    if which in ("sequence_type", "optional_type"):
        return _widen_type(getattr(kind, which).elem_type)
    return False


def _widen_weights(
    copy: Document, scope: Scope, transaction: Transaction, names: FreshNames
) -> None:
    for tensor in scope.initializers:
        if tensor.dtype != "float16":
            continue
        wide = _wide(copy, tensor)
        if not scope.is_output(tensor.name) or scope is not copy.main:
            transaction.replace(scope, "initializer", tensor.proto, wide)
            continue
        set_text(wide, "name", names.take(f"{tensor.name}_float32"))
        transaction.append(scope, "initializer", wide)
        list_as_input(transaction, scope, wide)
        relink_users(transaction, scope, tensor.name, text_of(wide.name))


def _wide(copy: Document, tensor: Tensor) -> onnx.TensorProto:
    proto = without_values(tensor.proto, "float32")
    put_payload(copy, proto, _elements(tensor), location=location_of(tensor.proto))
    return proto


def _elements(tensor: Tensor) -> Iterator[bytes]:
    for start in range(0, tensor.element_count, PART_ELEMENTS):
        values = tensor.read(start, PART_ELEMENTS).astype(np.float32)
        yield encode_elements(values, "float32")


def _widened_attribute(
    copy: Document, attribute: onnx.AttributeProto
) -> onnx.AttributeProto | None:
    """Return an attribute with float32 where it has float16, None where it has none."""
    if attribute.HasField("t") and attribute.t.data_type == _HALF:
        wide = onnx.AttributeProto(name=attribute.name, type=onnx.AttributeProto.TENSOR)
        wide.t.CopyFrom(_wide(copy, Tensor(attribute.t, copy)))
        return wide
    if attribute.i == _HALF and text_of(attribute.name) in _TYPE_ATTRIBUTES:
        wide = deepcopy(attribute)
        wide.i = _FLOAT
        return wide
    if attribute.HasField("tp"):
        wide = deepcopy(attribute)
        return wide if _widen_type(wide.tp) else None
    return None


def join_casts(copy: Document, transaction: Transaction, borders: Sequence[str]) -> None:
    """Let one cast do at each border where there are two, by way of float32."""
    main = copy.main
    for wide in borders:
        maker = main.producer(wide)
        if maker is None or maker.op_type != "Cast":
            continue
        for user in [use.node for use in main.users(wide)]:
            if user.op_type == "Cast":
                relink(transaction, user, "input", wide, maker.inputs[0])
        if not main.is_used(wide):
            transaction.replace(main, "node", maker)
