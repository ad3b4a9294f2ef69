"""The figures of a latency run that its command prints, and where its report goes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from dld_tui.core.errors import UsageError
from dld_tui.core.paths import unused
from dld_tui.core.report.statistics import percentile_of, summarise
from dld_tui.core.types import JSON

_FIGURES = ("median", "min", "max", "mean", "std", "p90", "p95", "p99")


def parse_percentiles(text: str) -> list[float]:
    """Return the percentiles of a text such as ``90,95,99``.

    Raises:
        UsageError: One is not a number from 0 to 100.
    """
    try:
        percentiles = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        percentiles = [-1.0]
    if not all(0 <= percentile <= 100 for percentile in percentiles):
        raise UsageError(f"--percentile is {text!r}; write numbers from 0 to 100, as in 90,95,99")
    return percentiles


def latency_summary(
    latencies: list[float], percentiles: list[float], backend: str = ""
) -> dict[str, JSON]:
    """Return the figures of timed passes, in milliseconds; none without a pass.

    Args:
        latencies: Of the passes.
        percentiles: The ones that were asked for.
        backend: As a report names it; of TensorRT they are trtexec's.
    """
    percentile = percentile_of(backend)
    figures = summarise(latencies, percentile_at=percentile)
    if figures is None:
        return {}
    ordered = sorted(latencies)
    return {
        "passes": figures.count,
        "latency_ms": {key: value for key, value in asdict(figures).items() if key in _FIGURES},
        "throughput": figures.throughput,
        "percentiles_ms": {f"{p:g}": percentile(ordered, p) for p in percentiles},
    }


def report_path(wanted: Path | None, model: Path) -> Path:
    """Return where a report shall be: `wanted`, else ``NAME.dldprof`` here, with a number."""
    if wanted is not None:
        return wanted
    return unused(Path(f"{model.stem or 'model'}.dldprof"))
