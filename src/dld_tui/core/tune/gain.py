"""Where a gain comes from: each moment of a pass is given to a node, before and after.

Two profiles, whose profiled passes took turns. A moment in which nothing runs is of the node that
starts next: it cannot start before (:func:`moments_of`), so the parts sum to the pass,
and what a CUDA graph saves in launches is saved at nodes, too. What is left is handing over inputs
and outputs, which IO binding saves. Of each layer the median over the passes counts, so that
another program that hits one of them does not: of passes on a busy machine a known 3 % was between
-42 and 73 %, of the medians of layers always there. What recording adds is known by the passes
without it, and taken from each run of a layer equally.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.compare.comparison import Comparison, subject_of
from dld_tui.core.compare.records import PER_ITEM, ComparisonRow
from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.latency import PROCESSOR_MS
from dld_tui.core.report.moments import Stretch, moments_of
from dld_tui.core.statistics import percentile
from dld_tui.core.text.names import cut_names

if TYPE_CHECKING:
    from dld_tui.core.compare.gate import GateRow
    from dld_tui.core.report.measurement import FloatArray
    from dld_tui.core.report.records import ReportPass
    from dld_tui.core.report.report import Report

_NAMED = 2
_NAME = 20


@dataclass(frozen=True)
class Parts:
    """A pass of a profile, in milliseconds."""

    running: FloatArray
    """By layer, while it ran."""
    waiting: FloatArray
    """By layer, before it could start."""
    other: float
    """Handing over inputs and outputs: copies that are no layer's, and what is after the last."""
    runs: FloatArray
    """How often each layer ran."""

    @property
    def total(self) -> float:
        """The pass."""
        return float(self.running.sum() + self.waiting.sum() + self.other)

    def less(self, each_ms: float) -> Parts:
        """Return it with so much less for each run of a layer, which is taken from waiting first.

        What a layer does not have is taken from all in proportion: recording what runs inside of an
        If is in the time of the If.
        """
        added = each_ms * self.runs
        waited = np.minimum(added, self.waiting)
        taken = np.minimum(added - waited, self.running)
        waiting, running = self.waiting - waited, self.running - taken
        rest, left = float((added - waited - taken).sum()), float(running.sum())
        factor = max(1 - rest / left, 0.0) if left else 1.0
        return replace(self, running=running * factor, waiting=waiting)


_MOST_CELLS = 2_000_000
"""Layers times passes; of a longer run, passes at even distances are read."""


def _parts(report: Report) -> Parts:
    """Return whose the time of a pass is, with what recording it takes."""
    passes, count = _passes(report), len(report.layers)
    passes = passes[:: max(1, -(-count * len(passes) // _MOST_CELLS))]
    stretches_of = _gpu_stretches if report.kernel_passes else _stretches
    running, waiting, runs = (np.zeros((count, len(passes))) for _ in range(3))
    other = np.zeros(len(passes))
    for at, one in enumerate(passes):
        stretches = stretches_of(report, one.index)
        moments = moments_of(stretches, one.duration_us, count)
        running[:, at], waiting[:, at], other[at] = moments
        for stretch in stretches:
            if stretch.layer is not None:
                runs[stretch.layer, at] += 1
    by_layer = [np.median(array, axis=1) for array in (running, waiting, runs)]
    return Parts(by_layer[0], by_layer[1], float(np.median(other)), by_layer[2])


def _without_recording(reports: Sequence[Report], parts: Sequence[Parts]) -> list[Parts]:
    """Take out what recording adds: of passes with it and without, a run of a layer.

    It is one figure for both, so that it makes no difference where both have as many runs; but each
    has its own where recording is most of a pass, and so what sessions differ by most.
    """
    times = [_undisturbed_ms(report, part) for report, part in zip(reports, parts, strict=True)]
    runs = [float(part.runs.sum()) for part in parts]
    if not all(plain for _, plain in times) or not all(runs):
        return [*parts]
    added = [max(recorded - plain, 0.0) for recorded, plain in times]
    if max(recorded / plain for recorded, plain in times) < _MOSTLY_RECORDING:
        added = [sum(added) * count / sum(runs) for count in runs]
    return [part.less(ms / count) for part, ms, count in zip(parts, added, runs, strict=True)]


def _undisturbed_ms(report: Report, part: Parts) -> tuple[float, float]:
    """Return what a pass with recording and one without last where no other program delays them.

    That is what the layers take by their medians, and processor time; where that is not known, the
    quickest passes, which a very busy machine delays, too.
    """
    plain = report.properties.get(PROCESSOR_MS)
    if isinstance(plain, float) and plain > 0:
        return part.total, plain
    recorded = [one.duration_us / 1000 for one in _passes(report)]
    return _quickest(recorded), _quickest([*report.latencies])


_MOSTLY_RECORDING = 1.5
_QUICKEST = 2.0
"""Per cent of passes that no other program delays."""


def _quickest(times: Sequence[float]) -> float:
    return percentile(sorted(times), _QUICKEST) if times else 0.0


def _passes(report: Report) -> Sequence[ReportPass]:
    """Return those at true speed with a GPU's work recorded, else those of the layers."""
    return report.kernel_passes or report.counted_passes


def _stretches(report: Report, index: int) -> list[Stretch]:
    return [
        Stretch(event.layer, event.start_us, event.start_us + event.duration_us, event.track)
        for event in report.pass_events(index)
    ]


def _gpu_stretches(report: Report, index: int) -> list[Stretch]:
    return [
        Stretch(event.layer, event.start_us, event.start_us + event.duration_us, event.stream)
        for event in report.gpu_events(index)
    ]


@dataclass(frozen=True)
class GainRow:
    """What nodes have of a gain."""

    nodes: str
    """Their names, fit for a terminal."""
    before_ms: float
    after_ms: float
    running_ms: float
    """Of the difference, what is while they ran."""
    waiting_ms: float
    """And what is before they could start."""

    @property
    def delta_ms(self) -> float:
        """The difference, negative where it became faster."""
        return self.after_ms - self.before_ms


@dataclass(frozen=True)
class Gain:
    """Where the difference of two profiles is, in milliseconds of their passes."""

    before_ms: float
    after_ms: float
    """Without what recording adds."""
    rows: tuple[GainRow, ...]
    """Of nodes that the models name, those that gained most first."""
    handing_ms: float
    """The difference of handing over inputs and outputs."""

    @property
    def whole_ms(self) -> float:
        """The difference, negative where it became faster."""
        return self.after_ms - self.before_ms

    @property
    def named_ms(self) -> float:
        """How much of it is that of named nodes."""
        return sum(row.delta_ms for row in self.rows)

    def difference(self, confirmed: GateRow) -> float:
        """Return how little the profiles show what was confirmed; 0 where they show just that.

        It is what they have too much or too little of the gain, as a part of it, and how many times
        as long passes take, as a logarithm: threads that happen to share a core make all passes of
        a session longer, and hide the gain.
        """
        gained = -confirmed.change_percent / 100
        shown = 1 - self.after_ms / self.before_ms
        of_gain = abs(shown - gained) / max(abs(gained), _LEAST_GAIN)
        return of_gain + abs(math.log(self.before_ms / confirmed.base_ms))

    def percent_of(self, change_percent: float) -> float | None:
        """Return how much of a change in latency the profiles attribute, in percent, at most 100.

        Attributed are the differences of named nodes and of copying inputs and outputs.

        Args:
            change_percent: The change to attribute, such as -20 for 20 % less latency.
        """
        if not change_percent or not self.before_ms:
            return None
        attributed_percent = 100 * (self.named_ms + self.handing_ms) / self.before_ms
        return max(0.0, min(100.0, 100 * attributed_percent / change_percent))


def gain_of(before: Report, after: Report) -> Gain | None:
    """Return where the difference of two profiles is, by node; None where layers were not timed.

    Raises:
        CorruptFileError: A report is damaged.
    """
    reports = before, after
    if any(report.measurement.own is None for report in reports):
        return None
    parts = _without_recording(reports, [_parts(one) for one in reports])
    comparison = Comparison([subject_of(report) for report in reports])
    items = [_items(subject.properties.get(PER_ITEM)) for subject in comparison.subjects]
    rows = [
        _row(row, parts, items) for row in comparison.rows("layer") if _is_named(comparison, row)
    ]
    rows.sort(key=lambda row: row.delta_ms)
    totals = [part.total / item for part, item in zip(parts, items, strict=True)]
    before_ms, after_ms = (part.other / item for part, item in zip(parts, items, strict=True))
    return Gain(totals[0], totals[1], tuple(rows), after_ms - before_ms)


def _row(row: ComparisonRow, parts: Sequence[Parts], items: Sequence[int]) -> GainRow:
    running, waiting = (
        [
            float(array[list(cell.layers)].sum()) / item
            for array, cell, item in zip(arrays, row.cells, items, strict=True)
        ]
        for arrays in ([one.running for one in parts], [one.waiting for one in parts])
    )
    before, after = (run + wait for run, wait in zip(running, waiting, strict=True))
    return GainRow(row.title, before, after, running[1] - running[0], waiting[1] - waiting[0])


def _items(value: object) -> int:
    return value if isinstance(value, int) else 1


def _is_named(comparison: Comparison, row: ComparisonRow) -> bool:
    """Return whether layers of a row are of nodes that a model names."""
    return any(
        comparison.subjects[side].layers[index].nodes
        for side, cell in enumerate(row.cells)
        for index in cell.layers
    )


def gain_line(gain: Gain, change_percent: float) -> str:
    """Return where a gain comes from, in a sentence that is safe for a terminal.

    Args:
        gain: The gain by node.
        change_percent: The confirmed change in latency.
    """
    share = gain.percent_of(change_percent)
    if share is None or not gain.rows:
        return NOT_MEASURED
    if share < _ELSEWHERE_PERCENT:
        return "No node gained: fewer delays between nodes, or work that was not recorded."
    digits = 4 if gain.before_ms < _SHORT_MS else 3
    shown = 100 * gain.whole_ms / gain.before_ms
    is_rough = abs(shown - change_percent) > _ROUGH * abs(change_percent)
    copies = f"copies of inputs and outputs ({_ms(gain.handing_ms, digits)})"
    least_ms = max(_TOLD_PART * abs(gain.whole_ms), _TOLD_MS)
    is_at_copies = abs(gain.named_ms) < min(least_ms, abs(gain.handing_ms))
    if is_rough:
        # The profiles show another gain than the confirmation: only the order of nodes is told.
        return f"Roughly, first at {copies if is_at_copies else _named(gain, digits)}."
    if is_at_copies:
        return f"{fmt.whole_percent(share)} % of it is at {copies}."
    running, waiting = (
        abs(sum(getattr(row, part) for row in gain.rows)) for part in ("running_ms", "waiting_ms")
    )
    when = " before they start" if waiting > running else ""
    nodes = f"{fmt.plural(len(gain.rows), 'node')}{when}"
    also = f" and {copies}" if abs(gain.handing_ms) >= least_ms else ""
    return f"{fmt.whole_percent(share)} % of it is at {nodes}{also}, first {_named(gain, digits)}."


NOT_MEASURED = "No layer was timed in both profiles."
_LEAST_GAIN = 0.001
_TOLD_MS, _TOLD_PART = 0.0005, 0.05
"""A difference, and the part of all differences, below which one is not told."""
_ELSEWHERE_PERCENT = 10
"""A share of named nodes below which the gain is not theirs."""
_ROUGH = 0.5
"""The part of a gain by which profiles may differ from it and still share it out."""
_SHORT_MS = 1.0
"""A pass below which differences are told to a tenth of a microsecond."""


def _ms(value: float, digits: int) -> str:
    return f"{value:+.{digits}f} ms"


def _named(gain: Gain, digits: int) -> str:
    top = [row for row in gain.rows[:_NAMED] if row.delta_ms < 0] or gain.rows[:1]
    names = cut_names([row.nodes for row in top], _NAME)
    return ", ".join(
        f"{name} ({_ms(row.delta_ms, digits)})" for row, name in zip(top, names, strict=True)
    )
