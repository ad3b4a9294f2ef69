"""Times of whole inferences: ``trtexec --exportTimes``, or the summary in metadata and logs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dld_tui.core import fmt
from dld_tui.core.plan.json_text import number_of, time_of
from dld_tui.core.plan.model import TimeStatistics, TimingSummary
from dld_tui.core.report.statistics import summarise, trtexec_percentile
from dld_tui.core.types import JSON

_NAMES = {
    "latency": "Latency",
    "compute": "GPU Compute Time",
    "h2d": "H2D Latency",
    "d2h": "D2H Latency",
    "enqueue": "Enqueue Time",
}
"""Our names of the times, and those of the performance summary."""
_KEYS = {
    "latency": ("latencyMs", "startH2dMs", "endD2hMs"),
    "compute": ("computeMs", "startComputeMs", "endComputeMs"),
    "h2d": ("h2dMs", "startH2dMs", "endH2dMs"),
    "d2h": ("d2hMs", "startD2hMs", "endD2hMs"),
    "enqueue": ("enqMs", "startEnqMs", "endEnqMs"),
}
"""The duration, its start and its end in a timing file."""
_PERCENTILES: Mapping[int, tuple[float, ...]] = {5: (99,), 6: (95, 99), 7: (90, 95, 99)}
"""Which percentiles follow min, max, mean and median, by the length of the list."""


_SAME = 1e-3
_WARM_UP = re.compile(r"\+ *([\d.]+) *ms warm up")


def warm_up_ms(metadata: Mapping[str, JSON]) -> float:
    """Return how long the run warmed up, by ``Duration: 3s (+ 200ms warm up)``; 0 when unknown."""
    options = metadata.get("inference_options")
    text = options.get("Duration") if isinstance(options, dict) else None
    found = _WARM_UP.search(text) if isinstance(text, str) else None
    return float(found[1]) if found and found[1].count(".") < 2 else 0.0


def timing_of_rows(
    rows: Sequence[Mapping[str, JSON]], warm_up: float = 0.0
) -> tuple[TimingSummary | None, list[str]]:
    """Return the times of a timing file's rows, None without a sound one, and notes.

    Args:
        rows: One an inference.
        warm_up: Inferences that start to compute before this many milliseconds are left out, as
            in trtexec's own summary.
    """
    series: dict[str, list[float]] = {name: [] for name in _KEYS}
    bad = warm = repeated = 0
    seen = set[tuple[float, float]]()
    begin, end = math.inf, 0.0
    for row in rows:
        values = {name: _duration(row, *keys) for name, keys in _KEYS.items()}
        if values["compute"] is None:
            bad += 1
            continue
        began = time_of(row.get("startComputeMs"))
        if began is not None:  # no two inferences begin and end at once
            if (began, values["compute"]) in seen:
                repeated += 1
                continue
            seen.add((began, values["compute"]))
        if (began or 0.0) < warm_up:
            warm += 1
            continue
        for name, value in values.items():
            if value is not None:
                series[name].append(value)
        starts = [time_of(row.get(key)) for key in ("startEnqMs", "startH2dMs", "startComputeMs")]
        begin = min([begin, *(start for start in starts if start is not None)])
        end = max(end, time_of(row.get("endD2hMs")) or time_of(row.get("endComputeMs")) or 0.0)
    notes = []
    if bad:
        inferences = fmt.plural(bad, "inference")
        notes.append(f"{inferences} without sound times left out of the timing")
    if repeated:
        inferences = fmt.plural(repeated, "inference is", "inferences are")
        notes.append(f"{inferences} in the timing twice and counted once")
    count = len(series["compute"])
    if not count and warm:
        return timing_of_rows(rows)
    if not count:
        return None, [*notes, "the timing file has no inference"]
    span = end - begin
    summary = _summary(
        {name: _statistics(values) for name, values in series.items()},
        # Of what was left out nobody knows whether it was one inference or many.
        1000 * count / span if span > 0 and not bad else None,
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


def _duration(row: Mapping[str, JSON], key: str, start_key: str, end_key: str) -> float | None:
    found = time_of(row.get(key))
    if found is None and key not in row:
        start, end = time_of(row.get(start_key)), time_of(row.get(end_key))
        if start is not None and end is not None and end >= start:
            return end - start
    return found


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
    return _summary(found, number_of(summary.get("Throughput")), source)


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
