"""Multiply-accumulates of one ONNX node from its shapes, for sharing time out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope

_CONVOLUTIONS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
"""By operator: which input has the weights."""
_PRODUCTS = {"MatMul": 1, "MatMulInteger": 1, "QLinearMatMul": 3}
_COUNTED = frozenset({*_CONVOLUTIONS, *_PRODUCTS, "ConvTranspose", "Gemm"})
_PASSED = frozenset(
    {"DequantizeLinear", "QuantizeLinear", "Cast", "Identity", "DynamicQuantizeLinear"}
)
"""Operators that keep the shape of their first input."""
_LONGEST_CHAIN = 6


def counts_macs(node: Node) -> bool:
    """Tell whether a node's work is counted in multiply-accumulates."""
    return node.op_type in _COUNTED and node.domain == ""


def node_macs(node: Node) -> int | None:
    """Return the multiply-accumulates of a convolution or matrix product.

    0 for operators that are not counted so, None where shapes are unknown or dynamic.
    """
    if not counts_macs(node):
        return 0
    names = node.inputs
    weights_at = _CONVOLUTIONS.get(node.op_type, _PRODUCTS.get(node.op_type, 1))
    if len(names) <= weights_at or not node.outputs:
        return None
    data = dims_of(node.scope, names[0])
    weights = dims_of(node.scope, names[weights_at])
    made = dims_of(node.scope, node.outputs[0])
    if node.op_type in _CONVOLUTIONS:
        return None if made is None or weights is None else math.prod((*made, *weights[1:]))
    if node.op_type == "ConvTranspose":
        return None if data is None or weights is None else math.prod((*data, *weights[1:]))
    if made is None or not data:
        return _product(data, weights) if node.op_type == "Gemm" else None
    inner = data[0] if node.op_type == "Gemm" and _flag(node, "transA") else data[-1]
    return math.prod(made) * inner


def macs_per_element(node: Node) -> int | None:
    """Return the multiply-accumulates for one element of the result, from the weights alone.

    For shapes that are not known before the model runs, such as a free batch size. None where the
    weights do not tell it.
    """
    weights_at = _CONVOLUTIONS.get(node.op_type, _PRODUCTS.get(node.op_type, 1))
    if not counts_macs(node) or len(node.inputs) <= weights_at:
        return None
    weights = dims_of(node.scope, node.inputs[weights_at])
    if not weights:
        return None
    if node.op_type in _CONVOLUTIONS:
        return math.prod(weights[1:])
    if node.op_type == "ConvTranspose":  # for one element that is read; strides are as large
        return math.prod(weights[1:])
    if node.op_type == "Gemm":
        return weights[-1] if _flag(node, "transB") else weights[0]
    return weights[-2] if len(weights) > 1 else weights[0]


def _product(data: tuple[int, ...] | None, weights: tuple[int, ...] | None) -> int | None:
    """Return M x N x K of a Gemm whose result has no shape: both operands are matrices."""
    if data is None or weights is None or len(data) != 2 or len(weights) != 2:
        return None
    shared = set(data) & set(weights)
    return None if len(shared) != 1 else math.prod((*data, *weights)) // shared.pop()


def _flag(node: Node, name: str) -> bool:
    attribute = node.attribute(name)
    return attribute is not None and bool(attribute.value)


def dims_of(scope: Scope, name: str) -> tuple[int, ...] | None:
    """Return the dimensions of a value when all are numbers; through Q/DQ and casts, else None."""
    for _ in range(_LONGEST_CHAIN):
        known = scope.value_type(name)
        if known is not None and known.dims is not None:
            numbers = tuple(dim for dim in known.dims if isinstance(dim, int) and dim >= 0)
            return numbers if len(numbers) == len(known.dims) else None
        definition = scope.resolve(name)
        maker = definition.node if definition is not None else None
        if maker is None or maker.op_type not in _PASSED or not maker.inputs:
            return None
        scope, name = maker.scope, maker.inputs[0]
    return None
