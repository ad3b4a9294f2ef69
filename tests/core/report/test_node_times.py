"""Times of layers as times of nodes."""

from __future__ import annotations

from dld_tui.core.model.document.document import Document
from dld_tui.core.report.node_times import function_callers, node_times
from dld_tui.core.report.records import Layer, NodeLink
from tests.support.models import parse


def test_times_of_bodies_count_for_the_node_that_has_them() -> None:
    def layer(ms: float, *links: NodeLink) -> Layer:
        return Layer("l", "t", nodes=links, time_ms=ms)

    layers = [
        layer(
            4.0,
            NodeLink((), "a", "a", "Conv", share=0.75),
            NodeLink((), "b", "b", "Add", share=0.25),
        ),
        layer(2.0, NodeLink(("if:then_branch",), "c", "c", "Abs")),
        layer(1.0, NodeLink((), "if", "if", "If")),
        layer(5.0, NodeLink(("f",), "d", "d", "Abs", calls=("call",))),
    ]
    assert node_times(layers) == {"a": 3.0, "b": 1.0, "if": 3.0, "call": 5.0}


def test_functions_that_call_each_other_end() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18, "local" : 1]>
    net (float[2] x) => (float[2] y) { [n] y = local.a (x) }
    <domain: "local", opset_import: ["" : 18, "local" : 1]>
    a (u) => (v) { v = local.b (u) }
    <domain: "local", opset_import: ["" : 18, "local" : 1]>
    b (u) => (v) { v = local.a (u) }
    """
    callers = function_callers(Document(parse(text)))
    assert callers == {"function local:a": {"n": 1.0}, "function local:b": {"n": 1.0}}
