"""Report, plan and comparison of the same trtexec files say the same, and what plain sums say."""

from __future__ import annotations

import copy
import json
import random
import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.compare.comparison import open_subject
from dld_tui.core.reading.export import report_json
from dld_tui.core.report.report import open_report
from dld_tui.core.statistics import median_ranks
from dld_tui.core.statistics import trtexec_percentile as ours
from dld_tui.core.tensorrt.plan.reader import open_plan
from tests.oracles.plain import trtexec_percentile
from tests.support.plans import write_layers
from tests.support.tiers import first

NAMES = ["conv1", "conv2", "pool", "conv2", "fc"]
WRONG = (-1.0, float("nan"), float("inf"), None, "x", True, 1e300)

Run = list[dict[str, Any]]


def profile_run(rng: random.Random) -> Run:
    count = rng.randint(1, 50)
    rows: Run = []
    for name in NAMES:
        mean = rng.uniform(0.01, 2.0)
        rows.append({"name": name, "timeMs": mean * count, "averageMs": mean,
                     "medianMs": mean * rng.uniform(0.9, 1.0)})  # fmt: skip
    whole = sum(row["timeMs"] for row in rows)
    return [{"count": count}, *({**r, "percentage": 100 * r["timeMs"] / whole} for r in rows)]


def timing_run(rng: random.Random, start: float) -> Run:
    rows: Run = []
    at = start
    for _ in range(rng.randint(3, 40)):
        h2d, compute, d2h = (rng.uniform(0.5, 9.0) for _ in range(3))
        marks = [at, at + h2d, at + h2d + compute, at + h2d + compute + d2h]
        rows.append({
            "startEnqMs": at - 0.2, "endEnqMs": at - 0.1, "startH2dMs": marks[0],
            "endH2dMs": marks[1], "startComputeMs": marks[1], "endComputeMs": marks[2],
            "startD2hMs": marks[2], "endD2hMs": marks[3], "h2dMs": h2d, "computeMs": compute,
            "d2hMs": d2h, "latencyMs": h2d + compute + d2h,
        })  # fmt: skip
        at = marks[3] + rng.uniform(0.1, 20)
    return rows


def spoil(rng: random.Random, rows: Run, keys: tuple[str, ...]) -> set[int]:
    """Make a time of some rows impossible; return their places."""
    found = {rng.randrange(1, len(rows)) for _ in range(rng.randint(0, 2))}
    for place in found:
        key, wrong = rng.choice(keys), rng.choice((*WRONG, "contradictory"))
        rows[place][key] = 1000.0 + rows[place][key] * 3 if wrong == "contradictory" else wrong
    return found


def text_of(rng: random.Random, runs: list[Run]) -> str:
    indent = rng.choice((None, 1))
    return rng.choice(("", "\n", "\n\n ")).join(json.dumps(run, indent=indent) for run in runs)


@pytest.mark.parametrize("seed", first(16, range(25)))
def test_one_engine(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    runs = [profile_run(rng) for _ in range(rng.choice((1, 1, 2, 3)))]
    counted = copy.deepcopy(runs[-1])
    bad = spoil(rng, counted, ("timeMs", "averageMs", "medianMs"))
    repeated = [dict(row) for row in counted[1:] if rng.random() < 0.3]
    profile_text = text_of(rng, [*runs[:-1], [*counted, *repeated]])
    layer_sum = sum(row["averageMs"] for at, row in enumerate(counted) if at and at not in bad)

    warm_up = rng.choice((None, 200.0, 0.0, 120.0))
    timings = [timing_run(rng, rng.choice((1.0, 150.0, 900.0))) for _ in range(rng.choice((1, 2)))]
    last = timings[-1]
    wrong = spoil(rng, last, ("latencyMs", "computeMs", "h2dMs", "endD2hMs"))
    sound = [row for at, row in enumerate(last) if at not in wrong]
    assumed = 200.0 if sound[0]["startH2dMs"] < 100 else 0.0
    after = [row for row in sound
             if row["startComputeMs"] >= (assumed if warm_up is None else warm_up)]  # fmt: skip
    expected = sorted(row["latencyMs"] for row in after or sound)
    timing_text = text_of(rng, [*timings[:-1], [*last, *sound[-2:]]])
    if rng.random() < 0.3:  # another run was killed
        profile_text += '\n[{"count": 9}, {"name": "conv1", "timeMs": 4'
        timing_text += '\n[{"startEnqMs": 1, "endEnq'

    graph = write_layers(tmp_path / "net.graph.json", [{"Name": name} for name in NAMES])
    profile, timing = tmp_path / "net.profile.json", tmp_path / "net.timing.json"
    profile.write_text(profile_text)
    timing.write_text(timing_text)
    if warm_up is not None:
        told = {"inference_options": {"Duration": f"3s (+ {warm_up:g}ms warm up)"}}
        (tmp_path / "net.profile.metadata.json").write_text(json.dumps(told))

    plan = open_plan(graph)
    with open_report(profile) as report:
        assert report.measurement.total_ms == pytest.approx(layer_sum)
        shown = {(one.name, one.time_ms): one.percent for one in report.layers}
        lines = [note.text for note in report.notes if note.kind == "warning"]
    assert plan.total_ms == pytest.approx(layer_sum)
    for one in plan.layers:
        if one.time_ms is not None:
            percent = next(p for (n, ms), p in shown.items()
                           if n == one.name and ms == pytest.approx(one.time_ms))  # fmt: skip
            assert one.percent == pytest.approx(percent)
    for subject in (open_subject(graph), open_subject(profile)):
        total = sum(layer.time_ms or 0.0 for layer in subject.layers)
        assert total == pytest.approx(layer_sum)
    assert sum("without a valid time" in line for line in lines) == bool(bad)
    assert sum("twice and counted once" in line for line in lines) <= 1

    assert plan.timing is not None
    assert plan.timing.latency is not None
    with open_report(timing) as report:
        assert report.latency is not None
        for found in (report.latency, plan.timing.latency):
            assert (found.count, found.min, found.max) == (
                len(expected), expected[0], expected[-1]
            )  # fmt: skip
            assert found.median == pytest.approx(statistics.median(expected))
            for percent in (90, 95, 99):
                told = getattr(found, f"p{percent}")
                assert told == trtexec_percentile(expected, percent)
        notes = [note.text for note in report.notes]
    for subject in (open_subject(graph), open_subject(timing)):
        assert sorted(subject.latencies_ms) == expected
    assert any("without valid times left out" in note for note in notes) == bool(wrong)
    assert any("in the file twice and counted once" in note for note in notes)


def test_the_phases_of_an_inference_are_its_layers(tmp_path: Path) -> None:
    [row] = timing_run(random.Random(0), 900.0)[:1]
    (tmp_path / "net.timing.json").write_text(json.dumps([row]))
    with open_report(tmp_path / "net.timing.json") as report:
        document: Any = report_json(report)
    assert document["layers_total_ms"] == pytest.approx(row["latencyMs"])
    assert document["covered_percent"] == pytest.approx(100)
    assert "trtexec" in document["latency_ms"]["percentiles"]


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.integers(0, 100))
def test_percentiles_are_those_of_trtexec(values: list[float], percent: int) -> None:
    ordered = sorted(values)
    assert ours(ordered, percent) == trtexec_percentile(ordered, percent)


def test_ranks_around_the_median_cover_it() -> None:
    """Their coverage by the binomial distribution, summed up with whole numbers."""
    from math import comb

    for count in (6, 7, 12, 49, 50, 200):
        low, high = median_ranks(count)
        below = sum(comb(count, k) for k in range(low + 1)) / 2**count
        next_below = sum(comb(count, k) for k in range(low + 2)) / 2**count
        assert high == count - 1 - low
        assert 1 - 2 * below >= 0.95 > 1 - 2 * next_below
