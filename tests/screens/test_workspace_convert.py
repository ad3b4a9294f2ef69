"""Another version of the operators: asked for, converted, told, opened."""

from __future__ import annotations

import contextlib
from pathlib import Path

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.screens.activity.document_forms import WRITE, ConvertForm, lists_of
from dld_tui.screens.model.opset_dialogs import AppliedDialog, ConversionDialog, VersionDialog
from dld_tui.widgets.dialogs.dialogs import ErrorDialog
from dld_tui.widgets.forms.param_form import ChoiceField, ParamForm
from tests.support import models
from tests.support.conversions import OLD
from tests.support.transcript_files import GRID
from tests.support.workspace import NARROW, Session, opened


def told(session: Session) -> str:
    return " ".join(notice.message for notice in session.app._notifications)


async def choose(session: Session, *keys: str, write: bool = False) -> ParamForm:
    """Choose a version, and wait for the form; `write` asks for a file."""
    session.screen.conversion.convert_opset()
    await session.until(lambda: isinstance(session.app.screen, VersionDialog))
    await session.pilot.press(*keys, "enter")
    await session.until(lambda: isinstance(session.app.screen, ConvertForm))
    screen = session.app.screen
    if write:
        screen.query_one("#target ChoiceField", ChoiceField).value = WRITE
        await session.until(lambda: screen.query_one(ParamForm).rows["output"].why_not is None)
    return screen.query_one(ParamForm)


@pytest.mark.broad
async def test_the_edited_model_is_converted_and_the_result_opened(tmp_path: Path) -> None:
    from dld_tui.core.model.edits import renaming

    path = models.write(tmp_path, OLD)
    before = path.read_bytes()
    async with opened(path, NARROW) as session:
        session.screen.history.edit(renaming.rename_node(scope=[], node="add", name="plus"))
        fields = await choose(session, *["up"] * 6, write=True)
        offered = fields.values()["output"]
        assert offered == str(tmp_path / "model-opset18.onnx")
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, ConversionDialog))
        assert "opset 12 to 18: 3 changed, 3 added" in session.text
        assert "ReduceSum" in session.text

        await session.pilot.press("enter")
        await session.until(lambda: len(session.app.pages) == 2)
        made = onnx.load(str(offered))
        assert made.opset_import[0].version == 18
        assert [node.name for node in made.graph.node][3] == "plus"
        assert path.read_bytes() == before


@pytest.mark.broad
async def test_what_cannot_be_converted_is_said(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, GRID)) as session:
        await choose(session, "end")
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, ErrorDialog))
        assert "opset 1 is too old" in session.text.replace("\n", " ")
        assert not session.screen.document.dirty
        assert list(tmp_path.glob("*opset*")) == []


def test_tensors_of_one_name_are_offered_once(tmp_path: Path) -> None:
    branch = (
        "{0} () => (float[2] t) <float[2] {1} = {{1, 2}}, float[2] {2} = {{1, 2}}>"
        " {{ t = Add({1}, {2}) }}"
    )
    text = f"""<ir_version: 10, opset_import: ["" : 21]> g (bool c) => (float[2] y)
        {{ y = If (c) <then_branch = {branch.format("yes", "a", "b")},
                      else_branch = {branch.format("no", "a", "z")}> }}"""
    with contextlib.closing(Document.open(models.write(tmp_path, text))) as document:
        offered = lists_of(document, "convert_tensors")["filter"]({})
        assert [item.key for item in offered] == ["a", "b", "z"]


@pytest.mark.broad
async def test_the_result_is_applied_as_one_edit(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, OLD), NARROW) as session:
        document = session.screen.document
        await choose(session, *["up"] * 6)
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, AppliedDialog))
        assert "opset 12 to 18: 3 changed, 3 added" in session.text
        assert "Converted to opset 18" in session.text
        await session.pilot.press("enter")
        assert (document.opset_imports[""], len(document.history.done)) == (18, 1)
    assert list(tmp_path.glob("*opset*")) == []


async def test_a_model_without_the_operators(tmp_path: Path) -> None:
    text = (
        '<ir_version: 8, opset_import: ["acme" : 1]> g (float[2] x) => (float[2] y) {y=acme.F(x)}'
    )
    async with opened(models.write(tmp_path, text)) as session:
        session.screen.conversion.convert_opset()
        await session.until(lambda: "imports no ai.onnx operators" in told(session))
