from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from dld_tui.core.reading.export import groups_csv, layers_csv, report_json
from dld_tui.core.report.layer_table import VIEWS, shape_text
from dld_tui.core.report.records import Group, Layer, NodeLink
from dld_tui.core.report.report import Report
from tests.support.profiles import write_report


@pytest.fixture
def report(tmp_path: Path) -> Report:
    link = NodeLink(("If:then_branch",), "/c", "/c", "Conv")
    layer = Layer("/c", "Conv", ((1, 3), None), ((1, 8),), "CPUExecutionProvider", "float32",
                  nodes=(link,), confidence="name")  # fmt: skip
    return Report.open(write_report(tmp_path / "r.dldprof", [(layer, [1.0, 3.0])]))


def test_the_interfaces_fields(report: Report) -> None:
    found = json.loads(json.dumps(report_json(report, "op"), allow_nan=False))
    assert {
        "network", "backend", "execution_provider", "device", "passes", "latency_ms", "layers",
        "settings", "environment", "groups",
    } <= set(found)  # fmt: skip
    assert {"median", "min", "max", "mean", "p90", "p95", "p99"} <= set(found["latency_ms"])
    (layer,) = found["layers"]
    assert {k: layer[k] for k in ("index", "name", "type", "input_dims", "output_dims")} == {
        "index": 0, "name": "/c", "type": "Conv", "input_dims": [[1, 3], None],
        "output_dims": [[1, 8]],
    }  # fmt: skip
    assert {k: layer[k] for k in ("provider", "precision", "time_ms", "percent", "nodes")} == {
        "provider": "CPUExecutionProvider", "precision": "float32", "time_ms": 1.0,
        "percent": 100.0, "nodes": ["/c"],
    }  # fmt: skip
    assert found["groups"] == [
        {"key": "Conv", "count": 1, "time_ms": 1.0, "percent": 100.0, "gpu_time_ms": None,
         "estimate": False, "cost_ms": 1.0}
    ]  # fmt: skip
    assert found["gpu"] is None
    assert found["passes"] == 2


def test_groups_only_when_asked(report: Report) -> None:
    assert "groups" not in report_json(report)


def test_layer_csv(report: Report) -> None:
    (row,) = csv.DictReader(io.StringIO(layers_csv(report.layers)))
    assert list(row) == VIEWS["report csv"].split()
    assert (row["input_dims"], row["time_ms"]) == ("1x3; ?", "1.0")
    assert row["nodes"] == "If:then_branch › /c"


def test_group_csv() -> None:
    text = groups_csv([Group("a,b", 2, 1.5, 30.0, True, cost_ms=1.5)])
    assert list(csv.reader(io.StringIO(text))) == [
        ["key", "count", "time_ms", "percent", "gpu_time_ms", "estimate", "cost_ms"],
        ["a,b", "2", "1.5", "30.0", "", "True", "1.5"],
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@x", "\tx"])
def test_no_formula_reaches_a_spreadsheet(name: str) -> None:
    row = list(csv.reader(io.StringIO(layers_csv([Layer(name, "Conv")]))))[1]
    assert row[1] == "'" + name


def test_names_with_line_ends_stay_in_their_cell() -> None:
    text = layers_csv([Layer('a\n"b', "Conv")])
    assert list(csv.reader(io.StringIO(text)))[1][1] == 'a\n"b'


def test_shapes() -> None:
    assert [shape_text(d) for d in ((1, "N", None), (), None)] == ["1xNx?", "scalar", "?"]
