"""What conversions tell goes through JSON and comes back as what it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.registry import activities, decode_result
from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.codec import encode
from dld_tui.core.conversion.error_attribution import FailingNode
from dld_tui.core.conversion.quantization_plan import Point
from dld_tui.core.conversion.result import (
    ComparedValues,
    ConvertedWeights,
    HalfModel,
    Latencies,
    ModelFigures,
    NotCompared,
    OutputError,
    OwnHalfModel,
    QuantizationPoints,
    QuantizedModel,
    TensorLosses,
    report_notes,
)
from dld_tui.core.conversion.tensor_casting import TensorLoss

FIGURES = ModelFigures(3, {"Add": 3}, 1, 16, 0, {"float32": 16}, 0, {"": 18})
WRITTEN: dict[str, Any] = {
    "path": Path("/m.onnx"), "before": FIGURES, "after": FIGURES, "notes": ["n"], "remarks": [],
}  # fmt: skip
ERROR = OutputError.of(TensorError((2,), 2, max_abs=0.5), "too far")
CULPRIT = FailingNode(("body",), "add", "Add", "why")
WRONG = ComparedValues({"y": ERROR}, is_good=False, first=CULPRIT, repaired=[CULPRIT], sets=2)


@pytest.mark.parametrize(
    ("activity", "result"),
    [
        (
            "convert_fp16",
            OwnHalfModel(
                **WRITTEN, values=WRONG, latency_ms=Latencies(2.0, 1.0, True), losses=[],
                library="own", range_check=False, nodes=3, casts=0, weights=1,
                kept={"Add: blocked": 1}, inlined=0, to="float16",
            ),
        ),
        (
            "convert_fp16",
            HalfModel(
                **WRITTEN, values=NotCompared("it is large"), latency_ms=None, losses=[],
                library="onnxruntime", range_check=True,
            ),
        ),
        (
            "convert_quantize",
            QuantizedModel(
                **WRITTEN, values=WRONG, latency_ms=None, sets=2, method="minmax", ops=["Conv"],
                points=[Point("x", "activation", ("add",))],
            ),
        ),
        ("convert_quantize", QuantizationPoints([Point("w", "weight", ())], ["n"], ["line"])),
        (
            "convert_tensors",
            ConvertedWeights(**WRITTEN, values=WRONG, latency_ms=None, converted=1, casts=1),
        ),
        (
            "convert_tensors",
            TensorLosses(
                "float16",
                [TensorLoss("w", (), "initializer", "float32", (4,), 16, 1, 0, 0, 0, 0.5)],
            ),
        ),
    ],
)  # fmt: skip
def test_a_result_comes_back_as_what_it_was(activity: str, result: Any) -> None:
    data = json.loads(json.dumps(encode(result)))
    assert decode_result(activity, data) == result


def test_every_activity_says_of_what_class_its_results_are() -> None:
    assert [activity.id for activity in activities() if activity.result is None] == []


def test_what_was_not_compared_is_not_wrong() -> None:
    assert WRONG.is_wrong
    assert not NotCompared("it is large").is_wrong
    assert encode(NotCompared("it is large")) == {"skipped": "it is large"}


@pytest.mark.parametrize(
    ("latency", "told"),
    [
        (Latencies(2.0, 1.0, is_clear=True), "speedup 2.00×"),
        (Latencies(2.0, 2.5, is_clear=True), "slower, 1.25× the latency"),
        (Latencies(2.0, 1.0, is_clear=False), "no difference beyond the noise"),
        (Latencies(2.0, 2.5, is_clear=False), "no difference beyond the noise"),
        (Latencies(0.0, 1.0, is_clear=True), "no difference beyond the noise"),
        (Latencies(1.0, 0.0, is_clear=True), "no difference beyond the noise"),
        (Latencies(2.0, 1.0, is_clear=True, other_busy_threads=0.05), "speedup 2.00×"),
        (
            Latencies(15.0, 14.0, is_clear=False, other_busy_threads=1.8),
            "no difference beyond the noise; other programs kept 1.8 threads busy",
        ),
    ],
)
def test_what_is_said_of_two_latencies(latency: Latencies, told: str) -> None:
    result = HalfModel(
        **WRITTEN, values=NotCompared("it is large"), latency_ms=latency, losses=[],
        library="onnxruntime", range_check=False,
    )  # fmt: skip
    (line,) = (note.text for note in report_notes(result) if "latency on this CPU" in note.text)
    assert line.endswith(f"({told})")
