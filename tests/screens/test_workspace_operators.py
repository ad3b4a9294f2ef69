"""Quick add, wiring and operator sets in a workspace."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, TextArea

from dld_tui.screens.model.opset_dialogs import OpsetDialog
from dld_tui.widgets.dialogs.dialogs import PromptDialog, TextDialog
from dld_tui.widgets.dialogs.wiring import AddNode, ValuePicker, WiringDialog
from tests.support import models
from tests.support.workspace import NARROW, WIDE, Session, opened


async def quick_add(session: Session, text: str) -> WiringDialog:
    """Open the palette, choose the best match and come to its wiring."""
    await session.press("a")
    await session.until(lambda: isinstance(session.app.screen, AddNode))
    await session.type(text)
    await session.press("enter")
    await session.until(lambda: isinstance(session.app.screen, WiringDialog))
    screen = session.app.screen
    assert isinstance(screen, WiringDialog)
    return screen


def rows(dialog: WiringDialog | OpsetDialog) -> list[str]:
    return [dialog.view.lines.text(at) for at in range(len(dialog.view.lines))]


def go_to(dialog: WiringDialog | OpsetDialog, label: str) -> None:
    texts = rows(dialog)
    dialog.view.cursor = next(at for at, text in enumerate(texts) if text.startswith(label))


@pytest.mark.broad
@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_an_operator_is_added_behind_the_cursor(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        await session.go("first")
        dialog = await quick_add(session, "tanh")
        assert rows(dialog)[0].endswith("Add the node")
        await session.press("enter")
        node = session.screen.model.cursor.node
        assert node is not None
        assert (node.op_type, node.inputs) == ("Tanh", ("a",))
        assert session.screen.explorer.node is node
        assert len(session.screen.document.history.done) == 1
        await session.press("u")
        assert len(session.screen.document.main.nodes) == 4


async def inserted_on_the_link_its_users_get_the_output(session: Session) -> None:
    await session.go("first")
    dialog = await quick_add(session, "tanh")
    go_to(dialog, "insert on the link")
    await session.press("enter")
    assert "[✔]" in next(row for row in rows(dialog) if row.startswith("insert"))
    await session.press("f5")
    second = session.screen.document.main.find("second")
    assert second is not None
    assert second.inputs == ("Tanh_output", "w")


async def what_is_required_is_asked_for(session: Session) -> None:
    await session.go("first")
    dialog = await quick_add(session, "concat")
    assert rows(dialog)[0] == "Still to choose: attribute axis"
    await session.press("f5")
    assert session.app.screen is dialog, "nothing is added yet"
    await session.press("enter")
    await session.type("one")
    await session.press("enter")
    assert isinstance(session.app.screen, PromptDialog), "the error is shown"
    session.app.screen.query_one(Input).value = "1"
    await session.press("enter")
    await session.until(lambda: isinstance(session.app.screen, WiringDialog))
    go_to(dialog, "inputs 1")
    await session.press("enter")
    await session.until(lambda: isinstance(session.app.screen, ValuePicker))
    await session.type("w")
    await session.press("enter")
    await session.until(lambda: isinstance(session.app.screen, WiringDialog))
    await session.press("f5")
    node = session.screen.model.cursor.node
    assert node is not None
    assert node.inputs == ("a", "w")
    axis = node.attribute("axis")
    assert axis is not None
    assert axis.value == 1


async def a_new_initializer_and_a_name(session: Session) -> None:
    await session.go("first")
    dialog = await quick_add(session, "mul")
    await session.press("a")
    session.app.screen.query_one(Input).value = "float32[4] 1 2 3 4"
    await session.press("enter")
    await session.until(lambda: isinstance(session.app.screen, WiringDialog))
    assert any("f32[4]" in row and "new: values" in row for row in rows(dialog))
    go_to(dialog, "name")
    await session.press("enter")
    await session.type("second")
    await session.press("enter")
    assert "already has this name" in session.text
    session.app.screen.query_one(Input).value = "scale"
    await session.press("enter")
    await session.until(lambda: isinstance(session.app.screen, WiringDialog))
    await session.press("f5")
    node = session.screen.model.cursor.node
    assert node is not None
    assert (node.name, node.inputs) == ("scale", ("a", "Mul_B"))
    tensor = session.screen.document.main.initializer("Mul_B")
    assert tensor is not None
    assert tensor.shape == (4,)


async def a_type_that_does_not_fit_is_seen_and_can_be_cleared(session: Session) -> None:
    await session.go("last")
    dialog = await quick_add(session, "bitwisenot")
    assert "is float32; takes" in rows(dialog)[1]
    go_to(dialog, "X")
    await session.press("d")
    assert "required" in rows(dialog)[1]


async def outputs_can_be_counted(session: Session) -> None:
    await session.go("first")
    dialog = await quick_add(session, "split")
    go_to(dialog, "outputs")
    await session.press("enter")
    session.app.screen.query_one(Input).value = "2"
    await session.press("enter")
    await session.until(lambda: isinstance(session.app.screen, WiringDialog))
    await session.press("f5")
    node = session.screen.model.cursor.node
    assert node is not None
    assert len(node.outputs) == 2


async def another_domain_is_imported_with_the_node(session: Session) -> None:
    await session.go("first")
    await quick_add(session, "binarizer")
    assert "imports ai.onnx.ml 5" in session.text
    await session.press("f5")
    assert session.screen.document.opset_imports == {"": 18, "ai.onnx.ml": 5}


@pytest.mark.broad
async def test_an_operator_for_an_empty_model(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 18]> empty (float[N] x) => (float[N] y) {}'
    async with opened(models.write(tmp_path, text)) as session:
        await quick_add(session, "relu")
        await session.press("f5")
        assert session.screen.document.main.nodes[0].inputs == ("x",)


@pytest.mark.broad
async def test_bodies_are_made_with_the_node(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.BRANCHES)) as session:
        await session.go("pre")
        dialog = await quick_add(session, "if")
        assert sum("a new subgraph" in row for row in rows(dialog)) == 2
        go_to(dialog, "cond")
        await session.press("enter")
        await session.until(lambda: isinstance(session.app.screen, ValuePicker))
        await session.type("choice")
        await session.press("enter")
        await session.until(lambda: isinstance(session.app.screen, WiringDialog))
        await session.press("f5")
        node = session.screen.model.cursor.node
        assert node is not None
        assert len(node.subgraphs()) == 2


@pytest.mark.broad
async def test_operator_sets_are_imported_changed_and_removed(chain: Path) -> None:
    async with opened(chain, NARROW) as session:
        await session.press("V")
        dialog = session.app.screen
        assert isinstance(dialog, OpsetDialog)
        assert "4 nodes" in rows(dialog)[0]
        assert "TensorRT 10.0" in session.text
        await session.press("d")
        assert session.screen.document.opset_imports == {"": 18}, "it is used"
        await session.press("a", "1", "enter")
        await session.until(lambda: session.app.screen is dialog)
        assert session.screen.document.opset_imports == {"": 18, "ai.onnx.ml": 5}
        await session.press("enter")
        session.app.screen.query_one(Input).value = "3"
        await session.press("enter")
        await session.until(lambda: session.app.screen is dialog)
        assert session.screen.document.opset_imports["ai.onnx.ml"] == 3
        await session.press("d")
        assert session.screen.document.opset_imports == {"": 18}


async def an_operator_set_by_name(session: Session) -> None:
    await session.press("V", "a", "o")
    await session.type("com.example")
    await session.press("enter")
    assert "This operator set is unknown" in session.text
    await session.press("enter")
    await session.until(lambda: isinstance(session.app.screen, OpsetDialog))
    assert session.screen.document.opset_imports == {"": 18, "com.example": 1}


@pytest.mark.broad
async def test_wiring_of_a_new_node(chain: Path) -> None:
    async with opened(chain) as session:
        for check in (
            inserted_on_the_link_its_users_get_the_output,
            what_is_required_is_asked_for,
            a_new_initializer_and_a_name,
            a_type_that_does_not_fit_is_seen_and_can_be_cleared,
            outputs_can_be_counted,
            another_domain_is_imported_with_the_node,
            an_operator_set_by_name,
        ):
            await check(session)
            await session.reset()


@pytest.mark.broad
async def test_a_new_model_is_made_by_the_form(tmp_path: Path) -> None:
    from dld_tui.app import DldApp
    from dld_tui.screens.home.new_model import NewModelScreen
    from dld_tui.screens.workspace.page import WorkspaceScreen
    from tests.support.tui import until

    app = DldApp()
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, NewModelScreen))
        form = app.screen
        assert isinstance(form, NewModelScreen)
        fields = {name: row for name, row in form.query_one("ParamForm").rows.items()}  # type: ignore[attr-defined]
        fields["opset"].text = "999"
        await pilot.pause()
        await pilot.press("f5")
        await pilot.pause()
        assert app.pages == [], "there is no such opset"
        await pilot.press("escape")
        fields["opset"].text = "17"
        fields["inputs"].text = "x:float32[N,3]"
        await pilot.pause()
        assert form.command_line == "dld new OUT.onnx --opset 17 --input 'x:float32[N,3]'"
        await pilot.press("f5")
        await until(pilot, lambda: app.pages)
        page = app.pages[0]
        assert isinstance(page, WorkspaceScreen)
        await until(pilot, lambda: page.is_open)
        assert page.document.opset_imports == {"": 17}
        assert page.document.main.inputs == ("x",)


@pytest.mark.broad
async def test_the_documentation_page_begins_at_the_node(chain: Path) -> None:
    from dld_tui.screens.home.help import OperatorsScreen
    from dld_tui.widgets.dialogs.operator_browser import OperatorBrowser

    async with opened(chain, NARROW) as session:
        await session.go("last")
        await session.press("f3")
        await session.until(lambda: isinstance(session.app.screen, OperatorsScreen))
        browser = session.app.screen.query_one(OperatorBrowser)
        await session.until(lambda: browser.operator is not None)
        assert browser.operator is not None
        assert browser.operator.name == "Sigmoid"
        assert "Sigmoid takes one input" in session.text
        await session.press("escape")
        assert session.app.screen is session.screen


@pytest.mark.broad
async def test_the_start_page_leads_to_the_operators() -> None:
    from dld_tui.app import DldApp
    from dld_tui.screens.home.help import OperatorsScreen
    from tests.support.tui import until

    app = DldApp()
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("f3")
        await until(pilot, lambda: isinstance(app.screen, OperatorsScreen))
        await pilot.press(*"gelu")
        await pilot.press("f3")
        assert isinstance(app.screen, OperatorsScreen)


@pytest.mark.broad
async def test_a_function_asks_for_all_its_inputs_first(tmp_path: Path) -> None:
    text = models.FUNCTIONS.replace("twice (v) =>", "twice (v, more) =>")
    async with opened(models.write(tmp_path, text)) as session:
        await session.go("call")
        dialog = await quick_add(session, "twice")
        assert rows(dialog)[dialog.view.cursor].startswith("more")
        await session.press("f5")
        node = session.screen.model.cursor.node
        assert node is not None
        assert node.inputs == ("y",)


@pytest.mark.broad
async def test_attributes_with_few_values_offer_them_and_lists_have_lines(chain: Path) -> None:
    async with opened(chain) as session:
        await session.go("first")
        dialog = await quick_add(session, "conv")
        go_to(dialog, "auto_pad")
        await session.press("enter")
        await session.until(lambda: isinstance(session.app.screen, PromptDialog))
        assert "SAME_UPPER" in session.text
        field = session.app.screen.query_one(Input)
        assert field.value == "'NOTSET'"
        await session.press("down")
        chosen = field.value
        assert chosen != "'NOTSET'"
        await session.press("enter")
        await session.until(lambda: session.app.screen is dialog)
        assert dialog.wiring.attributes["auto_pad"].text == chosen
        go_to(dialog, "kernel_shape")
        await session.press("enter", "f2")
        await session.until(lambda: isinstance(session.app.screen, TextDialog))
        session.app.screen.query_one(TextArea).text = "3\n3"
        await session.press("ctrl+s")
        await session.until(lambda: session.app.screen is dialog)
        assert dialog.wiring.attributes["kernel_shape"].value == [3, 3]
