"""The colour class of an operator: one style name of a line view for each kind of work."""

from __future__ import annotations

from dld_tui.core.operators.categories import category_of

_STYLES = {
    "layer": "op-conv",
    "pool": "op-conv",
    "attention": "op-matmul",
    "normalization": "op-norm",
    "activation": "op-act",
    "math": "op-elem",
    "reduction": "op-elem",
    "logic": "op-elem",
    "shape": "op-shape",
    "tensor": "op-shape",
    "transform": "op-shape",
    "data": "op-data",
    "quantization": "op-quant",
    "control": "op-control",
}
_MATRIX_PRODUCTS = frozenset({"MatMul", "Gemm", "Einsum", "FusedMatMul", "FusedGemm"})


def operator_style(op_type: str, domain: str = "") -> str:
    """Return the style class, e.g. ``op-conv``, of an operator."""
    if op_type in _MATRIX_PRODUCTS:
        return "op-matmul"
    return _STYLES.get(category_of(op_type, domain), "op-other")
