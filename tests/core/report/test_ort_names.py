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


def test_what_a_name_is_not() -> None:
    assert next(clues("x_token_1", "Relu")) == Clue("node", "x_token_1", exact=True)
    assert all(clue.kind != "index" for clue in clues("Conv_12", "FusedConv"))
    assert is_blocked("a_nchwc_token_4")
    assert not is_blocked("nchwc_a")
    assert list(blocked_tensors("a_bn_nchwc"))[:2] == ["a_bn", "a"]
    assert without_cast("InsertedPrecisionFreeCast_a") == without_cast("a") == "a"


def test_names_of_what_was_inlined() -> None:
    branch = ("If_0", "then_branch", "/dec/x")
    assert split_inlined_branch("If_0_then_branch__Inline_0__/dec/x") == branch
    assert split_inlined_branch("/dec/x") is None
    names = ["Norm", "Norm_2"]
    assert list(split_inlined_function("_inlfunc_Norm_y", names)) == [("Norm", "y")]
    found = list(split_inlined_function("_inlfunc_Norm_2_token_7_k0", names))
    assert found[0] == ("Norm_2", "k0")
    assert list(split_inlined_function("y", names)) == []
