from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dld_tui.core.errors import SaveError, UnavailableError, UsageError
from dld_tui.core.reading.export import export_report, formats
from dld_tui.core.report.report import Report
from tests.support.report_files import HOSTILE, make_report


@pytest.fixture
def report(tmp_path: Path) -> Report:
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
    report: Report, tmp_path: Path, name: str, start: str
) -> None:
    target = tmp_path / name
    assert export_report(report, target) == []
    assert target.read_text().startswith(start)
    with pytest.raises(SaveError, match="exists"):
        export_report(report, target)
    before = target.read_bytes()
    export_report(report, target, overwrite=True)
    assert target.read_bytes() == before


def test_other_names_are_refused_with_those_that_are_known(report: Report, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        export_report(report, tmp_path / "a.pdf")
    assert all(ending in (caught.value.hint or "") for ending in formats())


def test_the_json_is_that_of_the_command(report: Report, tmp_path: Path) -> None:
    export_report(report, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["layers"][0]["name"] == HOSTILE


def test_parquet_has_the_layers_with_their_types(report: Report, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    export_report(report, tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    rows = table.to_pylist()
    assert [row["time_ms"] for row in rows] == [layer.time_ms for layer in report.layers]
    assert rows[0]["name"] == HOSTILE
    assert rows[1]["input_dims"] == ["1x8x16x16"]
    assert rows[1]["nodes"] == [report.layers[1].nodes[0].label]
    assert rows[0]["gpu_time_ms"] is None
    assert table.schema.metadata[b"network"] == b"tiny.onnx"
    assert parquet.read_metadata(tmp_path / "a.parquet").num_rows == 4


def test_without_pyarrow_the_command_that_brings_it_is_named(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnavailableError, match="needs pyarrow") as caught:
        export_report(report, tmp_path / "a.parquet")
    assert "pyarrow" in (caught.value.hint or "")
    assert not (tmp_path / "a.parquet").exists()
