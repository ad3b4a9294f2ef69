"""Adding an operator: names, import, bodies and users in one step."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.document.serialise import save
from dld_tui.core.types import JSON
from tests.oracles.edited_models import loads
from tests.support import models
from tests.support.sessions import bytes_of, opened

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


def test_in_a_body_it_uses_what_came_later_but_nothing_of_the_body(tmp_path: Path) -> None:
    text = models.PLAIN_BRANCHES.replace("y = If", "c = If").replace(
        "    >\n", "    >\n    [late] z = Neg(x)\n    [last] y = Add(c, z)\n"
    )
    document = opened(tmp_path, text)
    scope: list[JSON] = ["choose:then_branch"]
    document.apply("add_operator", scope=scope, op_type="Add", inputs=["h", "z"], behind="h")
    assert loads(bytes_of(document)) is None
    assert [node.name for node in document.main.nodes] == ["pre", "late", "choose", "last"]
    document.undo()
    with pytest.raises(EditError, match="'y' comes from a node that this body belongs to"):
        document.apply("add_operator", scope=scope, op_type="Add", inputs=["h", "y"], behind="h")


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


def test_the_operator_set_is_imported_and_the_file_version_follows(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN.replace("ir_version: 10", "ir_version: 8"))
    document.apply(
        "add_operator", scope=[], op_type="Scaler", domain="ai.onnx.ml", inputs=["a"], opset=5
    )
    assert document.opset_imports == {"": 18, "ai.onnx.ml": 5}
    assert document.model.ir_version == 10
    document.apply(
        "add_operator", scope=[], op_type="Scaler", domain="ai.onnx.ml", inputs=["a"], opset=3
    )
    assert document.opset_imports["ai.onnx.ml"] == 5, "an import that is there stays"
    assert len(document.history.done) == 2


def test_the_import_of_a_function_is_its_own(tmp_path: Path) -> None:
    document = opened(tmp_path, models.FUNCTIONS)
    document.apply(
        "add_operator", scope=["function local:twice"], op_type="Gelu", domain="com.microsoft",
        inputs=["v"], opset=1,
    )  # fmt: skip
    assert "com.microsoft" not in document.opset_imports
    save(document, tmp_path / "saved.onnx")
    function = Document.open(tmp_path / "saved.onnx").functions[0]
    assert "com.microsoft" in {entry.domain for entry in function.proto.opset_import}  # type: ignore[union-attr]
