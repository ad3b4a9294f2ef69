"""Types are inferred whatever the order of the nodes, as runtimes read them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.parts.extraction import extract_nodes
from dld_tui.core.model.inputs.guess import guess_inputs, input_specs
from dld_tui.core.model.shapes.inference import (
    infer,
    infer_types,
    sort_nodes,
    store_types,
)
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import models
from tests.support.sessions import bytes_of, type_in


def inferred(folder: Path, text: str) -> Document:
    document = Document.open(models.write(folder, text))
    store_types(document, infer_types(onnx.ModelProto.FromString(bytes_of(document)), None)[0])
    return document


def calls(count: int, last: str = "300") -> str:
    """Return a model whose calls have other attributes each, and the last one another size."""
    sizes = [*["3"] * (count - 1), last]
    inputs = ", ".join(f"float[{size}, 4] x{at}" for at, size in enumerate(sizes))
    outputs = ", ".join(f"y{at}" for at in range(count))
    body = "  ".join(f"y{at} = local.twice <alpha = {at}.5> (x{at})" for at in range(count))
    body += "  z = local.other (x0)"
    return f"""
    <ir_version: 10, opset_import: ["" : 18, "local" : 1]>
    calls ({inputs}) => ({outputs}) {{ {body} }}
    <domain: "local", opset_import: ["" : 18, "local" : 1]>
    twice <alpha> (a) => (r) {{ b = local.same (a)  r = LeakyRelu <alpha: float = @alpha> (b) }}
    <domain: "local", opset_import: ["" : 18]>
    same (v) => (w) {{ w = Identity(v) }}
    <domain: "local", opset_import: ["" : 18]>
    other (v) => (w) {{ w = Transpose(v) }}
    """


@pytest.mark.parametrize("count", [2, 5, 32, 33, 40])
def test_what_one_of_many_calls_does_not_share_is_not_told(count: int, tmp_path: Path) -> None:
    twice, same, other = inferred(tmp_path, calls(count)).functions
    assert other.value_type("w") == ValueType("float32", (4, 3))
    for value in (twice.value_type("a"), twice.value_type("r"), same.value_type("w")):
        assert value in (None, ValueType("float32", (None, 4)))
    same_everywhere = inferred(tmp_path, calls(min(count, 32), "3")).functions[0]
    assert same_everywhere.value_type("r") == ValueType("float32", (3, 4))


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


NEGATIVE = """
<ir_version: 8, opset_import: ["" : 13]>
g (float[-1, 4] x, float[2, 4] z) => (float[-1, 4] y)
<float[-1, 4] m> { m = Relu (x) y = Concat <axis = 0> (m, z) }
"""


def opened(folder: Path, text: str) -> Document:
    document = Document.open(models.write(folder, text))
    store_types(document, infer(onnx.load(folder / "model.onnx")).model)
    return document


def test_what_is_made_with_it_can_become_an_output(tmp_path: Path) -> None:
    with closing(opened(tmp_path, NEGATIVE)) as document:
        document.apply("add_output", scope=[], name="m")
        assert type_in(document, "m").dims == (None, 4)
        assert extract_nodes(document, document.main.nodes[:1]).document.main.outputs == ("m",)


def test_an_input_with_it_gets_a_size(tmp_path: Path) -> None:
    with closing(opened(tmp_path, NEGATIVE)) as document:
        guess = guess_inputs(input_specs(document), document)
        assert guess.shapes["x"][0] >= 1
