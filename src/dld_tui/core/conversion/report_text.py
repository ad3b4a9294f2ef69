"""Text for people on conversion results: figures before and after, errors, latency, notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from dld_tui.core import fmt
from dld_tui.core.accuracy.result import figure, signal_text
from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.conversion.error_attribution import FailingNode
from dld_tui.core.conversion.fp16 import WeightLoss
from dld_tui.core.conversion.opset import OpsetChanges
from dld_tui.core.conversion.result import (
    ComparedValues,
    ConversionResult,
    ConvertedOpset,
    HalfModel,
    Latencies,
    ModelFigures,
    NotCompared,
    OwnHalfModel,
    PrecisionCasts,
    PrecisionModel,
    Preview,
    ResizedModel,
    TensorLosses,
    VerifiedResult,
)
from dld_tui.core.conversion.tensor_casting import TensorLoss
from dld_tui.core.tensorrt.retyping import CastLoss
from dld_tui.core.text import clip, shortened, visible

_LISTED = 12
"""Operators that a summary names."""


def summary_lines(before: ModelFigures, after: ModelFigures) -> list[str]:
    """Return lines on the figures of a model before and after. Fit for a terminal."""
    lines = [
        _line("nodes", before.nodes, after.nodes),
        _line("initializers", before.initializers, after.initializers),
        _sizes("weights", before.weight_bytes, after.weight_bytes),
    ]
    if before.external_bytes or after.external_bytes:
        lines.append(_sizes("  external", before.external_bytes, after.external_bytes))
    types = before.weights_by_type, after.weights_by_type
    for dtype in dict.fromkeys([*types[0], *types[1]]):
        lines.append(_sizes(f"  {dtype}", types[0].get(dtype, 0), types[1].get(dtype, 0)))
    if before.functions or after.functions:
        lines.append(_line("functions", before.functions, after.functions))
    return lines + _operators(before, after)


def _operators(before: ModelFigures, after: ModelFigures) -> list[str]:
    before_counts, after_counts = Counter(before.operators), Counter(after.operators)
    changed = [
        (abs(after_counts[name] - before_counts[name]), name)
        for name in {*before_counts, *after_counts}
        if before_counts[name] != after_counts[name]
    ]
    changed.sort(key=lambda item: (-item[0], item[1]))
    lines = [
        _line(f"  {clip(visible(name), 24)}", before_counts[name], after_counts[name])
        for _, name in changed[:_LISTED]
    ]
    if len(changed) > _LISTED:
        lines.append(f"  and {fmt.plural(len(changed) - _LISTED, 'operator')} more")
    return ["operators whose count changed:", *lines] if lines else []


def _line(label: str, before: int, after: int) -> str:
    change = "" if before == after else f"  ({after - before:+,})"
    return f"{label:<26} {fmt.count(before):>12} → {fmt.count(after)}{change}"


def _sizes(label: str, before: int, after: int) -> str:
    return f"{label:<26} {fmt.size(before):>12} → {fmt.size(after)}"


_LISTED_OUTPUTS = 12
_NOISY = 10 ** (-10 / 20)
"""The noise of 10 dB, above which values are not called close."""


def values_lines(values: ComparedValues | NotCompared) -> list[str]:
    """Return lines on the values of a conversion's result. Fit for a terminal."""
    if isinstance(values, NotCompared):
        return [f"values were not compared: {visible(values.skipped)}"]
    lines = list(_near(values) if values.is_good else _wrong(values))
    lines += [f"tried with {visible(line)}" for line in values.guess]
    return lines + _repaired(values.repaired)


def _wrong(values: ComparedValues) -> Iterator[str]:
    for name, error in values.outputs.items():
        if error.problem:
            yield f"WRONG VALUES: output {_output(name, error)}: {visible(error.problem)}"
    if (first := values.first) is not None:
        yield f"  first at {_node(first)}: {_short(first.reason, 200)}"
    if values.advice:
        yield f"  {visible(values.advice)}"


def _near(values: ComparedValues) -> Iterator[str]:
    if not values.outputs:
        return
    name, worst = max(values.outputs.items(), key=lambda item: item[1].noise)
    fed = "random inputs" if values.inputs == "random" else "the inputs"
    near = f"values are near the original's on {fed}"
    if worst.noise > _NOISY:  # small values may be below the tolerance of an element
        near = f"values are within the tolerance on {fed}, with noise of {worst.noise:.0%}"
    yield f"{near}; worst output {_output(name, worst)}"


def _repaired(nodes: Sequence[FailingNode]) -> list[str]:
    if not nodes:
        return []
    lines = [f"{fmt.plural(len(nodes), 'node')} kept in the old type for accuracy:"]
    lines += [f"  {_node(node)}: {_short(node.reason, 120)}" for node in nodes[:_LISTED_OUTPUTS]]
    if len(nodes) > _LISTED_OUTPUTS:
        lines.append(f"  and {fmt.count(len(nodes) - _LISTED_OUTPUTS)} more")
    return lines


def _output(name: str, error: TensorError) -> str:
    noise = signal_text(error)
    ratio = "" if not noise else ", exact" if noise == "same" else f", signal to noise {noise} dB"
    off = figure(error.max_abs)
    return f"{_short(name, 60)}{f' is off by at most {off}' if off else ''}{ratio}"


def _node(culprit: FailingNode) -> str:
    return f"{visible(culprit.op_type)} {_short(culprit.node, 80)}"


def _short(text: str, width: int) -> str:
    return clip(visible(text), width, keep="middle")


_LISTED_LOSSES = 12


def loss_lines(losses: Sequence[CastLoss | TensorLoss]) -> list[str]:
    """Return lines on weights that lose values, those out of range first. Fit for a terminal."""
    if not losses:
        return []

    ordered = sorted(losses, key=lambda loss: -(loss.overflow + loss.underflow))
    lines = [f"{fmt.plural(len(losses), 'weight')} would be rounded:"]
    for loss in ordered[:_LISTED_LOSSES]:
        counts = [
            f"{fmt.count(count)} {text}"
            for count, text in (
                (loss.overflow, "too large"), (loss.underflow, "to zero"), (loss.rounded, "rounded")
            )
            if count
        ]  # fmt: skip
        name = clip(visible(loss.name), 50, keep="middle")
        lines.append(f"  {name}: {', '.join(counts)}; largest error {loss.max_error:.3g}")
    if len(ordered) > _LISTED_LOSSES:
        lines.append(f"  and {fmt.count(len(ordered) - _LISTED_LOSSES)} more")
    return lines


_NAMED = 4
"""The most inputs of a dimension that are named."""
_CHANGED = 10
"""The most nodes with old sizes in constants that are named."""
_LISTED_LINES = 5
"""The most weights out of range that are named without ``--range-check``."""


def report_lines(result: ConversionResult) -> list[str]:
    """Return lines on what a conversion did, the most important first. Fit for a terminal."""
    lines = conversion_lines(result) if isinstance(result, ConvertedOpset) else []
    if isinstance(result, VerifiedResult):
        lines += values_lines(result.values)
        lines += _latency_lines(result.latency_ms)
    lines += summary_lines(result.before, result.after)
    if isinstance(result, ResizedModel):
        lines += _dimension_lines(result)
    lines += note_lines(result.notes)
    if isinstance(result, HalfModel):
        lines += _half_lines(result)
    elif isinstance(result, PrecisionModel):
        lines += loss_lines(result.losses)
    return lines


def preview_lines(result: Preview) -> list[str]:
    """Return lines on what a conversion would do. Fit for a terminal."""
    if isinstance(result, TensorLosses):
        return loss_lines(result.tensors)
    if isinstance(result, PrecisionCasts):
        return [*result.lines, *loss_lines(result.losses)]
    return [*result.lines, *note_lines(result.notes)]


def note_lines(notes: Sequence[str]) -> list[str]:
    """Return notes as lines. Fit for a terminal."""
    return [f"note: {visible(note)}" for note in notes]


def conversion_lines(changes: OpsetChanges | ConvertedOpset) -> list[str]:
    """Return lines on a change of opset; the first is a summary. Fit for a terminal."""
    counts: dict[str, Mapping[str, int]] = {
        "changed": changes.changed, "added": changes.added, "removed": changes.removed
    }  # fmt: skip
    totals = {part: sum(counted.values()) for part, counted in counts.items()}
    counts_text = [f"{fmt.count(total)} {part}" for part, total in totals.items() if total]
    summary = ", ".join(counts_text) or "no node had to change"
    lines = [f"opset {changes.from_} to {changes.to}: {summary}"]
    width = max((len(op) for counted in counts.values() for op in counted), default=0)
    for part, counted in counts.items():
        lines += [
            f"  {part:<8} {clip(visible(op_type), 60):<{min(width, 60)}}  {fmt.count(number)}"
            for op_type, number in counted.items()
        ]
    if changes.initializers:
        lines.append(f"  added    {fmt.plural(changes.initializers, 'initializer')}")
    lines += [f"  not converted: {visible(note)}" for note in changes.unconverted]
    return lines


def _dimension_lines(result: ResizedModel) -> Iterator[str]:
    for dimension in result.dimensions:
        axes = list(dimension.axes.items())
        places = [f"{clip(visible(name), 40)} axis {axis}" for name, axis in axes[:_NAMED]]
        if len(axes) > _NAMED:
            places.append(f"{len(axes) - _NAMED} more")
        before = "dynamic" if dimension.from_ is None else visible(str(dimension.from_))
        yield f"{', '.join(places)}: {before} → {visible(str(dimension.to))}"
    for line in result.changed[:_CHANGED]:
        yield f"  {visible(line)}"
    if len(result.changed) > _CHANGED:
        yield f"  and {fmt.plural(len(result.changed) - _CHANGED, 'more node')}"


def _latency_lines(latency: Latencies | None) -> Iterator[str]:
    if latency is None:
        return
    before, after = latency.before, latency.after
    text = "no difference beyond the noise"
    if latency.is_clear and 0 < after < before:
        text = f"{before / after:.3g} times as fast"
    elif latency.is_clear and before:
        text = f"{after / before:.3g} times as long"
    yield f"{'latency on this CPU':<26} {before:>9.3g} ms → {after:.3g} ms  ({text})"


def _half_lines(result: HalfModel) -> list[str]:
    lines, dtype = [], "float16"
    if isinstance(result, OwnHalfModel):
        dtype = result.to
        lines.append(
            f"{fmt.plural(result.nodes, 'node')} in {dtype},"
            f" {fmt.plural(result.weights, 'weight')} converted,"
            f" {fmt.plural(max(result.casts, 0), 'cast')} added"
        )
        for reason, count in result.kept.items():
            lines.append(f"  kept {fmt.plural(count, 'node')}: {clip(visible(reason), 100)}")
        if result.inlined:
            lines.append(f"  {fmt.plural(result.inlined, 'function call')} inlined")
    return lines + range_lines(result.losses, dtype, all_losses=result.range_check)


def range_lines(losses: Sequence[WeightLoss], dtype: str, *, all_losses: bool) -> list[str]:
    """Return lines on weights with values out of a type's range. Fit for a terminal."""
    lines = []
    if losses:
        lines.append(f"{fmt.plural(len(losses), 'weight')} with values out of {dtype}'s range:")
    for loss in losses if all_losses else losses[:_LISTED_LINES]:
        lines.append(
            f"  {shortened(loss.name)}:"
            f" {fmt.count(loss.overflow)} too large and"
            f" {fmt.count(loss.underflow)} too small of {fmt.count(loss.count)};"
            f" largest {loss.largest:.3g}"
        )
    if len(losses) > _LISTED_LINES and not all_losses:
        lines.append(f"  and {len(losses) - _LISTED_LINES} more: --range-check lists all")
    return lines
