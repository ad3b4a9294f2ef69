"""The object that notebooks use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dld_tui import api
from dld_tui.api import Plan
from tests.support.models import write
from tests.support.plans import write_layers, write_profile

MODEL = """<ir_version: 8, opset_import: ["": 17]> g (float[1,4] x) => (float[1,4] y) {
  [conv] t = Relu(x)
  [act] y = Relu(t)
}"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = write_layers(
        tmp_path / "net.graph.json",
        [{"Name": "conv", "of": "Int8"}, {"Name": "act", "LayerType": "Reformat", "Origin": "QDQ"}],
    )
    write_profile(tmp_path / "net.profile.json", [("conv", 3.0), ("act", 1.0)])
    return found


def test_records_summary_and_findings_are_plain_data(path: Path) -> None:
    plan = Plan(path)
    assert [record["name"] for record in plan.layers] == ["conv", "act"]
    assert [record["time_ms"] for record in plan.layers] == [3.0, 1.0]
    assert len({tuple(record) for record in plan.layers}) == 1, "each has the same fields"
    assert (plan.summary["total_ms"], plan.timing, plan.inferences) == (4.0, None, {})
    assert {"rule", "hazard", "layers"} <= set(plan.findings[0])
    assert [record["name"] for record in plan.select("origin:qdq")] == ["act"]
    assert plan.table("precision")[0]["key"] == "int8"
    assert plan.table("convolutions", "type:conv")[0]["name"] == "conv"
    assert [record["mode"] for record in plan.bindings] == ["input", "output"]
    with pytest.raises(ValueError, match="no view 'colour'"):
        plan.table("colour")
    assert len(plan) == 2
    assert "2 layers" in repr(plan)
    json.dumps([plan.layers, plan.summary, plan.findings])


def test_nodes_are_found_in_a_model(path: Path, tmp_path: Path) -> None:
    model = write(tmp_path, MODEL)
    found = Plan(path, model=model).layers
    assert [record["nodes"] for record in found] == [["conv"], ["act"]]
    assert found[0]["confidence"] == "exact"


def test_it_loads_neither_a_user_interface_nor_a_runtime(path: Path) -> None:
    code = (
        "import sys; from dld_tui.api import Plan; Plan(sys.argv[1]).layers;"
        " print({'textual', 'onnx', 'onnxruntime', 'tensorrt'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = api.absent
