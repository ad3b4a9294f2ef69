"""The time of engine layers shared over ONNX nodes."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.cost.sharing import node_macs
from dld_tui.core.document import Document
from dld_tui.core.report.groups import NO_NODE
from dld_tui.core.tensorrt.plan.mapping import NodeTime, Rule, map_plan, node_times, share_times
from tests.support.models import parse
from tests.support.plans import layer, named, plan

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


def shared(document: Document | None, rule: Rule, *layers: tuple[str, float]) -> list[NodeTime]:
    made = plan([layer(i, name, time_ms=time) for i, (name, time) in enumerate(layers)])
    return share_times(made, map_plan(made, document), rule)


def test_macs_of_nodes(document: Document) -> None:
    big, act, small = document.main.nodes
    assert [node_macs(node) for node in (big, act, small)] == [4 * 64 * 36, 0, 4 * 64 * 4]


def test_a_layer_of_one_node_is_measured(document: Document) -> None:
    (time,) = shared(document, "equal", ("big", 2.0))
    assert (time.name, time.time_ms, time.estimate, time.layers) == ("big", 2.0, False, (0,))


def test_equal_shares_are_estimates(document: Document) -> None:
    times = shared(document, "equal", ("big + act + small", 3.0))
    assert {time.name: time.time_ms for time in times} == pytest.approx(
        {"big": 1.0, "act": 1.0, "small": 1.0}
    )
    assert all(time.estimate and time.rules == ("equal",) for time in times)


def test_by_macs_what_has_none_gets_nothing(document: Document) -> None:
    times = shared(document, "macs", ("big + act + small", 10.0))
    assert {time.name: time.time_ms for time in times} == pytest.approx({"big": 9.0, "small": 1.0})
    assert all(time.rules == ("macs",) for time in times)


def test_by_macs_without_shapes_is_equal_and_says_so(tmp_path: Path) -> None:
    onnx.save(parse(MODEL.replace("[1, 4, 8, 8]", "[N, 4, 8, 8]")), tmp_path / "m.onnx")
    times = shared(Document.open(tmp_path / "m.onnx"), "macs", ("big + act", 3.0))
    assert [time.time_ms for time in times] == [1.5, 1.5]
    assert all(time.rules == ("equal",) for time in times)


def test_copies_count_for_their_node_and_are_told(document: Document) -> None:
    copy = "Reformatting CopyNode for Input Tensor 0 to big"
    (time,) = shared(document, "equal", (copy, 0.5), ("big", 2.0))
    assert (time.time_ms, time.inserted_ms, time.layers) == (2.5, 0.5, (0, 1))


def test_what_works_on_weights_only_gets_nothing(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[2, 2] x) => (float[2, 2] y)
    <float[2, 2] w = {1, 2, 3, 4}, float s = {1}, int8 z = {0}>
    { [q] a = QuantizeLinear(w, s, z) [dq] b = DequantizeLinear(a, s, z) [mm] y = MatMul(x, b) }
    """
    onnx.save(parse(text), tmp_path / "m.onnx")
    (time,) = shared(Document.open(tmp_path / "m.onnx"), "equal", ("w + q + dq + mm", 2.0))
    assert (time.name, time.time_ms, time.estimate) == ("mm", 2.0, False)


def test_nothing_is_lost(document: Document) -> None:
    layers = [("big + act", 1.0), ("__myl_Fused_myl0_0", 2.0), ("small", 4.0), ("act_1", 8.0)]
    times = shared(document, "macs", *layers)
    assert sum(time.time_ms for time in times) == pytest.approx(15.0)
    assert {time.name: time.time_ms for time in times}[NO_NODE] == 2.0


def test_without_a_profile_there_are_no_times(document: Document) -> None:
    bare = named("big", "act")
    assert share_times(bare, map_plan(bare, document)) == []


def test_times_by_node_of_the_model(document: Document) -> None:
    made = plan([layer(0, "big + act", time_ms=3.0), layer(1, "small", time_ms=1.0)])
    big, act, small = document.main.nodes
    assert node_times(made, document, "equal") == {big: 1.5, act: 1.5, small: 1.0}
    by_cost = node_times(made, document)
    assert by_cost[big] == pytest.approx(3.0 * 36 / 37)
    assert by_cost[act] == pytest.approx(3.0 / 37)
    assert node_times(made, document, "macs") == {big: 3.0, small: 1.0}
