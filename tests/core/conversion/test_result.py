"""What conversions tell: through JSON, in lines, and in their certificate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.registry import decode_result
from dld_tui.core.accuracy.tensor_errors import TensorError
from dld_tui.core.codec import encode
from dld_tui.core.conversion.certificate import certificate
from dld_tui.core.conversion.error_attribution import FailingNode
from dld_tui.core.conversion.fp16 import WeightLoss
from dld_tui.core.conversion.quantization_plan import QdqInsertion
from dld_tui.core.conversion.result import (
    ChangedTerminals,
    CleanedModel,
    ComparedValues,
    ConvertedOpset,
    ConvertedWeights,
    HalfModel,
    Latencies,
    MergedModel,
    ModelFigures,
    MovedWeights,
    NotCompared,
    OutputError,
    OwnHalfModel,
    QuantizationPoints,
    QuantizedModel,
    ResizedDimension,
    ResizedModel,
    StrippedModel,
    TensorLosses,
    VerifiedResult,
    loss_lines,
    made_notes,
    noted_lines,
    report_notes,
)
from dld_tui.core.conversion.tensor_casting import TensorLoss
from dld_tui.core.notes import Claim, NoteKind

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
                points=[QdqInsertion("x", "activation", ("add",))],
            ),
        ),
        (
            "convert_quantize",
            QuantizationPoints([QdqInsertion("w", "weight", ())], ["n"], ["line"]),
        ),
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


def test_what_was_not_compared_says_why() -> None:
    assert encode(NotCompared("it is large")) == {"skipped": "it is large"}


VERIFIED = {**WRITTEN, "values": NotCompared("it is large"), "latency_ms": None}
MANY = {f"a{at}": f"b{at}" for at in range(12)}


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            MergedModel(**VERIFIED, links=[{"x": "y"}, MANY], renamed=[{"p": "q"}, {}]),
            ["linked  y → x", "renamed  p → q",
             *(f"linked  b{at} → a{at}" for at in range(10)), "and 2 more linked"],
        ),
        (
            StrippedModel(**WRITTEN, moved=2, moved_bytes=2048),
            ["2 weights of 2.05 kB taken out;"
             " dld convert restore brings them back from the original model"],
        ),
        (
            StrippedModel(**WRITTEN, moved=0, moved_bytes=0),
            ["no weight was taken out: none is an initializer above the threshold"],
        ),
        (
            MovedWeights(**VERIFIED, moved=1, moved_bytes=8, data_file="m.data"),
            ["1 weight of 8 B moved to m.data"],
        ),
        (MovedWeights(**VERIFIED, moved=1, moved_bytes=8), ["1 weight of 8 B moved to the model"]),
        (MovedWeights(**VERIFIED, moved=0, moved_bytes=0), ["no weight was moved to the model"]),
        (CleanedModel(**VERIFIED, passes={"unused": 1, "twins": 2}),
         ["unused: 1 place", "twins: 2 places"]),
        (ChangedTerminals(**VERIFIED, changed=["x\x1b", "a" * 161]),
         ["x\\x1b", f"{'a' * 80}…{'a' * 79}"]),
        (
            ConvertedOpset(**VERIFIED, from_=13, to=17, changed={"Split": 2}, added={"Cast": 1},
                           removed={}, initializers=1, unconverted=["Old"]),
            ["opset 13 to 17: 2 changed, 1 added", "  changed  Split  2", "  added    Cast   1",
             "  added    1 initializer", "  not converted: Old"],
        ),
        (
            ConvertedOpset(**VERIFIED, from_=13, to=17, changed={}, added={}, removed={},
                           initializers=0, unconverted=[]),
            ["opset 13 to 17: no node had to change"],
        ),
    ],
)  # fmt: skip
def test_a_conversion_says_what_it_made(result: Any, told: list[str]) -> None:
    assert [note.text for note in made_notes(result)] == told


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            ResizedModel(
                **VERIFIED, changed=[f"line {at}" for at in range(12)],
                dimensions=[
                    ResizedDimension(key="N", axes=dict.fromkeys("abcde", 1), from_=None, to=4),
                    ResizedDimension(key="x:0", axes={"x": 0}, from_=3, to="M"),
                ],
            ),
            ["a axis 1, b axis 1, c axis 1, d axis 1, 1 more: dynamic → 4", "x axis 0: 3 → M",
             *(f"  line {at}" for at in range(10)), "  and 2 more nodes", "note: n"],
        ),
        (
            OwnHalfModel(
                **VERIFIED, losses=[WeightLoss(f"w{at}", 4, 3, 1, 7e4) for at in range(6)],
                library="own", range_check=False, nodes=3, casts=-1, weights=1,
                kept={"Add: blocked": 1}, inlined=2, to="bfloat16",
            ),
            ["note: n", "3 nodes in bfloat16, 1 weight converted, 0 casts added",
             "  kept 1 node: Add: blocked", "  2 function calls inlined",
             "6 weights with values out of bfloat16's range:",
             *(f"  w{at}: 3 too large and 1 too small of 4; largest 7e+04" for at in range(5)),
             "  and 1 more: --range-check lists all"],
        ),
        (
            HalfModel(**VERIFIED, losses=[WeightLoss(f"w{at}", 4, 3, 1, 7e4) for at in range(6)],
                      library="onnxruntime", range_check=True),
            ["note: n", "6 weights with values out of float16's range:",
             *(f"  w{at}: 3 too large and 1 too small of 4; largest 7e+04" for at in range(6))],
        ),
    ],
)  # fmt: skip
def test_a_conversion_notes_what_needs_a_look(result: Any, told: list[str]) -> None:
    assert noted_lines(result) == told


def test_of_weights_that_lose_values_the_first_are_those_out_of_range() -> None:
    def loss(name: str, overflow: int, underflow: int, rounded: int) -> TensorLoss:
        return TensorLoss(
            name, (), "initializer", "float32", (4,), 16, overflow, underflow, rounded, 0, 0.5
        )

    assert loss_lines([]) == []
    lines = loss_lines([loss(f"w{at}", 0, 0, 1) for at in range(12)] + [loss("far", 1, 2, 0)])
    assert lines == [
        "13 weights would be rounded:", "  far: 1 too large, 2 to zero; largest error 0.5",
        *(f"  w{at}: 1 rounded; largest error 0.5" for at in range(11)), "  and 1 more",
    ]  # fmt: skip


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


def claims_of(**given: Any) -> dict[str, tuple[NoteKind, str]]:
    """Return the claims of a result, whose weights were 1,000 bytes."""
    before, after = (
        replace(FIGURES, weight_bytes=size) for size in (1000, given.pop("after", 1000))
    )
    result = VerifiedResult(
        path=Path("m.onnx"), before=before, after=after, notes=["a note"],
        remarks=[], **{"values": NotCompared("no runtime"), "latency_ms": None, **given},
    )  # fmt: skip
    notes = certificate(result)
    assert {note.text for note in report_notes(result) if "a note" in note.text} <= {
        note.text for note in notes
    }
    return {note.claim: (note.kind, note.text) for note in notes if isinstance(note, Claim)}


@pytest.mark.parametrize(
    ("after", "claim", "kind"),
    [
        (1000, "same size", NoteKind.INFO), (995, "same size", NoteKind.INFO),
        (500, "half the size", NoteKind.GOOD), (250, "a quarter of the size", NoteKind.GOOD),
        (700, "30 % smaller", NoteKind.GOOD), (0, "100 % smaller", NoteKind.GOOD),
        (1300, "30 % larger", NoteKind.INFO), (4000, "300 % larger", NoteKind.INFO),
    ],
)  # fmt: skip
def test_a_certificate_says_how_the_size_changed(after: int, claim: str, kind: NoteKind) -> None:
    assert claims_of(after=after)[claim][0] is kind


@pytest.mark.parametrize(
    ("before", "after", "is_clear", "claim", "kind"),
    [
        (3.0, 2.0, True, "speedup 1.50×", NoteKind.GOOD),
        (3.0, 2.0, False, "no faster here", NoteKind.INFO),
        (2.0, 3.0, True, "slower here", NoteKind.WARNING),
    ],
)
def test_a_certificate_says_whether_it_is_faster_here(
    before: float, after: float, is_clear: bool, claim: str, kind: NoteKind
) -> None:
    found, text = claims_of(latency_ms=Latencies(before, after, is_clear))[claim]
    assert found is kind
    assert text.startswith(f"{before:.3g} → {after:.3g} ms")


def test_a_certificate_says_how_near_the_results_are() -> None:
    def compared(**error: Any) -> ComparedValues:
        given = {"max_abs": 0.5, "outside": 0, **error}
        return ComparedValues({"y": OutputError((2,), 2, **given)}, not given.get("problem"))

    kind, text = claims_of(values=compared(snr_db=38.8))["same results"]
    assert (kind, text) == (NoteKind.GOOD, "signal to noise 38.8 dB, largest error 5.00e-01 (y)")
    kind, text = claims_of(values=compared(snr_db=38.8, outside=2))["close results"]
    assert kind is NoteKind.INFO
    assert text.startswith("2 elements of outputs are outside of the tolerance")
    assert "close results" in claims_of(values=compared(snr_db=3.0))
    assert claims_of(values=compared(snr_db=3.0, problem="noise"))["wrong results"][0] is (
        NoteKind.WARNING
    )
    assert claims_of()["not compared"] == (NoteKind.INFO, "no runtime")
    assert claims_of(unsound="no type")["not valid"] == (NoteKind.WARNING, "no type")
