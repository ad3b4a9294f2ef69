"""Settings of a comparison that are of no use, with the reason."""

from __future__ import annotations

import pytest

from dld_tui.core.accuracy.engine_settings import (
    comparison_reasons,
    disabled_settings,
    engine_reasons,
    has_two_runs,
    is_engine,
    needs_tensorrt,
)
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.types import JSON
from tests.support.recorded import Recorded

ORT, TRT = "onnxruntime", "tensorrt"
LACKING = LibraryCapabilities("tensorrt", "tensorrt", "10.0")


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


FORMS: dict[str, dict[str, JSON]] = {
    "two runs of ONNX Runtime": {},
    "TensorRT": {"backend": TRT},
    "against TensorRT": {"against_backend": TRT},
    "both by TensorRT": {"backend": TRT, "against_backend": TRT},
    "an engine": {"model": "b.engine", "against": "a.onnx"},
    "an engine and TensorRT": {"model": "b.engine", "against_backend": TRT},
    "against an engine": {"against": "b.engine"},
    "two engines": {"model": "a.engine", "against": "b.plan"},
    "inputs": {"inputs": "data"},
    "no inputs": {"inputs": "  "},
}


def test_whole_forms(recorded: Recorded) -> None:
    """Which settings are greyed, and why: of comparisons, searches, and forms with a runtime."""
    texts = {}
    base: dict[str, JSON] = {"model": "a.onnx", "backend": ORT}
    for name, values in FORMS.items():
        comparison = {**base, "against_backend": "same", **values}
        search = {key: value for key, value in {**base, **values}.items() if key[:3] != "aga"}
        for facts in (None, LACKING):
            found = {
                "comparison": comparison_reasons(comparison, facts),
                "search": disabled_settings(search, facts),
            }
            texts[f"{name}, {'unknown' if facts is None else 'known'}"] = "\n".join(
                f"{kind} {needs_tensorrt(comparison)}: {told(greyed)}"
                for kind, greyed in found.items()
            )
    for runtime in (ORT, TRT):
        for facts in (None, LACKING):
            greyed = engine_reasons({"runtime": runtime}, facts)
            texts[f"{runtime} {'unknown' if facts is None else 'known'}"] = told(greyed)
    recorded("whole_greying", texts)


def told(greyed: dict[str, str]) -> str:
    return "; ".join(f"{name} {why}".strip() for name, why in sorted(greyed.items()))
