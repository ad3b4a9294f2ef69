"""Types of elements in TensorRT's words."""

from __future__ import annotations

import pytest

from dld_tui.core.tensorrt.plan.json_text import dtype_of


@pytest.mark.parametrize(
    ("phrase", "dtype"),
    [
        ("Half", "fp16"),
        ("Float", "fp32"),
        ("BFloat16", "bf16"),
        ("Row major linear BF16 format", "bf16"),
        ("Thirty-two wide channel vectorized row major Int8 format", "int8"),
        ("Channel major FP16 format where channel % 8 == 0", "fp16"),
        ("Row major linear FP8 format", "fp8"),
        ("FP4", "fp4"),
        ("E8M0", "e8m0"),
        ("kINT4", "int4"),
        ("kUINT8", "uint8"),
        ("Bool", "bool"),
        ("Int64", "int64"),
        ("N/A due to dynamic shapes", ""),
        ("", ""),
    ],
)
def test_dtype(phrase: str, dtype: str) -> None:
    assert dtype_of(phrase) == dtype
