"""What ``bench_report`` measures in processes of their own: a report of a long GPU run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LAYER_US = 2.0
COUNTERS = 4
CELLS = 180
"""Cells that a counter is drawn in on a wide terminal."""


def _samples(number: int, layers: int) -> list[tuple[int, float, float, float, int]]:
    start = number * layers * LAYER_US
    return [(n, start + n * LAYER_US, 1.9, 1.9, 1) for n in range(layers)]


def _values(count: int, period_us: float) -> Iterator[tuple[float, float]]:
    return ((n * period_us, n * 7919 % 1000 / 10) for n in range(count))


def _sizes(layers: str, passes: str, samples: str) -> tuple[int, int, int, float]:
    each = int(samples) // COUNTERS
    return int(layers), int(passes), each, int(layers) * int(passes) * LAYER_US / each


def report_write(path: str, *sizes: str) -> dict[str, float]:
    """Write a report as an activity does: layers, passes with their samples, counters."""
    from dld_tui.core.report.records import Layer
    from dld_tui.core.report.store import ReportWriter

    layers, passes, each, period_us = _sizes(*sizes)
    Path(path).unlink(missing_ok=True)
    start = time.perf_counter()
    with ReportWriter.create(
        path, network="n", backend="b", execution_provider="CUDA", device="d", model={},
        settings={}, environment={},
    ) as report:  # fmt: skip
        for n in range(layers):
            report.add_layer(Layer(f"/layers.{n // 10}/Conv_{n}", "Conv"))
        for n in range(passes):
            report.add_pass(n, n * layers * LAYER_US, layers * LAYER_US)
            report.add_samples(n, _samples(n, layers))
        for n in range(COUNTERS):
            counter = report.add_counter(f"counter {n}", f"C{n}", "%", 100.0, "cupti-pm")
            report.add_counter_samples(counter, _values(each, period_us))
    return {"write_ms": (time.perf_counter() - start) * 1000, "mb": Path(path).stat().st_size / 1e6}


def report_open(path: str) -> dict[str, float]:
    """Open the report, read a pass, and draw all counters over some parts of the run."""
    from dld_tui.core.report.report import open_report

    start = time.perf_counter()
    with open_report(path) as report:
        opened = time.perf_counter()
        events = report.pass_events(len(report.passes) // 2)
        read = time.perf_counter()
        assert len(events) == len(report.layers)
        end_us = report.counters[0].last_us
        slowest = 0.0
        for share in (1.0, 0.5, 0.1, 0.01, 0.001):
            before = time.perf_counter()
            for counter in report.counters:
                series = report.counter_series(counter.id, 0.0, end_us * share, CELLS)
                assert any(series)
            slowest = max(slowest, time.perf_counter() - before)
    return {
        "open_ms": (opened - start) * 1000,
        "pass_ms": (read - opened) * 1000,
        "draw_ms": slowest * 1000,
    }


def json_report_write(path: str, *sizes: str) -> dict[str, float]:
    """Write the same rows with ``json.dump``."""
    layers, passes, each, period_us = _sizes(*sizes)
    start = time.perf_counter()
    document: dict[str, Any] = {
        "layers": [{"name": f"/layers.{n // 10}/Conv_{n}", "type": "Conv"} for n in range(layers)],
        "passes": [[n * layers * LAYER_US, layers * LAYER_US] for n in range(passes)],
        "samples": [_samples(n, layers) for n in range(passes)],
        "counters": [list(_values(each, period_us)) for _ in range(COUNTERS)],
    }
    with Path(path).open("w", encoding="utf-8") as file:
        json.dump(document, file)
    return {"write_ms": (time.perf_counter() - start) * 1000, "mb": Path(path).stat().st_size / 1e6}


def json_report_open(path: str) -> dict[str, float]:
    """Read the same rows with ``json.load``."""
    start = time.perf_counter()
    with Path(path).open(encoding="utf-8") as file:
        document = json.load(file)
    opened = time.perf_counter()
    assert document["layers"]
    return {"open_ms": (opened - start) * 1000}
