"""``dld report`` of other programs' files, and into files of other kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Dld
from tests.support.report_files import HOSTILE, make_report
from tests.support.traces import x

PROFILE = (
    '[\n  { "count" : 4 }\n, { "name" : "Conv_0 + Relu_1", "timeMs" : 8, "averageMs" : 2,'
    ' "medianMs" : 1.5, "percentage" : 100 }\n]\n'
)
TIMES = '[ { "startComputeMs" : 1, "endComputeMs" : 3.5, "computeMs" : 2.5, "latencyMs" : 2.5 } ]'


@pytest.fixture
def report(tmp_path: Path) -> Path:
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
    dld: Dld, report: Path, tmp_path: Path
) -> None:
    html, trace = tmp_path / "r.html", tmp_path / "r.trace.json"
    outcome = dld("report", report, "--html", html, "--trace", trace)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("tiny.onnx   0.342 ms median")
    assert html.read_text().startswith("<!DOCTYPE html>")
    assert len(json.loads(trace.read_text())["traceEvents"]) > 50
    again = dld("report", trace)
    assert "5 passes" in again.out


def test_nothing_is_overwritten_or_half_done(dld: Dld, report: Path, tmp_path: Path) -> None:
    old = tmp_path / "r.trace.json"
    old.write_text("keep me")
    message = dld.fails(2, "report", report, "--html", tmp_path / "r.html", "--trace", old)
    assert "--force" in message
    assert old.read_text() == "keep me"
    assert not (tmp_path / "r.html").exists()
    assert dld("report", report, "--trace", old, "--force").status == 0


def test_parquet(dld: Dld, report: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    path = tmp_path / "r.parquet"
    assert dld("report", report, "--parquet", path).status == 0
    assert parquet.read_table(path).num_rows == 10


@pytest.mark.broad
def test_profiles_of_all_versions_are_read(dld: Dld, real_files: Path) -> None:
    found = sorted((real_files / "ortprofile").glob("*.ort1.*.json"))
    assert len(found) >= 8
    for path in found:
        read = dld("report", path, "--json")
        assert (read.status, read.err) == (0, ""), path
        assert read.json["layers"], path
        assert read.json["layers_total_ms"] > 0, path


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
