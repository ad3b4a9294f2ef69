"""Conversions of an open model: their forms, and their results as one edit or as a file."""

from __future__ import annotations

import contextlib
from contextlib import nullcontext
from pathlib import Path

import onnx
import pytest

from dld_tui.core.conversion.result import TensorLosses
from dld_tui.core.errors import ActivityError
from dld_tui.core.model import edits
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.edits.model_swap import keep_model
from dld_tui.core.model.tensors.payloads import reference
from dld_tui.core.notes import plain_notes, texts
from dld_tui.screens.activity.document_forms import WRITE, ConvertForm, lists_of
from dld_tui.screens.model.functions import FunctionsScreen
from dld_tui.screens.model.opset_dialogs import (
    AppliedDialog,
    ConversionDialog,
    ListDialog,
    VersionDialog,
)
from dld_tui.screens.tensors.initializers import InitializersScreen
from dld_tui.screens.workspace.conversion import Result, result_notes
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, QuestionDialog
from dld_tui.widgets.dialogs.search import TickDialog
from dld_tui.widgets.forms.param_form import ChoiceField, ParamForm
from dld_tui.widgets.graph.state import GraphView
from tests.core.checks.test_require_sound import CONV, NARROWED
from tests.support import models
from tests.support.conversions import OLD, WIDE, model_file
from tests.support.workspace import NARROW, Session, opened

pytest.importorskip("onnxruntime")


async def form(session: Session, key: str, *, write: bool = False) -> ParamForm:
    """Show the form of a modification; `write` asks for a file instead of an edit."""
    await session.press("f8")
    await session.front(ChoiceDialog)
    await session.press(key)
    screen = await session.front(ConvertForm)
    fields = screen.query_one(ParamForm)
    if write:
        screen.query_one("#target ChoiceField", ChoiceField).value = WRITE
        await session.until(lambda: fields.rows["output"].why_not is None)
    return fields


async def tick(session: Session, fields: ParamForm, name: str) -> TickDialog:
    """Open the list of a field."""
    screen = await session.front(ConvertForm)
    screen.set_focus(fields.rows[name].field)
    await session.until(lambda: "tickable" in screen.conditions())
    await session.press("f2")
    return await session.front(TickDialog)


@pytest.mark.broad
async def test_payloads_of_edits_are_seen(tmp_path: Path) -> None:
    async with opened(model_file(tmp_path)) as session:
        document = session.screen.document
        payload = reference(document, b"\1" * 400_000)
        session.edit(
            edits.initializers.add_initializer(
                scope=[],
                name="new",
                dtype="uint8",
                dims=[400_000],
                fill={"kind": "payload", "payload": payload},
            )
        )
        await form(session, "e", write=True)
        await session.press("f5")
        await session.front(ConversionDialog)
        await session.press("escape")
    assert (tmp_path / "m1-external.onnx.data").stat().st_size >= 400_000
    made = onnx.load(tmp_path / "m1-external.onnx")
    assert made.graph.initializer[3].raw_data == b"\1" * 400_000


async def test_a_failure_is_told_and_writes_nothing(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        rows = (await form(session, "f")).rows
        rows["node_block"].text = "nowhere"
        await session.press("f5")
        await session.front(ErrorDialog)
        assert "named 'nowhere'" in session.text
    assert not list(tmp_path.glob("*fp16*"))


@pytest.mark.broad
async def test_a_wrong_result_is_written_only_when_that_is_asked_for(tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    offered = tmp_path / f"{path.stem}-fp16.onnx"
    async with opened(path, NARROW) as session:
        await form(session, "f", write=True)
        await session.press("f5")
        await session.front(QuestionDialog)
        assert "The result has wrong values" in session.text
        assert not offered.exists()
        await session.press("w")
        await session.front(ConversionDialog)
        assert offered.exists()


@pytest.mark.broad
async def test_a_form_stays_while_something_is_missing(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    (tmp_path / "link.onnx").symlink_to(path)
    before = path.read_bytes()
    async with opened(path, NARROW) as session:
        fields = await form(session, "q")
        rows, shown = fields.rows, session.app.screen
        fields.set_values({"dynamic": False})
        says = "static quantization needs Calibration. Or add dynamic or weights only"
        await session.until(lambda: says in session.text)
        await session.press("f5")
        await session.front(ErrorDialog)
        await session.press("escape")
        await session.until(lambda: session.app.screen is shown)
        rows["calibration"].text = str(tmp_path / "nowhere")
        await session.shows("nowhere is not there")
        rows["calibration"].text = str(tmp_path)
        await session.shows("dld convert quantize")
        shown.query_one("#target ChoiceField", ChoiceField).value = WRITE
        await session.until(lambda: rows["output"].why_not is None)
        rows["output"].text = str(tmp_path / "link.onnx")
        await session.shows("the model that is open")
        await session.press("f5")
        await session.front(ErrorDialog)
    assert path.read_bytes() == before


@pytest.mark.broad
async def test_tensors_are_ticked_in_a_list_and_what_they_would_lose_is_listed(
    tmp_path: Path,
) -> None:
    assert texts(result_notes(TensorLosses("float16", []))) == ["nothing is lost"]
    async with opened(model_file(tmp_path), NARROW) as session:
        names = [one.name for one in session.screen.document.main.initializers]
        fields = await form(session, "t")
        listed = [str(item.key) for item in (await tick(session, fields, "filter")).items]
        assert set(listed) <= set(names)
        assert len(listed) > 1
        await session.press("down", "enter", "f2")
        await session.front(ConvertForm)
        assert fields.values()["filter"] == listed[1:2]
        assert (await tick(session, fields, "filter")).ticked == {listed[1]}
        await session.press("f3", "f2")
        await session.front(ConvertForm)
        assert fields.values()["filter"] == listed
        fields.rows["list_only"].text = "True"
        await session.press("f5")
        await session.front(ListDialog)
        assert "large: 976 rounded" in session.text


QUANTIZABLE = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 4] x) => (float[1, 4] y)
<float[4, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}>
{
    [mul] m = MatMul(x, w)
    [bent] s = Sin(m)
    [sum] y = Add(s, m)
}
"""


@pytest.mark.broad
async def test_the_graph_shows_where_tensors_would_be_quantized(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, QUANTIZABLE)) as session:
        fields = await form(session, "q")
        fields.set_values({"dynamic": False, "list_only": True})
        await session.until(lambda: bool(fields.values()["list_only"]))
        await session.press("f5")
        await session.front(ListDialog)
        assert "quantized for 2 nodes" in session.text
        assert "% in the graph colours them: quantized" in session.text
        await session.press("escape")
        counts, title = session.screen.model.quantized
        assert {node.name: count for node, count in counts.items()} == {"mul": 3, "sum": 3}
        graph = session.screen.panes.graph
        await session.until(lambda: graph.model is not None)
        (shown,) = [one for one in graph.colours.overlays() if one.name == "quantized"]
        assert shown.legend == "2 nodes would be"
        assert title == " would be"


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


async def choose(session: Session, *keys: str) -> None:
    """Choose a version, and run."""
    session.screen.conversion.convert_opset()
    await session.front(VersionDialog)
    await session.press(*keys, "enter")
    await session.front(ConvertForm)
    await session.press("f5")


@pytest.mark.broad
async def test_the_result_is_applied_as_one_edit(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, OLD), NARROW) as session:
        document = session.screen.document
        await choose(session, *["up"] * 6)
        await session.front(AppliedDialog)
        assert "opset 12 to 18: 3 changed, 3 added" in session.text
        assert "Converted to opset 18" in session.text
        await session.press("enter")
        assert (document.opset_imports[""], len(document.history.done)) == (18, 1)
    assert list(tmp_path.glob("*opset*")) == []


async def test_a_model_without_the_operators(tmp_path: Path) -> None:
    text = (
        '<ir_version: 8, opset_import: ["acme" : 1]> g (float[2] x) => (float[2] y) {y=acme.F(x)}'
    )
    async with opened(models.write(tmp_path, text)) as session:
        session.screen.conversion.convert_opset()
        await session.until(lambda: "imports no ai.onnx operators" in " ".join(session.told))


DONE = plain_notes(["done"])
OTHER = models.CHAIN.replace("[second] b = Add(a, w)", "[more] m = Neg(a) [second] b = Add(m, w)")


def result_of(session: Session, folder: Path, text: str = OTHER) -> Result:
    document = session.screen.document
    result = Result(document, "convert it", folder / "aside.onnx")
    result.model = keep_model(document, models.write(folder, text, "made.onnx"))
    return result


async def test_pages_over_the_model_survive(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.FUNCTIONS), NARROW) as session:
        screen = session.screen
        session.app.push_screen(FunctionsScreen(screen.history))
        session.app.push_screen(InitializersScreen(screen.history, screen.document.functions[0]))
        await session.front(InitializersScreen)
        screen.conversion.apply(result_of(session, tmp_path), DONE, is_current=True)
        await session.front(AppliedDialog)
        await session.press("enter")
        await session.shows("unused")  # the scope is gone: those of all
        await session.press("escape")
        await session.shows("Functions (0)")
        await session.press("escape")
        await session.until(lambda: session.app.screen is screen)
        assert len(screen.document.main.nodes) == 5


async def test_a_model_edited_meanwhile_keeps_its_edits_and_the_result_is_put_aside(
    tmp_path: Path,
) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), NARROW) as session:
        screen = session.screen
        (tmp_path / "aside.onnx").write_text("mine")
        result = result_of(session, tmp_path)
        screen.history.edit(edits.renaming.rename_node(scope=[], node="first", name="one"))
        screen.conversion.apply(result, DONE, is_current=False)
        await session.front(ConversionDialog)
        assert "The model was edited meanwhile" in session.text
        assert len(screen.document.history.done) == 1
        assert len(onnx.load(tmp_path / "aside-2.onnx").graph.node) == 5
        assert (tmp_path / "aside.onnx").read_text() == "mine"
        await session.press("enter")
        await session.until(lambda: len(session.app.pages) == 2)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (models.CHAIN, OTHER, ""),
        (models.CHAIN, OTHER.replace("Neg(a)", "Neg(none)"), "not valid: .*none"),
        (CONV, NARROWED, "not valid: wide: MatMul: "),
    ],
)
def test_a_result_that_is_not_valid_replaces_nothing(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    path = models.write(tmp_path, before)
    document = Document.open(path)
    result = Result(document, "convert it", tmp_path / "aside.onnx")
    with (
        pytest.raises(ActivityError, match=said) if said else nullcontext(),
        result.made(path, lambda: False) as output,
    ):
        models.write(output.parent, after, output.name)
    assert (result.model is None) == bool(said)
    assert document.history.done == []
    assert not output.parent.exists()


async def test_a_graph_that_has_the_keys_stays_where_it_was(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), NARROW, pane="") as session:
        screen = session.screen

        def at() -> tuple[str, ...]:
            subject, node = screen.parameters.subject, screen.graph.node
            return tuple(one.name for one in (subject, node) if isinstance(one, Node))

        screen.navigation.go_to(screen.document.main.nodes[2])
        await session.press("t")
        assert screen.graph.model is not None
        assert screen.graph.model.view is GraphView.FOCUS
        assert at() == ("third", "third")
        screen.conversion.apply(result_of(session, tmp_path), DONE, is_current=True)
        await session.front(AppliedDialog)
        await session.until(lambda: at() == ("third", "third"))
        assert len(screen.document.main.nodes) == 5
        await session.press("u")
        await session.until(lambda: screen.document.history.undone)
        await session.settle()
        await session.until(lambda: at() == ("third", "third"))
        assert screen.graph.node in screen.document.main.nodes
        assert screen.graph.has_focus_within
