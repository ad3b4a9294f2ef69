"""Links are made, cut and moved by keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.widgets.parameters.edit_bar import EditBar
from tests.support import models
from tests.support.workspace import Session, opened

JOIN = """
<ir_version: 10, opset_import: ["" : 18]>
join (float[N, 4] x, float[N, 4] z, int64[2] shape) => (float[N, 12] y, float[N, 4] part)
{
    [left] part = Relu(x)
    [limit] low = Clip(z)
    [join] y = Concat<axis = 1>(part, x, z)
}
"""


@pytest.fixture
def join(tmp_path: Path) -> Path:
    return models.write(tmp_path, JOIN)


def inputs(session: Session, name: str) -> tuple[str, ...]:
    node = session.screen.document.main.find(name)
    assert node is not None
    return (*node.inputs,)


@pytest.mark.broad
async def test_an_input_of_unknown_rank_asks_for_its_type(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 18]> net (float x) => (float y) {%s}'
    model = models.parse(text % "[r] t = Relu (x) [n] y = Neg (t)")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    async with opened(path) as session:
        main = session.screen.document.main
        await session.go("n")
        await session.row("X Relu")
        session.screen.wiring.make_input()
        await session.until(lambda: bool(session.screen.query(EditBar)))
        assert "float32[...]" in session.text
        await session.press("enter")
        assert "dimensions are needed" in session.text
        assert [*main.inputs] == ["x"]
        session.screen.query_one(EditBar).query_one(Input).value = "f32[2, ?]"
        await session.press("enter")
        assert [*main.inputs] == ["x", "t_input"]
        assert main.value_type("t_input") == ValueType("float32", (2, None))
        assert main.nodes[1].inputs == ("t_input",)
