"""Settings of a comparison that are of no use, with the reason."""

from __future__ import annotations

import pytest

from dld_tui.core.accuracy.engine_settings import (
    disabled_settings,
    has_two_runs,
    is_engine,
    needs_tensorrt,
    run_by,
)
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.types import JSON

ORT, TRT = "onnxruntime", "tensorrt"
LACKING = LibraryCapabilities("tensorrt", "tensorrt", "10.0")


@pytest.mark.parametrize(
    ("model", "against", "backend", "other", "expected"),
    [
        ("a.onnx", None, ORT, "same", (ORT, ORT)),
        ("a.onnx", None, TRT, "same", (TRT, TRT)),
        ("a.onnx", "b.PLAN", ORT, "same", (ORT, TRT)),
        ("a.engine", "a.onnx", ORT, "same", (TRT, ORT)),
        ("a.engine", "b.trt", ORT, ORT, (TRT, TRT)),
    ],
)
def test_what_runs_the_sides(
    model: str, against: str | None, backend: str, other: str, expected: tuple[str, str]
) -> None:
    assert run_by(model, against, backend, other) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, False),
        ({"provider": "CPU", "against_provider": ""}, False),
        ({"provider": "CPU", "against_provider": "CUDA"}, True),
        ({"against_optimization": "all"}, True),
        ({"against": "b.onnx"}, True),
        ({"round": "bf16"}, True),
        ({"against_backend": TRT}, True),
        ({"backend": TRT}, True),
    ],
)
def test_what_there_is_to_compare_with(values: dict[str, JSON], expected: bool) -> None:
    assert has_two_runs({"model": "a.onnx", "round": "none"} | values) is expected


def test_engines_are_told_by_their_names() -> None:
    assert is_engine("a.engine")
    assert not is_engine("a.onnx")
    assert not is_engine(None)


def reasons(values: dict[str, JSON], facts: LibraryCapabilities | None = None) -> dict[str, str]:
    return disabled_settings(
        {"model": "a.onnx", "backend": ORT, "against_backend": "same"} | values, facts
    )


def test_what_is_of_no_use_is_greyed_by_what_runs() -> None:
    found = reasons({})
    assert found["fp16"] == found["library"] == found["device"]
    assert found["trust"] == "", "it is not there"
    assert not {"provider", "round", "tensors", "seed"} & set(found)
    assert not needs_tensorrt({"model": "a.onnx"})
    found = reasons({"against_backend": TRT})
    assert "against_provider" in found
    assert not {"provider", "fp16", "library", "round"} & set(found)
    assert {"provider", "optimization"} <= set(reasons({"backend": TRT}))
    assert needs_tensorrt({"backend": TRT})
    found = reasons({"against": "b.engine"})
    assert found["fp16"] == found["round"] == ""
    assert not {"library", "device", "trust", "provider"} & set(found)
    assert "against_backend" in found
    found = reasons({"model": "b.engine", "against": "a.onnx"})
    assert found["tensors"] == ""
    assert "round" not in found
    assert "fp16" not in reasons({"model": "b.engine", "against_backend": TRT}, None)
    assert "has no such flag" in reasons({"backend": TRT}, LACKING)["fp16"]
    assert "refit" not in reasons({"backend": TRT}, LACKING), "no setting of a comparison"
    assert reasons({}, LACKING)["fp16"] == reasons({})["fp16"]
    found = disabled_settings({"model": "a.onnx", "backend": TRT}, None)
    assert found["fp16"] == ""
    assert not {"provider", "library", "tf32"} & set(found)
    assert disabled_settings({"model": "a.onnx", "backend": ORT}, None)["tf32"] == ""
    assert {"shape", "seed", "sets"} <= set(reasons({"inputs": "data"}))
    assert "shape" not in reasons({"inputs": "  "})
