"""Types are inferred whatever the order of the nodes, as runtimes read them."""

from __future__ import annotations

from typing import Any

import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dld_tui.core.model.shapes.inference import infer, sort_nodes


def chain() -> list[onnx.NodeProto]:
    """Return nodes of which each uses the last one; one of them in its bodies."""
    bodies: dict[str, Any] = {
        name: helper.make_graph(
            [helper.make_node("Neg", ["b"], [f"{name}_out"])], name, [],
            [helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, None)],
        )
        for name in ("then_branch", "else_branch")
    }  # fmt: skip
    return [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("LeakyRelu", ["a"], ["b"], alpha=0.5),
        helper.make_node("If", ["c"], ["d"], **bodies),
        helper.make_node("Add", ["d", "a"], ["y"]),
    ]


@given(st.permutations(range(4)))
@settings(deadline=None)
def test_nodes_in_any_order_are_inferred_as_in_theirs(order: list[int]) -> None:
    nodes = chain()
    graph = helper.make_graph(
        [nodes[at] for at in order], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
         helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_empty_tensor_value_info("y")],
    )  # fmt: skip
    model = helper.make_model(graph)
    expected = infer(helper.make_model(helper.make_graph(
        nodes, "g", graph.input, graph.output))).model.graph.output  # fmt: skip
    assert expected[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert infer(model).model.graph.output == expected
    sort_nodes(graph)
    assert [node.output[0] for node in graph.node] == ["a", "b", "d", "y"]
