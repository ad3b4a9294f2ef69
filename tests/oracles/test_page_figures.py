"""Every pair of figures on the pages of a report, and every sentence, against plain computations.

What is printed is read back from the text. The second computation is of :mod:`.plain`, which reads
the rows of the file with loops and dictionaries.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dld_tui.core.reading.export import layers_csv, report_json, report_page
from dld_tui.core.reading.first_lines import first_lines
from dld_tui.core.reading.story import next_steps
from dld_tui.core.report.groups import GROUPINGS
from dld_tui.core.report.layer_table import layer_table
from dld_tui.core.report.records import Cost, Layer
from dld_tui.core.report.report import Report
from dld_tui.widgets.charts.report_charts import precision_rows
from tests.oracles.plain import PROFILES, StoredReport, least_quarter, near, rows, unpack
from tests.support.profiles import ort_report, start_report, told

CPU = "CPUExecutionProvider"
ROUNDED = 0.0501
SLOWED = 1.1
"""A profiled pass that takes more times as long as others has times of its own."""
"""Of a percentage with one decimal."""
MATMULS = ("MatMul", "FusedMatMul", "Gemm", "FusedGemm")


def check_page(path: Path) -> None:
    """Compare all figures of a report with each other and with its rows."""
    plain = StoredReport(path)
    with Report.open(path) as report:
        document: Any = report_json(report, "type")
        lines = first_lines(report)
        table = [*csv.DictReader(io.StringIO(layers_csv(report.layers)))]
        told_table = layer_table(report.layers, "report text")
        names = {told_table.columns[0].shown_text(row) for row in told_table.rows}
        groups = {by: report.groups(by) for by in GROUPINGS}
        bars = precision_rows(report.layers, True)
        notes, html, steps = told(report), report_page(report), next_steps(report)
    times, total = plain.layer_ms(), plain.total_ms()
    if not total:
        return
    shares = {index: 100 * ms / total for index, ms in times.items()}
    # A column sums to 100, and milliseconds agree with percentages: table, JSON, groups, bars.
    for printed in (document["layers"], table):
        assert sum(float(row["percent"] or 0) for row in printed) == pytest.approx(100)
        for row in printed:
            share = 100 * float(row["time_ms"] or 0) / total
            assert float(row["percent"] or 0) == pytest.approx(share)
    for by in GROUPINGS:
        assert sum(group.percent for group in groups[by]) == pytest.approx(100)
        assert sum(group.time_ms for group in groups[by]) == pytest.approx(total)
    whole = sum(
        float(bar.value.removesuffix(" %").replace("–", "0"))
        for bar in bars
        if not bar.label.startswith(" ")
    )
    assert whole == pytest.approx(100, abs=ROUNDED * len(bars))
    covered, between = document["covered_percent"], document["between_layers_percent"]
    if covered is not None:
        assert covered + between == pytest.approx(100)
    labelled = {line.label: line.text for line in lines}
    check_time(labelled["Time"], plain, 100 * total / covered if covered else 0.0)
    for name in re.findall(r"(?:^|   )(.+?) [\d.]+ %", labelled["Slowest"]):
        # One name in every place; of those that are cut for the line, the parts that stay.
        assert all(any(part in known for known in names) for part in name.split("…"))
        assert "…" in name or name in names
    slowest = sorted(shares.values(), reverse=True)
    for text, share in zip(re.findall(r" ([\d.]+) %(?=   |$)", labelled["Slowest"]), slowest,
                           strict=False):  # fmt: skip
        assert abs(float(text) - share) <= ROUNDED
    check_headline(lines[0].text, plain)
    check_order("\n".join(line.text for line in lines), notes, plain)
    for line in lines[:2]:
        assert line.text.split("   ")[0].replace("&", "&amp;") in html
    check_limit(labelled.get("Limit", ""), path, plain)
    check_slowed("\n".join(notes), plain)
    for step in steps:
        if found := re.match(r"(\d+) % of the time is MatMul with weights in fp32", step.basis):
            known = sum(share for n, share in shares.items() if plain.types[n] in MATMULS)
            assert float(found[1]) <= known + 0.5
            # By Amdahl: as if those layers took nothing, of a pass that is nothing but layers.
            assert step.most is not None
            assert step.most * (total - known * total / 100) <= total * (1 + 1e-6)
            assert f"at most {step.most:.2f}× end to end" in step.line


def check_time(text: str, plain: StoredReport, pass_ms: float) -> None:
    """Compare the line that says where the time goes; the layers are of passes of `pass_ms`."""
    types, total = plain.type_ms(), plain.total_ms()
    named = 0.0
    for name, share in re.findall(r"(?:^|   )(\S+) ([\d.]+) %", text):
        known = 100 * types[name] / total if name in types else 100 - named
        assert abs(float(share) - known) <= ROUNDED * (1 if name in types else 4)
        named += float(share)
    assert named == pytest.approx(100, abs=1e-6 if "others" in text else 4 * ROUNDED)
    found = re.search(
        r"of ([\d.,]+) ms in layers( with profiling on)?(?:, ([\d.,]+) ms between them)?$", text
    )
    assert found is not None
    assert near(found[1], total)
    assert found[3] is None or near(found[3], plain.between_ms())
    longest = max(statistics.median(plain.lengths.values()), pass_ms)
    assert bool(found[2]) == (longest / statistics.median(plain.latencies or [1e9]) > SLOWED)


def check_headline(text: str, plain: StoredReport) -> None:
    """Compare the latency, its spread and its rate."""
    values = plain.latencies or [plain.lengths[number] for number in plain.lengths]
    found = re.search(r"   ([\d.,]+) ms median(?: with profiling on)?(?:   ([\d.,]+) a second)?",
                      text)  # fmt: skip
    assert found is not None
    median = statistics.median(values)
    assert near(found[1], median)
    assert found[2] is None or near(found[2], 1000 / median)
    spread = re.search(r"\(([\d.,]+) to ([\d.,]+), p90", text)
    if spread is not None:
        assert near(spread[1], min(values))
        assert near(spread[2], max(values))


def check_limit(text: str, path: Path, plain: StoredReport) -> None:
    """Compare what limits the layers on a CPU, whose peaks are at least what a layer reached."""
    runs: dict[int, list[float]] = {}
    for times in plain.times.values():
        for layer, ms in times.items():
            runs.setdefault(layer, []).append(ms)
    known = {}
    for layer, details in rows(path, "SELECT id, details FROM layers"):
        cost = json.loads(details)
        if layer in runs and "roof_ms" in cost and (ms := least_quarter(runs[layer])):
            known[layer] = cost | {"ms": ms}
    spent, least = defaultdict[str, float](float), defaultdict[str, float](float)
    for layer, cost in known.items():
        others = known.values()
        if cost["bound"] == "compute":
            reached = max(one["flops"] / one["ms"] for one in others)
            roof = min(cost["roof_ms"], cost["flops"] / reached)
        else:
            reached = max(one["moved_bytes"] / one["ms"] for one in others
                          if one["moved_bytes"] >= cost["moved_bytes"])  # fmt: skip
            roof = min(cost["roof_ms"], cost["moved_bytes"] / reached)
        limit = cost["bound"]
        if roof < cost["ms"] / 2 and cost["ms"] < 8 * cost["launch_ms"]:
            limit = "launch"
        elif roof < cost["ms"] / 10:
            limit = "overhead"
        share = len(runs[layer]) / len(plain.times)
        spent[limit] += cost["ms"] * share
        least[limit] += roof * share
    told = re.findall(r"(\w+) (below 1|\d+) %(?: \(at (\d+) % of the limit\))?(?=[,;]|$)", text)
    assert {word for word, _, _ in told} == spent.keys()
    for word, part, reached in told:
        share = 100 * spent[word] / plain.total_ms()
        assert 0 < share <= 0.5 if part == "below 1" else part != "0" and near(part, share)
        assert not reached or near(reached, 100 * least[word] / spent[word])


def check_slowed(notes: str, plain: StoredReport) -> None:
    """Compare by how much profiling is said to slow down."""
    found = re.search(
        r"(?:slower by|slows the model down by) (\d+) %.*\(median ([\d.,]+) ms\)", notes
    )
    if not plain.latencies or not plain.lengths:
        assert found is None
        return
    usual, profiled = map(statistics.median, (plain.latencies, plain.lengths.values()))
    percent = 100 * (profiled / usual - 1)
    assert (found is not None) == (percent > 10)
    if found is not None:
        assert near(found[1], percent)
        assert near(found[2], profiled)


def check_order(first: str, notes: list[str], plain: StoredReport) -> None:
    """Compare what is said of the order of layers with the fastest and the median passes."""
    series: dict[int, list[float]] = {}
    for found in plain.times.values():
        for layer, time in found.items():
            series.setdefault(layer, []).append(time)
    passes = len(plain.times)
    costs = {n: least_quarter(v) * len(v) / passes for n, v in series.items() if any(v)}
    order = sorted((n for n in costs if costs[n]), key=lambda n: -costs[n])
    ranges = {
        n: (min(series[n]) * len(series[n]) / passes,
            statistics.median(series[n]) * len(series[n]) / passes)
        for n in order if len(series[n]) >= 6
    }  # fmt: skip
    if len(order) < 2 or any(n not in ranges for n in order[: min(3, len(order) - 1)]):
        assert "order of layers is not certain" not in first
        return
    doubtful = any(
        ranges[one][0] <= max((ranges[n][1] for n in order[at + 1 :] if n in ranges), default=0.0)
        for at, one in enumerate(order[: min(3, len(order) - 1)])
    )
    said = "order of layers is not certain"
    assert (said in first) == doubtful
    assert any(said in line for line in notes) == doubtful


@pytest.mark.parametrize("name", PROFILES)
def test_pages_of_real_profiles(name: str, tmp_path: Path) -> None:
    check_page(ort_report(tmp_path / "r.dldprof", unpack(name, tmp_path)))


@pytest.mark.parametrize("name", ["magika", "minilm"])
def test_pages_of_reports_of_a_busy_machine(name: str, real_models: Path, tmp_path: Path) -> None:
    packed = real_models / "field3" / f"{name}_busy.dldprof.gz"
    path = tmp_path / "r.dldprof"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    check_page(path)


@st.composite
def drawn(draw: st.DrawFn) -> list[list[float | None]]:
    """Draw the microseconds of layers by pass, about what each takes; some are delayed."""
    layers = [draw(st.floats(2.0, 5e3)) for _ in range(draw(st.integers(1, 6)))]
    noise = st.sampled_from((1.0, 1.0, 1.01, 1.1, 3.0, 20.0, None))
    return [
        [None if factor is None else base * factor
         for base, factor in ((base, draw(noise)) for base in layers)]
        for _ in range(draw(st.integers(1, 12)))
    ]  # fmt: skip


def write(path: Path, passes: list[list[float | None]], between_us: float) -> None:
    """Write a report of layers in sequence, with roofs that some of them are above."""
    path.unlink(missing_ok=True)
    with start_report(path) as report:
        report.add_latencies([sum(t or 0 for t in times) / 1000 + 0.01 for times in passes])
        for n in range(max(map(len, passes))):
            cost = Cost(
                flops=10**6, moved_bytes=10**4 * (n + 1), roof_ms=0.3 / (n + 1),
                bound="memory" if n % 2 else "compute", launch_ms=0.001, peak="fp32",
                parameter_bytes=4,
            )  # fmt: skip
            kind = ("Conv", "MatMul", "Relu")[n % 3]
            report.add_layer(Layer(f"layer {n}", kind, provider=CPU, precision="float32",
                                   cost=cost))  # fmt: skip
        start = 0.0
        for number, times in enumerate(passes):
            at, made = start, []
            for index, time in enumerate(times):
                if time is not None:
                    made.append((index, at, time, time, "thread"))
                    at += time
            report.add_pass(number, start, at - start + between_us)
            report.add_samples(number, made)
            start = at + between_us


@pytest.mark.broad
@settings(
    max_examples=30, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(passes=drawn(), between=st.floats(0.1, 1e3))
def test_pages_of_drawn_reports(
    tmp_path: Path, passes: list[list[float | None]], between: float
) -> None:
    path = tmp_path / "drawn.dldprof"
    write(path, passes, between)
    check_page(path)
    with Report.open(path) as report:
        document: Any = report_json(report)
        limits = next((line.text for line in first_lines(report) if line.label == "Limit"), "")
    # No layer and no sum of layers is above its roof, and parts of the time are no more than all.
    assert all((layer["roof_percent"] or 0) <= 105 for layer in document["layers"])
    assert all(float(reached) <= 105 for reached in re.findall(r"at (\d+) % of the roof", limits))
    parts = [float(part) for part in re.findall(r"(?:^|, )\w+ (\d+) %", limits)]
    assert sum(parts) <= 100 + len(parts) / 2
    for layer in document["layers"]:
        if layer["roof_percent"] is not None:
            under = layer["roof_percent"] < 10
            assert (layer["limiter"] in ("overhead", "launch")) or not under
