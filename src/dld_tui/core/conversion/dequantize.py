"""Turns quantized weights into floating point weights, and replaces the operators that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from dld_tui.core import fmt
from dld_tui.core.conversion.copies import is_graph_output, working_copy
from dld_tui.core.document.casting import FreshNames
from dld_tui.core.document.document import Document
from dld_tui.core.document.edits.tensors import location_of, put_payload, without_values
from dld_tui.core.document.node import Node
from dld_tui.core.document.packed_weights import BlockedWeight, blocked_weights, unpacked
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.transactions import Splice, Transaction
from dld_tui.core.files.proto_fields import set_text, set_texts
from dld_tui.core.inputs.shapes import numpy_dtype
from dld_tui.core.tensors.elements import encode_elements, payload_bytes

_ENDINGS = ("_Q4", "_Q8", "_Q2", "_quantized", ".qweight")
"""Suffixes that quantizers append to the name of a weight, some of them after `_DQ`."""


@dataclass
class DequantizedModel:
    """A copy whose quantized weights are in floating point."""

    document: Document
    """Has no path. Close it before the original document."""
    count: int = 0
    """Nodes whose weight is in floating point now."""
    bytes: int = 0
    """Size of those weights in floating point."""
    notes: list[str] = field(default_factory=list)


def dequantize(document: Document) -> Iterator[DequantizedModel]:
    """Replace quantized weights by floating point weights in a copy.

    MatMulNBits becomes MatMul, GatherBlockQuantized becomes Gather, and DequantizeLinear of a
    stored weight is removed. QuantizeLinear and DequantizeLinear of activations stay.

    Args:
        document: The model; it stays as it is, and open until the copy is closed.

    Yields:
        The copy, after each weight and at the end.

    Raises:
        InputError: A weight cannot be read.
        SaveError: There is no room for the new weights.
    """
    with working_copy(document) as copy:
        model = DequantizedModel(copy)
        names = FreshNames(model.document)
        stored: dict[tuple[int, ...], str] = {}
        used: dict[tuple[int, str], tuple[Scope, str]] = {}
        for weight in list(blocked_weights(model.document)):
            _replace(model, names, stored, used, weight)
            yield model
        for scope, name in used.values():
            _drop_unused(scope, name)
        quantizers = sum(
            len(scope.nodes_of_type("QuantizeLinear")) for scope in model.document.scopes()
        )
        if quantizers:
            model.notes.append(
                f"of activations: {fmt.plural(quantizers, 'QuantizeLinear node')}, as before"
            )
    yield model


def _replace(
    model: DequantizedModel,
    names: FreshNames,
    stored: dict[tuple[int, ...], str],
    used: dict[tuple[int, str], tuple[Scope, str]],
    weight: BlockedWeight,
) -> None:
    node = weight.node
    transaction = Transaction("dequantize", {})
    homes = {}
    for tensor in (weight.levels, weight.scales, weight.zero_points, weight.groups):
        resolved = node.scope.resolve(tensor.name) if tensor is not None else None
        if tensor is not None and resolved is not None:
            homes[tensor.name] = resolved.scope
            used[id(resolved.scope), tensor.name] = resolved.scope, tensor.name
    home = homes[weight.levels.name]
    build = _MAKERS.get(node.op_type)
    # Nodes with the same levels, scales and zero points share the new weight.
    parts = (weight.levels, weight.scales, weight.zero_points, weight.groups)
    key = (
        *(id(part.proto) if part is not None else 0 for part in parts),
        weight.block,
        weight.axis,
    )
    name = stored.get(key) if build is not None else None
    if name is None:
        name = stored[key] = (
            names.take(_plain(weight.levels.name)) if build is not None else node.outputs[0]
        )
        proto = without_values(weight.levels.proto, weight.dtype, _dims(weight))
        set_text(proto, "name", name)
        dtype = weight.dtype
        payload = (encode_elements(part.reshape(-1), dtype) for part in weight.matrix_parts())
        put_payload(model.document, proto, payload, location=location_of(weight.levels.proto))
        # The output of a DequantizeLinear is visible only in the scope of that node.
        place = home if build is not None else node.scope
        transaction.append(place, "initializer", proto)
        model.bytes += payload_bytes(dtype, prod(_dims(weight))) or 0
    new = build(node, name, names) if build is not None else []
    transaction.replace(node.scope, "node", node, *new)
    model.count += 1


def _plain(name: str) -> str:
    for ending in _ENDINGS:
        if name.endswith(ending):
            return name.removesuffix(ending).removesuffix("_DQ") or name
    return f"{name}_float"


def _dims(weight: BlockedWeight) -> tuple[int, ...]:
    return weight.shape[::-1] if weight.is_transposed else weight.shape


def _as_matmul(node: Node, name: str, names: FreshNames) -> list[Node]:
    bias = node.inputs[5] if len(node.inputs) > 5 else ""
    output = node.outputs[0]
    product = names.take(f"{output}_product") if bias else output
    nodes = [_node(node, "MatMul", node.name, [node.inputs[0], name], [product])]
    if bias:
        title = f"{node.name}_bias" if node.name else ""
        nodes.append(_node(node, "Add", title, [product, bias], [output]))
    return nodes


def _as_gather(node: Node, name: str, _: FreshNames) -> list[Node]:
    gather = _node(node, "Gather", node.name, [name, node.inputs[1]], [node.outputs[0]])
    if axis := node.integer("gather_axis", 0):
        gather.proto.attribute.append(helper.make_attribute("axis", axis))
    return [gather]


def _node(old: Node, op: str, name: str, inputs: list[str], outputs: list[str]) -> Node:
    """Return a node with the documentation and metadata of another one."""
    proto = deepcopy(old.proto)
    for gone in ("attribute", "domain", "overload", "input", "output"):
        proto.ClearField(gone)
    set_text(proto, "op_type", op)
    set_text(proto, "name", name or None)
    set_texts(proto, "input", inputs)
    set_texts(proto, "output", outputs)
    return old.scope.new_node(proto)


_MAKERS: dict[str, Callable[[Node, str, FreshNames], list[Node]]] = {
    "MatMulNBits": _as_matmul,
    "GatherBlockQuantized": _as_gather,
}


def _drop_unused(scope: Scope, name: str) -> None:
    proto = scope.named("initializer").first(name)
    if proto is None or scope.users(name) or name in scope.inputs or is_graph_output(scope, name):
        return
    Splice(scope, "initializer", scope.place_of("initializer", proto), [proto], []).do()


def avoid_wrong_kernels(document: Document) -> int:
    """Rewrite products of quantized weights that ONNX Runtime's CPU kernel computes wrong.

    With rows in sorted blocks (``g_idx``), ONNX Runtime 1.31 ignores packed zero points, and is
    wrong with 2 bits. It is right with 4 bits and floating point zero points, which hold the same
    numbers.

    Args:
        document: A copy that is only run.

    Returns:
        The number of nodes that were rewritten.

    Raises:
        InputError: A weight cannot be read.
    """
    transaction, names, count = Transaction("avoid_wrong_kernels", {}), FreshNames(document), 0
    for weight in list(blocked_weights(document)):
        zeros = weight.zero_points
        is_packed = zeros is not None and zeros.dtype == "uint8"
        if weight.groups is None or not (weight.bits == 2 or (weight.bits == 4 and is_packed)):
            continue
        node, proto = weight.node, deepcopy(weight.node.proto)
        inputs = list(node.inputs)
        blocks = -(-weight.shape[1] // weight.block)
        stored = weight.load()
        default = float(1 << (weight.bits - 1))
        points = (
            np.full((weight.shape[0], blocks), default) if stored.zeros is None else stored.zeros
        )
        new: dict[int, Any] = {3: points.astype(numpy_dtype(weight.scales.dtype)).reshape(-1)}
        if weight.bits == 2:
            levels = unpacked(stored.levels, 2).astype(np.uint8)
            new[1] = (levels[:, 0::2] | levels[:, 1::2] << 4).reshape(weight.shape[0], blocks, -1)
            for attribute in proto.attribute:
                if attribute.name == "bits":
                    attribute.i = 4
        for at, values in new.items():
            inputs[at] = names.take(f"{weight.name}_{at}")
            transaction.append(
                node.scope, "initializer", numpy_helper.from_array(values, inputs[at])
            )
        set_texts(proto, "input", inputs)
        transaction.replace(node.scope, "node", node, node.scope.new_node(proto))
        count += 1
    return count


_INT8_LEVEL, _FLOAT_LEVEL = 4, 1


def compute_in_floats(document: Document) -> int:
    """Let products of quantized weights compute in float32 that may round activations to 8 bits.

    Args:
        document: A copy that is only run.

    Returns:
        The number of nodes that were changed.
    """
    count = 0
    for scope in document.scopes():
        for node in scope.nodes_of_type("MatMulNBits"):
            for attribute in node.proto.attribute:
                if attribute.name == "accuracy_level" and attribute.i == _INT8_LEVEL:
                    attribute.i = _FLOAT_LEVEL
                    count += 1
    return count
