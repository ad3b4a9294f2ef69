"""Every figure of the HTML pages against those of the JSON document and of the text.

Of reports and engine plans: what is shown twice is the same, shares add up to 100, and what is
said to be done is the same everywhere.
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile import llm as profile_llm
from dld_tui.activities.profile import tensorrt as profile_tensorrt
from dld_tui.backends.tensorrt import library, profiling
from dld_tui.backends.tensorrt.library import use
from dld_tui.core import fmt
from dld_tui.core.events import Finished
from dld_tui.core.reading.export import report_json, report_page
from dld_tui.core.reading.first_lines import first_lines
from dld_tui.core.reading.story import next_steps, step_commands
from dld_tui.core.report.groups import GROUPINGS
from dld_tui.core.report.records import Layer, PassState
from dld_tui.core.report.report import Report
from dld_tui.core.tensorrt.plan.export import plan_json
from dld_tui.core.tensorrt.plan.html import plan_page
from dld_tui.core.tensorrt.plan.layer_records import layer_records, shown_names
from dld_tui.core.tensorrt.plan.lint import findings, grouped
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import groups
from dld_tui.core.text import visible
from tests.oracles.page_text import Page, number, shows
from tests.oracles.plain import PROFILES, unpack
from tests.support import decoders
from tests.support.engines import write_model
from tests.support.fake_tensorrt import fake_tensorrt
from tests.support.gpu_reports import CUDA, gpu_writer, make_gpu_report
from tests.support.profiles import ort_report, told

PLANS = Path(__file__).parent / "plans" / "data"
COLUMNS = {
    "time ms": "time_ms", "CPU ms": "time_ms", "launch ms": "time_ms", "GPU ms": "gpu_time_ms",
    "min": "min_ms", "CPU min": "min_ms", "CPU max": "max_ms",
    "max": "max_ms", "% limit": "roof_percent",
}  # fmt: skip
OFF = 0.0501
"""Of a percentage with one decimal."""


def adds_up(rows: list[dict[str, str]]) -> None:
    """Compare a column of shares with the whole."""
    shares = [number(row["%"]) for row in rows if "%" in row]
    known = [share for share in shares if share is not None]
    if any(known):
        assert sum(known) == pytest.approx(100, abs=OFF * len(known))


def check_report(path: Path) -> Page:
    """Compare the page of a report with its document and its text."""
    with Report.open(path) as report:
        page = Page(report_page(report))
        by: dict[str, Any] = {name: report_json(report, name) for name in GROUPINGS}
        first, notes, steps = first_lines(report), told(report), next_steps(report)
        advice = [line for step in steps for line in (step.line, *step_commands(report, step))]
        drawn = next((one for one in report.passes if one.index == report.typical_pass), None)
        threads = sum(track.kind == "thread" for track in report.tracks)
    document = by["type"]
    layers = {layer["index"]: layer for layer in document["layers"]}
    rows = page.tables.get("layer-table", [])
    adds_up(rows)
    for row in rows:
        layer = layers[int(row["#"])]
        assert shows(row["%"], layer["percent"])
        for title, key in COLUMNS.items():
            assert title not in row or shows(row[title], layer[key]), (row, layer)
        assert (row.get("limited by") or None) == layer["limiter"] or "limited by" not in row
    for name in ("type", "op", "provider"):
        shown = page.tables.get(f"{name}-table", [])
        adds_up(shown)
        found = {visible(group["key"]): group for group in by[name]["groups"]}
        for row in shown:
            group = found[row[name]]
            assert shows(row["%"], group["percent"])
            assert int(row["count"].replace(",", "")) == group["count"]
            assert all(
                shows(row[title], group["time_ms"])
                for title in ("time ms", "CPU ms")
                if title in row
            )
    whole = sum(layer["gpu_time_ms"] or layer["time_ms"] or 0.0 for layer in layers.values())
    for section, by_name in (
        ("types", {f"{one['key']} ({one['count']:,})": one for one in by["type"]["groups"]}),
        ("top", {name: one for one in layers.values() for name in (one["name"], *one["nodes"])}),
    ):
        for name, figure in page.bars.get(section, {}).items():
            percent = by_name.get(name, {}).get("percent")
            if percent is not None and section == "types":
                assert shows(figure, percent * whole / 100)
            time, _, share = figure.partition(", ")
            assert abs((number(time) or 0.0) / whole * 100 - (number(share) or 0.0)) <= (
                OFF + 0.0501 / whole
            )
    check_tiles(page, document, whole)
    # Times of launches alone are no times of layers, and what no layer took is not known.
    is_known = any(line.label == "Time" for line in first)
    assert is_known or not {*page.bars} & {"types", "top"}
    assert is_known == any("all layers of a pass" in line for line in page.lines(""))
    # Lines: those of the text, each once.
    answer = page.facts("answer")
    for line in filter(lambda one: one.text, first):
        assert line.text in answer[line.label].split("\n")
    for text in page.lines("look")[1:]:
        assert {text, f"Note: {text}"} & set(map(str.strip, notes)), text
    assert page.lines("advice")[1:] == advice
    assert all(one["command"] in advice for one in document["advice"])
    if drawn is not None and drawn.state is PassState.MEASURED and threads < 2:
        for name, figure in page.bars.get("timeline", {}).items():
            is_sum = name.endswith(" short ones")
            assert is_sum or (number(figure) or 0.0) <= 1.06 * drawn.duration_us / 1000 + 0.003
    return page


def check_tiles(page: Page, document: dict[str, Any], whole: float) -> None:
    """Compare the big figures."""
    latency, llm = document["latency_ms"] or {}, document["llm"] or {}
    known = {
        "median latency, ms": latency.get("median"), "p90, ms": latency.get("p90"),
        "p99, ms": latency.get("p99"), "inferences/s": latency.get("throughput"),
        "median time of a token, ms": latency.get("median"), "repetitions": latency.get("count"),
        "variation, %": latency.get("cov_percent"), "layers": len(document["layers"]),
        "all layers of a pass, ms": whole, "tokens/s": llm.get("tokens_s"),
        "to the first token, ms": llm.get("ttft_ms"),
    }  # fmt: skip
    tiles = [re.match(r"([\d.,–]+)(.*)", line) for line in page.lines("")]
    shown = {tile[2]: tile[1] for tile in tiles if tile is not None}
    assert ("tokens/s" in shown) + ("inferences/s" in shown) == bool(latency)
    # A percentile of few passes is their maximum, and is told nowhere.
    few = [
        f"p{part}, ms" for part, least in ((90, 10), (99, 100)) if latency.get("count", 0) < least
    ]
    assert not {*few} & shown.keys()
    for title, figure in shown.items():
        assert title not in known or shows(figure, known[title]), (title, figure, known[title])


@pytest.mark.parametrize("name", PROFILES)
def test_pages_of_profiles(name: str, tmp_path: Path) -> None:
    check_report(ort_report(tmp_path / "r.dldprof", unpack(name, tmp_path)))


@pytest.mark.parametrize("alone", [0, 6])
def test_pages_of_a_gpu(alone: int, tmp_path: Path) -> None:
    path = make_gpu_report(tmp_path / "r.dldprof", 12, 6, alone=alone, fallback=2)
    page = check_report(path)
    assert any(line.startswith("GPU busy") for line in page.lines("look"))
    # Between launches lies nothing of a pass whose time is that of its kernels.
    assert "between them" not in page.facts("answer")["Time"]


def test_pages_of_launches_alone(tmp_path: Path) -> None:
    with gpu_writer(tmp_path / "r.dldprof") as made:
        made.add_layer(Layer("c", "Conv", provider=CUDA, precision="float32"))
        made.add_pass(0, 0.0, 100.0)
        made.add_samples(0, [(0, 0.0, 50.0, 50.0, 1)])
    page = check_report(tmp_path / "r.dldprof")
    assert [row["launch ms"] for row in page.tables["layer-table"]] == ["0.050"]
    assert "Launches of layers were timed, not their kernels" in page.facts("answer")["!"]
    assert any(line.startswith("Launches sum to 0.050 of 0.100 ms") for line in page.lines("look"))


@pytest.mark.broad
def test_pages_of_a_decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = profile_llm.Request(
        decoders.folder(tmp_path / "d"), prompt="8,4", decode=4, iterations=2, output=Path("r")
    )
    assert list(profile_llm.run(request))
    page = check_report(tmp_path / "r")
    with Report.open(tmp_path / "r") as report:
        told = first_lines(report)[0].text
        stored, _ = json.loads(json.dumps(report.properties["generation"]))
        document: Any = report_json(report)
    # A token has one time: the median of the repetitions, of which each is the mean of its steps.
    token = statistics.median(ms / 4 for ms in stored["repeats_ms"])
    assert document["latency_ms"]["median"] == pytest.approx(token)
    assert document["llm"]["decode"][0]["ms_token"] == pytest.approx(token)
    assert document["llm"]["tokens_s"] == pytest.approx(1000 / token)
    each = re.findall(r"([\d.]+) ms a token", "\n".join([told, *page.facts("measured").values()]))
    each += re.findall(r"([\d.]+)median time of a token", "\n".join(page.lines("")))
    assert len(each) == 4
    assert all(shows(text, token) for text in (each[0], each[1], each[3]))
    # Repetitions, layers and big figures are of the first prompt.
    assert "(prompt 8, batch 1;" in told
    assert any("after a prompt of 8." in line for line in page.lines("look"))
    assert "1x9" in page.facts("answer")[""]
    figure = r"([\d.,]+) {} \(([\d.,]+) to ([\d.,]+)\)"
    for unit, values in (
        ("ms to the first token", stored["first_tokens_ms"]),
        ("tokens/s", [4000 / ms for ms in stored["repeats_ms"]]),
    ):
        [shown] = re.findall(figure.format(unit), told)
        middle, low, high = (float(text.replace(",", "")) for text in shown)
        assert low <= middle <= high
        assert (low, high) == pytest.approx((min(values), max(values)), rel=0.006)


def test_pages_of_tensorrt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fake_tensorrt()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "find_library", lambda choice: use(fake))
    monkeypatch.setattr(profiling, "Cuda", lambda device, spin=False: fake.fake.cuda)
    model = write_model(tmp_path / "small.onnx")
    # Layers that take longer than a pass are left out of all sums, and not drawn.
    for first_ms in (0.02, 0.2, 20.0):
        fake.fake.layer_ms = {"first": first_ms, "last": 0.01, "kernel": 0.002}
        request = profile_tensorrt.Request(
            model=model, iterations=9, duration=0.0, warm_up_ms=0.0, gpu_counters="off"
        )
        [last] = [event for event in profile_tensorrt.run(request) if isinstance(event, Finished)]
        check_report(last.result.report)


def check_plan(path: Path) -> None:
    """Compare the page of an engine with its document."""
    plan = open_plan(path)
    mapping = map_plan(plan)
    found = findings(plan, mapping)
    page, document = Page(plan_page(plan, found, mapping)), plan_json(plan, found, mapping)
    layers: dict[int, Any] = {one["index"]: one for one in document["layers"]}  # type: ignore
    rows = page.tables.get("layer-table", [])
    adds_up(rows)
    assert len(rows) == len(layers)
    for row in rows:
        layer = layers[int(row["#"])]
        assert shows(row["time ms"], layer["time_ms"])
        assert shows(row["%"], layer["percent"])
    for section, by in (("types", "type"), ("precisions", "precision")):
        sums = {f"{one.key} ({one.count:,})": one for one in groups(plan, by)}
        for name, figure in page.bars.get(section, {}).items():
            time, _, share = figure.partition(", ")
            assert shows(time, sums[name].time_ms)
            assert shows(share, sums[name].percent)
    memory = page.tables.get("memory-table", [])
    for row, layer in zip(memory, layers.values(), strict=bool(memory)):
        nothing_known = not layer["layer_type"] and not layer["inputs"] and not layer["outputs"]
        for title in ("weights", "in", "out"):
            assert not nothing_known or row.get(title, "–") == "–", row
    # The bars of a layer's bytes are what it moves, and a dash where the table has one.
    named = shown_names(plan, layer_records(plan, mapping))
    moved = {named[index]: layer for index, layer in layers.items()}
    for name, parts_of in page.series.get("memory-chart", {}).items():
        if len(parts_of) == 3 and name in moved and [*named.values()].count(name) == 1:
            layer = moved[name]
            weights, inputs, outputs = parts_of
            known = layer["weights_from"] != "unknown"
            assert weights == (fmt.size(layer["weights_bytes"]) if known else "–"), name
            read = layer["footprint"] - layer["weights_bytes"]
            assert (inputs, outputs) == tuple(
                fmt.size(size)
                for size in (read - sum(tensor["bytes"] for tensor in layer["outputs"]),
                             sum(tensor["bytes"] for tensor in layer["outputs"]))
            ), name  # fmt: skip
    # A heading counts the rows below it.
    for section in ("finding", "layer", "convolution", "gemm", "reformats", "memory", "timing"):
        for name in (section, f"{section}s"):
            heading = re.search(r"\(([\d,]+)\)$", (page.lines(name) or [""])[0])
            shown = page.tables.get(f"{section}-table", page.tables.get(f"{name}-table", []))
            assert heading is None or int(heading[1].replace(",", "")) == len(shown), name
    # Layers of a finding: as many as its parts have, and none saves more than they take.
    for row, group in zip(page.tables.get("finding-table", []), grouped(plan, found), strict=True):
        assert shows(row["% of time"], group.percent)
        parts = [
            int((re.search(r"\((\d+) layers\)$", hazard) or [0, 1])[1])
            for hazard in row["what"].split("; ")
        ]
        assert len(group.findings) == 1 or sum(parts) >= len(group.layers)
        saved = re.match(r"saves 0 to ([\d.]+) %", row["could save"])
        assert saved is None or group.percent is None or float(saved[1]) <= group.percent + OFF
        for of in re.findall(r"layers? of (\d+)", row["what"]):
            assert int(of) == len(layers)


@pytest.mark.parametrize("name", ["qat", "qat-residual-qgap", "cookbook", "mobilenet"])
def test_pages_of_engines(name: str) -> None:
    check_plan(PLANS / f"{name}.graph.json")


def test_pages_of_an_engine_of_which_only_names_are_known(tmp_path: Path) -> None:
    path = tmp_path / "e.profile.json"
    path.write_text(
        '[{"count": 9}, {"name": "conv", "timeMs": 9, "averageMs": 1.0, "percentage": 75.0},'
        ' {"name": "relu", "timeMs": 3, "averageMs": 0.25, "percentage": 25.0}]'
    )
    check_plan(path)


def test_constants_that_took_time_are_layers(tmp_path: Path) -> None:
    layers = [
        {
            "Name": name,
            "LayerType": kind,
            "Inputs": [],
            "Outputs": [{"Name": name, "Dimensions": [1]}],
        }
        for name, kind in (("a", "Convolution"), ("b", "Constant"), ("c", "Constant"))
    ]
    (tmp_path / "e.graph.json").write_text(json.dumps({"Layers": layers}))
    rows = [{"name": name, "averageMs": ms} for name, ms in (("a", 1.0), ("b", 0.5), ("c", 0.0))]
    (tmp_path / "e.profile.json").write_text(json.dumps([{"count": 9}, *rows]))
    check_plan(tmp_path / "e.graph.json")
    plan = open_plan(tmp_path / "e.graph.json")
    assert [layer.name for layer in plan.layers] == ["a", "b"]
    assert plan.total_ms == 1.5


@pytest.mark.models
def test_pages_of_the_engines_at_hand(engines: Path) -> None:
    for path in sorted(engines.rglob("*.json")):
        if not {"timing", "metadata"} & {*path.name.split(".")}:
            check_plan(path)
