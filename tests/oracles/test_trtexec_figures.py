"""What is said of trtexec's times, against its own definitions."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.reading.export import report_json
from dld_tui.core.report.report import open_report
from dld_tui.core.statistics import median_ranks
from dld_tui.core.statistics import trtexec_percentile as ours
from tests.oracles.plain import trtexec_percentile
from tests.support.profiles import told


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.integers(0, 100))
def test_percentiles_are_those_of_trtexec(values: list[float], percent: int) -> None:
    ordered = sorted(values)
    assert ours(ordered, percent) == trtexec_percentile(ordered, percent)


def _rows(latencies: list[float]) -> list[dict[str, float]]:
    rows, at = [], 0.0
    for latency in latencies:
        h2d, d2h = latency / 10, latency / 5
        compute = latency - h2d - d2h
        times = {"startEnqMs": at, "endEnqMs": at + latency / 20}
        for part, took in (("H2d", h2d), ("Compute", compute), ("D2h", d2h)):
            times |= {f"start{part}Ms": at, f"end{part}Ms": at + took}
            times[f"{part.lower()}Ms"] = took
            at += took
        rows.append({**times, "latencyMs": latency})
    return rows


def _report(path: Path, rows: list[dict[str, float]]) -> tuple[Any, list[str]]:
    path.write_text(json.dumps(rows))
    with open_report(path) as report:
        return report_json(report), told(report)


LATENCIES = [10.0, 12.0, 11.0, 13.0, 18.0, 10.5, 11.5, 12.5, 16.0, 14.0, 15.0]


def test_inference_times(tmp_path: Path) -> None:
    document, _ = _report(tmp_path / "net.timing.json", _rows(LATENCIES))
    found = document["latency_ms"]
    ordered = sorted(LATENCIES)
    assert found["median"] == statistics.median(LATENCIES)
    for percent in (90, 95, 99):
        assert found[f"p{percent}"] == trtexec_percentile(ordered, percent)
    assert found["p90"] in LATENCIES
    assert "trtexec" in found["percentiles"]
    fastest = ordered[: -(-len(ordered) // 4)]  # the one layer is the mean of these
    assert document["layers_total_ms"] == pytest.approx(statistics.mean(fastest))
    assert document["covered_percent"] == pytest.approx(100)


@pytest.mark.parametrize(
    "change",
    [
        {"computeMs": -1.0},
        {"computeMs": None},
        {"latencyMs": -3.0, "computeMs": "x"},
        {"latencyMs": 500.0},
        {"endComputeMs": 0.0},
        {"computeMs": 5000.0},
    ],
)
def test_contradictory_times_are_left_out(change: dict[str, Any], tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [*_rows(LATENCIES)]
    rows[4] |= change
    document, lines = _report(tmp_path / "net.timing.json", rows)
    rest = LATENCIES[:4] + LATENCIES[5:]
    assert document["latency_ms"]["median"] == statistics.median(rest)
    assert document["latency_ms"]["count"] == len(rest)
    assert sum("1 inference without valid times left out" in line for line in lines) == 1


def test_an_inference_that_is_there_twice(tmp_path: Path) -> None:
    rows = _rows(LATENCIES)
    document, lines = _report(tmp_path / "net.timing.json", [*rows[:5], *rows[4:]])
    assert document["latency_ms"]["count"] == len(LATENCIES)
    assert any("1 inference is in the file twice and counted once" in line for line in lines)


@pytest.mark.parametrize(
    "change", [{"timeMs": -1.0}, {"averageMs": 9.0}, {"medianMs": "nan"}, {"averageMs": None}]
)
def test_a_layer_profile_with_a_contradiction(change: dict[str, Any], tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"count": 10}]
    for number in range(4):
        rows.append({"name": f"conv{number}", "timeMs": 10.0, "averageMs": 1.0, "medianMs": 1.0,
                     "percentage": 25.0})  # fmt: skip
    rows[2] |= change
    document, lines = _report(tmp_path / "net.profile.json", rows)
    assert document["layers_total_ms"] == pytest.approx(3.0)
    assert sum("1 row without a valid time left out" in line for line in lines) == 1


def test_ranks_around_the_median_cover_it() -> None:
    """Their coverage by the binomial distribution, summed up with whole numbers."""
    from math import comb

    for count in (6, 7, 12, 49, 50, 200):
        low, high = median_ranks(count)
        below = sum(comb(count, k) for k in range(low + 1)) / 2**count
        next_below = sum(comb(count, k) for k in range(low + 2)) / 2**count
        assert high == count - 1 - low
        assert 1 - 2 * below >= 0.95 > 1 - 2 * next_below
