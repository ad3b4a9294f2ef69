"""F8: a batch modification of the model as it is edited."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import onnx
import pytest

from dld_tui.core.conversion.result import TensorLosses
from dld_tui.core.model.tensors.payloads import reference
from dld_tui.core.notes import texts
from dld_tui.screens.activity.document_forms import WRITE, ConvertForm
from dld_tui.screens.model.opset_dialogs import (
    AppliedDialog,
    ConversionDialog,
    ListDialog,
    PreviewDialog,
)
from dld_tui.screens.workspace.conversion import result_notes
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, QuestionDialog
from dld_tui.widgets.dialogs.search import TickDialog
from dld_tui.widgets.forms.param_form import ChoiceField, ParamForm
from tests.support import models
from tests.support.conversions import FIRST, SECOND, WIDE, model_file
from tests.support.workspace import NARROW, Session, opened

pytest.importorskip("onnxruntime")


async def form(session: Session, key: str, *, write: bool = False) -> ParamForm:
    """Show the form of a modification; `write` asks for a file instead of an edit."""
    await session.pilot.press("f8")
    await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
    await session.pilot.press(key)
    await session.until(lambda: isinstance(session.app.screen, ConvertForm))
    screen = session.app.screen
    if write:
        screen.query_one("#target ChoiceField", ChoiceField).value = WRITE
        await session.until(lambda: screen.query_one(ParamForm).rows["output"].why_not is None)
    return screen.query_one(ParamForm)


@pytest.mark.broad
async def test_the_edited_model_is_converted_and_the_result_opened(tmp_path: Path) -> None:
    from dld_tui.core.model.edits import renaming

    path = model_file(tmp_path)
    before = path.read_bytes()
    async with opened(path, NARROW) as session:
        session.screen.history.edit(renaming.rename_node(scope=[], node="second", name="plus"))
        values = (await form(session, "f", write=True)).values()
        offered = tmp_path / f"{path.stem}-fp16.onnx"
        assert values["output"] == str(offered)
        assert "dld convert fp16" in session.text
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, ConversionDialog))
        assert "4 nodes in float16" in session.text
        await session.pilot.press("enter")
        await session.until(lambda: len(session.app.pages) == 2)
    made = onnx.load(offered)
    assert [node.name for node in made.graph.node][1] == "plus"
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.suffix == ".onnx") == [
        "m1-fp16.onnx", "m1.onnx"
    ]  # fmt: skip


@pytest.mark.broad
async def test_payloads_of_edits_are_seen(tmp_path: Path) -> None:
    from dld_tui.core.model.edits import initializers

    async with opened(model_file(tmp_path)) as session:
        document = session.screen.document
        payload = reference(document, b"\1" * 400_000)
        session.screen.history.edit(
            initializers.add_initializer(
                scope=[],
                name="new",
                dtype="uint8",
                dims=[400_000],
                fill={"kind": "payload", "payload": payload},
            )
        )
        await form(session, "e", write=True)
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, ConversionDialog))
        await session.pilot.press("escape")
    assert (tmp_path / "m1-external.onnx.data").stat().st_size >= 400_000
    made = onnx.load(tmp_path / "m1-external.onnx")
    assert made.graph.initializer[3].raw_data == b"\1" * 400_000


async def test_a_failure_is_told_and_writes_nothing(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        rows = (await form(session, "f")).rows
        rows["node_block"].text = "nowhere"
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, ErrorDialog))
        assert "named 'nowhere'" in session.text
    assert not list(tmp_path.glob("*fp16*"))


@pytest.mark.broad
async def test_a_wrong_result_is_written_only_when_that_is_asked_for(tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    offered = tmp_path / f"{path.stem}-fp16.onnx"
    async with opened(path, NARROW) as session:
        await form(session, "f", write=True)
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, QuestionDialog))
        assert "The result has wrong values" in session.text
        assert not offered.exists()
        await session.pilot.press("w")
        await session.until(lambda: isinstance(session.app.screen, ConversionDialog))
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
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, ErrorDialog))
        await session.pilot.press("escape")
        await session.until(lambda: session.app.screen is shown)
        rows["calibration"].text = str(tmp_path / "nowhere")
        await session.until(lambda: "nowhere is not there" in session.text)
        rows["calibration"].text = str(tmp_path)
        await session.until(lambda: "dld convert quantize" in session.text)
        shown.query_one("#target ChoiceField", ChoiceField).value = WRITE
        await session.until(lambda: rows["output"].why_not is None)
        rows["output"].text = str(tmp_path / "link.onnx")
        await session.until(lambda: "the model that is open" in session.text)
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, ErrorDialog))
    assert path.read_bytes() == before


@pytest.mark.broad
async def test_casts_are_previewed_and_a_copy_offered(tmp_path: Path) -> None:
    from dld_tui.core.model.edits import metadata

    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        session.screen.history.edit(
            metadata.set_precision(nodes=[[[], "second"]], precision="fp16")
        )
        session.screen.conversion.preview_precisions()
        await session.until(lambda: isinstance(session.app.screen, PreviewDialog))
        assert "1 layer in another precision, 3 casts added" not in session.text
        assert "1 layer in another precision" in session.text
        await session.pilot.press("enter")
        await session.until(lambda: isinstance(session.app.screen, ConvertForm))
        assert session.app.screen.query_one(ParamForm).values()["preview"] is False


@pytest.mark.broad
async def test_what_tensors_would_lose_is_listed(tmp_path: Path) -> None:
    async with opened(model_file(tmp_path)) as session:
        rows = (await form(session, "t")).rows
        rows["list_only"].text = "True"
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, ListDialog))
        assert "large: 976 rounded" in session.text


def test_nothing_lost_is_said() -> None:
    assert texts(result_notes(TensorLosses("float16", []))) == ["nothing is lost"]


@pytest.mark.broad
async def test_tensors_are_ticked_in_a_list(tmp_path: Path) -> None:
    async with opened(model_file(tmp_path), NARROW) as session:
        names = [one.name for one in session.screen.document.main.initializers]
        fields = await form(session, "t")
        session.app.screen.set_focus(fields.rows["filter"].field)
        await session.until(
            lambda: "tickable" in cast("ConvertForm", session.app.screen).conditions()
        )
        await session.pilot.press("f2")
        await session.until(lambda: isinstance(session.app.screen, TickDialog))
        dialog = cast("TickDialog", session.app.screen)
        listed = [str(item.key) for item in dialog.items]
        assert set(listed) <= set(names)
        assert len(listed) > 1
        await session.pilot.press("down", "enter", "f2")
        await session.until(lambda: isinstance(session.app.screen, ConvertForm))
        assert fields.values()["filter"] == listed[1:2]
        await session.pilot.press("f2")
        await session.until(lambda: isinstance(session.app.screen, TickDialog))
        assert cast("TickDialog", session.app.screen).ticked == {listed[1]}
        await session.pilot.press("f3", "f2")
        await session.until(lambda: isinstance(session.app.screen, ConvertForm))
        assert fields.values()["filter"] == listed


@pytest.mark.broad
async def test_links_of_a_merge_are_ticked_in_a_list(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    {0} (float[1, 4] {1}, float[2] {2}) => (float[1, 4] {3}, float[1, 4] {4})
    {{ {3} = Relu({1})  {4} = Neg({1}) }}""".replace("  {4}", "\n{4}")
    first = models.write(tmp_path, text.format("one", "x", "n", "y", "z"))
    for name in ("next", "last"):
        models.write(tmp_path, text.format(name, "z", "m", "u", "v"), f"{name}.onnx")
    async with opened(first, NARROW) as session:
        fields = await form(session, "m")
        others = [str(tmp_path / f"{name}.onnx") for name in ("next", "last")]
        fields.set_values({"others": [*others]})
        session.app.screen.set_focus(fields.rows["map"].field)
        await session.until(
            lambda: "tickable" in cast("ConvertForm", session.app.screen).conditions()
        )
        await session.pilot.press("f2")
        await session.until(lambda: isinstance(session.app.screen, TickDialog))
        listed = [item.key for item in cast("TickDialog", session.app.screen).items]
        # To the next model first what a merge takes by itself; to the last also what that gives.
        assert listed == ["z=z", "y=z", "u=z", "v=z"]
        assert "y f32[1,4] → z f32[1,4]  next.onnx, last.onnx" in session.text
        await session.pilot.press("down", "enter", "f2")
        await session.until(lambda: isinstance(session.app.screen, ConvertForm))
        assert fields.values()["map"] == ["y=z"]


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
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, ListDialog))
        assert "quantized for 2 nodes" in session.text
        assert "% in the graph colours them: quantized" in session.text
        await session.pilot.press("escape")
        counts, title = session.screen.model.quantized
        assert {node.name: count for node, count in counts.items()} == {"mul": 3, "sum": 3}
        graph = session.screen.panes.graph
        await session.until(lambda: graph.model is not None)
        (shown,) = [one for one in graph.colours.overlays() if one.name == "quantized"]
        assert shown.legend == "2 nodes would be"
        assert title == " would be"


@pytest.mark.broad
async def test_weights_are_quantized_by_the_form(tmp_path: Path) -> None:
    async with opened(model_file(tmp_path), NARROW) as session:
        (await form(session, "q")).set_values({"dynamic": True})
        await session.pilot.press("f5")
        await session.until(lambda: not isinstance(session.app.screen, ConvertForm))
        await session.until(lambda: not session.screen.jobs.work.is_running)
        assert not isinstance(session.app.screen, ErrorDialog)


@pytest.mark.broad
async def test_models_are_merged_by_seven_keys(tmp_path: Path) -> None:
    path = models.write(tmp_path, FIRST)
    models.write(tmp_path, SECOND, "second.onnx")
    async with opened(path, NARROW) as session:
        document = session.screen.document
        await form(session, "m")
        for key in ("f2", "enter", "f2", "f5"):  # list, tick second.onnx, done, run
            await session.pilot.press(key)
        await session.until(lambda: isinstance(session.app.screen, AppliedDialog))
        await session.until(lambda: "linked  y_1 → data" in session.text)
        await session.pilot.press("enter")
        assert document.main.outputs == ("z", "y", "data")
        [done] = document.history.done
        assert done.edit == "merge_models"
        await session.pilot.press("u")
        await session.until(lambda: document.main.outputs == ("y", "z"))


@pytest.mark.broad
async def test_three_inputs_to_int32_by_five_keys(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.TOKENS), NARROW) as session:
        document = session.screen.document
        await form(session, "n")
        for key in ("right", "f5"):
            await session.pilot.press(key)
        await session.until(lambda: isinstance(session.app.screen, AppliedDialog))
        await session.until(lambda: "Changed type or layout of 3 tensors" in session.text)
        await session.pilot.press("enter")
        types = [document.main.value_type(name) for name in document.main.inputs]
        assert [known and known.dtype for known in types] == ["int32"] * 3
        [done] = document.history.done
        assert done.edit == "convert_terminals"


@pytest.mark.broad
async def test_an_image_is_processed_by_eleven_keys(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.IMAGE)
    async with opened(path, NARROW) as session:
        document = session.screen.document
        await form(session, "x")
        # ImageNet, uint8 as it is, then NHWC, BGR, and run.
        for key in ("left", "tab", "tab", "right", "tab", "space", "f5"):
            await session.pilot.press(key)
        await session.until(lambda: isinstance(session.app.screen, AppliedDialog))
        await session.until(lambda: "→ uint8[batch, 4, 5, 3]" in session.text)
        await session.pilot.press("enter")
        names = [node.name for node in document.main.nodes if node.name.startswith("x_")]
        assert names == [
            "x_transpose", "x_to_float32", "x_bgr", "x_scaled", "x_mean_out", "x_deviation_out"
        ]  # fmt: skip
        [done] = document.history.done
        assert done.edit == "prepend_processing"
