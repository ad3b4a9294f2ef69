"""Several clients on one session: throughput and latency against load, and where it saturates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.statistics import ENOUGH, is_certain_knee, percentile
from dld_tui.core.tables.table import COUNT, MS, RATE, TEXT, Column, Table, figure_text
from dld_tui.core.text import visible

_PERCENTS = (50.0, 90.0, 99.0, 99.9)
_LEAST_BEYOND = 5
"""Requests beyond a percentile, without which it is not told."""


@dataclass(frozen=True)
class Requests:
    """What one point measured: seconds since its beginning, in the order of arrival."""

    arrived: tuple[float, ...]
    """When each was due. In a closed loop that is when a client sends it."""
    begun: tuple[float, ...]
    ended: tuple[float, ...]


@dataclass(frozen=True)
class LoadPoint:
    """Figures of one load. Fields may be added, never renamed."""

    clients: int
    """Requests that are computed at the same time, at most."""
    offered: float | None = None
    """Requests a second that arrive; None in a closed loop, where each client waits for its own."""
    requests: int = 0
    seconds: float = 0.0
    throughput: float | None = None
    """Requests a second that were answered."""
    latency_ms: tuple[float | None, ...] = ()
    """Percentiles 50, 90, 99 and 99.9 of arrival to answer; None where too few lie beyond."""
    queue_ms: float | None = None
    """Mean time between arrival and begin."""
    compute_ms: float | None = None
    """Mean time between begin and answer."""
    problem: str = ""
    """Why it was not measured. Fit for a terminal."""
    tokens_per_s: float | None = None
    """Of all sequences of a decoder together, as the next two."""
    first_token_ms: float | None = None
    """Median time from the begin of a sequence to its first token."""
    token_ms: float | None = None
    """Median over the sequences of what a further token takes, the mean of each."""
    throughput_low: float | None = None
    """Where the 95 % interval of `throughput` begins; None of too few requests."""
    throughput_high: float | None = None

    @property
    def range(self) -> tuple[float, float]:
        """The interval of `throughput`, which is that alone where it is unknown."""
        rate = self.throughput or 0.0
        if self.throughput_low is None or self.throughput_high is None:
            return rate, rate
        return self.throughput_low, self.throughput_high

    @property
    def range_text(self) -> str:
        """The highest throughput with its interval, for people."""
        rate = f"{figure_text(self.throughput or 0.0)} requests/s at most"
        if self.throughput_low is None:
            return rate
        return f"{rate} ({figure_text(self.range[0])} to {figure_text(self.range[1])})"

    @property
    def keeps_up(self) -> bool:
        """Whether as many were answered as arrived."""
        if self.offered is None or self.throughput is None:
            return self.throughput is not None
        in_time_s = self.seconds - (self.compute_ms or 0.0) / 1000  # the last one begins then
        return self.requests >= ENOUGH * self.offered * in_time_s


def point_of(clients: int, offered: float | None, requests: Requests) -> LoadPoint:
    """Return the figures of what was measured; there is at least one request."""
    pairs = zip(requests.arrived, requests.ended, strict=True)
    latencies = sorted(1000 * (ended - arrived) for arrived, ended in pairs)
    count, seconds = len(latencies), max(requests.ended)
    low, high = _rate_interval(requests.ended, seconds)
    queued = sum(b - a for a, b in zip(requests.arrived, requests.begun, strict=True))
    computed = sum(e - b for b, e in zip(requests.begun, requests.ended, strict=True))
    return LoadPoint(
        clients, offered, count, seconds, count / seconds,
        tuple(
            percentile(latencies, percent)
            if percent <= 50 or count * (1 - percent / 100) >= _LEAST_BEYOND else None
            for percent in _PERCENTS
        ),
        1000 * queued / count, 1000 * computed / count,
        throughput_low=low, throughput_high=high,
    )  # fmt: skip


_PARTS, _STUDENT = 10, 2.262
"""Equal parts of the time, and the 97.5th percentile of Student's t with one less."""
_LEAST_IN_PART = 2


def _rate_interval(
    ended: Sequence[float], seconds: float
) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % interval of the answers a second, by means of parts of the time.

    Requests after each other are slowed down alike, so that single ones would give too narrow an
    interval (batch means: Law, "Simulation Modeling and Analysis").
    """
    if len(ended) < _LEAST_IN_PART * _PARTS or seconds <= 0:
        return None, None
    counts = [0] * _PARTS
    for at in ended:
        counts[min(int(_PARTS * max(at, 0.0) / seconds), _PARTS - 1)] += 1
    rates = [count * _PARTS / seconds for count in counts]
    half = _STUDENT * stdev(rates) / math.sqrt(_PARTS)
    rate = len(ended) / seconds
    return max(rate - half, 0.0), rate + half


@dataclass(frozen=True)
class LoadResult:
    """The result of the activity ``load``. Fields may be added, never renamed."""

    model: str
    backend: str
    threads: int
    """Threads within an operator, of the one session; 0 for ONNX Runtime's choice."""
    points: tuple[LoadPoint, ...]
    inputs: str = ""
    """The shapes of the inputs, for display."""
    tokens: int = 0
    """Tokens that a request makes; 0 where it is a pass."""
    is_engine: bool = False
    """Whether clients have contexts of an engine, rather than one session."""

    @property
    def shared(self) -> str:
        """What the clients share."""
        if self.is_engine:
            return "One engine, a context and a stream for each client"
        threads = fmt.plural(self.threads, "thread") if self.threads else "one thread a core"
        return f"One session, {threads}"


def saturation(result: LoadResult) -> str:
    """Say where more load brings no more throughput; empty where that is unknown."""
    closed = [p for p in result.points if p.offered is None and p.throughput is not None]
    if len(closed) > 1:
        most = max(closed, key=lambda one: one.throughput or 0.0)
        first = next(p for p in closed if (p.throughput or 0.0) >= ENOUGH * (most.throughput or 0))
        where = fmt.plural(first.clients, "client")
        fewer = [p.range for p in closed if p.clients < first.clients]
        doubt = "" if is_certain_knee(first.range, most.range, fewer) else " (not certain)"
        if first is closed[-1]:
            return f"No saturation up to {where}{doubt}: {most.range_text}."
        return f"Saturated from {where} on{doubt}: {most.range_text}; more clients wait longer."
    opened = [p for p in result.points if p.offered is not None and p.throughput is not None]
    if not opened:
        return ""
    late = [p for p in opened if not p.keeps_up]
    if not late:
        return f"It keeps up with {figure_text(opened[-1].offered or 0.0)} requests/s."
    good = [p for p in opened if p.keeps_up and (p.offered or 0.0) < (late[0].offered or 0.0)]
    most = max(opened, key=lambda one: one.throughput or 0.0)
    kept = "It does not keep up with"
    if good:
        kept = f"It keeps up with {figure_text(good[-1].offered or 0.0)} requests/s, not with"
    is_certain = late[0].range[1] < ENOUGH * (late[0].offered or 0.0)
    doubt = "" if is_certain else " (not certain)"
    return f"{kept} {figure_text(late[0].offered or 0.0)}{doubt}: {most.range_text}."


def load_table(result: LoadResult) -> Table[LoadPoint]:
    """Return a row a load."""
    columns: list[Column[LoadPoint]] = [
        Column("clients", "clients", lambda point: point.clients, COUNT, 8),
        Column("offered", "offered/s", lambda point: point.offered, RATE, 10),
        Column("throughput", "answered/s", lambda point: point.throughput, RATE, 11),
        Column("throughput_low", "from", lambda point: point.throughput_low, RATE, 9, priority=2),
        Column("throughput_high", "to", lambda point: point.throughput_high, RATE, 9, priority=2),
    ]
    for at, percent in enumerate(_PERCENTS):
        columns.append(
            Column(
                f"p{percent:g}", f"p{percent:g} ms",
                lambda point, at=at: point.latency_ms[at] if point.latency_ms else None,  # type: ignore[misc]
                MS, 10, heat=not at,
            )
        )  # fmt: skip
    columns += [
        Column("tokens_per_s", "tokens/s", lambda point: point.tokens_per_s, RATE, 10),
        Column("first_token_ms", "first token ms", lambda point: point.first_token_ms, MS, 15),
        Column("token_ms", "token ms", lambda point: point.token_ms, MS, 9),
        Column("queue_ms", "mean wait ms", lambda point: point.queue_ms, MS, 13),
        Column("compute_ms", "mean compute ms", lambda point: point.compute_ms, MS, 16),
        Column("requests", "requests", lambda point: point.requests or None, COUNT, 9),
        Column("problem", "why not", lambda point: point.problem, TEXT, least=12),
    ]
    hidden = set[str]()
    if not any(point.problem for point in result.points):
        hidden.add("problem")
    if not result.tokens:
        hidden |= {"tokens_per_s", "first_token_ms", "token_ms"}
    if all(point.offered is None for point in result.points):
        hidden |= {"offered", "queue_ms"}  # a client that waits for its own answer has no queue
    shown = tuple(column for column in columns if column.key not in hidden)
    return Table(shown, result.points, name="load", title="Load")


def load_lines(result: LoadResult) -> list[str]:
    """Return where it saturates, what failed, and how it was run."""
    lines = [text for text in (saturation(result),) if text]
    failed: Sequence[LoadPoint] = [point for point in result.points if point.problem]
    if failed:
        lines.append(f"{fmt.plural(len(failed), 'load')} not measured: {failed[0].problem}")
    lines.append(f"{result.shared}, {visible(result.backend)}; {result.inputs}")
    return lines
