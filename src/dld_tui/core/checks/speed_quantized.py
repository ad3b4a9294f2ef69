"""Where QuantizeLinear and DequantizeLinear stand so that TensorRT cannot fuse them.

What it fuses is described in NVIDIA's TensorRT Developer Guide, "Working with Quantized Types":
layers are quantized when all their inputs come from DequantizeLinear.
"""

from __future__ import annotations

from collections.abc import Iterator

from dld_tui.core.checks.findings import Finding, name_of
from dld_tui.core.checks.speed_rules import speed_finding
from dld_tui.core.document.node import Node

_WEIGHTED = ("Conv", "ConvTranspose", "MatMul", "Gemm")


def quantization_gaps(node: Node) -> Iterator[Finding]:
    """Find what keeps a layer beside quantized ones in floating point."""
    if node.op_type in _WEIGHTED:
        yield from _half_quantized(node)
    elif node.op_type == "Add":
        yield from _float_residual(node)
    elif node.op_type == "QuantizeLinear":
        yield from _requantized(node)


def _half_quantized(node: Node) -> Iterator[Finding]:
    if len(node.inputs) < 2:
        return
    quantized = [_is_dequantized(node, index) for index in (0, 1)]
    if quantized[0] == quantized[1]:
        return
    missing = ("data", "weight")[quantized.index(False)]
    other = ("weight", "data")[quantized.index(False)]
    yield speed_finding(
        "speed:half-quantized",
        f"its {other} is dequantized, its {missing} is not: it runs in floating point; give the"
        f" {missing} QuantizeLinear and DequantizeLinear, too",
        node,
    )


def _float_residual(node: Node) -> Iterator[Finding]:
    """Find sums of a quantized layer and a branch that is not: the sum is not fused then."""
    if len(node.inputs) != 2:
        return
    for index in (0, 1):
        layer = node.scope.producer(node.inputs[index])
        other = node.inputs[1 - index]
        if (
            layer is not None
            and layer.op_type in _WEIGHTED
            and _is_dequantized(layer, 0)
            and not _is_dequantized(node, 1 - index)
            and not _is_weight(node, other)
        ):
            yield speed_finding(
                "speed:float-residual",
                f"it adds {name_of(other)}, which is not dequantized, to what"
                f" {name_of(layer.ref)} computes: quantize that branch so that the sum is fused",
                node,
            )
            return


def _requantized(node: Node) -> Iterator[Finding]:
    """Find a DequantizeLinear that is quantized again at once."""
    before = node.scope.producer(node.inputs[0]) if node.inputs else None
    if before is not None and before.op_type == "DequantizeLinear":
        yield speed_finding(
            "speed:requantized",
            f"it quantizes again what {name_of(before.ref)} dequantizes: a copy that only changes"
            " the scale",
            node,
        )


def _is_dequantized(node: Node, index: int) -> bool:
    name = node.inputs[index] if index < len(node.inputs) else ""
    made = node.scope.producer(name) if name else None
    while made is not None and made.op_type in ("Transpose", "Reshape", "MaxPool"):
        made = node.scope.producer(made.inputs[0]) if made.inputs else None
    return made is not None and made.op_type == "DequantizeLinear"


def _is_weight(node: Node, name: str) -> bool:
    found = node.scope.resolve(name)
    if found is None:
        return False
    return found.kind == "initializer" or (
        found.node is not None and found.node.op_type == "Constant"
    )
