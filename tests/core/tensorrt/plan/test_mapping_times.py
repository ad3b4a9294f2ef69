"""The time of engine layers shared over ONNX nodes."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.report.groups import NO_NODE, group_layers
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.report.reports_of_model import times_by_node
from dld_tui.core.report.sharing import node_macs
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.mapping import map_plan
from tests.support.models import parse
from tests.support.plans import layer, plan

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[1, 4, 8, 8] x, float[4, 4, 3, 3] w, float[4, 4, 1, 1] v) => (float[1, 4, 8, 8] y)
<float[1, 4, 8, 8] c1, float[1, 4, 8, 8] r>
{
    [big] c1 = Conv <pads = [1, 1, 1, 1]> (x, w)
    [act] r = Relu(c1)
    [small] y = Conv (r, v)
}
"""


@pytest.fixture
def document(tmp_path: Path) -> Document:
    onnx.save(parse(MODEL), tmp_path / "m.onnx")
    return Document.open(tmp_path / "m.onnx")


def records(document: Document, *layers: tuple[str, float]) -> list[Layer]:
    made = plan([layer(i, name, time_ms=time) for i, (name, time) in enumerate(layers)])
    return layer_records(made, map_plan(made, document))


def shared(document: Document, *layers: tuple[str, float]) -> dict[str, Group]:
    return {one.key: one for one in group_layers(records(document, *layers), "node")}


def test_macs_of_nodes(document: Document) -> None:
    big, act, small = document.main.nodes
    assert [node_macs(node) for node in (big, act, small)] == [4 * 64 * 36, 0, 4 * 64 * 4]


def test_a_layer_of_one_node_is_measured(document: Document) -> None:
    found = shared(document, ("big", 2.0))
    assert [(one.key, one.time_ms, one.estimate) for one in found.values()] == [("big", 2.0, False)]


def test_what_works_on_weights_only_gets_nothing(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[2, 2] x) => (float[2, 2] y)
    <float[2, 2] w = {1, 2, 3, 4}, float s = {1}, int8 z = {0}>
    { [q] a = QuantizeLinear(w, s, z) [dq] b = DequantizeLinear(a, s, z) [mm] y = MatMul(x, b)
      [scaled] c = Mul(s, x) }
    """
    onnx.save(parse(text), tmp_path / "m.onnx")
    found = shared(Document.open(tmp_path / "m.onnx"), ("w + q + dq + mm + scaled", 2.0))
    assert {key for key, one in found.items() if one.time_ms} == {"mm", "scaled"}


def test_nothing_is_lost(document: Document) -> None:
    layers = [("big + act", 1.0), ("__myl_Fused_myl0_0", 2.0), ("small", 4.0), ("act_1", 8.0)]
    found = shared(document, *layers)
    assert sum(one.time_ms for one in found.values()) == pytest.approx(15.0)
    assert found[NO_NODE].time_ms == 2.0


def test_times_by_node_of_the_model(document: Document) -> None:
    big, act, small = document.main.nodes
    times = times_by_node(records(document, ("big + act", 3.0), ("small", 1.0)), document)
    assert times == pytest.approx({big: 3.0 * 36 / 37, act: 3.0 / 37, small: 1.0})
