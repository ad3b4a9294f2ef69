"""What conversions tell: through JSON, in lines, and in their certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.codec import encode
from dld_tui.core.conversion.certificate import certificate
from dld_tui.core.conversion.error_attribution import FailingNode
from dld_tui.core.conversion.fp16 import WeightLoss
from dld_tui.core.conversion.result import (
    ChangedTerminals,
    CleanedModel,
    ComparedValues,
    ConvertedOpset,
    HalfModel,
    Latencies,
    MergedModel,
    ModelFigures,
    MovedWeights,
    NotCompared,
    OutputError,
    OwnHalfModel,
    ResizedDimension,
    ResizedModel,
    StrippedModel,
    VerifiedResult,
    count_lines,
    loss_lines,
    made_notes,
    noted_lines,
    outside_text,
    report_notes,
    summary_lines,
    value_problem,
    values_lines,
)
from dld_tui.core.conversion.tensor_casting import TensorLoss
from dld_tui.core.notes import Claim, Note
from tests.support.recorded import Recorded

FIGURES = ModelFigures(3, {"Add": 3}, 1, 16, 0, {"float32": 16}, 0, {"": 18})
WRITTEN: dict[str, Any] = {
    "path": Path("/m.onnx"), "before": FIGURES, "after": FIGURES, "notes": ["n"], "remarks": [],
}  # fmt: skip


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
    all_that_are_listed = loss_lines([loss(f"w{at}", 0, 0, 1) for at in range(12)])[1:]
    assert all_that_are_listed == [f"  w{at}: 1 rounded; largest error 0.5" for at in range(12)]
    assert lines == [
        "13 weights would be rounded:", "  far: 1 too large, 2 to zero; largest error 0.5",
        *(f"  w{at}: 1 rounded; largest error 0.5" for at in range(11)), "  and 1 more",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("latency", "told"),
    [
        (Latencies(0.5, 0.25, is_clear=True), "speedup 2.00×"),
        (Latencies(0.4, 0.5, is_clear=True), "slower, 1.25× the latency"),
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


def compared() -> dict[str, ComparedValues | NotCompared]:
    """Return what may have come of a comparison."""

    def values(is_good: bool = True, **error: Any) -> ComparedValues:
        given = {"max_abs": 0.5, "outside": 0, "snr_db": 38.8, **error}
        few = OutputError((2,), 2, max_abs=0.0, snr_db=None, outside=0)
        return ComparedValues(
            {"few": few, "y": OutputError((2,), 2, **given)}, is_good, tolerance="atol 1"
        )

    good = values()
    failing = [FailingNode((), f"n{at}", "Add\x1b", "why" * 45) for at in range(14)]
    return {
        "not compared": NotCompared("no runtime\x1b"),
        "near": good,
        "near, of files": replace(good, inputs="files", tolerance="", guess=["x → 1x4\x1b", "c"]),
        "no outputs": replace(good, outputs={}),
        "exact": ComparedValues({"y": OutputError((2,), 2, max_abs=0.0)}, True),
        "one outside": values(outside=1),
        "many outside": replace(values(outside=2000), tolerance=""),
        "noise": values(snr_db=3.0),
        "at the limit of noise": values(snr_db=10.0),
        "noise, some outside": values(snr_db=3.0, outside=5),
        "unknown noise": values(snr_db=None),
        "wrong": values(False, problem="too far\x1b"),
        "wrong, with its first node": replace(
            values(False, problem="too far"), first=failing[0], advice="take bf16"
        ),
        "repaired": replace(good, repaired=failing[:2]),
        "many repaired": replace(good, repaired=failing),
    }


def verified(**given: Any) -> VerifiedResult:
    sizes = (given.pop("before", 1000), given.pop("after", 1000))
    before, after = (replace(FIGURES, weight_bytes=size) for size in sizes)
    fields = {"values": NotCompared("no runtime"), "latency_ms": None, **given}
    return VerifiedResult(
        path=Path("m.onnx"), before=before, after=after, notes=["a note"], remarks=[], **fields
    )


OTHERS = ModelFigures(
    12, {f"Op{at}": at + 1 for at in range(14)} | {"Add": 1, "x\x1b": 3}, 2, 24, 8,
    {"int8": 4, "float32": 16, "float16": 4}, 2, {"": 18},
)  # fmt: skip
LATENCIES = ((3.0, 2.0, True), (3.0, 2.0, False), (2.0, 3.0, True), (0.0, 1.0, True))


def test_all_that_is_said(recorded: Recorded) -> None:
    said = {}
    for name, values in compared().items():
        notes = certificate(verified(values=values))
        outside = outside_text(values) if isinstance(values, ComparedValues) else ""
        problem = value_problem(verified(values=values))
        said[f"values: {name}"] = "\n".join(
            [*values_lines(values), f"outside: {outside}", f"problem: {problem}", *shown(notes)]
        )
    for sizes in ((1000, after) for after in (1000, 995, 990, 500, 250, 700, 0, 1300, 4000)):
        said[f"sizes: {sizes}"] = "\n".join(
            shown(certificate(verified(before=sizes[0], after=sizes[1])))
        )
    said["no weights before"] = "\n".join(shown(certificate(verified(before=0, after=4))))
    for before, after, is_clear in LATENCIES:
        latency = Latencies(before, after, is_clear)
        said[f"latency: {latency}"] = "\n".join(shown(certificate(verified(latency_ms=latency))))
    unsound = verified(unsound="no type\x1b")
    said["unsound"] = "\n".join(shown(certificate(unsound)) + shown(report_notes(unsound)))
    said["not written"] = "\n".join([
        unsound.end_text, replace(unsound, is_written=False).end_text,
        value_problem(StrippedModel(**WRITTEN, moved=2, moved_bytes=2048)),
    ])  # fmt: skip
    for name, sides in {"more": (FIGURES, OTHERS), "fewer": (OTHERS, FIGURES)}.items():
        said[f"figures: {name}"] = "\n".join(
            [*summary_lines(*sides), *count_lines(*sides, all_types=False)]
        )
    recorded("result", {name: text.replace("\x1b", "ESC") for name, text in said.items()})


def shown(notes: Sequence[Note]) -> list[str]:
    return [
        f"{note.kind} [{note.claim}] {note.text}" if isinstance(note, Claim)
        else f"{note.kind} {note.text}"
        for note in notes
    ]  # fmt: skip
