"""Times of whole inferences: ``trtexec --exportTimes``, or the summary in metadata and logs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dld_tui.core.plan.json_text import number_of, time_of
from dld_tui.core.plan.model import TimeStatistics, TimingSummary
from dld_tui.core.report.statistics import summarise, trtexec_percentile
from dld_tui.core.report.trtexec_rows import InferenceRows
from dld_tui.core.types import JSON

_NAMES = {
    "latency": "Latency",
    "compute": "GPU Compute Time",
    "h2d": "H2D Latency",
    "d2h": "D2H Latency",
    "enqueue": "Enqueue Time",
}
"""Our names of the times, and those of the performance summary."""
_PERCENTILES: Mapping[int, tuple[float, ...]] = {5: (99,), 6: (95, 99), 7: (90, 95, 99)}
"""Which percentiles follow min, max, mean and median, by the length of the list."""

_SAME = 1e-3


def timing_of_rows(
    rows: Sequence[Mapping[str, JSON]], warm_up: float | None = None
) -> tuple[TimingSummary | None, list[str]]:
    """Return the times of a timing file's rows, None without a sound one, and notes.

    Args:
        rows: One an inference.
        warm_up: Inferences that start to compute before this many milliseconds are left out, as
            in trtexec's own summary; None where nothing tells.
    """
    read = InferenceRows(warm_up)
    taken = [found for row in rows if (found := read.take(row)) is not None] or read.warm
    notes = [*read.warm_up_notes(), *read.doubts()]
    if not taken:
        return None, [*notes, "the timing file has no inference"]
    h2d, compute, d2h = zip(*((took for _, took in found.phases) for found in taken), strict=True)
    copied = [all(copies) for copies in zip(*(found.copies for found in taken), strict=True)]
    series: dict[str, Sequence[float]] = {
        "latency": [found.latency_ms for found in taken],
        "compute": compute,
        "h2d": h2d if copied[0] else (),
        "d2h": d2h if copied[1] else (),
        "enqueue": [found.enqueue_ms for found in taken if found.enqueue_ms is not None],
    }
    starts = [found.start_ms for found in taken if found.start_ms is not None]
    span = max(found.end_ms for found in taken) - min(starts) if starts else 0.0
    whole = span > 0 and len(starts) == len(taken) and not read.bad
    summary = _summary(
        {name: _statistics(values) for name, values in series.items()},
        # Of what was left out nobody knows whether it was one inference or many.
        1000 * len(taken) / span if whole else None,
        "timing file",
    )
    known = {name: tuple(values) for name, values in series.items() if values}
    return replace(summary, series=known), notes


def _summary(
    found: Mapping[str, TimeStatistics | None], throughput: float | None, source: str
) -> TimingSummary:
    return TimingSummary(
        latency=found["latency"], compute=found["compute"], h2d=found["h2d"], d2h=found["d2h"],
        enqueue=found["enqueue"], throughput=throughput, source=source,
    )  # fmt: skip


def _statistics(values: Sequence[float]) -> TimeStatistics | None:
    found = summarise(values)
    if found is None:
        return None
    ordered = sorted(values)
    p90, p95, p99 = (trtexec_percentile(ordered, percent) for percent in (90, 95, 99))
    return TimeStatistics(
        min=found.min, max=found.max, mean=found.mean, median=found.median, p90=p90, p95=p95,
        p99=p99, count=found.count, cov_percent=found.cov_percent,
    )  # fmt: skip


def timing_of_summary(
    summary: JSON, percentiles: tuple[float, ...] = (), source: str = "metadata"
) -> TimingSummary | None:
    """Return the times of a performance summary as TREx keeps it; None when it has none.

    Args:
        summary: Lists of min, max, mean, median and percentiles by name.
        percentiles: Which these are; by the length of the list when empty.
        source: See :class:`TimingSummary`.
    """
    if not isinstance(summary, dict):
        return None
    found = {name: _listed(summary.get(title), percentiles) for name, title in _NAMES.items()}
    if not any(found.values()):
        return None
    return _summary(found, _rate(summary.get("Throughput")), source)


def summary_doubts(summary: JSON, percentiles: tuple[float, ...] = ()) -> list[str]:
    """Return which figures of a performance summary are left out, because they cannot be true."""
    if not isinstance(summary, dict):
        return []
    bad = [
        title
        for title in _NAMES.values()
        if title in summary and _listed(summary[title], percentiles) is None
    ]
    if "Throughput" in summary and _rate(summary["Throughput"]) is None:
        bad.append("Throughput")
    if not bad:
        return []
    return [f"no sound figures in the performance summary: {', '.join(bad)}"]


def _rate(value: JSON) -> float | None:
    found = number_of(value)
    return found if found is not None and found > 0 else None


def agree(found: TimingSummary, told: TimingSummary) -> bool:
    """Tell whether a timing file and a summary are of the same run."""
    here, there = found.compute, told.compute
    if here is None or there is None:
        return False
    return all(
        math.isclose(one, other, rel_tol=_SAME)
        for one, other in ((here.median, there.median), (here.mean, there.mean))
    )


def with_summary(found: TimingSummary, told: TimingSummary) -> TimingSummary:
    """Return a timing file's times with what trtexec's own summary of the same run says better.

    Its throughput is by the wall clock. Its times to enqueue are exact, while the file has but
    their begin and end, in six digits.
    """
    if not agree(found, told):
        return found
    return replace(
        found,
        throughput=told.throughput or found.throughput,
        enqueue=told.enqueue or found.enqueue,
    )


def _listed(value: JSON, percentiles: tuple[float, ...]) -> TimeStatistics | None:
    if not isinstance(value, list) or len(value) < 4:
        return None
    numbers = [time_of(item) for item in value]
    least, greatest, mean, median = numbers[:4]
    if least is None or greatest is None or mean is None or median is None:
        return None
    known = [number for number in numbers if number is not None]
    if not all(least <= number <= greatest for number in known):
        return None
    names = percentiles or _PERCENTILES.get(len(numbers), ())
    named = dict(zip(names, numbers[4:], strict=False))
    at: Callable[[float], float | None] = named.get
    return TimeStatistics(least, greatest, mean, median, p90=at(90), p95=at(95), p99=at(99))
