"""Whether a new version is slower than a base, by runs of both that take turns.

The unit is a pair of runs, in a process of its own, whose passes take turns and make one ratio.
Passes of one process are not independent, and what differs from process to process (memory layout,
clocks, neighbours) is not in them; what changes slowly on a busy machine hits both of a pair.

The figure is the median ratio, its interval that of the sign test (Hollander and Wolfe,
"Nonparametric Statistical Methods", 1999, section 3.5). Where versions are alike, they can change
places in a pair, as each is first as often, so that the test is exact whatever the distribution is:
at most 2.5 % are called slower. On busy machines most pairs agree to a per cent and a third are off
by up to 30, as a process keeps where its threads are: there signs tell more than the ranks of
Wilcoxon's test (3 % more work was found in 75 of 100 gates of 33 pairs in the place of 47). Of
nodes, of which there are many, only those are called changed that :func:`.node_changes.changed`
names, too.

Without a number of pairs, so many are made as the machine needs: until the interval is as narrow
as wanted, or the change is clear, or the time is up. The time limit holds whatever a model takes: a
pair gets its share of the time, and the one that runs when the time is up is stopped. With fewer
than six pairs there is no interval of this level, and the gate is undecided.

On a machine that other programs keep busy, passes last as long as the scheduler lets them: 3 % more
work made the median pass 1.2 % slower, in pairs that spread by 5 %. There the processor time of the
calling thread is compared, which is what a pass lasts where nobody takes the processor away: 2.9 %,
and 1 % (two threads on two cores, load 7). There the threads of a session also stop spinning when a
pass ends: waiting until they sleep took most of the time, and pairs spread by 3.6 % in place of 1.3
(load 13).
"""

from __future__ import annotations

import math
import re
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.compare import node_changes
from dld_tui.core.compare.matching import resolution_of
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError, TimeLimitError, UsageError
from dld_tui.core.params import is_same_file
from dld_tui.core.process.child import Child
from dld_tui.core.report.records import Layer
from dld_tui.core.statistics import median_ranks
from dld_tui.core.tables.rendering import markdown_plain
from dld_tui.core.tables.table import MS, Column, Estimate, IntervalUnit, Table
from dld_tui.core.text import clip, visible
from dld_tui.core.types import TextEnum

if TYPE_CHECKING:
    from dld_tui.core.report.latency import Turn
    from dld_tui.core.report.measurement import FloatArray

LEVEL_PERCENT = 95.0
LEAST_RUNS = 6
"""With fewer even the whole range is no interval of this level."""
RUNS = 15
"""Of each, where their number is not left to the machine."""
WITHIN_PERCENT = 0.5
"""The half-width of the interval that is aimed at. On a busy machine passes last as long as the
scheduler lets them, and 3 % more work made the median pass 1 % slower only."""
TOLERANCE_PERCENT = 0.5
"""What NEW may be slower by: about what such an interval tells apart. Of 1,000 gates drawn from the
pairs of a model with itself on busy cores 65 were called slower without it and 1 with it, of those
with 3 % more work 1,000 and 994."""
LIMIT_S = 170.0
"""How long to try: less than three minutes with what comes before and after."""
_FIRST_LOOK, _LOOK_FACTOR = 10, 1.2
"""Pairs before the interval is looked at, and how many times as many before each look after."""
WAITED_PERCENT = 3.0
"""From so much of the time without a processor on, a machine counts as busy."""
_HOPE = 0.5
"""The share of the fastest pair that the next ones may take: a loaded machine can become idle."""
_CLEAR = 2.0
"""A change that is as many times the half-width of its interval is clear."""
NODE_PAIRS = 12
"""The first pairs also measure the layers."""
GATE_SETTINGS: Mapping[str, Any] = {"duration": 1.0, "layer_passes": 10}
"""What a run of a gate has in place of the defaults of a profile."""
_MOST_LISTED = 20
_HARDLY = 0.002
"""The share of the latency below which a node that one version lacks is not listed."""
_WIDE_PERCENT = 2.0
"""So much more than the tolerance in an interval is told."""
_SIDE_EFFECT = 0.02
"""The part of the largest change of a node below which others are not named: a node that takes
longer leaves other caches to its neighbours (1.3 ms more work in one of 154 nodes made others 1 and
6 µs slower)."""
_LONGEST_NAME = 200


@dataclass(frozen=True)
class RunFigures:
    """What one run measured."""

    ms: float
    """Median of its passes, or what a command took."""
    nodes: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds by ONNX node; empty where they were not measured."""
    processor_ms: float | None = None
    """Processor time of the calling thread, the median of its turns; None where a pass on a machine
    that is free would not last as long."""


@dataclass(frozen=True)
class Pair:
    """A run of each version, made in turns."""

    base: RunFigures
    new: RunFigures
    ratio: float
    """How many times as long the new version takes: the median of the turns."""
    processor_ratio: float | None = None
    """The same of the processor time; None as of the runs."""


def pair_of_turns(turns: Sequence[Turn], *, by_processor: bool) -> Pair:
    """Return the medians of turns.

    Args:
        turns: At least one.
        by_processor: Whether processor times tell which version is faster; they do not where the
            clock is too coarse for them.
    """

    def median(figures: Iterable[float]) -> float:
        return float(statistics.median(figures))

    base = RunFigures(median(ms for turn in turns for ms in turn.base_ms))
    new = RunFigures(median(ms for turn in turns for ms in turn.new_ms))
    ratio = median(turn.ratio for turn in turns)
    if not by_processor or min(turn.least_processor_ms for turn in turns) <= 0:
        return Pair(base, new, ratio)
    return Pair(
        replace(base, processor_ms=median(turn.base_processor_ms for turn in turns)),
        replace(new, processor_ms=median(turn.new_processor_ms for turn in turns)),
        ratio,
        median(turn.processor_ratio for turn in turns),
    )


def per_item(pair: Pair, base_items: int, new_items: int) -> Pair:
    """Return the times of one item, where a pass of each version computes several."""

    def figures(run: RunFigures, items: int) -> RunFigures:
        processor_ms = None if run.processor_ms is None else run.processor_ms / items
        nodes = {name: ms / items for name, ms in run.nodes.items()}
        return RunFigures(run.ms / items, nodes, processor_ms)

    factor = base_items / new_items
    processor_ratio = None if pair.processor_ratio is None else pair.processor_ratio * factor
    return Pair(
        figures(pair.base, base_items), figures(pair.new, new_items),
        pair.ratio * factor, processor_ratio,
    )  # fmt: skip


@dataclass(frozen=True)
class ComparedTimes:
    """What of pairs is compared: times of passes or, on a busy machine, their processor times."""

    base_ms: tuple[float, ...]
    """One a pair, as the next two."""
    new_ms: tuple[float, ...]
    ratios: tuple[float, ...]
    waited_percent: float | None = None
    """Where these are processor times: how much of the time of a pass others had the processor."""


def compared_times(pairs: Sequence[Pair]) -> ComparedTimes:
    """Return the processor times where both versions had to wait for a processor, else the times.

    Where one had a processor all the time and the other had not, it is the other one's doing.
    """
    processor = [
        (pair.base.processor_ms, pair.new.processor_ms, pair.processor_ratio)
        for pair in pairs
        if pair.base.processor_ms and pair.new.processor_ms and pair.processor_ratio
    ]
    if len(processor) == len(pairs):
        base, new, ratios = zip(*processor, strict=True)
        waited = min(
            100 * float(np.median([1 - own / run.ms for own, run in zip(side, runs, strict=True)]))
            for side, runs in zip((base, new), _sides(pairs), strict=True)
        )
        if waited > WAITED_PERCENT:
            return ComparedTimes(base, new, ratios, waited)
    base, new = (tuple(run.ms for run in runs) for runs in _sides(pairs))
    return ComparedTimes(base, new, tuple(pair.ratio for pair in pairs))


def node_times(layers: Sequence[Layer]) -> dict[str, float]:
    """Return the milliseconds of the layers of a report by the ONNX nodes that they compute.

    A key is the label of a node or, of layers that compute several, their labels joined by
    :data:`.node_changes.SEPARATOR`: what each takes of a fused layer is not known.
    """
    times: dict[str, float] = {}
    for layer in layers:
        if layer.nodes and layer.cost_ms is not None:
            labels = dict.fromkeys(link.label for link in layer.nodes)
            key = node_changes.SEPARATOR.join(labels)
            times[key] = times.get(key, 0.0) + layer.cost_ms
    return times


@dataclass(frozen=True)
class PairTime:
    """How many seconds a pair of runs may take."""

    share_s: float = math.inf
    """Its share of the time that is left: it measures less rather than exceed it."""
    left_s: float = math.inf
    """All of the time that is left: a pair that takes longer is stopped."""


TimePair: TypeAlias = Callable[[int, PairTime], Pair]
"""Makes a pair, given how many were made before; raises TimeLimitError where it was stopped."""


def command_pairs(base: str, new: str) -> TimePair:
    """Return what times two command lines, for :func:`in_turns`."""

    def time_pair(number: int, allowed: PairTime) -> Pair:
        order = ("base", "new") if number % 2 == 0 else ("new", "base")
        end, runs = time.monotonic() + allowed.left_s, dict[str, RunFigures]()
        for side in order:
            line = {"base": base, "new": new}[side]
            runs[side] = time_command(line, end - time.monotonic())
        return Pair(runs["base"], runs["new"], runs["new"].ms / runs["base"].ms)

    return time_pair


def time_command(line: str, limit_s: float = math.inf) -> RunFigures:
    """Run a command line and return how long it took.

    Raises:
        ActivityError: It cannot be run, or ends with another status than 0.
        TimeLimitError: It took longer than the limit: it and what it started were stopped.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ActivityError(f"cannot be run: {error}", where=line) from None
    if not words:
        raise ActivityError("a command line is empty")
    start = time.perf_counter()
    try:
        child = Child(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except (OSError, ValueError) as error:
        raise ActivityError(f"cannot be run: {error}", where=line) from None
    try:
        timeout = None if math.isinf(limit_s) else max(0.0, limit_s)
        _, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise TimeLimitError("stopped while a command ran", where=line) from None
    finally:
        child.close()
    if child.returncode:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = ": ".join([f"ended with status {child.returncode}", *last])
        raise ActivityError(why, where=line)
    return RunFigures(1000 * (time.perf_counter() - start))


@dataclass(frozen=True)
class PairSeries:
    """Pairs of runs in the order in which they were made."""

    pairs: list[Pair]
    stopped: str = ""
    """Why there are fewer than LEAST_RUNS, or than were asked for; fit to be shown."""


def in_turns(
    time_pair: TimePair,
    runs: int | None = None,
    *,
    within_percent: float = WITHIN_PERCENT,
    limit_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Generator[tuple[int, int], None, PairSeries]:
    """Make pairs of runs until they are enough, or the time is up.

    Args:
        time_pair: Makes a pair. The new version begins in every other one, as what is second may
            be warmer.
        runs: How many; None for as many as are needed.
        within_percent: The half-width of the interval that is enough.
        limit_s: The time limit. By default ``LIMIT_S``, and none for a given number of runs.
        clock: In seconds.

    Yields:
        After each, how many pairs there are, and about how many there will be.

    Raises:
        UsageError: There would be too few, or no end.
    """
    if runs is not None and runs < LEAST_RUNS:
        raise UsageError(f"a gate needs {LEAST_RUNS} or more runs of each")
    if limit_s is None:
        limit_s = LIMIT_S if runs is None else math.inf
    has_end = runs is not None or math.isfinite(limit_s)
    if not 0 < within_percent < math.inf:
        raise UsageError(
            f"an interval of ±{within_percent} % is never reached", hint="Give --within 0.5"
        )
    if not (has_end and limit_s >= 0):
        raise UsageError(f"a gate of {limit_s} s has no end")
    begin, pairs, look, stopped = clock(), list[Pair](), _FIRST_LOOK, ""
    seconds, fastest_s, extra_s = 0.0, math.inf, 0.0
    while runs is None or len(pairs) < runs:
        done, left_s = len(pairs), max(0.0, limit_s - seconds)
        share_s = max(0.0, left_s / max(1, (runs or LEAST_RUNS) - done) - extra_s)
        try:
            pairs.append(time_pair(done, PairTime(share_s, left_s)))
        except TimeLimitError as error:
            stopped = error.message
            break
        begun_s, done, seconds = seconds, len(pairs), clock() - begin
        pair_s = seconds - begun_s
        # What a pair takes beyond its share, such as starting a process, is not left for the next.
        fastest_s, extra_s = min(fastest_s, pair_s), max(0.0, pair_s - share_s)
        yield done, runs or max(look, done + 1)
        if done < LEAST_RUNS:
            if (LEAST_RUNS - done) * fastest_s * _HOPE > limit_s - seconds:
                stopped = f"a pair takes {fmt.duration(fastest_s)}"
                break
            continue
        if done == runs:
            break
        if seconds * (done + 1) / done > limit_s:
            stopped = f"a pair takes {fmt.duration(seconds / done)}"
            break
        if runs is None and done >= look:
            look = math.ceil(done * _LOOK_FACTOR)
            if is_clear(compared_times(pairs).ratios, within_percent):
                break
    if len(pairs) >= (runs or LEAST_RUNS):
        return PairSeries(pairs)
    count = f"{len(pairs)} of {'at least ' if runs is None else ''}{runs or LEAST_RUNS}"
    time_limit = f"within the time limit of {fmt.duration(limit_s)}"
    return PairSeries(pairs, f"{count} pairs of runs {time_limit}: {stopped}")


def is_clear(ratios: Sequence[float], within_percent: float = WITHIN_PERCENT) -> bool:
    """Return whether the interval of ratios is narrow enough, or far from no change.

    That a change is clear when it is twice the half-width does not call what is alike changed:
    it takes more than the interval itself to do so.
    """
    low, middle, high = _interval(np.log(np.asarray(ratios)))
    half = (high - low) / 2
    return half <= math.log1p(within_percent / 100) or abs(middle) > _CLEAR * half


class Outcome(TextEnum):
    """Whether what a gate asks for is met."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDECIDED = "UNDECIDED"


class Verdict(TextEnum):
    """Whether a new version takes another time."""

    SLOWER = "slower"
    FASTER = "faster"
    NO_DIFFERENCE = "no difference"
    UNDECIDED = "undecided"
    """There were too few runs."""


@dataclass(frozen=True)
class GateRow:
    """One comparison."""

    key: str
    """``end to end``, or a node: untrusted text."""
    base_ms: float
    """Median of the runs."""
    new_ms: float
    """`base_ms`, changed by `change_percent`."""
    change_percent: float
    """Median of the ratios of pairs, less 1."""
    low_percent: float
    high_percent: float
    """The interval of `change_percent`."""
    verdict: Verdict

    @property
    def is_faster(self) -> bool:
        """Whether the new one certainly takes less time."""
        return self.verdict is Verdict.FASTER

    @property
    def text(self) -> str:
        """The change with its interval, as ``+3.1 % (+2.2 to +4.0)``."""
        return f"{self.change_percent:+.1f} % ({self.low_percent:+.1f} to {self.high_percent:+.1f})"


@dataclass(frozen=True)
class LoneNode:
    """A node, or nodes of one layer, that only one version runs."""

    key: str
    """Untrusted text."""
    base_ms: float | None
    """Median of the runs; None if only the new version runs it."""
    new_ms: float | None
    """The same of the new version."""

    @property
    def change_ms(self) -> float:
        """The change of the time of a pass."""
        return (self.new_ms or 0.0) - (self.base_ms or 0.0)

    @property
    def text(self) -> str:
        """Which version has it."""
        return "only in the new version" if self.base_ms is None else "only in the baseline"

    @property
    def verdict(self) -> str:
        """``added`` or ``removed``."""
        return "added" if self.base_ms is None else "removed"


@dataclass(frozen=True)
class GateResult:
    """What a gate says. Fields may be added, never renamed."""

    base: str
    """Untrusted text, as `new`."""
    new: str
    runs: int
    """Of each."""
    tolerance_percent: float
    """A new version may be slower by so much."""
    verdict: Verdict
    end_to_end: GateRow | None
    """None where the verdict is undecided."""
    nodes: tuple[GateRow, ...]
    """Those that changed, the largest difference in milliseconds first."""
    nodes_compared: int
    base_runs_ms: tuple[float, ...]
    new_runs_ms: tuple[float, ...]
    ratios: tuple[float, ...] = ()
    """Of each pair of runs."""
    within_percent: float | None = None
    """The half-width of the interval that was aimed at and not reached in time."""
    waited_percent: float | None = None
    """How much of the time others had the processor; then all times end to end are processor times
    of the calling thread. None where they are not."""
    stopped: str = ""
    """Why there are fewer runs than needed, or than asked for; untrusted text in parts."""
    lone_nodes: tuple[LoneNode, ...] = ()
    """Those that only one version runs, the longest first."""
    notes: tuple[str, ...] = ()
    """Why the versions may not be comparable; fit to be shown."""

    @property
    def is_regression(self) -> bool:
        """Whether the new version is slower than it may be."""
        return self.verdict is Verdict.SLOWER

    @property
    def is_undecided(self) -> bool:
        """Whether there were too few runs for a verdict."""
        return self.end_to_end is None

    @property
    def outcome(self) -> Outcome:
        """Whether the new version may take the place of the base."""
        if self.is_undecided:
            return Outcome.UNDECIDED
        return Outcome.FAIL if self.is_regression else Outcome.PASS

    @property
    def so_far(self) -> GateRow | None:
        """What too few runs say, without an interval; None without any."""
        if self.end_to_end is not None or not self.ratios:
            return None
        change = 100 * (statistics.median(self.ratios) - 1)
        before = statistics.median(self.base_runs_ms)
        after = _changed(before, change)
        return GateRow("so far", before, after, change, change, change, self.verdict)

    @property
    def line(self) -> str:
        """The verdict in a line, fit to be shown."""
        row = self.end_to_end
        if row is None:
            seen, so_far = "", self.so_far
            if so_far is not None:
                before, after = map(fmt.milliseconds, (so_far.base_ms, so_far.new_ms))
                change = f"{so_far.change_percent:+.1f} %"
                seen = f"; so far, without an interval: {before} ms → {after} ms, {change}"
            return f"{self.verdict}: {visible(self.stopped)}{seen}"
        may = f", {self.tolerance_percent:g} % allowed" if self.tolerance_percent else ""
        wide, allowed_percent = "", self.tolerance_percent
        if self.stopped:
            wide = f"; {visible(self.stopped)}"
        elif self.within_percent is not None:
            wide = f"; ±{self.within_percent:g} % was not reached in this time"
        elif (
            self.verdict is Verdict.NO_DIFFERENCE
            and row.high_percent > allowed_percent + _WIDE_PERCENT
        ):
            wide = f"; up to {row.high_percent:.0f} % slower is possible: more runs tell"
        of, waited = "", ""
        if self.waited_percent is not None:
            of = " of processor time"
            part = fmt.whole_percent(self.waited_percent)
            waited = f"; other programs had the processor {part} % of the time"
        return (
            f"{self.verdict}: {fmt.milliseconds(row.base_ms)} ms → {fmt.milliseconds(row.new_ms)}"
            f" ms{of}, {row.text}; {LEVEL_PERCENT:.0f} % interval over {self.runs} runs of each"
            f"{may}{waited}{wide}"
        )


def judge(
    key: str,
    base: Sequence[float],
    new: Sequence[float],
    tolerance_percent: float = 0.0,
    ratios: Sequence[float] | None = None,
) -> GateRow:
    """Compare runs that were made in turns.

    Args:
        key: What they are of.
        base: One figure a run, in the order of the runs.
        new: As many.
        tolerance_percent: How much the new one may be slower, and faster without being called so.
        ratios: How many times as long each new run takes; by default what the figures say.

    Raises:
        UsageError: There are too few, or not as many of both, or one took no time.
    """
    if len(base) != len(new) or len(base) < LEAST_RUNS:
        raise UsageError(f"a gate needs {LEAST_RUNS} or more runs of each")
    if min(*base, *new) <= 0:
        raise UsageError("a run took no time that can be measured")
    figures = np.asarray(new) / np.asarray(base) if ratios is None else np.asarray(ratios)
    low, change, high = (100 * math.expm1(bound) for bound in _interval(np.log(figures)))
    verdict = Verdict.NO_DIFFERENCE
    if low > tolerance_percent:
        verdict = Verdict.SLOWER
    elif high < -tolerance_percent:
        verdict = Verdict.FASTER
    before = float(statistics.median(base))
    return GateRow(key, before, _changed(before, change), change, low, high, verdict)


def _changed(before: float, percent: float) -> float:
    """Return a time that changed by so many percent.

    Medians of both sides do not make the median of the ratios: 0.809 and 1.300 ms stood beside
    -25.8 %. All figures of a row have one base.
    """
    return before * (1 + percent / 100)


def _interval(figures: FloatArray) -> tuple[float, float, float]:
    """Return the low end of the interval, the median and the high end."""
    ordered = np.sort(figures)
    low, high = median_ranks(len(ordered), LEVEL_PERCENT / 100)
    return float(ordered[low]), float(np.median(ordered)), float(ordered[high])


def gate_result(
    base: str,
    new: str,
    pairs: Sequence[Pair],
    tolerance_percent: float = 0.0,
    within_percent: float | None = None,
    stopped: str = "",
    partners: Mapping[str, str] | None = None,
) -> GateResult:
    """Return the verdict, end to end and by node; undecided for fewer than LEAST_RUNS pairs.

    Args:
        base: What it is called.
        new: The same of the new version.
        pairs: Of runs.
        tolerance_percent: How much the new version may be slower.
        within_percent: The half-width of the interval that was aimed at, if one was.
        stopped: Why there are fewer pairs than needed, or than asked for.
        partners: What nodes of the new version are called in the base, see
            :func:`.node_changes.partners_of`.

    Raises:
        UsageError: As :func:`judge`.
    """
    if len(pairs) < LEAST_RUNS:
        base_ms, new_ms = (tuple(run.ms for run in runs) for runs in _sides(pairs))
        return GateResult(
            base, new, len(pairs), tolerance_percent, Verdict.UNDECIDED, None, (), 0,
            base_ms, new_ms,
            tuple(pair.ratio for pair in pairs), within_percent,
            stopped=stopped or f"{len(pairs)} of at least {LEAST_RUNS} pairs of runs",
        )  # fmt: skip
    times = compared_times(pairs)
    whole = judge("end to end", times.base_ms, times.new_ms, tolerance_percent, times.ratios)
    if within_percent is not None and is_clear(times.ratios, within_percent):
        within_percent = None
    rows, lone, compared = _node_rows(pairs, partners or {})
    return GateResult(
        base, new, len(pairs), tolerance_percent, whole.verdict, whole, rows,
        compared, times.base_ms, times.new_ms, times.ratios, within_percent, times.waited_percent,
        stopped, lone,
    )  # fmt: skip


def gated(
    base: str,
    new: str,
    time_pair: TimePair,
    runs: int | None = None,
    *,
    within_percent: float = WITHIN_PERCENT,
    limit_s: float | None = None,
    tolerance_percent: float = TOLERANCE_PERCENT,
    are_models: bool = True,
) -> Generator[tuple[int, int], None, GateResult]:
    """Make pairs of runs as :func:`in_turns` does, and return the verdict.

    Args:
        base: A model, or a command line.
        new: The new version.
        time_pair: Makes a pair.
        runs: How many; None for as many as are needed.
        within_percent: The half-width of the interval that is enough.
        limit_s: The time limit.
        tolerance_percent: How much the new version may be slower.
        are_models: Whether they are no command lines.

    Raises:
        UsageError: As :func:`in_turns`.
    """
    series = yield from in_turns(time_pair, runs, within_percent=within_percent, limit_s=limit_s)
    aim = within_percent if runs is None else None
    paths = Path(base), Path(new)
    partners = partners_of(*paths, series.pairs) if are_models else {}
    result = gate_result(base, new, series.pairs, tolerance_percent, aim, series.stopped, partners)
    return replace(result, notes=input_notes(*paths)) if are_models else result


def partners_of(base: Path, new: Path, pairs: Sequence[Pair]) -> dict[str, str]:
    """Return what renamed nodes of the new version are called in the base, for `gate_result`."""
    sides = ([run.nodes for run in runs] for runs in _sides(pairs))
    return node_changes.partners_of(base, new, *sides)


def input_notes(base: Path, new: Path) -> tuple[str, ...]:
    """Return how the inputs of two models differ apart from their names, as notes.

    Empty if they do not, or if a model can no longer be read.
    """
    if is_same_file(base, new):
        return ()
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.inputs.guess import input_specs

    try:
        with closing(open_document(base)) as old, closing(open_document(new)) as other:
            sides = [input_specs(document) for document in (old, other)]
    except DldError:
        return ()
    kinds = [[(spec.dtype, spec.dims, spec.container) for spec in specs] for specs in sides]
    if kinds[0] == kinds[1]:
        return ()
    texts = [clip(", ".join(spec.text for spec in specs), _LONGEST_NAME) for specs in sides]
    return (f"the inputs differ: {texts[0]} in the baseline, {texts[1]} in the new version",)


def _node_rows(
    pairs: Sequence[Pair], partners: Mapping[str, str]
) -> tuple[tuple[GateRow, ...], tuple[LoneNode, ...], int]:
    """Return the nodes that changed, those of one version only, and how many were compared."""
    base_runs, new_runs = _sides([pair for pair in pairs if pair.base.nodes and pair.new.nodes])
    if len(base_runs) < LEAST_RUNS:
        return (), (), 0
    runs = node_changes.node_runs(
        [run.nodes for run in base_runs], [run.nodes for run in new_runs], partners
    )
    common = [node for node in runs if node.base and node.new and min(*node.base, *node.new) > 0]
    lone = [
        LoneNode(node.title, *(statistics.median(side) if side else None
                               for side in (node.base, node.new)))
        for node in runs if not (node.base and node.new)
    ]  # fmt: skip
    lone.sort(key=lambda node: -abs(node.change_ms))
    if not common:
        return (), tuple(lone), 0
    before, after = (
        np.asarray([getattr(node, side) for node in common]) for side in ("base", "new")
    )
    step_ms = resolution_of(2 * np.concatenate((before, after), axis=None))  # of medians
    rows = [
        judge(node.title, node.base, node.new)
        for node, holds, change_ms in zip(
            common, node_changes.changed(np.log(after / before)),
            np.median(after - before, axis=1), strict=True,
        )
        if holds and abs(change_ms) > step_ms
    ]  # fmt: skip
    rows = [row for row in rows if row.verdict is not Verdict.NO_DIFFERENCE]
    rows.sort(key=lambda row: -abs(row.new_ms - row.base_ms))
    changes_ms = [row.new_ms - row.base_ms for row in rows] + [node.change_ms for node in lone]
    least_ms = _SIDE_EFFECT * max(map(abs, changes_ms), default=0.0)
    rows = [row for row in rows if abs(row.new_ms - row.base_ms) >= least_ms]
    return tuple(rows), tuple(lone), len(common)


def _sides(pairs: Sequence[Pair]) -> tuple[list[RunFigures], list[RunFigures]]:
    return [pair.base for pair in pairs], [pair.new for pair in pairs]


COLUMNS: tuple[Column[GateRow | LoneNode], ...] = (
    Column("node", "node", lambda row: row.key, least=20, keep="end"),
    Column("base_ms", "base ms", lambda row: row.base_ms, MS, 10),
    Column("new_ms", "new ms", lambda row: row.new_ms, MS, 10),
    Column("change", "change", lambda row: row.text, width=24),
    Column("verdict", "", lambda row: row.verdict, width=13),
)


def gate_table(result: GateResult) -> Table[GateRow | LoneNode]:
    """Return the nodes that changed most as a table."""
    return Table(COLUMNS, listed_nodes(result), name="gate", title="Nodes that changed")


CHANGES = IntervalUnit(
    "interval", lambda one: f"{one.value:+.1f} % ({one.low:+.1f} to {one.high:+.1f})",
    mark=lambda value: f"{value:+g} %" if value else "0 %",
)  # fmt: skip


def _estimate(row: GateRow | LoneNode) -> Estimate | None:
    if isinstance(row, LoneNode):
        return None
    return Estimate(row.change_percent, row.low_percent, row.high_percent)


def _style(row: GateRow | LoneNode) -> str:
    styles = {Verdict.SLOWER.value: "bad", Verdict.FASTER.value: "good"}
    return styles.get(str(row.verdict), "dim" if isinstance(row, LoneNode) else "")


def gate_bars(result: GateResult) -> Table[GateRow | LoneNode]:
    """Return the whole and the nodes that changed, their changes as bars on one axis."""
    key, base_ms, new_ms, _, verdict = COLUMNS
    columns = (
        key, Column("change", "change", _estimate, CHANGES, least=24, style=_style),
        replace(verdict, style=_style), replace(base_ms, priority=1), replace(new_ms, priority=1),
    )  # fmt: skip
    whole = result.end_to_end or result.so_far
    rows = [*([whole] if whole is not None else []), *listed_nodes(result)]
    title = str(result.verdict)
    if not result.is_undecided:
        title = f"{result.outcome}: {title}"
    return Table(columns, rows, name="gate", title=title)


def changed_nodes(result: GateResult) -> list[GateRow | LoneNode]:
    """Return the nodes that changed, were added or removed, the largest difference first.

    Without added and removed ones that hardly matter end to end.
    """
    least_ms = _HARDLY * statistics.median(result.base_runs_ms) if result.base_runs_ms else 0.0
    lone = [node for node in result.lone_nodes if abs(node.change_ms) >= least_ms]
    rows: list[GateRow | LoneNode] = [*result.nodes, *lone]
    return sorted(rows, key=lambda row: -abs((row.new_ms or 0.0) - (row.base_ms or 0.0)))


def listed_nodes(result: GateResult) -> tuple[GateRow | LoneNode, ...]:
    """Return the nodes that changed most, as many as people read."""
    return tuple(changed_nodes(result)[:_MOST_LISTED])


def more_nodes(result: GateResult) -> str:
    """Return how many more nodes changed; empty for none."""
    rest = len(changed_nodes(result)) - _MOST_LISTED
    return f"and {fmt.plural(rest, 'more node')} that changed" if rest > 0 else ""


def markdown(result: GateResult) -> str:
    """Return the verdict as Markdown, for the summary of a pipeline."""
    names = f"{markdown_code(result.base)} → {markdown_code(result.new)}"
    lines = [f"### dld gate: {result.verdict}", "", names, "", markdown_plain(result.line)]
    for note in result.notes:
        lines += ["", f"Note: {markdown_plain(note)}"]
    if rows := listed_nodes(result):
        lines += ["", "| " + " | ".join(column.title for column in COLUMNS) + " |"]
        lines.append("|" + "---|" * len(COLUMNS))
        for row in rows:
            figures = (column.shown_text(row) for column in COLUMNS[1:])
            cells = [markdown_code(row.key).replace("|", "\\|"), *figures]  # `\|` also within code
            lines.append("| " + " | ".join(cells) + " |")
        if more := more_nodes(result):
            lines += ["", more]
    return "\n".join(lines) + "\n"


def markdown_code(text: str) -> str:
    """Return untrusted text as a code span, in which nothing is markup, a link or a mention."""
    shown = clip(visible(text), _LONGEST_NAME, keep="end")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    ends = shown[:1], shown[-1:]
    space = " " if "`" in ends or (" " in ends and shown.strip()) else ""
    return f"{fence}{space}{shown}{space}{fence}"


def junit(result: GateResult) -> str:
    """Return the verdict as JUnit XML: one case for the whole, one for each node that changed.

    Only the whole can fail; of a node it says in the output what changed.
    """
    rows = changed_nodes(result)
    failed, undecided = int(result.is_regression), int(result.is_undecided)
    suite = ElementTree.Element(
        "testsuite", name="dld gate", tests=str(1 + len(rows)), failures=str(failed),
        errors=str(undecided), skipped="0",
    )  # fmt: skip
    name = f"{visible(result.base)} → {visible(result.new)}"
    whole = ElementTree.SubElement(suite, "testcase", classname="dld.gate", name=name)
    if failed:
        failure = ElementTree.SubElement(whole, "failure", message=result.line, type="slower")
        failure.text = "\n".join(f"{visible(row.key)}: {row.text}" for row in rows)
    if undecided:
        ElementTree.SubElement(whole, "error", message=result.line, type=result.verdict.value)
    ElementTree.SubElement(whole, "system-out").text = result.line
    for row in rows:
        case = ElementTree.SubElement(
            suite, "testcase", classname="dld.gate.node", name=visible(row.key)
        )
        ElementTree.SubElement(case, "system-out").text = f"{row.verdict}: {row.text}"
    # Not "unicode", whose declaration names the encoding of the locale.
    document: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document.decode() + "\n"
