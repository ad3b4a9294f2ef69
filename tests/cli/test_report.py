"""``dld report``: text, groups, CSV and JSON of a report."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.report.records import Cost, Layer, NodeLink
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.text import visible
from tests.support.cli import Dld, process
from tests.support.gpu_reports import make_gpu_report

CONV = NodeLink((), "stem/Conv", "stem/Conv", "Conv", share=0.5)
RELU = NodeLink((), "stem/Relu", "stem/Relu", "Relu", share=0.5)
LAYERS = [
    Layer("fused", "FusedConv", provider="CPU", nodes=(CONV, RELU), confidence="rule"),
    Layer("odd\x1b[2J", "Add", provider="CPU"),
]


def write_report(path: Path, *, finished: bool = True) -> Path:
    """Write a report of two layers: 3 ms and 1 ms in each of three passes."""
    writer = ReportWriter.create(
        path,
        network="net",
        backend="ONNX Runtime 1",
        execution_provider="CPU",
        device="a processor",
        model={},
        settings={"iterations": 3},
        environment={"os": "Linux"},
    )
    writer.add_latencies([4.0, 4.5, 5.0])
    layers = [writer.add_layer(layer) for layer in LAYERS]
    for index in range(3):
        start = 10_000.0 * index
        writer.add_pass(index, start, 4000.0)
        writer.add_samples(
            index,
            [(layers[0], start, 3000.0, 3000.0, 1), (layers[1], start + 3000, 1000.0, 1000.0, 1)],
        )
    if finished:
        writer.finish()
    else:
        writer.abort()
    return path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return write_report(tmp_path / "net.dldprof")


def test_text(dld: Dld, report: Path) -> None:
    outcome = dld("report", report)
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[:3] == [
        "net   4.50 ms median   222 a second   (4.00 to 5.00, p90 4.90; 3 passes)",
        "ONNX Runtime 1 · CPU, a processor",
        "!  Latency varies: ±11 %.",
    ]
    assert lines[4] == "Time     FusedConv 75.0 %   Add 25.0 %   of 4.00 ms in layers"
    assert lines[5] == r"Slowest  stem/Conv 75.0 %   odd\x1b[2J 25.0 %"
    assert lines[6] == f"Report   {report}"
    table = [line.split() for line in lines[-5:-2]]
    assert table == [
        ["ONNX", "nodes", "type", "time", "ms", "%", "layer"],
        ["stem/Conv", "FusedConv", "3.000", "75.0", "fused"],
        [r"odd\x1b[2J", "Add", "1.000", "25.0", r"odd\x1b[2J"],
    ]
    assert "\x1b" not in outcome.out


def test_more_is_printed_when_asked(dld: Dld, report: Path) -> None:
    assert dld("report", report, "--top", "1").out.splitlines()[-1] == (
        "1 more layer: --all   all that was measured, and all advice: --notes"
    )
    assert "fused" not in dld("report", report, "--top", "0").out.splitlines()[-1]
    everything = dld("report", report, "--top", "1", "--all", "--notes").out
    assert "p99 of 3 passes" in everything
    assert everything.splitlines()[-1].split() == [
        r"odd\x1b[2J",
        "Add",
        "1.000",
        "25.0",
        r"odd\x1b[2J",
    ]


def test_groups(dld: Dld, report: Path) -> None:
    out = dld("report", report, "--by", "op").out
    assert [line.split() for line in out.splitlines()[-5:-1]] == [
        ["op", "count", "time", "ms", "%"],
        ["Conv", "1", "≈1.500", "37.5"],
        ["Relu", "1", "≈1.500", "37.5"],
        ["(no", "ONNX", "node)", "1", "1.000", "25.0"],
    ]
    assert out.splitlines()[-1].startswith("≈ the time of a layer made of several nodes")
    assert "≈" not in dld("report", report, "--by", "type").out


def test_unknown_grouping(dld: Dld, report: Path) -> None:
    assert "colour" in dld.fails(2, "report", report, "--by", "colour")


def test_json_is_the_contract(dld: Dld, report: Path) -> None:
    document = dld("report", report, "--json").json
    assert set(document) >= {
        "network", "backend", "execution_provider", "device", "passes", "latency_ms", "layers",
        "settings", "environment",
    }  # fmt: skip
    assert document["latency_ms"]["median"] == 4.5
    assert document["layers"][0]["nodes"] == ["stem/Conv", "stem/Relu"]
    assert "groups" not in document
    groups = dld("report", report, "--json", "--by", "type").json["groups"]
    assert [(g["key"], g["count"], g["time_ms"], g["percent"]) for g in groups] == [
        ("FusedConv", 1, 3.0, 75.0),
        ("Add", 1, 1.0, 25.0),
    ]


def test_csv(dld: Dld, report: Path, tmp_path: Path) -> None:
    path = tmp_path / "layers.csv"
    assert dld("report", report, "--csv", path).status == 0
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [(row["name"], row["time_ms"]) for row in rows] == [
        ("fused", "3.0"),
        (visible(LAYERS[1].name), "1.0"),
    ]
    assert "--force" in dld.fails(2, "report", report, "--csv", path)
    assert dld("report", report, "--csv", path, "--force", "--by", "type").status == 0
    assert path.read_text().splitlines()[0].startswith("key,count,")


def test_partial_report_says_so(dld: Dld, tmp_path: Path) -> None:
    path = write_report(tmp_path / "killed.dldprof", finished=False)
    outcome = dld("report", path)
    assert outcome.status == 0
    assert "Partial" in outcome.out
    assert dld("report", path, "--json").json["status"] == "partial"


def test_path_of_a_report_prints_it(report: Path) -> None:
    done = process(report)
    assert done.returncode == 0
    assert done.stdout.startswith("net   4.50 ms median ")


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0 and then nothing", b"{"])
def test_files_that_are_no_reports(dld: Dld, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.dldprof"
    path.write_bytes(content)
    assert str(path) in dld.fails(3, "report", path)


def test_model_is_no_report(dld: Dld, tmp_path: Path) -> None:
    assert str(tmp_path / "none") in dld.fails(3, "report", tmp_path / "none")


def test_times_on_the_gpu_rank_the_layers(dld: Dld, tmp_path: Path) -> None:
    path = make_gpu_report(tmp_path / "gpu.dldprof")
    outcome = dld("report", path, "--notes")
    lines = outcome.out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("layer "))
    assert "GPU ms" in lines[at]
    assert "softmax_4" in lines[at + 1]
    assert any(line.startswith("GPU busy 0.259 ms of 0.291") for line in lines)
    # The slowest layers are in the first lines and in the table, not a third time.
    assert sum("softmax_4" in line for line in lines) == 2
    assert "GPU ms" in dld("report", path, "--by", "type").out
    rows = list(csv.DictReader(io.StringIO(csv_of(dld, path, tmp_path))))
    assert float(rows[4]["gpu_time_ms"]) == pytest.approx(0.0432, abs=1e-3)


def csv_of(dld: Dld, path: Path, folder: Path) -> str:
    assert dld("report", path, "--csv", folder / "t.csv").status == 0
    return (folder / "t.csv").read_text(encoding="utf-8")


def test_json_has_the_names_of_the_contract(dld: Dld, tmp_path: Path) -> None:
    writer = ReportWriter.create(
        tmp_path / "net.dldprof", network="net", backend="ONNX Runtime 1", execution_provider="CPU",
        device="a processor", model={}, settings={}, environment={},
    )  # fmt: skip
    told = {"name": "x", "dtype": "float32", "shape": [2, 3], "why": "batch by its name"}
    for name, value in (("load_ms", 12.5), ("energy_per_inference_j", 0.25), ("inputs", [told])):
        writer.set_fact(name, value)
    cost = Cost(
        flops=3000, moved_bytes=600, roof_ms=1.5, bound="compute", in_use_bytes=4096,
        arena_bytes=8192,
    )  # fmt: skip
    layers = [
        writer.add_layer(replace(LAYERS[0], cost=cost)),
        writer.add_layer(replace(LAYERS[1], cost=Cost(500), nodes=())),
    ]
    for index in range(3):
        start = 10_000.0 * index
        writer.add_pass(index, start, 5000.0)
        writer.add_samples(
            index, [(layers[0], start, 3000.0, 3000.0, 1), (layers[1], start + 3e3, 1e3, 1e3, 1)]
        )
    writer.finish()
    data = dld("report", tmp_path / "net.dldprof", "--json").json
    assert dld("report", tmp_path / "net.dldprof").out.startswith("\n".join(data["lines"]))
    assert len(data["lines"]) > 2
    assert data["covered_percent"] == pytest.approx(80.0)
    assert (data["energy_j"], data["gpu"]) == (0.25, None)
    assert data["startup"] == [{"stage": "session", "ms": 12.5}]
    assert data["inputs"][0].items() >= {
        "name": "x", "dtype": "float32", "shape": [2, 3], "guessed": True,
        "reason": "batch by its name",
    }.items()  # fmt: skip
    assert data["memory"] == {
        "peak_bytes": 4096, "arena_bytes": 8192, "alive": None,
        "at": {"layer": 0, "name": "fused", "nodes": ["stem/Conv", "stem/Relu"]},
    }  # fmt: skip
    cost = data["cost"]
    assert (cost["flops"], cost["moved_bytes"], cost["limiter"]) == (3500, 600, "compute")
    assert cost["achieved_flops"] == pytest.approx(875e3)  # 3,500 in 4 ms
    assert cost["achieved_bytes_s"] == pytest.approx(
        2e5
    )  # 600 in 3 ms: of the other none are known
    assert cost["uncounted_layers"] == 1
    assert [(one["node"], one["achieved_bytes_s"], one["limiter"]) for one in cost["nodes"]] == [
        ("stem/Conv", pytest.approx(2e5), "compute"), ("stem/Relu", pytest.approx(2e5), "compute"),
    ]  # fmt: skip


def test_json_of_a_gpu_has_the_names_of_the_contract(dld: Dld, tmp_path: Path) -> None:
    profiled = dld("report", make_gpu_report(tmp_path / "g.dldprof"), "--json").json["gpu"]
    names = ("busy_percent", "gaps_ms", "timeline_slowdown_percent")
    assert [profiled[name] for name in names] == [None] * 3  # not at true speed
    gpu = dld("report", make_gpu_report(tmp_path / "h.dldprof", alone=5), "--json").json["gpu"]
    summary = gpu["median_pass"]
    assert gpu["busy_percent"] == pytest.approx(100 * summary["busy_us"] / summary["length_us"])
    assert gpu["gaps_ms"] == pytest.approx(summary["gaps_us"] / 1000)
    assert gpu["timeline_slowdown_percent"] == pytest.approx(
        100 * (summary["recorded_us"] / summary["length_us"] - 1)
    )
