"""What a conversion did as a certificate: results, size and speed as claims, then the details."""

from __future__ import annotations

from collections.abc import Iterator

from dld_tui.core import fmt
from dld_tui.core.accuracy.result import figure, signal_text
from dld_tui.core.conversion.result import (
    NOISY,
    ComparedValues,
    ConversionResult,
    Latencies,
    ModelFigures,
    NotCompared,
    StrippedModel,
    VerifiedResult,
    count_lines,
    made_notes,
    noted_lines,
    outside_text,
    repaired_lines,
    worst_output,
)
from dld_tui.core.notes import Claim, Note, NoteKind, plain_notes
from dld_tui.core.text import clip, visible

_SAME = 0.01
"""A change of the size that is none."""
_NAME = 40


def certificate(result: ConversionResult) -> list[Note]:
    """Return claims about a result, and then all else that is known. Fit for a terminal."""
    notes: list[Note] = []
    if result.unsound:
        notes.append(Claim(NoteKind.WARNING, visible(result.unsound), claim="not valid"))
    details, repaired = [], []
    if isinstance(result, VerifiedResult):
        notes += _values(result.values)
        if isinstance(result.values, ComparedValues):
            details = [f"compared with {visible(line)}" for line in result.values.guess]
            repaired = repaired_lines(result.values.repaired)
    if not isinstance(result, StrippedModel):  # its weights are declared, not there
        notes += _size(result.before, result.after)
    if isinstance(result, VerifiedResult) and result.latency_ms is not None:
        notes.append(_speed(result.latency_ms))
    before, after = result.before, result.after
    counts = _changed(before.nodes, after.nodes, "node")
    counts += f", {_changed(before.initializers, after.initializers, 'initializer')}"
    notes.append(Claim(NoteKind.INFO, counts, claim="details"))
    sizes = count_lines(before, after, all_types=False)
    lines = [*repaired, *sizes, *noted_lines(result), *details]
    return [*notes, *made_notes(result), *plain_notes(lines)]


def _values(values: ComparedValues | NotCompared) -> Iterator[Claim]:
    if isinstance(values, NotCompared):
        yield Claim(NoteKind.INFO, visible(values.skipped), claim="not compared")
        return
    worst = worst_output(values)
    if worst is None:
        return
    name, error = worst
    parts = [visible(error.problem)] if error.problem else []
    if outside := outside_text(values):
        parts.append(outside)
    noise, largest = signal_text(error), figure(error.max_abs)
    if noise == "same":
        parts.append("exactly")
    elif noise:
        parts.append(f"signal to noise {noise} dB")
    if largest and noise != "same":
        parts.append(f"largest error {largest} ({clip(visible(name), _NAME, keep='middle')})")
    kind, claim = NoteKind.GOOD, "same results"
    if values.is_wrong:
        kind, claim = NoteKind.WARNING, "wrong results"
    elif outside or error.noise > NOISY:
        kind, claim = NoteKind.INFO, "close results"
    yield Claim(kind, ", ".join(parts), claim=claim)


def _size(before: ModelFigures, after: ModelFigures) -> Iterator[Claim]:
    old, new = before.weight_bytes, after.weight_bytes
    if not old or abs(new / old - 1) < _SAME:
        if old or new:
            same = "same size" if old else "new weights"
            yield Claim(NoteKind.INFO, f"{fmt.size(new)} of weights", claim=same)
        return
    ratio = new / old
    claim = f"{100 * abs(1 - ratio):.0f} % {'smaller' if ratio < 1 else 'larger'}"
    if 0.45 <= ratio <= 0.55:
        claim = "half the size"
    elif 0.22 <= ratio <= 0.28:
        claim = "a quarter of the size"
    kind = NoteKind.GOOD if ratio < 1 else NoteKind.INFO
    yield Claim(kind, f"{fmt.size(old)} → {fmt.size(new)} of weights", claim=claim)


def _speed(latency: Latencies) -> Claim:
    before, after = latency.before, latency.after
    text = f"{before:.3g} → {after:.3g} ms on this CPU"
    if latency.is_clear and 0 < after < before:
        return Claim(NoteKind.GOOD, text, claim=f"speedup {before / after:.2f}×")
    if latency.is_clear and before:
        text += f", {after / before:.2f}× the latency"
        return Claim(NoteKind.WARNING, text, claim="slower here")
    return Claim(NoteKind.INFO, f"{text}, within the noise", claim="no faster here")


def _changed(before: int, after: int, noun: str) -> str:
    start = "" if before == after else f"{fmt.count(before)} → "
    return start + fmt.plural(after, noun)
