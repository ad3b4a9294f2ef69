from __future__ import annotations

import pytest

from dld_tui.core.report.formats.ort_profile import (
    Clue,
    blocked_tensors,
    clues,
    is_blocked,
    split_inlined_branch,
    split_inlined_function,
    without_cast,
)


@pytest.mark.parametrize(
    ("name", "op_type", "clue"),
    [
        ("/enc/Conv", "Conv", Clue("node", "/enc/Conv", exact=True)),
        ("/enc/Conv_token_12", "Conv", Clue("node", "/enc/Conv")),
        ("r2_nchwc", "Conv", Clue("tensor", "r2")),
        ("r8_bn_nchwc", "Conv", Clue("tensor", "r8")),
        ("r10_mul_nchwc", "Conv", Clue("tensor", "r10")),
        ("r2_nchwc_token_3", "Conv", Clue("tensor", "r2")),
        ("/act/Mul/QuickGeluFusion/", "QuickGelu", Clue("node", "/act/Mul")),
        ("m/MatMulScaleFusion/_token_36", "FusedMatMul", Clue("node", "m")),
        ("/fc/MatMul/MatMulAddFusion", "Gemm", Clue("node", "/fc/MatMul")),
        ("fused gemm1", "FusedGemm", Clue("node", "gemm1")),
        ("lstm_quant", "DynamicQuantizeLSTM", Clue("node", "lstm")),
        ("InsertedPrecisionFreeCast_t:0", "Cast", Clue("tensor", "t:0")),
        ("InsertedPrecisionFreeCast_t:0_nchwc", "Conv", Clue("tensor", "t:0")),
        ("Conv_12", "Conv", Clue("index", "12")),
    ],
)
def test_rules(name: str, op_type: str, clue: Clue) -> None:
    assert clue in list(clues(name, op_type))


def test_the_name_itself_comes_first() -> None:
    assert next(clues("x_token_1", "Relu")) == Clue("node", "x_token_1", exact=True)


def test_a_number_after_another_operator_is_no_index() -> None:
    assert all(clue.kind != "index" for clue in clues("Conv_12", "FusedConv"))


def test_blocked_names() -> None:
    assert is_blocked("a_nchwc_token_4")
    assert not is_blocked("nchwc_a")
    assert list(blocked_tensors("a_bn_nchwc"))[:2] == ["a_bn", "a"]


def test_inlined_branches() -> None:
    assert split_inlined_branch("If_0_then_branch__Inline_0__/dec/x") == (
        "If_0", "then_branch", "/dec/x",
    )  # fmt: skip
    assert split_inlined_branch("/dec/x") is None


def test_inlined_functions() -> None:
    names = ["Norm", "Norm_2"]
    assert list(split_inlined_function("_inlfunc_Norm_y", names)) == [("Norm", "y")]
    found = list(split_inlined_function("_inlfunc_Norm_2_token_7_k0", names))
    assert found[0] == ("Norm_2", "k0")
    assert list(split_inlined_function("y", names)) == []


def test_casts() -> None:
    assert without_cast("InsertedPrecisionFreeCast_a") == "a"
    assert without_cast("a") == "a"
