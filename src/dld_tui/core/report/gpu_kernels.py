"""GPU work as recorded: its attribution to the layers that launched it, and utilisation.

A kernel belongs to the layer whose interval holds the launching call, or to the layer at the same
position in a pass. The GPU runs later than the CPU launches, so the kernel's own times do not tell
the layer. Both clocks are aligned at the moment when the CPU profile began.

Recording layers and runtime calls makes a model two to six times as slow (H200); recording kernels
alone costs 3 % where the GPU is the limit, and up to a third where launches are. So one run tells
which layer launches the k-th kernel, and another one when that kernel runs and for how long. This
is valid only while both launch the same kernels in the same order: a pass with kernels of other
names, or another number of them, is not attributed, and the report says why.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.records import CounterSource, GpuEvent, GpuKind
from dld_tui.core.statistics import LatencySource, median, share_percent
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.records import ReportPass
    from dld_tui.core.report.report import Report


class Activity(NamedTuple):
    """One piece of work. Times are nanoseconds of the Unix epoch."""

    kind: GpuKind
    name: str
    """Demangled name of a kernel, direction of a copy. Untrusted text."""
    start_ns: int
    end_ns: int
    correlation: int
    """Number of the call that launched it."""
    stream: str
    bytes: int | None = None
    details: Mapping[str, JSON] | None = None
    graph_node: int = 0
    """Number of its node in a CUDA graph, whose nodes share the correlation of its launch; 0
    outside of graphs."""


class NamedRange(NamedTuple):
    """A part of the program's work on the CPU that it named (NVTX)."""

    name: str
    """Untrusted text."""
    start_ns: int
    end_ns: int


@dataclass
class ActivityLog:
    """Everything recorded between start and stop of a tracer."""

    work: list[Activity] = field(default_factory=list)
    launches: dict[int, int] = field(default_factory=dict)
    """When the call of a correlation number began, in nanoseconds of the Unix epoch."""
    ranges: list[NamedRange] = field(default_factory=list)
    """In the order in which they ended."""
    dropped: int = 0
    """Records for which the tracer had no room, or that could not be read."""

    def launched(self, correlation: int, start_ns: int) -> None:
        """Add a call; of a runtime call and the driver call inside it, the earlier start counts."""
        known = self.launches.get(correlation)
        if known is None or start_ns < known:
            self.launches[correlation] = start_ns


def in_launch_order(work: Iterable[Activity]) -> list[Activity]:
    """Return work in launch order, across streams.

    Correlations count the calls. The nodes of a CUDA graph share one: they are ordered by node
    numbers, or by start time where these are missing. Work without a call comes last.
    """
    return sorted(
        work,
        key=lambda activity: (
            activity.correlation < 0,
            activity.correlation,
            activity.graph_node,
            activity.start_ns,
        ),
    )


Sample: TypeAlias = "tuple[int, float]"
"""(time in nanoseconds of the Unix epoch, value)."""

_PEAK = ".avg.pct_of_peak_sustained_elapsed"


@dataclass(frozen=True)
class CounterSpec:
    """One row."""

    name: str
    """The source's own name."""
    title: str
    """For people."""
    unit: str = "%"
    maximum: float | None = 100.0


@dataclass
class Series:
    """The samples of one row; without any it is not drawn, and `absent` says why."""

    spec: CounterSpec
    source: CounterSource
    samples: list[Sample] = field(default_factory=list)
    absent: str | None = None


@dataclass(frozen=True)
class HardwareRow:
    """A row that hardware counters can measure, under the names that chips have for it."""

    title: str
    names: tuple[str, ...]
    """In order of preference, without the suffix."""

    def spec(self, available: Collection[str]) -> CounterSpec | None:
        """Return the row under the first name that a chip has, or None."""
        for name in self.names:
            if name in available:
                return CounterSpec(name + _PEAK, self.title)
        return None


HARDWARE_ROWS = (
    HardwareRow("SM active", ("sm__cycles_active",)),
    HardwareRow("DRAM", ("dram__throughput", "dram__read_throughput", "fbpa__throughput")),
    HardwareRow(
        "Tensor Core",
        (
            "sm__pipe_tensor_cycles_active",
            "sm__pipe_tensor_op_hmma_cycles_active",
            "sm__inst_executed_pipe_tensor",
        ),
    ),
    HardwareRow("PCIe", ("pcie__throughput", "pcie__read_bytes", "pcie__write_bytes")),
)
"""In order of importance: where a chip cannot measure all together, the last ones are dropped."""


@dataclass(frozen=True)
class SamplingPlan:
    """How many passes to sample, and how often."""

    passes: int
    interval_us: float
    expected: int
    """Samples a row, roughly."""


_MOST_SAMPLES = 10_000
"""Of one row."""


def plan_sampling(pass_ms: float, passes: int, interval_us: float) -> SamplingPlan:
    """Return a plan within `_MOST_SAMPLES`: fewer passes first, then a longer interval.

    Args:
        pass_ms: The approximate duration of a pass.
        passes: The number of passes.
        interval_us: The wanted sampling interval.
    """
    per_pass = max(1.0, 1000 * pass_ms / interval_us)
    fitting = max(1, min(passes, int(_MOST_SAMPLES / per_pass)))
    if per_pass > _MOST_SAMPLES:
        interval_us *= per_pass / _MOST_SAMPLES
        per_pass = _MOST_SAMPLES
    return SamplingPlan(fitting, interval_us, int(fitting * per_pass))


_ROUNDING_US = 2.0
"""Profiles of the CPU side cut starts and durations down to whole microseconds."""


class LayerSpan(NamedTuple):
    """One run of a layer on the CPU side, in microseconds since profiling began."""

    layer: int
    start_us: float
    duration_us: float


@dataclass(frozen=True)
class PassSpan:
    """One pass, in microseconds since profiling began."""

    index: int
    start_us: float
    duration_us: float
    layers: Sequence[LayerSpan]


@dataclass
class KernelSum:
    """Kernels of one lot."""

    count: int = 0
    time_us: float = 0.0

    def add(self, duration_us: float) -> None:
        """Count one."""
        self.count += 1
        self.time_us += duration_us


@dataclass
class AttributedWork:
    """The work by pass, and the sums to check it by."""

    events: dict[int, list[GpuEvent]] = field(default_factory=dict)
    kernels: KernelSum = field(default_factory=KernelSum)
    """All kernels that were recorded."""
    given: KernelSum = field(default_factory=KernelSum)
    """Kernels that a layer launched."""
    unclaimed: KernelSum = field(default_factory=KernelSum)
    """Kernels launched within a pass, between its layers."""
    outside: KernelSum = field(default_factory=KernelSum)
    """Kernels of no pass: those of loading the model."""

    @property
    def missing_us(self) -> float:
        """What the lots lack to the sum of all kernels: 0 but for rounding."""
        parts = self.given.time_us + self.unclaimed.time_us + self.outside.time_us
        return self.kernels.time_us - parts

    @property
    def given_percent(self) -> float | None:
        """Share of the kernel time within passes that a layer has; None without any."""
        total = self.given.time_us + self.unclaimed.time_us
        return share_percent(self.given.time_us, total)


def attribute(log: ActivityLog, origin_ns: int, passes: Iterable[PassSpan]) -> AttributedWork:
    """Return the work of each pass in launch order, with the layers that launched it.

    Args:
        log: The recorded work.
        origin_ns: When profiling of the CPU began, in nanoseconds of the Unix epoch.
        passes: The passes; they must not overlap.
    """
    ordered = sorted(passes, key=lambda pass_: pass_.start_us)
    starts = [span.start_us for span in ordered]
    finders = [_LayerFinder(span.layers) for span in ordered]
    attributed = AttributedWork(events={span.index: [] for span in ordered})
    for work in in_launch_order(log.work):
        launched_ns = log.launches.get(work.correlation, work.start_ns)
        time_us = (launched_ns - origin_ns) / 1000
        duration_us = (work.end_ns - work.start_ns) / 1000
        at = bisect_right(starts, time_us) - 1
        span = ordered[at] if at >= 0 else None
        layer = None
        inside = span is not None and time_us <= span.start_us + span.duration_us + _ROUNDING_US
        if span is not None and inside:
            if work.correlation in log.launches:
                layer = finders[at].find(time_us)
            start_us = (work.start_ns - origin_ns) / 1000 - span.start_us
            attributed.events[span.index].append(event_of(work, start_us, layer))
        if work.kind == "kernel":
            attributed.kernels.add(duration_us)
            lot = attributed.unclaimed if inside else attributed.outside
            (lot if layer is None else attributed.given).add(duration_us)
    return attributed


def event_of(work: Activity, start_us: float, layer: int | None) -> GpuEvent:
    """Return work as an event of a pass.

    Args:
        work: The recorded work.
        start_us: Since the start of the pass.
        layer: The layer that launched it, if known.
    """
    duration_us = (work.end_ns - work.start_ns) / 1000
    details = work.details or {}
    return GpuEvent(
        work.stream, work.kind, work.name, start_us, duration_us, layer, work.bytes, details
    )


def spans_of_ranges(
    passes: Iterable[PassSpan],
    ranges: Iterable[NamedRange],
    layers: Sequence[tuple[str, int]],
    origin_ns: int,
) -> list[PassSpan]:
    """Return passes with the layers of the named ranges on the CPU.

    Names repeat: the k-th range of a name in a pass is the k-th layer of that name. Ranges of other
    names, such as those around a whole pass, are ignored.

    Args:
        passes: The passes; they must not overlap.
        ranges: The recorded ranges.
        layers: Name and number of each layer, in execution order.
        origin_ns: The zero of the clock of `passes`.
    """
    numbers: dict[str, list[int]] = {}
    for name, number in layers:
        numbers.setdefault(name, []).append(number)
    known = sorted(
        (named_range for named_range in ranges if named_range.name in numbers),
        key=lambda named_range: (named_range.start_ns, -named_range.end_ns),
    )
    starts = [(named_range.start_ns - origin_ns) / 1000 for named_range in known]
    pass_spans = []
    for pass_ in passes:
        first, last = (
            bisect_left(starts, pass_.start_us - _ROUNDING_US),
            bisect_right(starts, pass_.start_us + pass_.duration_us + _ROUNDING_US),
        )
        seen: Counter[str] = Counter()
        spans = []
        for start_us, named in zip(starts[first:last], known[first:last], strict=True):
            of_name = numbers[named.name]
            if seen[named.name] < len(of_name):
                duration_us = (named.end_ns - named.start_ns) / 1000
                spans.append(LayerSpan(of_name[seen[named.name]], start_us, duration_us))
            seen[named.name] += 1
        pass_spans.append(PassSpan(pass_.index, pass_.start_us, pass_.duration_us, spans))
    return pass_spans


class _LayerFinder:
    """Finds the innermost layer that runs at a time."""

    def __init__(self, layers: Sequence[LayerSpan]) -> None:
        self._layers = sorted(layers, key=lambda layer: (layer.start_us, -layer.duration_us))
        self._starts = [layer.start_us for layer in self._layers]
        self._holders: list[int] = []
        open_ones: list[int] = []
        for index, layer in enumerate(self._layers):
            while open_ones and self._end(open_ones[-1]) < layer.start_us + layer.duration_us:
                open_ones.pop()
            self._holders.append(open_ones[-1] if open_ones else -1)
            open_ones.append(index)

    def find(self, time_us: float) -> int | None:
        """Return the layer, or None between layers."""
        last = at = bisect_right(self._starts, time_us) - 1
        while at >= 0 and self._end(at) < time_us:
            at = self._holders[at]
        if at < 0 <= last and time_us <= self._end(last) + _ROUNDING_US:
            at = last
        return self._layers[at].layer if at >= 0 else None

    def _end(self, at: int) -> float:
        return self._layers[at].start_us + self._layers[at].duration_us


_KERNELS = frozenset({"kernel"})
_COPIES = frozenset({"memcpy", "memset"})
_NAME_CELLS = 60

_Word: TypeAlias = "tuple[str, str, int | None]"
_Sequence: TypeAlias = "tuple[_Word, ...]"
_Votes: TypeAlias = "list[Counter[int | None]]"


@dataclass(frozen=True)
class TimedPass:
    """A pass as timed on the host; times in nanoseconds of the Unix epoch."""

    index: int
    start_ns: int
    end_ns: int


class Launches:
    """The layers that launch the k-th kernel, and the k-th copy, of a pass.

    Args:
        passes: The work recorded together with the layers, each pass in launch order.
        lost: Whether records were lost: then only the most frequent sequence counts, since another
            one may be the same with a gap.
    """

    def __init__(self, passes: Iterable[Sequence[GpuEvent]], lost: bool = False) -> None:
        self._votes: dict[frozenset[str], dict[_Sequence, _Votes]] = {_KERNELS: {}, _COPIES: {}}
        self._counts: Counter[_Sequence] = Counter()
        for events in passes:
            for kinds, known in self._votes.items():
                chosen = [event for event in events if event.kind in kinds]
                words = tuple(_word(event.kind, event.name, event.bytes) for event in chosen)
                votes = known.setdefault(words, [Counter() for _ in chosen])
                for vote, event in zip(votes, chosen, strict=True):
                    vote[event.layer] += 1
                if kinds is _KERNELS:
                    self._counts[words] += 1
        if lost and self._counts:
            usual = self.usual
            self._votes[_KERNELS] = {usual: self._votes[_KERNELS][usual]}

    @property
    def usual(self) -> _Sequence:
        """The kernels of most passes; empty without any."""
        return self._counts.most_common(1)[0][0] if self._counts else ()

    def layers_of(self, work: Sequence[Activity]) -> dict[int, int | None] | None:
        """Return the layers of kernels and copies by their places in `work`.

        Args:
            work: Of one pass, in the order of its launches.

        Returns:
            None when no recorded pass has the same kernels in the same order. Copies are compared
            on their own: where only these differ, they have no layer.
        """
        layers: dict[int, int | None] = {}
        for kinds, known in self._votes.items():
            places = [at for at, activity in enumerate(work) if activity.kind in kinds]
            words = tuple(_word(work[at].kind, work[at].name, work[at].bytes) for at in places)
            votes = known.get(words)
            if votes is None and kinds is _KERNELS:
                return None
            if votes is not None:
                layers.update(zip(places, map(_agreed_layer, votes), strict=True))
        return layers

    def difference(self, work: Sequence[Activity]) -> str:
        """Return the first kernel in which a pass differs from the usual one, as text."""
        usual = [name for _, name, _ in self.usual]
        names = [activity.name for activity in work if activity.kind in _KERNELS]
        for at, (name, other) in enumerate(zip(names, usual, strict=False), 1):
            if name != other:
                return f"kernel {at:,} is {_named(name)}, in the profiled run {_named(other)}"
        return f"it has {len(names):,} kernels, in the profiled run {len(usual):,}"


def _word(kind: str, name: str, size: int | None) -> _Word:
    """Return what two records must have in common: copies have a direction and a size."""
    return (kind, name, None if kind in _KERNELS else size)


def _agreed_layer(votes: Mapping[int | None, int]) -> int | None:
    """Return the layer that passes agree on, or None.

    A launch that single passes put between two layers, where the clocks are cut to microseconds, is
    still the layer's; two layers at one place are a contradiction.
    """
    layers = [layer for layer in votes if layer is not None]
    if len(layers) != 1 or votes.get(None, 0) >= votes[layers[0]]:
        return None
    return layers[0]


def _named(name: str) -> str:
    return clip(visible(name), _NAME_CELLS, keep="middle") or "one without a name"


@dataclass
class JoinedWork:
    """The work of passes in which only kernels were recorded."""

    events: dict[int, list[GpuEvent]] = field(default_factory=dict)
    """By the number of the pass; times since its start."""
    passes: int = 0
    """Those with kernels."""
    joined: int = 0
    """Those whose kernels have the positions of a profiled pass."""
    kernels: int = 0
    """Of all passes."""
    attributed: int = 0
    """Kernels with a layer."""
    outside: int = 0
    """Kernels that ran in no pass."""
    problem: str = ""
    """Why passes could not be joined, for people; empty when all were."""


def work_of_passes(
    log: ActivityLog, passes: Sequence[TimedPass]
) -> tuple[dict[int, list[Activity]], list[Activity]]:
    """Return the work by the pass that holds its middle, in launch order, and work outside passes.

    A pass waits for its work, so the middle of a kernel lies well inside: clocks that differ by
    some microseconds do not matter.
    """
    ordered = sorted(passes, key=lambda pass_: pass_.start_ns)
    starts = [pass_.start_ns for pass_ in ordered]
    activities: dict[int, list[Activity]] = {pass_.index: [] for pass_ in ordered}
    outside = []
    for work in in_launch_order(log.work):
        middle = (work.start_ns + work.end_ns) // 2
        at = bisect_right(starts, middle) - 1
        if at >= 0 and middle <= ordered[at].end_ns:
            activities[ordered[at].index].append(work)
        else:
            outside.append(work)
    return activities, outside


def join_passes(
    log: ActivityLog, passes: Sequence[TimedPass], launches: Launches | None, unknown: str = ""
) -> JoinedWork:
    """Return the work of passes with the layers that launched it.

    Args:
        log: The recorded kernels and copies.
        passes: They must not overlap.
        launches: Of the run with layers; None when there was none.
        unknown: Why there was none, or why positions are not comparable.
    """
    by_pass, outside = work_of_passes(log, passes)
    result = JoinedWork(outside=sum(activity.kind == "kernel" for activity in outside))
    begun = {pass_.index: pass_.start_ns for pass_ in passes}
    for index, work in by_pass.items():
        problem, layers = unknown, None
        if launches is not None and not unknown:
            problem = _ambiguous(work)
            layers = None if problem else launches.layers_of(work)
            if layers is None and not problem:
                problem = launches.difference(work)
        kernels = [at for at, activity in enumerate(work) if activity.kind == "kernel"]
        known = layers or {}
        result.events[index] = [
            event_of(activity, (activity.start_ns - begun[index]) / 1000, known.get(at))
            for at, activity in enumerate(work)
        ]
        result.passes += bool(kernels)
        result.joined += bool(kernels) and layers is not None
        result.kernels += len(kernels)
        result.attributed += sum(known.get(at) is not None for at in kernels)
        if kernels and problem and not result.problem:
            result.problem = problem
    return result


def _ambiguous(work: Sequence[Activity]) -> str:
    """Return why the launch order is unknown; empty when it is known.

    Kernels of a CUDA graph have no calls of their own. Without node numbers, their start times
    give the order only while no two of them overlap.
    """
    for correlation, group in groupby(work, key=lambda node: node.correlation):
        nodes = list(group)
        if correlation < 0 or len({node.graph_node for node in nodes}) == len(nodes):
            continue
        ends = accumulate((node.end_ns for node in nodes), max)
        if any(node.start_ns < end for node, end in zip(nodes[1:], ends, strict=False)):
            return "kernels of a CUDA graph ran side by side, and their order of launch is unknown"
    return ""


Interval: TypeAlias = "tuple[float, float]"
"""Start and end in microseconds."""

_MOST_PASSES = 100
"""That are read for a summary."""


@dataclass(frozen=True)
class GpuSummary:
    """The work of a GPU in a pass: medians over the passes; times in microseconds.

    Of passes at true speed where the report has any. Their work is related to the latency that was
    measured without recording, since recording adds gaps and no work.
    """

    pass_index: int
    """The typical pass, which is the one that is drawn."""
    passes: int
    """How many passes the figures are of."""
    true_speed: bool
    """Whether layers were not profiled meanwhile. If not, gaps say little of the model."""
    length_us: float
    """What the work is set against: the median of the latency loop, or of the passes where there
    was none or they are not at true speed."""
    recorded_us: float
    """Median length of the passes themselves, with recording."""
    kernels: int
    busy_us: float
    """With any kernel running, on any stream: the union of the kernels' intervals."""
    median_kernel_us: float
    gaps_us: float
    """Of `length_us`, with neither a kernel nor a copy running: launch gaps."""
    copies: int
    copy_us: float
    """With any copy or memset running."""
    exposed_copy_us: float
    """The part of it with no kernel running at the same time."""
    copied_bytes: int
    """Without copies whose size was not recorded."""
    attributed_us: float
    """Sum of the kernels' durations whose layer is known."""
    kernel_sum_us: float
    """Sum of all kernels' durations; longer than `busy_us` where streams overlapped."""
    unsized_copies: int = 0
    """Copies whose size was not recorded."""

    @property
    def copied_text(self) -> str:
        """How many bytes are copied, as far as it was recorded."""
        if self.unsized_copies and not self.copied_bytes:
            return "size not known"
        return f"{'at least ' * bool(self.unsized_copies)}{fmt.size(self.copied_bytes)}"

    @property
    def busy_percent(self) -> float:
        """The busy part of the length."""
        return share_percent(self.busy_us, self.length_us) or 0.0

    @property
    def exposed_copy_percent(self) -> float:
        """The part of the length in which the GPU copies and does nothing else."""
        return share_percent(self.exposed_copy_us, self.length_us) or 0.0

    @property
    def gap_percent(self) -> float:
        """The part of the length in which the GPU waits."""
        return share_percent(self.gaps_us, self.length_us) or 0.0

    @property
    def attributed_percent(self) -> float | None:
        """The part of the kernels' time whose layer is known."""
        return share_percent(self.attributed_us, self.kernel_sum_us)

    @property
    def slowed_by(self) -> float | None:
        """The duration of recorded passes over the latency; None without a latency.

        Kernel durations stay the same; each launch takes a microsecond or two longer.
        """
        if not self.true_speed or self.length_us <= 0 or self.recorded_us == self.length_us:
            return None
        return self.recorded_us / self.length_us


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the intervals joined where they overlap or touch, in order of time."""
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def covered(intervals: Sequence[Interval], start_us: float, end_us: float) -> float:
    """Return how much of a time span the intervals of :func:`union` cover."""
    return sum(max(min(end, end_us) - max(start, start_us), 0.0) for start, end in intervals)


def busy_intervals(events: Iterable[GpuEvent]) -> list[Interval]:
    """Return when any kernel was running."""
    return union(_interval(event) for event in events if event.kind == "kernel")


class _Work(NamedTuple):
    """One pass; times in microseconds."""

    kernels: float
    busy_us: float
    either_us: float
    copies: float
    copy_us: float
    copied_bytes: float
    unsized_copies: float
    attributed_us: float
    kernel_sum_us: float
    median_kernel_us: float
    end_us: float


def _work_of(events: Sequence[GpuEvent]) -> _Work | None:
    kernels = [event for event in events if event.kind == "kernel"]
    copies = [event for event in events if event.kind in _COPIES]
    if not kernels and not copies:
        return None
    busy, copying = union(map(_interval, kernels)), union(map(_interval, copies))
    either = union([*busy, *copying])
    durations = [event.duration_us for event in kernels]
    return _Work(
        kernels=len(kernels),
        busy_us=covered(busy, 0.0, math.inf),
        either_us=covered(either, 0.0, math.inf),
        copies=len(copies),
        copy_us=covered(copying, 0.0, math.inf),
        copied_bytes=sum(event.bytes or 0 for event in copies),
        unsized_copies=sum(event.bytes is None for event in copies),
        attributed_us=sum(event.duration_us for event in kernels if event.layer is not None),
        kernel_sum_us=sum(durations),
        median_kernel_us=median(durations) if durations else 0.0,
        end_us=max((end for _, end in either), default=0.0),
    )


def summarise_gpu(
    passes: Iterable[tuple[Sequence[GpuEvent], float]],
    pass_index: int,
    latency_us: float | None = None,
    *,
    true_speed: bool = False,
) -> GpuSummary | None:
    """Return the summary of passes from their events, or None without kernels and copies.

    Args:
        passes: Events and length in microseconds of each pass.
        pass_index: The typical pass.
        latency_us: The median latency without recording; None when it was not measured. Used for
            passes at true speed only.
        true_speed: Layers were not profiled meanwhile.
    """
    measured = [
        (work, length) for events, length in passes if (work := _work_of(events)) is not None
    ]
    if not measured:
        return None

    def figure(values: Iterable[float]) -> float:
        return median(list(values))

    # Kernels may end after the call that started them has returned.
    recorded = figure(max(length, work.end_us) for work, length in measured)
    busy, either, copy = (
        figure(times)
        for times in zip(*((w.busy_us, w.either_us, w.copy_us) for w, _ in measured), strict=True)
    )
    length = recorded
    if true_speed and latency_us is not None and latency_us > 0:
        length = max(latency_us, either)
    return GpuSummary(
        pass_index=pass_index,
        passes=len(measured),
        true_speed=true_speed,
        length_us=length,
        recorded_us=recorded,
        kernels=round(figure(work.kernels for work, _ in measured)),
        busy_us=busy,
        median_kernel_us=figure(work.median_kernel_us for work, _ in measured),
        gaps_us=max(length - either, 0.0),
        copies=round(figure(work.copies for work, _ in measured)),
        copy_us=copy,
        exposed_copy_us=figure(max(work.either_us - work.busy_us, 0.0) for work, _ in measured),
        copied_bytes=round(figure(work.copied_bytes for work, _ in measured)),
        attributed_us=figure(work.attributed_us for work, _ in measured),
        kernel_sum_us=figure(work.kernel_sum_us for work, _ in measured),
        unsized_copies=round(figure(work.unsized_copies for work, _ in measured)),
    )


def gpu_summary(report: Report) -> GpuSummary | None:
    """Return the GPU summary of a report; None when nothing was recorded."""
    if report.typical_pass is None or not report.has_gpu_events:
        return None
    passes = report.kernel_passes or report.counted_passes
    latency = report.latency
    bare = latency is not None and latency.source is LatencySource.LOOP
    return summarise_gpu(
        ((report.gpu_events(pass_.index), pass_.duration_us) for pass_ in _some(passes, report)),
        report.typical_pass,
        1000 * latency.median if latency is not None and bare else None,
        true_speed=bool(report.kernel_passes),
    )


def _some(passes: Sequence[ReportPass], report: Report) -> list[ReportPass]:
    """Return some passes of very many, evenly spaced, the median one included."""
    step = -(-len(passes) // _MOST_PASSES)
    return [
        pass_
        for at, pass_ in enumerate(passes)
        if at % step == 0 or pass_.index == report.typical_pass
    ]


def _interval(event: GpuEvent) -> Interval:
    return event.start_us, event.start_us + event.duration_us
