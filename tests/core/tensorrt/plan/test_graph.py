from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.graph.folding import Overview
from dld_tui.core.model.graph.graph import Kind
from dld_tui.core.tensorrt.plan.graph import (
    LayerVertex,
    category_of_type,
    drawn_plan,
    plan_content,
)
from dld_tui.core.tensorrt.plan.reader import open_plan
from tests.support.engine_files import write_engine


def links(graph_of: Path) -> set[tuple[str, str]]:
    graph = drawn_plan(open_plan(graph_of)).graph
    return {
        (graph.names[net.source], graph.names[target])
        for net in graph.nets
        for target in net.targets
    }


def test_layers_are_linked_by_their_tensors_and_bindings(tmp_path: Path) -> None:
    path = write_engine(tmp_path)
    graph = drawn_plan(open_plan(path)).graph
    assert graph.kinds == [Kind.INPUT, *[Kind.NODE] * 5, Kind.OUTPUT]
    assert graph.labels[1:-1] == ["Reformat", "Convolution", "Convolution", "Reformat", "Pooling"]
    second = "/block/conv2/Conv + /block/add/Add"
    assert ("x", "/quant/QuantizeLinear") in links(path)
    assert ("/quant/QuantizeLinear", second) in links(path)  # the skip
    assert ("/pool/GlobalAveragePool", "y") in links(path)
    assert next(net.label for net in graph.nets if net.name == "b") == "fp16[8,64,28,28]"


def test_subjects_are_layers_by_their_place_and_names_of_bindings(tmp_path: Path) -> None:
    drawn = drawn_plan(open_plan(write_engine(tmp_path)))
    assert drawn.subjects[0] == "x"
    assert drawn.subjects[drawn.vertex(3)] == LayerVertex(3)


def test_several_writers_of_a_tensor_are_all_linked(tmp_path: Path) -> None:
    path = write_engine(tmp_path, count=2)  # the same tensors come again
    graph = drawn_plan(open_plan(path)).graph
    assert not any(net.source in net.targets for net in graph.nets)
    # The first reader takes what was written before it, not what the second copy writes.
    first = graph.names.index("/block/conv1/Conv")
    assert [graph.names[source] for source in graph.sources[first]] == ["/quant/QuantizeLinear"]


def test_a_plan_of_names_has_vertices_without_links(tmp_path: Path) -> None:
    graph = drawn_plan(open_plan(write_engine(tmp_path, names_only=True))).graph
    assert not graph.nets
    assert "/block/conv1/Conv" in graph.names


def test_scopes_of_onnx_nodes_fold_the_layers(tmp_path: Path) -> None:
    plan = open_plan(write_engine(tmp_path, count=6))
    drawn = drawn_plan(plan, {layer.index: f"/net/{layer.index // 5}/op" for layer in plan.layers})
    titles = [fold.title for fold in Overview(drawn.graph).folds]
    assert titles == ["0 … 1", "2", "3", "4", "5"]  # all are in "net", which is not said


def test_an_unknown_type_has_no_category() -> None:
    assert category_of_type("SomethingNew") == ""


def test_by_type_the_colours_are_those_of_operators(tmp_path: Path) -> None:
    content = plan_content(open_plan(write_engine(tmp_path)))
    assert [content.colour(vertex) for vertex in range(1, 6)] == [
        "shape", "conv", "conv", "shape", "conv",
    ]  # fmt: skip
