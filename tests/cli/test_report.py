"""``dld report``: text, groups, CSV and JSON of a report."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.report.records import Cost
from dld_tui.core.report.store import ReportWriter
from tests.support.cli import Dld
from tests.support.gpu_reports import make_gpu_report
from tests.support.report_files import HOSTILE, make_report
from tests.support.traces import x
from tests.support.transcript_files import FILES, LAYERS, two_layers


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return two_layers(tmp_path / "net.dldprof")


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


def test_json_has_the_names_of_the_contract(dld: Dld, tmp_path: Path) -> None:
    writer = ReportWriter.create(
        tmp_path / "net.dldprof", network="net", backend="ONNX Runtime 1", execution_provider="CPU",
        device="a processor", model={}, settings={}, environment={},
    )  # fmt: skip
    told = {"name": "x", "dtype": "float32", "shape": [2, 3], "why": "batch by its name"}
    for name, value in (("load_ms", 12.5), ("energy_per_inference_j", 0.25), ("inputs", [told])):
        writer.set_property(name, value)
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


def test_sweeps_are_documents_and_pages(dld: Dld, tmp_path: Path) -> None:
    sweeps = [tmp_path / "a.sweep.json", tmp_path / "b.sweep.json"]
    for path in sweeps:
        FILES[path.name](path)
    table = tmp_path / "table.csv"
    printed = dld("report", sweeps[0], "--csv", table).out.splitlines()
    document = dld("report", sweeps[0], "--json").json
    for point, row in zip(
        document["points"], csv.DictReader(table.read_text().splitlines()), strict=True
    ):  # one value in all formats
        known = {"batch": point["at"][0], **{key: point[key] for key in row if key != "batch"}}
        assert {key: float(cell) for key, cell in row.items()} == pytest.approx(known)
    assert document["lines"] == printed[: len(document["lines"])]
    assert dld(sweeps[0]).out == dld("report", sweeps[0]).out
    document = dld("compare", *sweeps, "--json").json
    assert [row["ratios"][1] for row in document["rows"]] == pytest.approx([2.0, 2.0])
    assert [row["noises"][1] for row in document["rows"]] == [False, False]
    page = tmp_path / "page.html"
    dld("compare", *sweeps, "--html", page)
    assert "batch 2" in page.read_text()
    dld("report", sweeps[0], "--html", page, "--force")
    assert "Lowest latency" in page.read_text()


PROFILE = (
    '[\n  { "count" : 4 }\n, { "name" : "Conv_0 + Relu_1", "timeMs" : 8, "averageMs" : 2,'
    ' "medianMs" : 1.5, "percentage" : 100 }\n]\n'
)
TIMES = '[ { "startComputeMs" : 1, "endComputeMs" : 3.5, "computeMs" : 2.5, "latencyMs" : 2.5 } ]'


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    return make_report(tmp_path / "net.dldprof", names=(HOSTILE,))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (PROFILE, ("TensorRT · TensorRT", "Conv + Relu", "2.000")),
        (TIMES, ("TensorRT (trtexec)", "GPU compute", "2.50 ms median")),
        (json.dumps([x("aten::mm", 1, 2000, cat="cpu_op")]), ("Chrome trace", "aten::mm", "2.000")),
    ],
)
def test_what_other_programs_wrote_is_a_report(
    dld: Dld, tmp_path: Path, content: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    outcome = dld("report", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert all(word in outcome.out for word in words)
    assert dld("report", path, "--json").json["path"] == str(path)


def test_files_of_other_kinds_are_written_beside_the_text(
    dld: Dld, exported: Path, tmp_path: Path
) -> None:
    html, trace = tmp_path / "r.html", tmp_path / "r.trace.json"
    outcome = dld("report", exported, "--html", html, "--trace", trace)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("tiny.onnx   0.342 ms median")
    assert html.read_text().startswith("<!DOCTYPE html>")
    assert len(json.loads(trace.read_text())["traceEvents"]) > 50
    again = dld("report", trace)
    assert "5 passes" in again.out


def test_nothing_is_overwritten_or_half_done(dld: Dld, exported: Path, tmp_path: Path) -> None:
    old = tmp_path / "r.trace.json"
    old.write_text("keep me")
    message = dld.fails(2, "report", exported, "--html", tmp_path / "r.html", "--trace", old)
    assert "--force" in message
    assert old.read_text() == "keep me"
    assert not (tmp_path / "r.html").exists()
    assert dld("report", exported, "--trace", old, "--force").status == 0


def test_parquet(dld: Dld, exported: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    path = tmp_path / "r.parquet"
    assert dld("report", exported, "--parquet", path).status == 0
    assert parquet.read_table(path).num_rows == 10


def test_bad_files_are_one_clear_line_or_a_report_that_says_what_is_missing(
    dld: Dld, real_files: Path
) -> None:
    paths = [*(real_files / "bad" / "json").iterdir()]
    paths += (real_files / "ortprofile" / "edge").iterdir()
    kept = {"ort_trailing_comma", "ort_truncated", "ort_bom_utf16", "run_failed_midway"}
    refused = set()
    for path in sorted(paths):
        outcome = dld("report", path)
        if outcome.status == 0:
            assert path.name.split(".")[0] in kept, path
            assert outcome.err == ""
        else:
            refused.add(path.name.split(".")[0])
            assert dld.fails(outcome.status, "report", path).startswith(f"dld: {path}")
    assert len(refused) >= 8
