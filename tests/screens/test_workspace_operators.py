"""Quick add, wiring and operator sets in a workspace."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, TextArea

from dld_tui.core.model.document import Node
from dld_tui.screens.home.help import OperatorsScreen
from dld_tui.screens.home.new_model import NewModelScreen
from dld_tui.screens.model.opset_dialogs import OpsetDialog
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import PromptDialog, TextDialog
from dld_tui.widgets.dialogs.operator_browser import OperatorBrowser
from dld_tui.widgets.dialogs.wiring import AddNode, WiringDialog
from dld_tui.widgets.forms.param_form import ParamForm
from tests.support import models
from tests.support.pages import running
from tests.support.workspace import NARROW, Session, opened


async def quick_add(session: Session, text: str, behind: str = "first") -> WiringDialog:
    """Open the palette at a node, choose the best match and come to its wiring."""
    if behind:
        await session.go(behind)
    await session.press("a")
    await session.front(AddNode)
    await session.type(text, "enter")
    return await session.front(WiringDialog)


def rows(dialog: WiringDialog | OpsetDialog) -> list[str]:
    return [dialog.view.lines.text(at) for at in range(len(dialog.view.lines))]


def go_to(dialog: WiringDialog | OpsetDialog, label: str) -> None:
    dialog.view.cursor = next(at for at, text in enumerate(rows(dialog)) if text.startswith(label))


async def fill(session: Session, dialog: WiringDialog, label: str, text: str) -> None:
    """Type the value of a row."""
    go_to(dialog, label)
    await session.press("enter")
    await session.until(lambda: session.app.screen is not dialog and session.app.focused)
    await session.retype(text, "enter")
    await session.until(lambda: session.app.screen is dialog)


async def added(session: Session) -> Node:
    """Accept the wiring, and return the node."""
    await session.press("f5")
    node = session.screen.model.cursor.node
    assert node is not None
    return node


async def it_is_added_behind_the_cursor(session: Session) -> None:
    dialog = await quick_add(session, "tanh")
    assert rows(dialog)[0].endswith("Add the node")
    node = await added(session)
    assert (node.op_type, node.inputs) == ("Tanh", ("a",))
    assert session.screen.explorer.node is node
    assert len(session.screen.document.history.done) == 1
    await session.press("u")
    dialog = await quick_add(session, "tanh")
    go_to(dialog, "insert on the link")  # its users get the output
    await session.press("enter")
    assert "[✔]" in next(row for row in rows(dialog) if row.startswith("insert"))
    await added(session)
    assert session.screen.document.main.nodes[2].inputs == ("Tanh_output", "w")


async def what_is_required_is_asked_for(session: Session) -> None:
    dialog = await quick_add(session, "concat")
    assert rows(dialog)[0] == "Still to choose: attribute axis"
    await session.press("f5")
    assert session.app.screen is dialog, "nothing is added yet"
    await session.press("enter")
    await session.type("one", "enter")
    session.in_front(PromptDialog)  # the error is shown
    await session.retype("1", "enter")
    await fill(session, dialog, "inputs 1", "w")
    node = await added(session)
    assert (node.inputs, node.integer("axis", 0)) == (("a", "w"), 1)


async def a_new_initializer_and_a_name(session: Session) -> None:
    dialog = await quick_add(session, "mul")
    await session.press("a")
    await session.retype("float32[4] 1 2 3 4", "enter")
    await session.front(WiringDialog)
    assert any("f32[4]" in row and "new: values" in row for row in rows(dialog))
    go_to(dialog, "name")
    await session.press("enter")
    await session.type("second", "enter")
    assert "already has this name" in session.text
    await session.retype("scale", "enter")
    await session.front(WiringDialog)
    node = await added(session)
    assert (node.name, node.inputs) == ("scale", ("a", "Mul_B"))
    tensor = session.screen.document.main.initializer("Mul_B")
    assert tensor is not None
    assert tensor.shape == (4,)


async def a_type_that_does_not_fit_is_seen_and_can_be_cleared(session: Session) -> None:
    dialog = await quick_add(session, "bitwisenot", "last")
    assert "is float32; takes" in rows(dialog)[1]
    go_to(dialog, "X")
    await session.press("d")
    assert "required" in rows(dialog)[1]


async def outputs_are_counted_and_attributes_offer_their_values(session: Session) -> None:
    dialog = await quick_add(session, "split")
    await fill(session, dialog, "outputs", "2")
    assert len((await added(session)).outputs) == 2
    dialog = await quick_add(session, "conv")
    go_to(dialog, "auto_pad")
    await session.press("enter")
    field = (await session.front(PromptDialog)).query_one(Input)
    assert "SAME_UPPER" in session.text
    assert field.value == "'NOTSET'"
    await session.press("down")
    chosen = field.value
    assert chosen != "'NOTSET'"
    await session.press("enter")
    await session.until(lambda: session.app.screen is dialog)
    assert dialog.wiring.attributes["auto_pad"].text == chosen
    go_to(dialog, "kernel_shape")
    await session.press("enter", "f2")
    (await session.front(TextDialog)).query_one(TextArea).text = "3\n3"
    await session.press("ctrl+s")
    await session.until(lambda: session.app.screen is dialog)
    assert dialog.wiring.attributes["kernel_shape"].value == [3, 3]


@pytest.mark.broad
async def test_an_operator_for_an_empty_model(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 18]> empty (float[N] x) => (float[N] y) {}'
    async with opened(models.write(tmp_path, text)) as session:
        await quick_add(session, "relu", "")
        assert (await added(session)).inputs == ("x",)


@pytest.mark.broad
async def test_subgraphs_and_inputs_of_functions_are_part_of_the_wiring(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.BRANCHES)) as session:
        dialog = await quick_add(session, "if", "pre")
        assert sum("a new subgraph" in row for row in rows(dialog)) == 2
        await fill(session, dialog, "cond", "choice")
        assert len((await added(session)).subgraphs()) == 2
    text = models.FUNCTIONS.replace("twice (v) =>", "twice (v, more) =>")
    async with opened(models.write(tmp_path, text)) as session:
        dialog = await quick_add(session, "twice", "call")
        assert rows(dialog)[dialog.view.cursor].startswith("more")
        assert (await added(session)).inputs == ("y",)


@pytest.mark.broad
async def test_operator_sets_are_imported_changed_and_removed(chain: Path) -> None:
    async with opened(chain, NARROW) as session:
        imports = session.screen.document.opset_imports
        await session.press("V")
        dialog = session.in_front(OpsetDialog)
        assert "4 nodes" in rows(dialog)[0]
        assert "TensorRT 10.0" in session.text
        await session.press("d")
        assert session.screen.document.opset_imports == imports, "it is used"
        for keys, version in ((("a", "1"), 5), (("enter", "ctrl+u", "3"), 3)):
            await session.press(*keys, "enter")
            await session.until(lambda: session.app.screen is dialog)
            assert session.screen.document.opset_imports["ai.onnx.ml"] == version
        await session.press("d")
        assert session.screen.document.opset_imports == {"": 18}


async def an_operator_set_by_name(session: Session) -> None:
    await quick_add(session, "binarizer")
    assert "imports ai.onnx.ml 5" in session.text
    await added(session)
    assert session.screen.document.opset_imports == {"": 18, "ai.onnx.ml": 5}
    await session.press("V", "a", "o")
    await session.type("com.example", "enter")
    assert "This operator set is unknown" in session.text
    await session.press("enter")
    await session.front(OpsetDialog)
    assert session.screen.document.opset_imports["com.example"] == 1


@pytest.mark.broad
async def test_wiring_of_a_new_node(chain: Path) -> None:
    async with opened(chain) as session:
        await session.in_turn(
            it_is_added_behind_the_cursor,
            what_is_required_is_asked_for,
            a_new_initializer_and_a_name,
            a_type_that_does_not_fit_is_seen_and_can_be_cleared,
            outputs_are_counted_and_attributes_offer_their_values,
            an_operator_set_by_name,
        )


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


@pytest.mark.broad
async def test_the_documentation_page_begins_at_the_node(chain: Path) -> None:
    async with opened(chain, NARROW) as session:
        await session.go("last", "f3")
        browser = (await session.front(OperatorsScreen)).query_one(OperatorBrowser)
        await session.until(lambda: browser.operator and browser.operator.name == "Sigmoid")
        assert "Sigmoid takes one input" in session.text
        await session.press("escape")
        assert session.app.screen is session.screen
