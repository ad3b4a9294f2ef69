"""The latency of a model at several sizes and settings: a point each, and where it saturates.

Throughputs are compared where an item is the same work: along the batch and the settings (threads,
provider, precision, target). Another size, prompt or context is other work, which is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from pathlib import Path
from typing import Any

from dld_tui.core.codec import decode, encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, InputError, UsageError
from dld_tui.core.statistics import (
    ENOUGH,
    is_certain_knee,
    is_valid_time,
    median,
    median_ranks,
)
from dld_tui.core.text import visible

BATCH, THREADS, PROVIDER, PRECISION = "batch", "threads", "provider", "precision"
PROMPT, CONTEXT, TARGET = "prompt", "context", "target"
"""Names of axes; other axes are dynamic dimensions of the model."""
SETTINGS = (TARGET, PRECISION, PROVIDER, THREADS)
"""Axes along which an item is the same work, but for the batch."""
LEAST_SIZES = 3
"""Of an axis that has a knee."""
MOST_POINTS = 1000
SUFFIX = ".sweep.json"


@dataclass(frozen=True)
class SweepAxis:
    """What is varied, and its values in the order in which they were given."""

    name: str
    """:data:`BATCH`, …, :data:`TARGET`, or a dynamic dimension. Untrusted text."""
    values: tuple[int | str, ...]

    @property
    def has_sizes(self) -> bool:
        """Whether its values are numbers, over which a chart can be drawn."""
        return all(isinstance(value, int) for value in self.values)


@dataclass(frozen=True)
class SweepPoint:
    """What was measured at one point."""

    at: tuple[int | str, ...]
    """Its values, in the order of the axes."""
    rounds_ms: tuple[float, ...] = ()
    """The median latency of each turn, in the order in which they were measured: of a pass, or of a
    token after the first one of a decoder."""
    problem: str = ""
    """Why it was not measured. Fit for a terminal."""
    first_rounds_ms: tuple[float, ...] = ()
    """Of a decoder: the median time to the first token of each turn."""
    memory_bytes: int | None = None
    """Activations at the peak of a pass on the CPU; None if unknown."""

    @property
    def ms(self) -> float | None:
        """The median latency of a pass, or of a token of a decoder."""
        return median(self.rounds_ms) if self.rounds_ms else None

    @property
    def low_ms(self) -> float | None:
        """The lower end of the interval of the median (95 % where there are six turns or more)."""
        return self._rank(0)

    @property
    def high_ms(self) -> float | None:
        """The upper end."""
        return self._rank(1)

    @property
    def first_ms(self) -> float | None:
        """The median time to the first token; None but for decoders."""
        return median(self.first_rounds_ms) if self.first_rounds_ms else None

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
    tokens: int = 0
    """How many a decoder made after each prompt; 0 for other models."""
    report: str = ""
    """The file that holds this result; empty where none was asked for."""
    digest: str = ""
    """Of the content of the model."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The request."""

    @property
    def unit(self) -> str:
        """What throughputs count."""
        return "tokens/s" if self.tokens else "items/s"

    def value(self, point: SweepPoint, axis: str) -> int | str | None:
        """Return the value of a point along an axis; None without this axis."""
        named = zip(self.axes, point.at, strict=True)
        return next((value for one, value in named if one.name == axis), None)

    def items(self, point: SweepPoint) -> int:
        """Return how many items a pass computes: the batch."""
        batch = self.value(point, BATCH)
        return batch if isinstance(batch, int) else 1

    def throughput(self, point: SweepPoint) -> float | None:
        """Return items a second, one pass after the other; of a decoder tokens of all sequences."""
        return None if not point.ms else 1000 * self.items(point) / point.ms

    def others(self, point: SweepPoint, *left_out: str) -> tuple[tuple[str, int | str], ...]:
        """Return (axis, value) of a point along all axes but some."""
        named = zip(self.axes, point.at, strict=True)
        return tuple((axis.name, value) for axis, value in named if axis.name not in left_out)

    def alike(self, *varied: str) -> dict[tuple[tuple[str, int | str], ...], list[SweepPoint]]:
        """Return the points that were measured, by what they have in common.

        Args:
            varied: The axes along which points of a group differ.
        """
        groups: dict[tuple[tuple[str, int | str], ...], list[SweepPoint]] = {}
        for point in self.points:
            if point.ms is not None:
                groups.setdefault(self.others(point, *varied), []).append(point)
        return groups

    @property
    def same_work(self) -> dict[tuple[tuple[str, int | str], ...], list[SweepPoint]]:
        """The points that were measured, by the sizes of an item: throughputs compare in each."""
        return self.alike(BATCH, *SETTINGS)


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
    """Where a larger batch, or more threads, stops paying while all else stays."""

    axis: str
    """:data:`BATCH` or :data:`THREADS`."""
    fixed: tuple[tuple[str, int | str], ...]
    """(axis, value) of the others. Untrusted text."""
    at: int
    throughput: float
    """Items a second there."""
    best: float
    """The highest of all sizes."""
    is_last: bool
    """Whether it is the largest size that was measured: there may be more beyond."""
    point: SweepPoint
    is_certain: bool = True
    """Whether the intervals of all sizes say so."""


def knee_axis(sweep: Sweep) -> str:
    """Return the axis that knees are along: the batch, else threads; empty without one.

    It has three sizes or more.
    """
    sizes = {axis.name: len(axis.values) for axis in sweep.axes}
    return next((name for name in (BATCH, THREADS) if sizes.get(name, 0) >= LEAST_SIZES), "")


def knees(sweep: Sweep) -> list[Knee]:
    """Return the smallest batch with nearly the highest throughput, for all others fixed.

    A combination of the others has none where fewer than three sizes ran.
    """
    axis = knee_axis(sweep)
    found = []
    for fixed, points in sweep.alike(axis).items() if axis else ():
        rates = {point: sweep.throughput(point) or 0.0 for point in points}
        if len(rates) < LEAST_SIZES:
            continue
        sizes = {point: int(sweep.value(point, axis) or 0) for point in points}
        best = max(rates.values())
        at = min((p for p in points if rates[p] >= ENOUGH * best), key=lambda point: sizes[point])
        most = at if rates[at] == best else max(points, key=lambda point: rates[point])
        smaller = [_rates(point, rates[point]) for point in points if sizes[point] < sizes[at]]
        is_certain = is_certain_knee(_rates(at, rates[at]), _rates(most, best), smaller)
        is_last = sizes[at] == max(sizes.values())
        found.append(Knee(axis, fixed, sizes[at], rates[at], best, is_last, at, is_certain))
    return found


def _rates(point: SweepPoint, rate: float) -> tuple[float, float]:
    """Return the interval of the throughput of a point: of its time, the other way round."""
    if not point.ms or not point.low_ms or not point.high_ms:
        return rate, rate
    return rate * point.ms / point.high_ms, rate * point.ms / point.low_ms


def joined(sweeps: Mapping[str, Sweep], report: str = "") -> Sweep:
    """Return the sweeps of several targets as one, with the target as the slowest axis.

    Args:
        sweeps: By target, of the same request.
        report: The file that holds the result.

    Raises:
        ActivityError: They were not measured at the same points.
    """
    first = next(iter(sweeps.values()))
    if any(one.axes != first.axes for one in sweeps.values()):
        raise ActivityError("the targets did not measure the same points")
    points = [
        replace(point, at=(target, *point.at))
        for target, one in sweeps.items()
        for point in one.points
    ]
    return replace(
        first, axes=(SweepAxis(TARGET, tuple(sweeps)), *first.axes), points=tuple(points),
        backend=" / ".join(dict.fromkeys(one.backend for one in sweeps.values())),
        measured_s=sum(one.measured_s for one in sweeps.values()),
        seconds=max(one.seconds for one in sweeps.values()), report=report,
    )  # fmt: skip


_MOST_BYTES = 16 << 20
"""A thousand points have 300 kB."""


def sweep_text(sweep: Sweep) -> str:
    """Return the content of its file."""
    return json.dumps(encode(sweep), indent=1) + "\n"


def load_sweep(path: Path) -> Sweep:
    """Read the file of a result.

    Raises:
        InputError: It cannot be read, or is no result of ``dld sweep``.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError("not a result of dld sweep: the file is too large", where=str(path))
        sweep: Sweep = decode(Sweep, json.loads(path.read_text(encoding="utf-8")))
        _require_plausible(sweep)
    except UnicodeDecodeError as error:
        raise InputError("not a result of dld sweep: it is not text", where=str(path)) from error
    except (OSError, ValueError, RecursionError, ActivityError, UsageError) as error:
        raise InputError(f"not a result of dld sweep: {error}", where=str(path)) from error
    return replace(sweep, report=str(path.absolute()))


def _require_plausible(sweep: Sweep) -> None:
    """Refuse what no sweep writes, with which nothing can be computed or shown.

    Raises:
        ValueError: Says what.
        UsageError: There are too many points.
    """
    if len({axis.name for axis in sweep.axes}) < len(sweep.axes):
        raise ValueError("an axis is there twice")
    if [point.at for point in sweep.points] != places(sweep.axes):
        raise ValueError("its points are not those of its axes")
    sizes = [
        value for axis in sweep.axes for value in axis.values
        if axis.name == BATCH or not isinstance(value, str)
    ]  # fmt: skip
    if not all(isinstance(size, int) and 0 < size < 1 << 31 for size in sizes):
        raise ValueError("a size is out of range")
    if not all(one.memory_bytes is None or 0 <= one.memory_bytes < 1 << 60 for one in sweep.points):
        raise ValueError("a size is out of range")
    rounds = [ms for one in sweep.points for ms in (*one.rounds_ms, *one.first_rounds_ms)]
    if not all(ms > 0 and is_valid_time(ms) for ms in rounds):
        raise ValueError("a time is out of range")
    if not all(map(is_valid_time, (sweep.measured_s, sweep.seconds))):
        raise ValueError("a time is out of range")
