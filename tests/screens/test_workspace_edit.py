"""Edits in the workspace: new models, names, types that are asked for, rows that stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from dld_tui.core.model import edits
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.screens.home.new_model import NewModelScreen
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.parameters.descriptions import DOCUMENTATION
from dld_tui.widgets.parameters.edit_bar import EditBar, name_editor
from tests.support import models
from tests.support.pages import running
from tests.support.workspace import NARROW, opened


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain/name", "plain/name"),
        ("it's", "it's"),
        ("back\\slash", "back\\slash"),
        ("esc\x1b[2J", "esc\\x1b[2J"),
        ("odd \udcff 'quoted'", "odd \\xff \\'quoted\\'"),
    ],
)
def test_names_are_edited_as_they_can_be_shown(name: str, shown: str) -> None:
    text, read = name_editor(name)
    assert text == shown
    assert read(text) == name


@pytest.mark.broad
async def test_the_parameters_stay_where_they_are(chain: Path) -> None:
    async with opened(chain, NARROW) as session:
        await session.go("first")
        view = session.screen.panes.parameters.list
        await session.press("3", "D")
        place = view.cursor - view.scroll_offset.y
        for alpha in (1.0, 2.0):
            for name in ("one", "two", "three"):
                session.edit(
                    edits.attributes.set_attribute(
                        scope=[], node="first", attribute=name, kind="float", value=alpha
                    )
                )
        await session.settle()
        for keys in ("", "uuu", "uuu"):
            await session.press(*keys)
            assert view.key_at_cursor() == DOCUMENTATION, keys
            assert view.cursor - view.scroll_offset.y == place, keys


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


@pytest.mark.broad
async def test_a_new_model_is_made_by_the_form() -> None:
    async with running() as run:
        await run.press("ctrl+n")
        form = await run.front(NewModelScreen)
        rows = form.query_one(ParamForm).rows
        rows["opset"].text = "999"
        await run.pilot.pause()
        await run.press("f5")
        assert run.app.pages == [], "there is no such opset"
        await run.press("escape")
        rows["opset"].text = "17"
        rows["inputs"].text = "x:float32[N,3]"
        await run.pilot.pause()
        assert form.command_line == "dld new OUT.onnx --opset 17 --input 'x:float32[N,3]'"
        await run.press("f5")
        page = await run.front(WorkspaceScreen)
        await run.until(lambda: page.is_open)
        assert page.document.opset_imports == {"": 17}
        assert page.document.main.inputs == ("x",)
