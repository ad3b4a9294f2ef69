"""Figures of the terminal pages of gate, load, memory, startup, path and placement.

Each page is opened on two terminals: its sentences are those of the command line, and every figure
of a sentence, of a row and of a chart is recomputed from the JSON document of the same result.
"""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities import load, memory, startup
from dld_tui.activities.gate import Result as Gate
from dld_tui.activities.profile import onnxruntime as profile_onnxruntime
from dld_tui.core.codec import encode
from dld_tui.core.compare.gate import GateRow, Pair, RunFigures, Verdict, gate_result
from dld_tui.core.events import Finished
from dld_tui.core.model.document.samples import write_demo_models
from dld_tui.core.tune.placement import Decision, PlacementResult
from dld_tui.core.tune.regions import Scheme
from dld_tui.extras.path import job as path_job
from dld_tui.extras.path.pages import page as of_path
from dld_tui.screens.results.table import (
    TableResult,
    of_gate,
    of_load,
    of_memory,
    of_placement,
    of_startup,
)
from tests.oracles.page_text import number, shows
from tests.support.pages import running
from tests.support.tui import flat_text, rows_of

SIZES = ((120, 35), (80, 24))
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def result_of(run: Any, request: Any) -> Any:
    """Run an activity to its end."""
    *_, last = run(request)
    assert isinstance(last, Finished)
    return last.result


async def said(make: Any, result: Any, keys: list[str]) -> tuple[str, Any, Any, list[str]]:
    """Open the page of a result; return its sentences, its document, what it draws, and rows.

    Args:
        make: Returns the page.
        result: Of the activity.
        keys: What rows of the table begin with, in order.
    """
    rows = list[str]()
    page = make(result, {"model": "m.onnx"})
    assert isinstance(page, TableResult)
    async with running(size=SIZES[0]) as run:
        await run.open(page)
        await run.shows(keys[0])
        for line in page.result.summary:
            assert "".join(line.split()) in flat_text(run.app)
        for size in SIZES:
            await run.pilot.resize_terminal(*size)
            await run.shows(keys[0])
            drawn = [row.strip("┃▌ ") for row in rows_of(run.app) if row.startswith("┃")]
            below = [row for row in drawn[1:] if row]  # the titles
            starts = [row.split(" ")[0] for row in below]
            rows = rows or below
            assert starts
            for start, key in zip(starts, keys, strict=False):
                begin, _, end = start.rpartition("…")
                assert key.startswith(begin)
                assert end in key
    return "\n".join(page.result.summary), encode(result), page.result, rows


def size_of(text: str) -> tuple[float, float]:
    """Return bytes, and how far they are rounded."""
    figure, unit = text.split(" ")
    decimals = len(figure.partition(".")[2])
    return float(figure.replace(",", "")) * UNITS[unit], 0.51 * UNITS[unit] / 10**decimals


def is_size(text: str, value: float) -> bool:
    """Return whether a size is a number of bytes."""
    shown, off = size_of(text)
    return abs(shown - value) <= off


def found(pattern: str, text: str) -> tuple[str, ...]:
    """Return the groups of a pattern that a text has."""
    match = re.search(pattern, text)
    assert match is not None, pattern
    return match.groups()


SIZE = r"([\d.,]+ [kMG]?B)"


@pytest.mark.broad
async def test_memory(tmp_path: Path) -> None:
    [path, _] = write_demo_models(tmp_path)
    result = result_of(memory.run, memory.Request(path))
    keys = [one.name for one in result.alive]
    text, document, page, rows = await said(of_memory, result, keys)
    for name, value in (
        ("weights", document["weights"]),
        ("activations", document["peak"]),
        ("total", document["weights"] + document["peak"]),
        ("inputs", document["inputs"]),
    ):
        assert is_size(found(rf"{name} +{SIZE}", text)[0], value)
    assert sum(one["bytes"] for one in document["alive"]) + document["inside"] == document["peak"]
    for row, one in zip(rows, document["alive"], strict=False):
        assert is_size(found(rf" {SIZE} ", row)[0], one["bytes"])
    largest = max(document["alive"], key=lambda one: one["bytes"])
    [percent] = found(rf"largest +{re.escape(largest['name'])}, (\d+) % of the peak", text)
    assert shows(percent, 100 * largest["bytes"] / document["peak"])
    steps = [step["bytes"] for step in document["steps"]]
    below = max(step for step in steps if step < document["peak"])
    assert is_size(found(rf"next +{SIZE} at the next-highest", text)[0], below)
    assert max(steps) == document["peak"]
    assert [spot.y for spot in page.plot.spots] == steps
    [(at, _)] = page.plot.rules
    assert document["steps"][int(at)]["node"] == document["at"]
    if measured := document["measured"]:
        assert is_size(found(rf"measured +{SIZE} of activations", text)[0], measured["peak"])
        assert is_size(found(rf"; {SIZE} with kernels", text)[0], measured["in_use"])
        assert is_size(found(rf"holds {SIZE}", text)[0], measured["held"])


@pytest.mark.broad
async def test_startup(tmp_path: Path) -> None:
    [path, _] = write_demo_models(tmp_path)
    result = result_of(startup.run, startup.Request(path, repeats=3))
    keys = [node.node for node in result.nodes]
    text, document, _, _ = await said(of_startup, result, keys)
    stages = document["stages"]
    assert shows(found(r"session takes ([\d.,]+) ms", text)[0], document["session_ms"])
    assert shows(found(r"first pass ([\d.,]+) ms", text)[0], document["first_ms"])
    assert shows(found(r"later ones ([\d.,]+) ms", text)[0], document["later_ms"])
    printed = [found(rf"{stage['name']}: (-?[\d.,]+) ms", text)[0] for stage in stages]
    assert all(shows(one, stage["ms"]) for one, stage in zip(printed, stages, strict=True))
    total = sum(number(one) or 0.0 for one in printed)
    assert total == pytest.approx(document["session_ms"], abs=0.0005 * len(stages))
    repeats = list(zip(*(stage["repeats_ms"] for stage in stages), strict=True))
    longest = {each.index(max(each)) for each in repeats}
    for name, percent in re.findall(r"longest stage is (.*): .* ms, (\d+) %", text):
        [at] = longest
        assert (stages[at]["name"], stages[at]["ms"]) == (name, max(one["ms"] for one in stages))
        assert shows(percent, 100 * stages[at]["ms"] / document["session_ms"])
    assert (min(one["ms"] for one in stages) < 0) == ("A negative stage" in text)
    counts = [int(one.replace(",", "")) for one in re.findall(r"([\d,]+) on \w+", text)]
    assert sum(counts) == len(document["nodes"])


@pytest.mark.broad
async def test_load(tmp_path: Path) -> None:
    [path, _] = write_demo_models(tmp_path)
    result = result_of(load.run, load.Request(path, clients="1,2", duration=0.5))
    keys = [str(point.clients) for point in result.points]
    text, document, page, rows = await said(of_load, result, keys)
    points = document["points"]
    for point in points:
        assert point["throughput"] == pytest.approx(point["requests"] / point["seconds"])
        assert point["throughput_low"] <= point["throughput"] <= point["throughput_high"]
        told = [ms for ms in point["latency_ms"] if ms is not None]
        assert told == sorted(told)
        # Little's law: as many are computed as there are clients, less what lies between them.
        at_work = point["throughput"] * point["compute_ms"] / 1000
        assert at_work <= 1.001 * point["clients"]
    for row, point in zip(rows, points, strict=True):
        shown = [number(cell) for cell in row.split()]
        rates = [point[f"throughput{key}"] for key in ("", "_low", "_high")]
        assert shown[1:4] == pytest.approx(rates, rel=0.006)
        for cell, ms in zip(
            row.split()[4:9], [*point["latency_ms"], point["compute_ms"]], strict=True
        ):
            assert shows(cell, ms)
        assert (shown[0], shown[-1]) == (point["clients"], point["requests"])
    most = max(points, key=lambda point: point["throughput"])
    told_rates = found(r"([\d.,]+) requests/s at most \(([\d.,]+) to ([\d.,]+)\)", text)
    for rate, key in zip(told_rates, ("", "_low", "_high"), strict=True):
        assert number(rate) == pytest.approx(most[f"throughput{key}"], rel=0.006)
    first = int(found(r"(\d+) clients?", text)[0])
    assert (
        next(p for p in points if p["clients"] == first)["throughput"] >= 0.9 * most["throughput"]
    )
    drawn = [(spot.x, spot.y) for spot in page.plot.spots]
    assert drawn == [(point["throughput"], point["latency_ms"][0]) for point in points]


@pytest.mark.broad
async def test_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [path, _] = write_demo_models(tmp_path)
    request = profile_onnxruntime.Request(path, iterations=6, layer_passes=6, output=Path("r"))
    assert list(profile_onnxruntime.run(request))
    result = result_of(path_job.run, path_job.Request(Path("r")))
    keys = [one.node for one in result.path]
    text, document, page, rows = await said(of_path, result, keys)
    longest, work = found(r"longest path takes ([\d.,]+) of ([\d.,]+) ms", text)
    assert shows(longest, sum(one["ms"] for one in document["path"]))
    assert shows(work, document["work_ms"])
    assert [row.ms for row in page.rows.rows] == [one["ms"] for one in document["path"]]
    for row, one in zip(rows, document["path"], strict=False):
        assert shows(row.split()[-1], one["ms"])
    saved, most = found(r"save ([\d.,]+) ms, a speedup of at most ([\d.]+)×", text)
    assert number(saved) == pytest.approx(float(work) - float(longest), abs=1e-9)
    assert shows(most, document["work_ms"] / document["path_ms"])
    for one, other, factor in re.findall(
        r"parts take ([\d.,]+) and ([\d.,]+) ms: throughput at most ([\d.]+)×", text
    ):
        assert float(one) + float(other) == pytest.approx(float(work), abs=1e-9)
        cut = document["cut"]
        assert shows(factor, document["work_ms"] / max(cut["first_ms"], cut["second_ms"]))


@pytest.mark.broad
@pytest.mark.parametrize("ratios", [(1.21, 1.24, 1.3, 1.25, 1.27, 1.22, 1.26), (1.0, 1.01) * 4])
async def test_gate(ratios: tuple[float, ...], tmp_path: Path) -> None:
    base = [10.0 + at for at in range(len(ratios))]
    nodes = [
        ({"conv": 4 * ms, "gone": ms}, {"conv": 4 * ms * by})
        for ms, by in zip(base, ratios, strict=True)
    ]
    pairs = [
        Pair(RunFigures(ms, old), RunFigures(ms * by, new), by)
        for ms, by, (old, new) in zip(base, ratios, nodes, strict=True)
    ]
    result = Gate(versions=gate_result("a.onnx", "b.onnx", pairs))
    text, whole, page, rows = await said(of_gate, result, ["end to end"])
    document = whole["versions"]
    row = document["end_to_end"]
    before, after, change, low, high, runs = found(
        r"([\d.]+) ms → ([\d.]+) ms, ([+-][\d.]+) % \(([+-][\d.]+) to ([+-][\d.]+)\);"
        r" 95 % interval over (\d+) runs", text,
    )  # fmt: skip
    assert shows(before, statistics.median(document["base_runs_ms"]))
    assert shows(change.lstrip("+"), 100 * (statistics.median(document["ratios"]) - 1))
    assert shows(after, row["base_ms"] * (1 + row["change_percent"] / 100))
    ordered = sorted(100 * (ratio - 1) for ratio in document["ratios"])
    assert ordered[0] - 0.05 <= float(low) <= float(change) <= float(high) <= ordered[-1] + 0.05
    assert int(runs) == len(document["base_runs_ms"])
    is_slower = float(low) > document["tolerance_percent"]
    assert page.rows.title == ("FAIL: slower" if is_slower else "PASS: no difference")
    assert text.startswith(page.rows.title.partition(": ")[2])
    assert rows[0].split()[-2:] == [before, after]
    for shown in page.rows.rows[1:]:
        if isinstance(shown, GateRow):
            assert shown.new_ms == pytest.approx(shown.base_ms * (1 + shown.change_percent / 100))


FASTER = GateRow("end to end", 10.0, 8.0, -20.0, -21.0, -19.0, Verdict.FASTER)
SLOWER = GateRow("end to end", 8.0, 9.0, 12.5, 11.0, 14.0, Verdict.SLOWER)


async def test_placement(tmp_path: Path) -> None:
    decisions = (
        Decision("Conv, Relu", 16, ("c0", "r0"), Scheme.ALL, 0.9, FASTER),
        Decision("MatMul, Add", 1, ("m0", "a0"), Scheme.FLOAT, 0.1, SLOWER),
    )
    result = PlacementResult(
        "net.onnx", "ONNX Runtime", decisions, ("m0", "a0"), SLOWER, "", FASTER, "SNR 40 dB",
        "snr=30", "o.onnx", True, 9, 60.0,
    )  # fmt: skip
    text, document, page, rows = await said(of_placement, result, ["Conv,", "MatMul,"])
    speedup, low, high, quantized, regions, before, after = found(
        r"([\d.]+)× faster \(([\d.]+) to ([\d.]+)\) with (\d+) of (\d+) regions quantized: "
        r"([\d.]+) → ([\d.]+) ms", text,
    )  # fmt: skip
    row = document["confirmed"]
    assert shows(speedup, 1 / (1 + row["change_percent"] / 100))
    assert shows(low, 1 / (1 + row["high_percent"] / 100))
    assert shows(high, 1 / (1 + row["low_percent"] / 100))
    assert float(before) / float(after) == pytest.approx(float(speedup), rel=0.01)
    by_scheme = [(one["regions"], one["scheme"]) for one in document["decisions"]]
    assert int(regions) == sum(count for count, _ in by_scheme)
    assert int(quantized) == sum(count for count, scheme in by_scheme if scheme != Scheme.FLOAT)
    everything = found(r"Quantized everywhere: speedup ([\d.]+)", text)[0]
    assert shows(everything, 1 / (1 + document["everything"]["change_percent"] / 100))
    for shown, one in zip(rows, document["decisions"], strict=True):
        assert number(found(r"(\d+) +[\d.]+ +(?:quantized|float)", shown)[0]) == one["regions"]
    assert sum(row.share for row in page.rows.rows) == pytest.approx(1)
