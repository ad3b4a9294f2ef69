"""Every figure of the terminal page of a report against those of the JSON document.

The real page is opened, on a large and on a small terminal, and its panes and charts are read back.
"""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile import llm as profile_llm
from dld_tui.activities.profile import onnxruntime as profile_onnxruntime
from dld_tui.core.model.document.samples import write_demo_models
from dld_tui.core.reading.export import report_json
from dld_tui.core.reading.preview import Preview, preview
from dld_tui.core.report.measured_figures import measured_figures
from dld_tui.core.report.records import Layer, PassState
from dld_tui.core.report.report import Report
from dld_tui.screens.results.report import ReportScreen
from dld_tui.widgets.charts.plots import Plot
from dld_tui.widgets.charts.report_charts import BAR_CHARTS
from dld_tui.widgets.lists.table_view import TableView
from dld_tui.widgets.results.report_views import BarChart, ChartPane, layer_lines
from dld_tui.widgets.results.summary import AnswerText
from tests.oracles.page_text import shows
from tests.oracles.plain import unpack
from tests.support import decoders
from tests.support.gpu_reports import CUDA, gpu_writer, make_gpu_report
from tests.support.profiles import ort_report, start_report
from tests.support.report_screen import LARGE, SMALL, opened, pane, text_of, timeline

OFF = 0.0501
"""Of a percentage with one decimal."""


async def check(path: Path) -> None:
    """Compare the page of a report with its document, on two terminals."""
    with Report.open(path) as report:
        document: Any = report_json(report, "type")
        facts = {fact.name: fact.text for fact in measured_figures(report)}
        layers = report.layers
        lengths = {run.index: run.duration_us / 1000 for run in report.passes}
    check_preview(preview(str(path), "REPORT", lambda: False), document)
    async with opened(path, LARGE) as (pilot, screen):
        check_charts(screen.query_one(ChartPane), document, facts)
        check_table(screen, document)
        for size in (LARGE, SMALL):
            await pilot.resize_terminal(*size)
            await pilot.press("1")
            check_answer(text_of(screen.query_one(AnswerText)), document)
            if timeline(screen).region.area:
                check_timeline(str(timeline(screen).border_title), lengths)
    for layer in layers:
        check_layer(
            "".join(text for line in layer_lines(layer, 0, 0, 90) for text, _ in line), layer
        )


def check_preview(shown: Preview, document: dict[str, Any]) -> None:
    """Compare what the start page tells of the file with the headline."""
    takes, headline = dict(shown.lines)["takes"], document["lines"][0]
    figures = re.findall(
        r"[\d.,]+ (?:ms to the first token|ms median(?: with profiling on)?|tokens/s)", takes
    )
    assert figures
    assert all(figure in headline for figure in figures)
    assert bool(shown.parts) == is_told(document)
    percents = {group["key"]: group["percent"] for group in document["groups"]}
    assert all(shows(text.split(" ")[0], percents[name]) for name, text, _ in shown.parts)


def is_told(document: dict[str, Any]) -> bool:
    """Return whether it is known what the layers take, not only their launches."""
    return any(line.startswith("Time ") for line in document["lines"])


def check_answer(text: str, document: dict[str, Any]) -> None:
    """Compare the first pane: shares of types, the spread, and the slowest layers."""
    groups = {group["key"]: group for group in document["groups"]}
    bars = re.findall(r"(\w+) [█▏▎▍▌▋▊▉]+ ([\d.]+) %", text)
    assert bool(bars) == is_told(document)
    for name, percent in bars:
        assert shows(percent, groups[name]["percent"])
    spread = document["latency_ms"] or {}
    for name, least in (("p90", 10), ("p99", 100)):
        found = re.findall(rf"{name} ([\d.,]+)", text)
        assert spread.get("count", 0) >= least or not found
        assert all(shows(figure, spread[name]) for figure in found)
    slowest = sorted((layer["percent"] or 0 for layer in document["layers"]), reverse=True)
    ranked = re.findall(r"^(?:slowest| ) +(\d) .*? ([\d.]+) %", text, re.MULTILINE)
    assert is_told(document) or not ranked
    for rank, percent in ranked:
        assert abs(float(percent) - slowest[int(rank) - 1]) <= OFF


def check_charts(charts: ChartPane, document: dict[str, Any], facts: dict[str, str]) -> None:
    """Compare the bars and what is drawn between axes."""
    known = {group["key"]: group for group in document["groups"]}
    bars = charts.query_one(BarChart)
    for _ in BAR_CHARTS:
        for unit in ("cost_ms", "percent"):
            rows = [bars.lines.text(at).split("\t") for at in range(len(bars.lines))]
            heads = [(label, value) for label, value, _ in rows if not label.startswith(" ")]
            for label, value in heads:
                assert shows(value.split(" ")[0], known[label][unit])
            shown = sum(float(value.split(" ")[0].replace(",", "")) for _, value in heads)
            total = sum(group[unit] for group in known.values())
            assert shown == pytest.approx(total, abs=OFF * len(heads))
            charts.toggle_unit()
        assert charts.titles[charts.chart].startswith("Launch") != is_told(document) or not rows
        charts.next_chart()
    data, latency = charts.data(80, 20), document["latency_ms"]
    assert len(data.latencies) == (0 if latency is None else latency["count"])
    if latency is not None:
        # What is drawn are the samples of the headline, each once.
        assert statistics.median(data.latencies) == pytest.approx(latency["median"])
        assert (min(data.latencies), max(data.latencies)) == (latency["min"], latency["max"])
    made = {name: one.plot(data) for name, one in charts.charts.items() if one.plot is not None}
    spots = made["passes"].spots if isinstance(made["passes"], Plot) else []
    assert [spot.y for spot in spots] in ([], list(data.latencies))
    if isinstance(plot := made["distribution"], Plot):
        caption = "".join(text for text, _ in plot.below[0])
        for name, figure in re.findall(r"(median|p90|p99) ([\d.,]+)", caption):
            assert shows(figure, latency[name])
            assert latency["count"] >= {"median": 0, "p90": 10, "p99": 100}[name]
    roofs = isinstance(made["roofline"], Plot)
    # There is a roofline where limits are told, and it has the peaks that the notes name.
    assert roofs == ("peaks" in facts)
    if isinstance(plot := made["roofline"], Plot):
        caption = "".join(text for text, _ in plot.below[0])
        for figure in re.findall(
            r"\w+ [\d.]+ \w*FLOP/s|memory [\d.]+ \w+/s|up to [\d.]+ \w+/s", caption
        ):
            assert figure in facts["peaks"]
        tops = [mark for mark in plot.marks if mark.style == "warn"]
        slope, top = tops[0].ys[0] / tops[0].xs[0], max(mark.ys[-1] for mark in tops)
        assert all(spot.y <= 1.051 * min(slope * spot.x, top) for spot in plot.spots)
    assert isinstance(made["memory"], str) or is_told(document)


def check_table(screen: ReportScreen, document: dict[str, Any]) -> None:
    """Compare the rows of the layers, and what the columns are called."""
    table: TableView = pane(screen).table
    titles = {column.key: column.title for column in table.table.columns}
    on_gpu = any(layer["gpu_time_ms"] is not None for layer in document["layers"])
    assert titles["time_ms"] == (
        "CPU ms" if on_gpu else "time ms" if is_told(document) or not titles else "launch ms"
    )
    # The least and the most are of the same time as the column that they stand beside.
    assert titles["min_ms"].startswith("CPU") == on_gpu
    shown = {layer.index: layer for layer in table.table.rows}
    assert [*shown] == [layer["index"] for layer in document["layers"]]
    for layer in document["layers"]:
        own = shown[layer["index"]]
        assert (own.time_ms, own.percent, own.min_ms) == (
            layer["time_ms"], layer["percent"], layer["min_ms"],
        )  # fmt: skip


def check_timeline(title: str, lengths: dict[int, float]) -> None:
    """Compare the pass that is drawn, which is called no second median of the page."""
    assert "median" not in title
    assert ("typical pass" in title) == bool(lengths)
    for number, count, ms in re.findall(r"typical pass (\d+) of (\d+) · ([\d.,]+) ms", title):
        assert int(count) == len(lengths)
        assert shows(ms, lengths[int(number) - 1])


def check_layer(text: str, layer: Layer) -> None:
    """Compare what is said of the layer at the cursor of the timeline."""
    if layer.percent is None:
        return
    found = re.search(r"([\d.,]+) ms( GPU| launch)?  ([\d.]+) %", text)
    assert found is not None
    is_gpu = found[2] == " GPU"
    assert shows(found[1], layer.gpu_time_ms if is_gpu else layer.time_ms)
    assert shows(found[3], layer.percent)
    least = re.search(r"(CPU )?min ([\d.,–]+)", text)
    assert least is not None
    assert bool(least[1]) == is_gpu
    assert is_gpu or layer.time_ms is None or float(least[2]) <= layer.time_ms + OFF


@pytest.mark.parametrize("name", ["minilm_int8.ort1.31.1.json", "silero_if.ort1.31.1.json"])
async def test_the_page_of_a_profile(name: str, tmp_path: Path) -> None:
    await check(ort_report(tmp_path / "r.dldprof", unpack(name, tmp_path)))


async def test_the_page_of_passes_of_which_the_first_is_a_warm_up(tmp_path: Path) -> None:
    with start_report(tmp_path / "r.dldprof") as report:
        first, second = (report.add_layer(Layer(name, "Conv")) for name in ("c", "d"))
        for number, took in enumerate((900.0, 100.0, 110.0, 105.0)):
            state = PassState.MEASURED if number else PassState.WARM_UP
            start = 2000.0 * number
            report.add_pass(number, start, took + 5, state)
            spans = [(first, start, took / 2, took / 2, 1), (second, start + took / 2, 40, 40, 1)]
            report.add_samples(number, spans)
    await check(tmp_path / "r.dldprof")


@pytest.mark.broad
async def test_the_page_of_a_model_that_was_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With peaks of this machine, limits and a roofline."""
    monkeypatch.chdir(tmp_path)
    [model, _] = write_demo_models(tmp_path)
    request = profile_onnxruntime.Request(model, iterations=12, layer_passes=8, output=Path("r"))
    assert list(profile_onnxruntime.run(request))
    await check(tmp_path / "r")


@pytest.mark.broad
@pytest.mark.parametrize("alone", [0, 6])
async def test_the_page_of_a_gpu(alone: int, tmp_path: Path) -> None:
    await check(make_gpu_report(tmp_path / "r.dldprof", 12, 6, alone=alone, fallback=2))


async def test_the_page_of_launches_alone(tmp_path: Path) -> None:
    with gpu_writer(tmp_path / "r.dldprof") as made:
        for name in ("c", "d"):
            made.add_layer(Layer(name, "Conv", provider=CUDA, output_dims=((8,),)))
        for number in range(3):
            made.add_pass(number, 100.0 * number, 100.0)
            spans = [(at, 100.0 * number + 40 * at, 30.0, 30.0, 1) for at in (0, 1)]
            made.add_samples(number, spans)
    await check(tmp_path / "r.dldprof")
    with Report.open(tmp_path / "r.dldprof") as report:
        document: Any = report_json(report)
    assert any("Launches of layers were timed" in line for line in document["lines"])


@pytest.mark.broad
async def test_the_page_of_a_decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = profile_llm.Request(
        decoders.folder(tmp_path / "d"), prompt="8,4", decode=4, iterations=2, output=Path("r")
    )
    assert list(profile_llm.run(request))
    await check(tmp_path / "r")
    with Report.open(tmp_path / "r") as report:
        document: Any = report_json(report)
    async with opened(tmp_path / "r") as (_, screen):
        text = text_of(screen.query_one(AnswerText))
    [each] = re.findall(r"([\d.]+) ms each", text)
    assert shows(each, document["latency_ms"]["median"])
    assert "prompt 8, batch 1" in text
