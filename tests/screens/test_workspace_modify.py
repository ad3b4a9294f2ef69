"""F8: a batch modification of the model as it is edited."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.document.payloads import reference
from dld_tui.screens.activity.convert_form import WRITE, ConvertForm
from dld_tui.screens.model.opset_dialogs import ConversionDialog
from dld_tui.screens.workspace.conversion import LossDialog, PreviewDialog, result_lines
from dld_tui.screens.workspace.inference import TypeInference
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from dld_tui.widgets.forms.fields import ChoiceField
from dld_tui.widgets.forms.param_form import ParamForm
from tests.core.conversion.test_storage import model_file
from tests.support import models
from tests.support.workspace import NARROW, Session, opened

pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def without_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TypeInference, "INFER", False)


async def form(session: Session, key: str, *, write: bool = False) -> ParamForm:
    """Show the form of a modification; `write` asks for a file instead of an edit."""
    await session.pilot.press("f8")
    await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
    await session.pilot.press(key)
    await session.until(lambda: isinstance(session.app.screen, ConvertForm))
    screen = session.app.screen
    if write:
        screen.query_one("#target ChoiceField", ChoiceField).value = WRITE
        await session.until(lambda: not screen.query_one(ParamForm).rows["output"].why_not)
    return screen.query_one(ParamForm)


async def test_the_edited_model_is_converted_and_the_result_opened(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    before = path.read_bytes()
    async with opened(path, NARROW) as session:
        session.screen.history.edit("rename_node", scope=[], node="second", name="plus")
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


async def test_payloads_of_edits_are_seen(tmp_path: Path) -> None:
    async with opened(model_file(tmp_path)) as session:
        document = session.screen.document
        payload = reference(document, b"\1" * 400_000)
        session.screen.history.edit(
            "add_initializer", scope=[], name="new", dtype="uint8", dims=[400_000],
            fill={"kind": "payload", "payload": payload},
        )  # fmt: skip
        await form(session, "e", write=True)
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, ConversionDialog))
        await session.pilot.press("escape")
    assert (tmp_path / "m1-external.onnx.data").stat().st_size >= 400_000
    made = onnx.load(tmp_path / "m1-external.onnx")
    assert made.graph.initializer[3].raw_data == b"\1" * 400_000


async def test_a_failure_is_told_and_writes_nothing(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        await form(session, "q")
        await session.pilot.press("f5")
        await session.until(
            lambda: "--calibration" in " ".join(n.message for n in session.app._notifications)
        )
    assert not list(tmp_path.glob("*quantized*"))


async def test_casts_are_previewed_and_a_copy_offered(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        session.screen.history.edit("set_precision", nodes=[[[], "second"]], precision="fp16")
        session.screen.conversion.preview_precisions()
        await session.until(lambda: isinstance(session.app.screen, PreviewDialog))
        assert "1 layer in another precision, 3 casts added" not in session.text
        assert "1 layer in another precision" in session.text
        await session.pilot.press("enter")
        await session.until(lambda: isinstance(session.app.screen, ConvertForm))
        assert session.app.screen.query_one(ParamForm).values()["preview"] is False


async def test_what_tensors_would_lose_is_listed(tmp_path: Path) -> None:
    async with opened(model_file(tmp_path)) as session:
        rows = (await form(session, "t")).rows
        rows["list_only"].text = "True"
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, LossDialog))
        assert "large: 976 rounded" in session.text


def test_nothing_lost_is_said() -> None:
    assert result_lines({"tensors": []}) == ["nothing is lost"]


async def test_the_open_model_is_not_written_over(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    (tmp_path / "link.onnx").symlink_to(path)
    before = path.read_bytes()
    async with opened(path, NARROW) as session:
        values = {"model": str(path), "output": str(tmp_path / "link.onnx")}
        session.screen.conversion._modify("convert_strip", dict(values))
        await session.until(
            lambda: any("the model that is open" in n.message for n in session.app._notifications)
        )
    assert path.read_bytes() == before
