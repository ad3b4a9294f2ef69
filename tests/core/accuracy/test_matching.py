"""Names of two models are matched, then places; inputs are carried over."""

from __future__ import annotations

import numpy as np
import pytest

from dld_tui.core.accuracy.result import (
    RunSide,
    as_type,
    carried_over,
    cosine_text,
    figure,
    match_names,
    side_text,
)


def test_names_come_before_places() -> None:
    assert match_names(["a", "b"], ["b", "a"]) == {"a": "a", "b": "b"}
    assert match_names(["a", "b", "c"], ["x", "b", "y"]) == {"a": "x", "b": "b", "c": "y"}


def test_places_count_only_when_equally_many_are_left() -> None:
    assert match_names(["a", "b"], ["b"]) == {"b": "b"}
    assert match_names(["a", "b"], ["x"]) == {}


def test_inputs_are_carried_over_by_name_and_place() -> None:
    given, missing = carried_over({"a": 1, "b": 2}, ["a", "b"], ["x", "b"])
    assert given == {"x": 1, "b": 2}
    assert missing == []
    assert carried_over({"a": 1}, ["a"], ["a", "new"]) == ({"a": 1}, ["new"])


def test_values_get_the_other_type() -> None:
    value = np.array([1.5], np.float32)
    assert as_type(value, np.dtype(np.float16)).dtype == np.float16
    assert as_type(value, np.dtype(np.float32)) is value
    assert [item.dtype for item in as_type([value], np.dtype(np.float16))] == [np.float16]


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
