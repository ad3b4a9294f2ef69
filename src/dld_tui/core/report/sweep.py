"""The latency of a model at several sizes and settings: one row a point, and where it saturates."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.statistics import median, median_ranks
from dld_tui.core.tables.table import COUNT, MS, RATE, TEXT, Column, Table, ratio_text
from dld_tui.core.text import visible

BATCH, THREADS, PROVIDER = "batch", "threads", "provider"
"""Axes that are not dimensions of the model."""
KNEE = 0.95
"""The smallest size with this part of the highest throughput is the knee."""
MOST_POINTS = 1000


@dataclass(frozen=True)
class SweepAxis:
    """What is varied, and its values in the order in which they were given."""

    name: str
    """:data:`BATCH`, :data:`THREADS`, :data:`PROVIDER`, or a dynamic dimension. Untrusted text."""
    values: tuple[int | str, ...]


@dataclass(frozen=True)
class SweepPoint:
    """What was measured at one point."""

    at: tuple[int | str, ...]
    """Its values, in the order of the axes."""
    rounds_ms: tuple[float, ...] = ()
    """The median latency of each turn, in the order in which they were measured."""
    problem: str = ""
    """Why it was not measured. Fit for a terminal."""

    @property
    def ms(self) -> float | None:
        """The median latency of a pass."""
        return median(self.rounds_ms) if self.rounds_ms else None

    @property
    def low_ms(self) -> float | None:
        """The lower end of the interval of the median (95 % where there are six turns or more)."""
        return self._rank(0)

    @property
    def high_ms(self) -> float | None:
        """The upper end."""
        return self._rank(1)

    def _rank(self, end: int) -> float | None:
        if not self.rounds_ms:
            return None
        return sorted(self.rounds_ms)[median_ranks(len(self.rounds_ms))[end]]


@dataclass(frozen=True)
class Sweep:
    """The result of the activity ``sweep``. Fields may be added, never renamed."""

    model: str
    backend: str
    axes: tuple[SweepAxis, ...]
    points: tuple[SweepPoint, ...]
    """In the order of :func:`places`."""
    fixed: str = ""
    """The shapes of the inputs at the first point that ran, for display."""
    measured_s: float = 0.0
    """Seconds in timed passes."""
    seconds: float = 0.0
    """Of the whole sweep."""

    def items(self, point: SweepPoint) -> int:
        """Return how many items a pass computes: the batch."""
        sizes = dict(zip((axis.name for axis in self.axes), point.at, strict=True))
        batch = sizes.get(BATCH, 1)
        return batch if isinstance(batch, int) else 1

    def throughput(self, point: SweepPoint) -> float | None:
        """Return items a second, one pass after the other."""
        return None if not point.ms else 1000 * self.items(point) / point.ms


def places(axes: Sequence[SweepAxis]) -> list[tuple[int | str, ...]]:
    """Return all points; the first axis varies slowest.

    Raises:
        UsageError: There are more than :data:`MOST_POINTS`.
    """
    count = 1
    for axis in axes:
        count *= len(axis.values)
    if count > MOST_POINTS:
        raise UsageError(
            f"{count:,} points are more than {MOST_POINTS:,}", hint="Give fewer values"
        )
    return list(product(*(axis.values for axis in axes)))


def parse_values(text: str, option: str) -> tuple[int, ...]:
    """Return the sizes of ``1,2,4``, each once.

    Raises:
        UsageError: One of them is not a positive whole number.
    """
    sizes: dict[int, None] = {}
    for part in text.split(","):
        try:
            size = int(part)
        except ValueError:
            size = 0
        if not 0 < size < 1 << 31:
            raise UsageError(
                f"{option}: {visible(part.strip()) or 'an empty value'} is not a size",
                hint=f"Write sizes with commas between them: {option.split(' ')[0]} 1,2,4",
            )
        sizes[size] = None
    return tuple(sizes)


@dataclass(frozen=True)
class Knee:
    """Where a larger size stops paying."""

    axis: str
    """Untrusted text."""
    at: int
    throughput: float
    """Items a second there."""
    best: float
    """The highest of all sizes."""
    is_last: bool
    """Whether it is the largest size of the sweep: there may be more beyond."""


def knee(sweep: Sweep) -> Knee | None:
    """Return the smallest batch with nearly the highest throughput, the other axes at their best.

    None where the batch has fewer than three sizes that ran.
    """
    at = next((i for i, axis in enumerate(sweep.axes) if axis.name == BATCH), None)
    if at is None:
        return None
    best: dict[int, float] = {}
    for point in sweep.points:
        size, rate = point.at[at], sweep.throughput(point)
        if isinstance(size, int) and rate is not None:
            best[size] = max(rate, best.get(size, 0.0))
    if len(best) < 3:
        return None
    most = max(best.values())
    chosen = min(size for size, rate in best.items() if rate >= KNEE * most)
    return Knee(BATCH, chosen, best[chosen], most, chosen == max(best))


def sweep_axis(sweep: Sweep) -> SweepAxis | None:
    """Return the axis to draw over: the batch, else that of most numbers; None without any."""
    axes = [axis for axis in sweep.axes if axis.name != PROVIDER and len(axis.values) > 1]
    return max(axes, key=lambda axis: (axis.name == BATCH, len(axis.values)), default=None)


def sweep_table(sweep: Sweep) -> Table[SweepPoint]:
    """Return a row a point: its values, latency with interval, throughput, or what went wrong."""
    columns: list[Column[SweepPoint]] = [
        Column(
            axis.name,
            visible(axis.name),
            lambda point, at=at: point.at[at],  # type: ignore[misc]
            COUNT if all(isinstance(value, int) for value in axis.values) else TEXT,
            max(8, len(visible(axis.name))),
        )
        for at, axis in enumerate(sweep.axes)
    ]
    columns += [
        Column("ms", "ms", lambda point: point.ms, MS, 10, heat=True),
        Column("low_ms", "from", lambda point: point.low_ms, MS, 10),
        Column("high_ms", "to", lambda point: point.high_ms, MS, 10),
        Column("per_second", "items/s", sweep.throughput, RATE, 10),
        Column("problem", "why not", lambda point: point.problem, TEXT, least=12),
    ]
    if not any(point.problem for point in sweep.points):
        columns.pop()
    return Table(tuple(columns), sweep.points, name="sweep", title="Points")


def sweep_lines(sweep: Sweep) -> list[str]:
    """Return the answer first: the best point and the knee; then what failed and how it was run."""
    ran = [point for point in sweep.points if point.ms is not None]
    lines = []
    if ran:
        lines.append(_best(sweep, ran))
        found = knee(sweep)
        if found is not None:
            beyond = "; larger batches may give more" if found.is_last else ""
            lines.append(
                f"Batch {found.at} has {100 * found.throughput / found.best:.0f} % of the highest"
                f" throughput, {_rate(found.best)}{beyond}."
            )
    failed = [point for point in sweep.points if point.problem]
    if failed:
        text = f"{fmt.plural(len(failed), 'point')} not measured: {failed[0].problem}"
        lines.append(f"{text}{', …' if len({point.problem for point in failed}) > 1 else ''}")
    lines.append(
        f"{fmt.plural(len(ran), 'point')} in turns, {visible(sweep.backend)};"
        f" {fmt.duration(sweep.seconds)}, of these {fmt.duration(sweep.measured_s)} measuring"
        + (f"; first point {sweep.fixed}" if sweep.fixed else "")
    )
    return lines


def _best(sweep: Sweep, ran: Sequence[SweepPoint]) -> str:
    fastest = min(ran, key=lambda point: point.ms or 0.0)
    most = max(ran, key=lambda point: sweep.throughput(point) or 0.0)
    text = f"Lowest latency: {fmt.milliseconds(fastest.ms or 0.0)} ms at {_place(sweep, fastest)}."
    if any(axis.name == BATCH for axis in sweep.axes):
        rate = _rate(sweep.throughput(most) or 0.0)
        text += f" Highest throughput: {rate} at {_place(sweep, most)}."
    return text


def _place(sweep: Sweep, point: SweepPoint) -> str:
    pairs = zip(sweep.axes, point.at, strict=True)
    return ", ".join(f"{visible(axis.name)} {visible(str(value))}" for axis, value in pairs)


def _rate(rate: float) -> str:
    return f"{ratio_text(rate)} items/s"
