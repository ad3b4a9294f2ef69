"""Turns quantized weights into floating point weights, and replaces the operators that use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import field
from math import prod
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from dld_tui.core import fmt
from dld_tui.core.conversion.copies import working_copy
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.files.proto_fields import set_text, set_texts, text_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.packed_weights import (
    BlockedWeight,
    base_of,
    blocked_weights,
    misfits,
    unpacked,
    weights_of,
    why_unread,
)
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import Splice, Transaction
from dld_tui.core.model.edits.casting import FreshNames
from dld_tui.core.model.edits.tensors import location_of, put_payload, without_values
from dld_tui.core.model.inputs.shapes import numpy_dtype
from dld_tui.core.model.operators.categories import REARRANGING
from dld_tui.core.model.tensors.elements import encode_elements, payload_bytes
from dld_tui.core.text import visible

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
    left: int = 0
    """Nodes whose weights stay in few bits."""
    notes: list[str] = field(default_factory=list)


def dequantize(document: Document) -> Iterator[DequantizedModel]:
    """Replace quantized weights by floating point weights in a copy.

    MatMulNBits becomes MatMul, GatherBlockQuantized becomes Gather, QMoE becomes MoE, and
    DequantizeLinear of a stored weight is removed. QuantizeLinear and DequantizeLinear of
    activations stay.

    Args:
        document: The model; it stays as it is, and open until the copy is closed.

    Yields:
        The copy, after each weight and at the end.

    Raises:
        InputError: A weight cannot be read, or its sizes do not fit.
        SaveError: There is no room for the new weights.
    """
    with working_copy(document) as copy:
        model = DequantizedModel(copy)
        changes = _Replacement(model)
        left: Counter[str] = Counter()
        for scope in copy.scopes():
            for node in list(scope.nodes):
                if fault := next(misfits(node), ""):
                    raise InputError(f"{node.op_type}: {fault}", where=visible(node.ref))
                if why := why_unread(node):
                    left[why] += 1
        for node in dict.fromkeys(weight.node for weight in list(blocked_weights(copy))):
            changes.replace(node)
            yield model
        changes.drop_unused()
        model.notes += [
            f"weights of {fmt.plural(count, 'node')} stay in few bits: {why}"
            for why, count in left.most_common()
        ]
        model.left = sum(left.values())
        quantizers = sum(len(scope.nodes_of_type("QuantizeLinear")) for scope in copy.scopes())
        if quantizers:
            model.notes.append(
                f"of activations: {fmt.plural(quantizers, 'QuantizeLinear node')}, as before"
            )
    yield model


class _Replacement:
    """Replaces the nodes of one copy."""

    def __init__(self, model: DequantizedModel) -> None:
        self._model = model
        self._names = FreshNames(model.document)
        self._made: dict[tuple[object, ...], tuple[str, bool]] = {}
        """New weights by what they are made of, and whether they are the transposed matrix."""
        self._used: dict[tuple[int, str], tuple[Scope, str]] = {}
        """Values that a replaced node took, by the scope of the node."""

    def replace(self, node: Node) -> None:
        """Give a node's weights in floating point to an operator that takes them."""
        transaction = Transaction("dequantize", {})
        build = _MAKERS.get(node.op_type)
        weights = weights_of(node)
        self._used |= {(id(node.scope), name): (node.scope, name) for name in node.inputs if name}
        if build is None:
            # The output of a DequantizeLinear is visible only in the scope of that node.
            (weight,) = weights
            self._store(transaction, weight, node.scope, node.outputs[0])
            self._used[id(node.scope), node.outputs[0]] = node.scope, node.outputs[0]
            transaction.replace(node.scope, "node", node)
        else:
            nodes, taken = list[Node](), dict[int, str]()
            for weight in weights:
                taken[weight.position] = self._shared(transaction, weight, nodes)
            transaction.replace(node.scope, "node", node, *nodes, *build(node, taken, self._names))
        self._model.count += 1

    def _shared(self, transaction: Transaction, weight: BlockedWeight, nodes: list[Node]) -> str:
        """Return the name of a weight; nodes of the same levels, scales and zero points share it.

        Args:
            nodes: What transposes it is added here, where another node has it the other way round.
        """
        key, node = (*weight.identity, weight.dtype), weight.node
        if key not in self._made:
            name = self._names.take(_plain(base_of(weight.levels).name or weight.levels.name))
            self._store(transaction, weight, _home(node.scope, weight.levels.name), name)
            self._made[key] = name, weight.is_transposed
        name, is_transposed = self._made[key]
        if is_transposed == weight.is_transposed:
            return name
        turned = self._names.take(f"{name}_transposed")
        nodes.append(_node(node, "Transpose", "", [name], [turned]))
        return turned

    def _store(
        self, transaction: Transaction, weight: BlockedWeight, home: Scope, name: str
    ) -> None:
        model, stored = self._model, base_of(weight.levels).proto
        proto = without_values(stored, weight.dtype, _dims(weight))
        set_text(proto, "name", name)
        dtype = weight.dtype
        payload = (encode_elements(part.reshape(-1), dtype) for part in weight.matrix_parts())
        put_payload(model.document, proto, payload, location=location_of(stored))
        transaction.append(home, "initializer", proto)
        model.bytes += payload_bytes(dtype, prod(_dims(weight))) or 0

    def drop_unused(self) -> None:
        """Remove what only the replaced nodes used."""
        for scope, name in self._used.values():
            _drop_unused(scope, name)


def _home(scope: Scope, name: str) -> Scope:
    """Return the scope of the tensor of the file that a constant is made of."""
    definition = scope.resolve(name)
    while definition is not None and definition.node is not None and definition.node.inputs:
        scope, name = definition.node.scope, definition.node.inputs[0]
        definition = scope.resolve(name)
    return scope if definition is None else definition.scope


def _plain(name: str) -> str:
    for ending in _ENDINGS:
        if name.endswith(ending):
            return name.removesuffix(ending).removesuffix("_DQ") or name
    return f"{name}_float"


def _dims(weight: BlockedWeight) -> tuple[int, ...]:
    return weight.shape[::-1] if weight.is_transposed else weight.shape


def _as_matmul(node: Node, taken: dict[int, str], names: FreshNames) -> list[Node]:
    bias = node.inputs[5] if len(node.inputs) > 5 else ""
    output = node.outputs[0]
    product = names.take(f"{output}_product") if bias else output
    nodes = [_node(node, "MatMul", node.name, [node.inputs[0], taken[1]], [product])]
    if bias:
        title = f"{node.name}_bias" if node.name else ""
        nodes.append(_node(node, "Add", title, [product, bias], [output]))
    return nodes


def _as_gather(node: Node, taken: dict[int, str], _: FreshNames) -> list[Node]:
    gather = _node(node, "Gather", node.name, [taken[0], node.inputs[1]], [node.outputs[0]])
    if axis := node.integer("gather_axis", 0):
        gather.proto.attribute.append(helper.make_attribute("axis", axis))
    return [gather]


_MIXTURE = (
    "k", "activation_type", "activation_alpha", "activation_beta", "normalize_routing_weights",
    "use_sparse_mixer", "swiglu_fusion", "swiglu_limit",
)  # fmt: skip
"""The attributes that MoE has too."""


def _as_mixture(node: Node, taken: dict[int, str], _: FreshNames) -> list[Node]:
    given = dict(enumerate(node.inputs))
    biases = {3: given.get(4, ""), 5: given.get(7, ""), 7: given.get(10, "")}
    inputs = [taken.get(at) or biases.get(at, "") for at in range(2, 8)]
    while inputs and not inputs[-1]:
        inputs.pop()
    mixture = _node(node, "MoE", node.name, [*node.inputs[:2], *inputs], list(node.outputs))
    mixture.proto.domain = node.domain
    mixture.proto.attribute.extend(
        deepcopy(one) for one in node.proto.attribute if text_of(one.name) in _MIXTURE
    )
    return [mixture]


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


_MAKERS: dict[str, Callable[[Node, dict[int, str], FreshNames], list[Node]]] = {
    "MatMulNBits": _as_matmul,
    "GatherBlockQuantized": _as_gather,
    "QMoE": _as_mixture,
}


def _drop_unused(scope: Scope, name: str) -> None:
    """Remove a constant that nothing uses, and then what it was made of."""
    definition = scope.resolve(name)
    if definition is None or definition.scope.is_used(name):
        return
    scope, node = definition.scope, definition.node
    if name in scope.inputs:
        return
    if node is None:
        proto = scope.named("initializer").first(name)
        if proto is not None:
            Splice(scope, "initializer", scope.place_of("initializer", proto), [proto], []).do()
    elif node.op_type in REARRANGING or node.op_type == "Constant":
        Splice(scope, "node", scope.index_of(node), [node], []).do()
        for source in node.inputs:
            _drop_unused(scope, source)


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
