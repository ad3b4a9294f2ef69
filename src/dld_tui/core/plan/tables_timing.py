"""The table of inference times, and their course over the iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core.plan.table_values import COUNT, MS, PERCENT, TEXT, Column, Row
from dld_tui.core.report.statistics import median

if TYPE_CHECKING:
    from dld_tui.core.plan.model import EnginePlan

_TITLES = {
    "latency": "latency",
    "compute": "GPU compute",
    "h2d": "host to device",
    "d2h": "device to host",
    "enqueue": "enqueue",
}
_PARTS = 10


def timing_rows(plan: EnginePlan) -> tuple[tuple[Column, ...], list[Row]]:
    """Return each kind of time over all inferences, and the compute time of each tenth of them."""
    columns = (
        Column("what", "what", TEXT, flexible=True),
        Column("count", "count", COUNT),
        *(
            Column(key, title, MS)
            for key, title in (
                ("min_ms", "min"), ("median_ms", "median"), ("mean_ms", "mean"), ("p90_ms", "p90"),
                ("p95_ms", "p95"), ("p99_ms", "p99"), ("max_ms", "max"),
            )
        ),
        Column("cov_percent", "CoV %", PERCENT),
    )  # fmt: skip
    timing = plan.timing
    rows: list[Row] = []
    if timing is None:
        return columns, rows
    for name, title in _TITLES.items():
        found = getattr(timing, name)
        if found is not None:
            rows.append(
                (
                    title, found.count, found.min, found.median, found.mean, found.p90, found.p95,
                    found.p99, found.max, found.cov_percent,
                )
            )  # fmt: skip
    series = timing.series.get("compute", ())
    if len(series) >= 2 * _PARTS:
        rows += [_part(series, part) for part in range(_PARTS)]
    return columns, rows


def _part(series: tuple[float, ...], part: int) -> Row:
    begin, end = (len(series) * place // _PARTS for place in (part, part + 1))
    values = series[begin:end]
    return (
        f"GPU compute, inferences {begin + 1} to {end}", len(values), min(values), median(values),
        sum(values) / len(values), None, None, None, max(values), None,
    )  # fmt: skip
