"""The categories of operators."""

from __future__ import annotations

from dld_tui.core.model.operators.categories import (
    CATEGORIES,
    COLOUR_CLASSES,
    category_of,
    colour_class,
    colour_class_of,
    main_rank,
)
from dld_tui.core.model.operators.registry import newest_opset, operators
from tests.support.recorded import Recorded

NAMES = """
Conv ai.onnx.Conv Relu Add MatMul Gemm If Loop Cast Softmax LSTM Resize Concat ReduceSum Identity
Constant Dropout QuantizeLinear DynamicQuantizeLinear MulInteger QLinearConv DynamicQuantizeMatMul
MatMulIntegerToFloat QMoE SequenceAt StringConcat Where Convolve com.microsoft.Attention
com.microsoft.SkipLayerNormalization com.microsoft.QLinearConv com.microsoft.MatMulNBits
com.microsoft.DequantizeWithOrder com.microsoft.FusedGemm com.ms.internal.nhwc.Conv
ai.onnx.ml.TreeEnsemble ai.onnx.preview.training.Adam my.plugins.Conv my.domain.Mine .
"""


def test_the_name_and_the_domain_tell_category_class_and_rank(recorded: Recorded) -> None:
    told = []
    for name in NAMES.split():
        domain, _, op_type = name.rpartition(".")
        about = category_of(op_type, domain), colour_class(op_type, domain), main_rank(op_type)
        told.append(f"{name}: {', '.join(map(str, about))}")
    recorded("categories", {"category, class and rank": "\n".join(told)})


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


def test_every_category_has_a_class() -> None:
    assert {colour_class_of(category, "X") for category in CATEGORIES} == set(COLOUR_CLASSES)
