"""Adding an operator: names, import, bodies and users in one step."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.document import Document, Node
from tests.support.sessions import opened

LATE = """
<ir_version: 10, opset_import: ["" : 18]>
late (float[N, 4] x) => (float[N, 4] y)
{
    [first] a = Relu(x)
    [user] b = Neg(a)
    [other] c = Abs(x)
    [deep] d = Sin(b)
    [last] y = Add(d, c)
}
"""


def named(document: Document, name: str) -> Node:
    return next(node for node in document.main.nodes if node.name == name)


def test_what_it_depends_on_keeps_the_value_and_the_order_still_runs(tmp_path: Path) -> None:
    document = opened(tmp_path, LATE)
    document.apply("add_operator", scope=[], op_type="Mul", inputs=["a", "c"], behind="a")
    order = [node.name for node in document.main.nodes]
    assert order.index("Mul") < order.index("user")
    assert order.index("other") < order.index("Mul")
    assert named(document, "user").inputs == ("Mul_output",)
    document.undo()
    document.apply("add_operator", scope=[], op_type="Mul", inputs=["a", "d"], behind="a")
    assert named(document, "user").inputs == ("a",), "the node depends on it"
