"""The ten colour classes of operators: few enough to tell apart, shared by panes and pictures."""

from __future__ import annotations

from dld_tui.core.operators.categories import category_of

COLOUR_CLASSES = (
    "conv", "matmul", "norm", "act", "elem", "shape", "data", "control", "quant", "other",
)  # fmt: skip

_CLASSES = {
    "layer": "conv",
    "pool": "conv",
    "attention": "matmul",
    "normalization": "norm",
    "activation": "act",
    "math": "elem",
    "reduction": "elem",
    "logic": "elem",
    "shape": "shape",
    "tensor": "shape",
    "transform": "shape",
    "data": "data",
    "quantization": "quant",
    "control": "control",
}
_MATRIX_PRODUCTS = frozenset({"MatMul", "Gemm", "Einsum", "FusedMatMul", "FusedGemm"})


def colour_class(op_type: str, domain: str = "") -> str:
    """Return one of :data:`COLOUR_CLASSES` for an operator."""
    return colour_class_of(category_of(op_type, domain), op_type)


def colour_class_of(category: str, op_type: str) -> str:
    """Return one of :data:`COLOUR_CLASSES` for an operator whose category is known."""
    return "matmul" if op_type in _MATRIX_PRODUCTS else _CLASSES.get(category, "other")
