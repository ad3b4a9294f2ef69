"""Weights of nodes in bodies of If, Loop and Scan, stored in 8 bits with DequantizeLinear.

ONNX Runtime's static quantization only looks at the main graph, and calibrates no values inside
bodies. So the nodes of bodies compute in floating point, with weights rounded to 8 bits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from dld_tui.core import fmt
from dld_tui.core.conversion.copies import relink
from dld_tui.core.conversion.quantization_plan import QdqInsertion
from dld_tui.core.dataclass import dataclass
from dld_tui.core.files.proto_fields import set_text
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node, node_proto
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import Splice, Transaction
from dld_tui.core.model.edits.casting import FreshNames
from dld_tui.core.model.edits.nodes import free_node_name
from dld_tui.core.model.operators.categories import WEIGHTED
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.text import shortened, visible

RECURRENT = ("LSTM", "GRU", "RNN")
"""Operators that static quantization does not support."""
_SINCE = 10
"""The first version of the operators with DequantizeLinear."""
_LEVELS = {"int8": 0, "uint8": 128}
"""Element types, and their zero points."""
_NAMED = 3
_NO_RECURRENT = "static quantization does not support {}, dynamic supports LSTM"
_COMPUTED = "its weights are computed by other nodes, which dld convert sanitize may fold"


@dataclass
class BodyWeights:
    """Which weights were quantized, and why others were not."""

    points: list[QdqInsertion] = field(default_factory=list)
    reasons: list[tuple[Node, str]] = field(default_factory=list)
    """Nodes whose weights stay in floating point, and why."""


@dataclass(frozen=True)
class WeightType:
    """How weights are stored."""

    dtype: str
    per_channel: bool = True
    reduce_range: bool = False
    """7 bits."""


def body_weights(
    document: Document, weight_type: WeightType, ops: Collection[str], kept: Collection[str]
) -> tuple[BodyWeights, dict[tuple[Scope, str], list[Node]]]:
    """Return what can be quantized, and the users of each weight by its home.

    Args:
        document: The model.
        weight_type: How weights are stored.
        ops: Operators to quantize; all supported ones when empty.
        kept: Names of nodes that are not quantized.
    """
    weights, users = BodyWeights(), defaultdict[tuple[Scope, str], "list[Node]"](list)
    points = defaultdict[str, "list[str]"](list)
    for scope in document.main.walk():
        if scope is document.main:
            continue
        for node in _weighted(scope, ops, kept):
            home = _home(node)
            if home is None and node.op_type == "MatMul":
                continue  # a product of two values
            why = _why_not(document, weight_type, node, home)
            if why or home is None:
                weights.reasons.append((node, why))
                continue
            users[home, node.inputs[1]].append(node)
            points[node.inputs[1]].append(node.name)
    weights.points = [QdqInsertion(name, "weight", tuple(nodes)) for name, nodes in points.items()]
    return weights, users


def static_reasons(
    document: Document, ops: Collection[str], kept: Collection[str]
) -> Iterator[tuple[Node, str]]:
    """Yield the nodes with weights in the main graph that static quantization skips, and why.

    Args:
        document: The model before.
        ops: Operators to quantize; all supported ones when empty.
        kept: Names of nodes that are excluded for other reasons.
    """
    for node in _weighted(document.main, ops, kept):
        if _home(node) is None and node.op_type != "MatMul":
            yield node, _COMPUTED
        elif node.op_type in RECURRENT:
            yield node, _NO_RECURRENT.format(node.op_type)


def _weighted(scope: Scope, ops: Collection[str], kept: Collection[str]) -> Iterator[Node]:
    for node in scope.nodes:
        is_asked = node.op_type in (*WEIGHTED, *RECURRENT) and not node.domain
        if is_asked and node.name not in kept and (not ops or node.op_type in ops):
            yield node


def _home(node: Node) -> Scope | None:
    """Return where the weights of a node are stored; None where other nodes make them."""
    resolved = node.scope.resolve(node.inputs[1]) if len(node.inputs) > 1 else None
    return resolved.scope if resolved is not None and resolved.kind == "initializer" else None


def _why_not(document: Document, weight_type: WeightType, node: Node, home: Scope | None) -> str:
    if home is None:
        return _COMPUTED
    if node.op_type in RECURRENT:
        return _NO_RECURRENT.format(node.op_type)
    tensor = home.initializer(node.inputs[1])
    if tensor is None or tensor.dtype != "float32":
        return f"its weights are {tensor.dtype if tensor is not None else 'not there'}"
    if node.inputs[1] in home.inputs:
        return "its weights can be given from outside"
    if weight_type.dtype not in _LEVELS:
        return f"in bodies weights become int8 or uint8, not {weight_type.dtype}"
    if document.opset_imports.get("", _SINCE) < _SINCE:
        return f"DequantizeLinear needs opset {_SINCE}"
    return ""


def quantize_body_weights(
    document: Document, weight_type: WeightType, ops: Collection[str], kept: Collection[str]
) -> BodyWeights:
    """Store weights of nodes in bodies in 8 bits, in place; see :func:`body_weights`.

    DequantizeLinear is where the weight is stored: of one outside of a loop it is computed once.
    """
    weights, users = body_weights(document, weight_type, ops, kept)
    names, transaction = FreshNames(document), Transaction("quantize_body_weights", {})
    for (home, name), nodes in users.items():
        tensor = home.initializer(name)
        assert tensor is not None
        for axis, mine in _by_axis(nodes, tensor, weight_type).items():
            _replace(names, transaction, home, tensor, axis, mine, weight_type)
        if not home.is_used(name):
            old = home.named("initializer").first(name)
            transaction.replace(home, "initializer", old)
    return weights


def _by_axis(
    nodes: list[Node], tensor: Tensor, weight_type: WeightType
) -> dict[int | None, list[Node]]:
    """Return the users of a weight by the axis of its channels, None for one scale of all."""
    nodes_by_axis = defaultdict[int | None, "list[Node]"](list)
    for node in nodes:
        rank = len(tensor.shape)
        nodes_by_axis[
            channel_axis(node, rank) if weight_type.per_channel and rank > 1 else None
        ].append(node)
    return nodes_by_axis


def channel_axis(node: Node, rank: int) -> int:
    """Return the axis of the output channels in a node's weight."""
    if node.op_type == "MatMul":
        return rank - 1
    if node.op_type == "Gemm":
        return 0 if node.integer("transB", 0) != 0 else 1
    return 1 if node.op_type == "ConvTranspose" else 0


def _replace(
    names: FreshNames,
    transaction: Transaction,
    home: Scope,
    tensor: Tensor,
    axis: int | None,
    nodes: list[Node],
    weight_type: WeightType,
) -> None:
    values = tensor.read().reshape(tensor.shape).astype(np.float32)
    stored, scale, zero = _quantized(values, axis, weight_type)
    protos, links = list[onnx.TensorProto](), list[str]()
    for ending, array in (("quantized", stored), ("scale", scale), ("zero_point", zero)):
        links.append(names.take(f"{tensor.name}_{ending}"))
        proto = numpy_helper.from_array(array)
        set_text(proto, "name", links[-1])
        protos.append(proto)
    transaction.append(home, "initializer", *protos)
    output = names.take(f"{tensor.name}_dequantized")
    name = free_node_name(home, output)
    node = node_proto("DequantizeLinear", links, [output], name, axis=axis)
    transaction.do(Splice(home, "node", 0, [], [home.new_node(node)]))
    for user in nodes:
        relink(transaction, user, "input", tensor.name, output)


def _quantized(
    values: np.ndarray[Any, Any], axis: int | None, weight_type: WeightType
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return values, scales and zero points; symmetric, rounded to nearest."""
    most = 63 if weight_type.reduce_range else 127
    other_axes = (
        tuple(dim for dim in range(values.ndim) if dim != axis) if axis is not None else None
    )
    peaks = np.abs(values).max(axis=other_axes, keepdims=axis is not None, initial=0.0)
    scale = np.where(peaks > 0, peaks / most, 1.0).astype(np.float32)
    level, dtype = _LEVELS[weight_type.dtype], np.dtype(weight_type.dtype)
    stored = np.clip(np.rint(values / scale), -most, most) + level
    flat = scale.reshape(-1) if axis is not None else scale.reshape(())
    return stored.astype(dtype), flat, np.full(flat.shape, level, dtype)


def without_channels(document: Document) -> Iterator[Node]:
    """Yield the MatMul nodes whose weight dynamic quantization cannot scale per channel.

    The library makes one scale per column, which ONNX Runtime accepts for a matrix only.
    """
    for scope in document.main.walk():
        for node in scope.nodes_of_type("MatMul"):
            home = None if node.domain else _home(node)
            weight = None if home is None else home.initializer(node.inputs[1])
            if weight is not None and len(weight.shape) != 2:
                yield node


def dynamic_reasons(
    document: Document, ops: Collection[str], kept: Collection[str], flat: Collection[Node] = ()
) -> Iterator[tuple[Node, str]]:
    """Yield the nodes with weights that dynamic quantization skipped, and why.

    Args:
        document: The result.
        ops: Operators to quantize; all supported ones when empty.
        kept: Names of nodes that were excluded.
        flat: The nodes of :func:`without_channels`, if scales are per channel.
    """
    for scope in document.main.walk():
        for node in _weighted(scope, ops, kept):
            home = _home(node)
            if node in flat:
                yield node, "its weight is not a matrix: --no-per-channel quantizes it"
                continue
            if home is not None:
                dtype = getattr(home.initializer(node.inputs[1]), "dtype", "")
                lacks = node.op_type in ("ConvTranspose", "GRU", "RNN")
                if lacks:
                    yield node, f"dynamic quantization does not support {node.op_type}"
                elif dtype != "float32":
                    yield node, f"its weights are {dtype or 'not there'}"
                else:
                    yield node, "ONNX Runtime's quantizer skips it"
            elif node.op_type != "MatMul":
                yield node, _COMPUTED


def reason_lines(reasons: Collection[tuple[Node, str]]) -> Iterator[str]:
    """Yield a line on the nodes of each operator and reason. Fit for a terminal."""
    grouped = defaultdict[tuple[str, str], "list[str]"](list)
    for node, why in reasons:
        grouped[node.op_type, why].append(shortened(node.ref))
    for (op_type, why), nodes in grouped.items():
        count = fmt.plural(len(nodes), f"{visible(op_type)} node")
        yield f"{count} not quantized ({fmt.listed(nodes, _NAMED)}): {why}"
