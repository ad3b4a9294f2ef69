"""Engine plans as something to compare."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.compare.comparison import Comparison, open_subject
from dld_tui.core.compare.engine_subject import plan_subject
from dld_tui.core.errors import InputError
from dld_tui.core.model.document import Document
from dld_tui.core.tensorrt.plan.engine_plan import EngineTensor, TimeStatistics, TimingSummary
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import is_plan
from tests.support import models
from tests.support.plans import layer, plan, write_layers, write_profile
from tests.support.report_files import make_report


def test_types_and_networks_without_a_model(tmp_path: Path) -> None:
    made = plan([layer()], model_path="C:\\models\\net.onnx")
    assert plan_subject(made, {}).properties["network"] == "net.onnx"
    made = plan([layer(0, "Conv_3 + /block/Relu + odd")])
    (found,) = plan_subject(made, map_plan(made)).layers
    assert [link.op_type for link in found.nodes] == ["Conv", "Relu", "(unknown)"]
    path = tmp_path / "names.json"
    path.write_text('{"Layers": ["Conv_0 + Relu_1", "{ForeignNode[a...b]}"], "Bindings": []}')
    types = [one.type for one in open_subject(path).layers]
    assert types == ["Conv + Relu", "ForeignNode"]


def test_shapes_of_the_inputs() -> None:
    x, s, y = (
        EngineTensor(name, dims, "fp32", "", "", mode)
        for name, dims, mode in (("x", (2, 3), "input"), ("s", (), "input"), ("y", (2,), "output"))
    )
    found = plan_subject(plan([layer()], bindings=(x, s, y)), {})
    assert found.settings == {"input_shapes": {"x": [2, 3], "s": []}}
    unknown = EngineTensor("u", None, "fp32", "", "", "input")
    assert plan_subject(plan([layer()], bindings=(x, unknown)), {}).settings == {}


def test_latencies_of_the_timing() -> None:
    median = TimeStatistics(1.0, 3.0, 2.0, 2.5)
    summary = TimingSummary(median, None, None, None, None, None)
    made = plan([layer()], timing=summary)
    assert plan_subject(made, {}).latencies_ms == (2.5,)
    every = TimingSummary(median, None, None, None, None, None, series={"latency": (1.0, 3.0)})
    assert plan_subject(plan([layer()], timing=every), {}).latencies_ms == (1.0, 3.0)
    assert plan_subject(plan([layer()]), {}).latencies_ms == ()


def test_nodes_in_the_model(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    made = plan([layer(0, "first + second", time_ms=2.0)])
    found = plan_subject(made, map_plan(made, document), document)
    assert found.model == {"path": str(tmp_path / "model.onnx")}
    nodes = found.layers[0].nodes
    assert [link.op_type for link in nodes] == ["Relu", "Add"]
    # Both read and write as much, and one of them reads a constant besides.
    assert [link.share for link in nodes] == pytest.approx([0.4995, 0.5005], abs=1e-4)
    assert found.layers[0].shared_by == "bytes"
    assert found.layers[0].confidence == "name"


def test_which_files_are_subjects(tmp_path: Path) -> None:
    layers = write_layers(tmp_path / "net.graph.json", [{"Name": "a"}])
    profile = write_profile(tmp_path / "times.json", [("a", 1.0)])
    assert is_plan(layers)
    assert not is_plan(profile)
    assert not is_plan(make_report(tmp_path / "a.dldprof"))
    (tmp_path / "text.txt").write_text("nothing")
    with pytest.raises(InputError):
        is_plan(tmp_path / "text.txt")
    with pytest.raises(InputError):
        open_subject(write_layers(tmp_path / "net.graph.json", []))
    (tmp_path / "x.txt").write_text("nothing")
    with pytest.raises(InputError):
        open_subject(tmp_path / "x.txt")


def test_a_plan_and_a_report_of_onnx_runtime(tmp_path: Path) -> None:
    layers = write_layers(tmp_path / "net.graph.json", [{"Name": "conv"}])
    comparison = Comparison(
        [open_subject(layers), open_subject(make_report(tmp_path / "a.dldprof"))]
    )
    assert comparison.explanation()
    assert any("no times" in line for line in comparison.doubts)


def test_a_report_that_is_still_written(tmp_path: Path) -> None:
    partial = open_subject(make_report(tmp_path / "p.dldprof", finish=False))
    whole = open_subject(make_report(tmp_path / "w.dldprof"))
    comparison = Comparison([whole, partial])
    assert any("partial" in line for line in comparison.doubts)
    assert all(row.cells[1].noise for row in comparison.rows())
