"""``dld report``: text, groups, CSV and JSON of a report."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.support.cli import Dld
from tests.support.gpu_reports import make_gpu_report
from tests.support.report_files import HOSTILE, make_report
from tests.support.transcript_files import FILES


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
    page = tmp_path / "page.html"
    dld("compare", *sweeps, "--html", page)
    assert "batch 2" in page.read_text()
    dld("report", sweeps[0], "--html", page, "--force")
    assert "Lowest latency" in page.read_text()


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    return make_report(tmp_path / "net.dldprof", names=(HOSTILE,))


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
