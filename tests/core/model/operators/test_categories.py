"""The categories of operators."""

from __future__ import annotations

import pytest

from dld_tui.core.model.operators.categories import (
    CATEGORIES,
    COLOUR_CLASSES,
    category_of,
    colour_class,
    colour_class_of,
    main_rank,
)
from dld_tui.core.model.operators.registry import newest_opset, operators


@pytest.mark.parametrize(
    ("op_type", "domain", "category"),
    [
        ("Conv", "", "layer"),
        ("Conv", "ai.onnx", "layer"),
        ("Relu", "", "activation"),
        ("Add", "", "math"),
        ("If", "", "control"),
        ("Attention", "com.microsoft", "attention"),
        ("SkipLayerNormalization", "com.microsoft", "normalization"),
        ("QLinearConv", "com.microsoft", "quantization"),
        ("MatMulNBits", "com.microsoft", "quantization"),
        ("DequantizeWithOrder", "com.microsoft", "quantization"),
        ("Conv", "com.ms.internal.nhwc", "layer"),
        ("TreeEnsemble", "ai.onnx.ml", "ml"),
        ("Adam", "ai.onnx.preview.training", "training"),
        ("Conv", "my.plugins", "custom"),
        ("Convolve", "", "custom"),
        ("", "", "custom"),
    ],
)
def test_the_name_and_the_domain_tell_the_category(
    op_type: str, domain: str, category: str
) -> None:
    assert category_of(op_type, domain) == category


def test_every_operator_of_onnx_has_a_category() -> None:
    newest = newest_opset()
    assert newest is not None
    for version in (7, 13, newest):
        unknown = [s.name for s in operators({"": version}) if s.category == "custom"]
        assert unknown == []


def test_every_category_is_used_and_listed() -> None:
    newest = newest_opset()
    assert newest is not None
    imports = {"": newest, "ai.onnx.ml": 5, "com.microsoft": 1}
    assert {schema.category for schema in operators(imports)} == set(CATEGORIES)


@pytest.mark.parametrize(
    ("operator", "domain", "expected"),
    [
        ("Conv", "", "conv"),
        ("MatMul", "", "matmul"),
        ("Add", "", "elem"),
        ("If", "", "control"),
        ("FusedGemm", "com.microsoft", "matmul"),
        ("Mine", "my.domain", "other"),
    ],
)
def test_the_class_of_operators(operator: str, domain: str, expected: str) -> None:
    assert colour_class(operator, domain) == expected


def test_every_category_has_a_class() -> None:
    assert {colour_class_of(category, "X") for category in CATEGORIES} == set(COLOUR_CLASSES)


@pytest.mark.parametrize(
    ("operator", "rank"),
    [
        ("Conv", 3),
        ("QLinearConv", 3),
        ("DynamicQuantizeMatMul", 3),
        ("MatMulIntegerToFloat", 3),
        ("QMoE", 3),
        ("MulInteger", 1),
        ("DynamicQuantizeLinear", 0),
        ("Cast", 0),
    ],
)
def test_a_fused_layer_is_of_its_product(operator: str, rank: int) -> None:
    assert main_rank(operator) == rank
