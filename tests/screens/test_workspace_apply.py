"""The result of a job takes the model's place as one edit, or is put aside, and nothing is lost."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import ActivityError
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.edits.model_swap import keep_model
from dld_tui.core.notes import plain_notes
from dld_tui.screens.model.functions import FunctionsScreen
from dld_tui.screens.model.opset_dialogs import AppliedDialog, ConversionDialog
from dld_tui.screens.tensors.initializers import InitializersScreen
from dld_tui.screens.workspace.conversion import Result
from dld_tui.widgets.graph.state import GraphView
from tests.core.checks.test_require_sound import CONV, NARROWED
from tests.screens.test_workspace_modify import form
from tests.support import models
from tests.support.workspace import NARROW, Session, opened

DONE = plain_notes(["done"])
OTHER = models.CHAIN.replace("[second] b = Add(a, w)", "[more] m = Neg(a) [second] b = Add(m, w)")


def result_of(session: Session, folder: Path, text: str = OTHER) -> Result:
    document = session.screen.document
    result = Result(document, "convert it", folder / "aside.onnx")
    result.model = keep_model(document, models.write(folder, text, "made.onnx"))
    return result


async def test_the_panes_follow_there_and_back(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), NARROW) as session:
        screen = session.screen
        await session.go("third")
        screen.explorer.list.set_marks({screen.document.main.nodes[0]})
        screen.conversion.apply(result_of(session, tmp_path), DONE, is_current=True)
        await session.until(lambda: isinstance(session.app.screen, AppliedDialog))
        assert "Converted it" in session.text
        assert screen.tab_dirty
        await session.until(lambda: not screen.explorer.list.marks)
        assert screen.explorer.node is screen.document.main.find("third")
        assert any("more" in row for row in session.rows)
        await session.pilot.press("u")
        await session.until(lambda: screen.document.history.undone and not screen.tab_dirty)
        await session.until(lambda: not any("more" in row for row in session.rows))
        await session.press("ctrl+r")
        await session.until(lambda: isinstance(session.app.screen, AppliedDialog))
        assert "Converted it" in session.text
        await session.pilot.press("enter")
        await session.until(lambda: any("more" in row for row in session.rows))
        assert screen.parameters.summary is not None
        assert screen.parameters.summary.nodes == 5


async def test_the_report_saves_the_model(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    async with opened(path, NARROW) as session:
        screen = session.screen
        screen.conversion.apply(result_of(session, tmp_path), DONE, is_current=True)
        await session.until(lambda: isinstance(session.app.screen, AppliedDialog))
        await session.pilot.press("ctrl+s")
        await session.until(lambda: not screen.tab_dirty)
        assert any(node.name == "more" for node in onnx.load(path).graph.node)


async def test_pages_over_the_model_survive(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.FUNCTIONS), NARROW) as session:
        screen = session.screen
        session.app.push_screen(FunctionsScreen(screen.history))
        session.app.push_screen(InitializersScreen(screen.history, screen.document.functions[0]))
        await session.until(lambda: isinstance(session.app.screen, InitializersScreen))
        screen.conversion.apply(result_of(session, tmp_path), DONE, is_current=True)
        await session.until(lambda: isinstance(session.app.screen, AppliedDialog))
        await session.pilot.press("enter")
        await session.until(lambda: "unused" in session.text)  # the scope is gone: those of all
        await session.pilot.press("escape")
        await session.until(lambda: "Functions (0)" in session.text)
        await session.pilot.press("escape")
        await session.until(lambda: session.app.screen is screen)
        assert len(screen.document.main.nodes) == 5


async def test_a_model_edited_meanwhile_keeps_its_edits_and_the_result_is_put_aside(
    tmp_path: Path,
) -> None:
    from dld_tui.core.model.edits import renaming

    async with opened(models.write(tmp_path, models.CHAIN), NARROW) as session:
        screen = session.screen
        (tmp_path / "aside.onnx").write_text("mine")
        result = result_of(session, tmp_path)
        screen.history.edit(renaming.rename_node(scope=[], node="first", name="one"))
        screen.conversion.apply(result, DONE, is_current=False)
        await session.until(lambda: isinstance(session.app.screen, ConversionDialog))
        assert "The model was edited meanwhile" in session.text
        assert len(screen.document.history.done) == 1
        assert len(onnx.load(tmp_path / "aside-2.onnx").graph.node) == 5
        assert (tmp_path / "aside.onnx").read_text() == "mine"
        await session.pilot.press("enter")
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


@pytest.mark.broad
async def test_a_form_applies_what_its_job_makes(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    weight = np.ones(40_000, np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "big"))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    async with opened(path, NARROW) as session:
        rows = (await form(session, "e")).rows
        assert not rows["output"].display
        await session.pilot.press("f5")
        await session.until(lambda: isinstance(session.app.screen, AppliedDialog))
        await session.pilot.press("escape")
        tensor = session.screen.document.main.initializer("big")
        assert tensor is not None
        assert tensor.is_external
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.onnx"]


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
        await session.until(lambda: isinstance(session.app.screen, AppliedDialog))
        await session.until(lambda: at() == ("third", "third"))
        assert len(screen.document.main.nodes) == 5
        await session.press("u")
        await session.until(lambda: screen.document.history.undone)
        await session.settle()
        await session.until(lambda: at() == ("third", "third"))
        assert screen.graph.node in screen.document.main.nodes
        assert screen.graph.has_focus_within
