"""The certificate of a conversion: its claims are those of the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.conversion.certificate import certificate
from dld_tui.core.conversion.result import (
    ComparedValues,
    Latencies,
    ModelFigures,
    NotCompared,
    OutputError,
    VerifiedResult,
    report_notes,
)
from dld_tui.core.notes import Claim, NoteKind


def figures_of(weights: int, nodes: int = 4) -> ModelFigures:
    """Return the figures of a model of so many bytes of weights."""
    return ModelFigures(nodes, {"Conv": nodes}, 2, weights, 0, {"float32": weights}, 0, {"": 17})


def claims_of(**given: Any) -> dict[str, tuple[NoteKind, str]]:
    """Return the claims of a result, whose weights were 1,000 bytes."""
    after = given.pop("after", 1000)
    result = VerifiedResult(
        path=Path("m.onnx"), before=figures_of(1000), after=figures_of(after), notes=["a note"],
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
def test_sizes(after: int, claim: str, kind: NoteKind) -> None:
    assert claims_of(after=after)[claim][0] is kind


@pytest.mark.parametrize(
    ("before", "after", "is_clear", "claim", "kind"),
    [
        (3.0, 2.0, True, "speedup 1.50×", NoteKind.GOOD),
        (3.0, 2.0, False, "no faster here", NoteKind.INFO),
        (2.0, 3.0, True, "slower here", NoteKind.WARNING),
    ],
)
def test_speeds(before: float, after: float, is_clear: bool, claim: str, kind: NoteKind) -> None:
    found, text = claims_of(latency_ms=Latencies(before, after, is_clear))[claim]
    assert found is kind
    assert text.startswith(f"{before:.3g} → {after:.3g} ms")


def test_results() -> None:
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
