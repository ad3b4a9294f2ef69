"""Layers that stand for a part of the graph: ``{ForeignNode[FIRST...LAST]}``."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from dld_tui.core.model.document import Document
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.layer_names import ends_of
from dld_tui.core.tensorrt.plan.mapping import map_plan
from tests.support.models import parse
from tests.support.plans import named
from tests.support.work import steps_in

GRAPH = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}>
{
    [first] a = Relu(x)
    [left] l = Neg(a)
    [aside] s = Abs(x)
    [right] r = Mul(a, w)
    [join] j = Add(l, r)
    [mix] m = Add(j, s)
    [last] y = Sigmoid(m)
}
"""


@pytest.fixture
def document(tmp_path: Path) -> Document:
    onnx.save(parse(GRAPH), tmp_path / "m.onnx")
    return Document.open(tmp_path / "m.onnx")


def found_in(document: Document | None, *layers: str) -> list[list[str]]:
    mapping = map_plan(named(*layers), document)
    return [[ref.name for ref in mapping[index].nodes] for index in range(len(layers))]


def test_what_lies_on_paths_between_the_ends(document: Document) -> None:
    mapping = map_plan(named("{ForeignNode[first...join]}"), document)
    assert [ref.name for ref in mapping[0].nodes] == ["first", "left", "right", "join"]
    assert (mapping[0].how, mapping[0].confidence) == ("range", "likely")


def test_nodes_that_other_layers_are_named_after_are_theirs(document: Document) -> None:
    assert found_in(document, "left", "{ForeignNode[first...mix]}") == [
        ["left"],
        ["first", "right", "join", "mix"],
    ]


def test_ends_without_a_path_between_them_are_a_guess(document: Document) -> None:
    mapping = map_plan(named("{ForeignNode[left...right]}"), document)
    assert [ref.name for ref in mapping[0].nodes] == ["left", "aside", "right"]
    assert mapping[0].confidence == "guess"


def test_an_end_may_be_weights_or_a_join(document: Document) -> None:
    assert found_in(document, "{ForeignNode[w...join]}") == [["right", "join"]]
    assert found_in(document, "{ForeignNode[w + ONNXTRT_Broadcast_4...join]}") == [
        ["right", "join"]
    ]


def test_a_range_of_one_layer_and_beside_others(document: Document) -> None:
    assert found_in(document, "{ForeignNode[mix]}") == [["mix"]]
    assert found_in(document, "{ForeignNode[left...join]} + last_1") == [["last", "left", "join"]]


def test_ends_that_the_model_lacks(document: Document) -> None:
    mapping = map_plan(named("{ForeignNode[ONNXTRT_a_8...ONNXTRT_a_9]}"), document)
    assert (mapping[0].nodes, mapping[0].how, mapping[0].confidence) == ((), "range", "none")
    half = map_plan(named("{ForeignNode[first...elsewhere]}"), document)
    assert ([ref.name for ref in half[0].nodes], half[0].confidence) == (["first"], "guess")


def test_without_a_model_only_the_ends_are_known() -> None:
    mapping = map_plan(named("{ForeignNode[/a/Conv.../b/Add]}_myl0_3"), None)
    assert [ref.name for ref in mapping[0].nodes] == ["/a/Conv", "/b/Add"]
    assert mapping[0].confidence == "guess"


def test_names_with_dots_in_them(tmp_path: Path) -> None:
    model = parse(GRAPH)
    model.graph.node[1].name = "le...ft"
    onnx.save(model, tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    assert found_in(document, "{ForeignNode[le...ft...join]}") == [["le...ft", "join"]]


def test_nodes_out_of_order_come_in_an_order_that_runs(tmp_path: Path) -> None:
    model = parse(GRAPH)
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    (names,) = found_in(document, "{ForeignNode[first...join]}")
    assert sorted(names) == ["first", "join", "left", "right"]
    assert (names[0], names[-1]) == ("first", "join")


def chain_of_ranges(path: Path, count: int) -> tuple[EnginePlan, Document]:
    nodes = [
        helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"/block{i}/Relu")
        for i in range(count)
    ]
    ends = [
        helper.make_tensor_value_info(value, TensorProto.FLOAT, [1])
        for value in ("v0", f"v{count}")
    ]
    graph = helper.make_graph(nodes, "long", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph), path)
    layers = [
        f"{{ForeignNode[/block{i}/Relu.../block{i + 3}/Relu]}}"
        if i % 8
        else f"/block{i}/Relu + PWN(/block{i + 1}/Relu, /block{i + 2}/Relu) + /block{i + 3}/Relu"
        for i in range(0, count, 4)
    ]
    return named(*layers), Document.open(path)


def test_the_work_grows_with_the_layers_and_no_faster(tmp_path: Path) -> None:
    work = []
    for count in (400, 800):
        plan, document = chain_of_ranges(tmp_path / f"{count}.onnx", count)
        work.append(steps_in(map_plan, plan, document))
        mapping = map_plan(plan, document)
        assert sum(len(found.nodes) for found in mapping.values()) == count
    assert work[1] < 2.5 * work[0]


@pytest.mark.parametrize(
    ("inner", "ends"),
    [
        ("a...b", [("a", "b")]), ("a...b...c", [("a", "b...c"), ("a...b", "c")]),
        ("a....b", [("a", ".b"), ("a.", "b")]), ("a...", []), ("...b", []), ("a..b", []),
    ],
)  # fmt: skip
def test_a_range_is_split_where_both_ends_have_a_name(
    inner: str, ends: list[tuple[str, str]]
) -> None:
    assert ends_of(inner) == ends
