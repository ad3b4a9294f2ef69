from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from dld_tui.core.errors import SaveError, UnavailableError, UsageError
from dld_tui.core.reading.export import export_report, formats, groups_csv, layers_csv
from dld_tui.core.report.layer_table import VIEWS
from dld_tui.core.report.records import Group, Layer, NodeLink
from dld_tui.core.report.report import Report
from tests.support.profiles import write_report
from tests.support.report_files import HOSTILE, make_report


@pytest.fixture
def report(tmp_path: Path) -> Report:
    link = NodeLink(("If:then_branch",), "/c", "/c", "Conv")
    layer = Layer("/c", "Conv", ((1, 3), None), ((1, 8),), "CPUExecutionProvider", "float32",
                  nodes=(link,), confidence="name")  # fmt: skip
    return Report.open(write_report(tmp_path / "r.dldprof", [(layer, [1.0, 3.0])]))


def test_the_rows_of_layers_and_groups_in_csv(report: Report) -> None:
    (row,) = csv.DictReader(io.StringIO(layers_csv(report.layers)))
    assert list(row) == VIEWS["report csv"].split()
    assert (row["input_dims"], row["time_ms"]) == ("1x3; ?", "1.0")
    assert row["nodes"] == "If:then_branch › /c"
    text = groups_csv([Group("a,b", 2, 1.5, 30.0, True, cost_ms=1.5)])
    assert list(csv.reader(io.StringIO(text))) == [
        ["key", "count", "time_ms", "percent", "gpu_time_ms", "estimate", "cost_ms"],
        ["a,b", "2", "1.5", "30.0", "", "True", "1.5"],
    ]  # fmt: skip


@pytest.fixture
def report_of_export_file(tmp_path: Path) -> Report:
    return Report.open(make_report(tmp_path / "r.dldprof", layers=4, names=(HOSTILE,)))


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.csv", "index,name,"),
        ("a.json", '{\n  "path"'),
        ("a.HTML", "<!DOCTYPE html>"),
        ("a.trace.json", '{"displayTimeUnit"'),
    ],
)
def test_the_name_says_what_is_written(
    report_of_export_file: Report, tmp_path: Path, name: str, start: str
) -> None:
    target = tmp_path / name
    assert export_report(report_of_export_file, target) == []
    assert target.read_text().startswith(start)
    with pytest.raises(SaveError, match="exists"):
        export_report(report_of_export_file, target)
    before = target.read_bytes()
    export_report(report_of_export_file, target, overwrite=True)
    assert target.read_bytes() == before


def test_other_names_are_refused_with_those_that_are_known(
    report_of_export_file: Report, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        export_report(report_of_export_file, tmp_path / "a.pdf")
    assert all(ending in (caught.value.hint or "") for ending in formats())


def test_the_json_is_that_of_the_command(report_of_export_file: Report, tmp_path: Path) -> None:
    export_report(report_of_export_file, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["layers"][0]["name"] == HOSTILE


def test_parquet_has_the_layers_with_their_types(
    report_of_export_file: Report, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    export_report(report_of_export_file, tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    rows = table.to_pylist()
    assert [row["time_ms"] for row in rows] == [
        layer.time_ms for layer in report_of_export_file.layers
    ]
    assert rows[0]["name"] == HOSTILE
    assert rows[1]["input_dims"] == ["1x8x16x16"]
    assert rows[1]["nodes"] == [report_of_export_file.layers[1].nodes[0].label]
    assert rows[0]["gpu_time_ms"] is None
    assert table.schema.metadata[b"network"] == b"tiny.onnx"
    assert parquet.read_metadata(tmp_path / "a.parquet").num_rows == 4


def test_without_pyarrow_the_command_that_brings_it_is_named(
    report_of_export_file: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnavailableError, match="needs pyarrow") as caught:
        export_report(report_of_export_file, tmp_path / "a.parquet")
    assert "pyarrow" in (caught.value.hint or "")
    assert not (tmp_path / "a.parquet").exists()
