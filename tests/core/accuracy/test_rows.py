"""The figures of a comparison as text."""

from __future__ import annotations

import pytest

from dld_tui.core.accuracy.result import RunSide, cosine_text, figure, side_text


def test_a_side_says_library_and_version() -> None:
    side = RunSide("", "", "", "TensorRT 10.13.0.35, fp16", "/a/net.onnx", "none")
    assert side_text(side) == "net.onnx (TensorRT 10.13.0.35, fp16)"
    side = RunSide("", "", "", "ONNX Runtime 1.31.1, CPU", "a\x1b.onnx", "bf16")
    assert side_text(side).endswith(".onnx (ONNX Runtime 1.31.1, CPU, rounded to bf16)")
    assert "\x1b" not in side_text(side)


@pytest.mark.parametrize(
    ("value", "error", "cosine"),
    [(None, "", ""), (0.0, "0", "0"), (1 - 1e-7, "1.00e+00", "1-1e-07")],
)
def test_figures(value: float | None, error: str, cosine: str) -> None:
    assert (figure(value), cosine_text(value)) == (error, cosine)
