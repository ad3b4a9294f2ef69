"""Marking, copying, pasting, extracting and editing many nodes, by keys alone."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from textual.widgets import Input

from dld_tui.core.errors import ActivityError
from dld_tui.screens.workspace import conversion
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, PromptDialog
from dld_tui.widgets.dialogs.nodes import BatchDialog, ExtractDialog
from dld_tui.widgets.explorer.node_filter import FilterDialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows
from tests.support import models
from tests.support.tui import flat_text, until
from tests.support.workspace import Session, opened

SCOPED = """
<ir_version: 10, opset_import: ["" : 18]>
scoped (float[1, 2, 8, 8] x) => (float[1, 2, 8, 8] y)
<float[2, 2, 1, 1] w = {1, 2, 3, 4}>
{
    [__a__one] a = Conv <group = 1, kernel_shape = [1, 1]> (x, w)
    [__a__two] b = Relu(a)
    [__b__one] c = Conv <group = 1, kernel_shape = [1, 1], dilations = [2, 2]> (b, w)
    [__b__two] y = Add(c, a)
}
"""


@pytest.fixture
def scoped(tmp_path: Path) -> Path:
    model = models.parse(SCOPED)
    for node in model.graph.node:
        node.name = node.name.replace("__", "/")
    path = tmp_path / "scoped.onnx"
    onnx.save(model, path)
    return path


def marked(session: Session) -> list[str]:
    return [node.name for node in session.screen.explorer.marked]


def names(session: Session) -> list[str]:
    return [node.name for node in session.screen.document.main.nodes]


async def mark(session: Session, *found: str) -> None:
    for name in found:
        await session.go(name, "space")


def beside(session: Session, name: str) -> Path:
    """Return the path of a file beside the model."""
    path = session.screen.document.path
    assert path is not None
    return path.with_name(name)


async def mark_along_the_links(session: Session) -> None:
    await mark(session, "first", "third")
    assert "2 marked" in session.text
    for key, found in (
        ("b", ["first", "second", "third"]), ("i", ["last"]),
        ("u", ["first", "second", "third", "last"]), ("c", []),
    ):  # fmt: skip
        await session.press(",", key)
        assert marked(session) == found, key
    assert "marked" not in session.text.splitlines()[1]
    await session.go("second", ",", "d")
    assert marked(session) == ["second", "third", "last"]


async def mark_by_name_and_type(session: Session) -> None:
    await session.go("/b/one", ",", "n")
    assert isinstance(session.app.screen, PromptDialog)
    await session.press("enter")
    assert marked(session) == ["/b/one", "/b/two"]
    await session.press(",", "c", ",", "t")
    assert marked(session) == ["/a/one", "/b/one"]
    await session.press(",", "n", "ctrl+u")
    await session.type("/x")
    assert "No node's name begins with this" in session.text


async def mark_by_filter_adds_to_the_marks(session: Session) -> None:
    await mark(session, "/a/two")
    await session.press(",", "f")
    assert isinstance(session.app.screen, FilterDialog)
    await session.press("tab")
    await session.type("has dilations", "enter")
    await session.until(lambda: marked(session) == ["/a/two", "/b/one"])


@pytest.mark.broad
async def test_copy_and_paste_in_another_tab(chain: Path, scoped: Path) -> None:
    async with opened(scoped) as session:
        await mark(session, "/a/one", "/a/two")
        await session.press("y")
        session.app.open_path(chain)
        await until(session.pilot, lambda: len(session.app.pages) == 2)
        other = session.app.pages[1]
        assert isinstance(other, WorkspaceScreen)
        await until(session.pilot, lambda: other.is_open and other.focused is not None)
        there = Session(session.app, session.pilot, other)
        await there.press("p")
        assert names(there)[-2:] == ["/a/one", "/a/two"]
        assert marked(there) == ["/a/one", "/a/two"]
        added = there.screen.document.main.initializer("w_1")
        assert added is not None
        assert added.shape == (2, 2, 1, 1)
        await there.press("u")
        assert not there.screen.document.dirty


async def cut_and_paste_is_as_before(session: Session) -> None:
    await session.go("first")
    assert session.screen.check_action("command", ("selection.paste",)) is None
    await session.press("p")
    assert len(names(session)) == 4, "nothing was copied"
    await mark(session, "second", "third")
    await session.press("ctrl+x")
    assert names(session) == ["first", "last"]
    assert len(session.screen.document.history.done) == 1
    await session.press("p")
    assert names(session) == ["first", "second", "third", "last"]
    assert session.screen.document.main.nodes[1].inputs == ("a", "w")


async def marked_nodes_are_extracted_with_those_between_if_wanted(session: Session) -> None:
    await mark(session, "first", "third")
    await session.press("x")
    assert "the marked nodes and 1 node between them" in session.text
    await session.press("b")
    assert "3 nodes, 1 initializer of 16 B" in session.text
    await session.press("escape", "x", "m")
    assert "3 nodes" not in session.text
    await session.press("escape")
    await mark(session, "first", "second")
    await session.press("x")
    session.in_front(ExtractDialog)
    for shown in ("2 nodes, 1 initializer of 16 B", "input   a", "output  c"):
        assert shown in session.text
    await session.press("enter")
    await session.front(ChoiceDialog)
    part = onnx.load(beside(session, "model.part.onnx"))
    assert [node.name for node in part.graph.node] == ["second", "third"]
    await session.press("o")
    await session.until(lambda: len(session.app.pages) == 2)
    session.app.close_page(session.app.pages[1])
    session.app.show_page(session.screen)


async def edits_are_exported(session: Session) -> None:
    await session.go("first", "d", "r")
    session.screen.conversion.export_script()
    await session.pilot.pause()
    await session.press("enter")
    script = beside(session, "model.edits.jsonl")
    await session.until(script.exists)
    assert '"delete_many"' in script.read_text()


@pytest.mark.broad
async def test_nodes_of_a_chain(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(chain) as session:
        await session.in_turn(
            mark_along_the_links,
            cut_and_paste_is_as_before,
            edits_are_exported,
            marked_nodes_are_extracted_with_those_between_if_wanted,
        )

        def refuses(before: Path, after: Path, cancelled: object) -> list[str]:
            assert [len(onnx.load(path).graph.node) for path in (before, after)] == [4, 1]
            raise ActivityError("the result is not valid: no [kernel]")

        monkeypatch.setattr(conversion, "require_sound", refuses)
        chain.with_name("model.part.onnx").unlink()
        await session.go("second", "x", "enter")
        await session.front(ChoiceDialog)
        assert "buttheresultisnotvalid:no[kernel]." in flat_text(session.app)


async def nodes_of_several_graphs_are_deleted_in_one_step(session: Session) -> None:
    for marks, left in ((["pre", "inner"], ["choose"]), (["choose", "inner"], ["pre"])):
        session.screen.explorer.list.set_marks(set())
        await mark(session, *marks)
        await session.press("d", "d")
        assert names(session) == left
        assert len(session.screen.document.history.done) == 1
        await session.press("u")
        assert names(session) == ["pre", "choose"]
        assert not session.screen.document.dirty


async def a_subgraph_is_extracted_and_keeps_what_is_there(session: Session) -> None:
    target = beside(session, "model.then_branch.onnx")
    target.write_bytes(b"mine")
    await session.go("choose", "x", "b")
    assert "input   a" in session.text
    await session.press("enter")
    assert "Overwrite?" in session.text
    await session.press("a")
    session.in_front(ExtractDialog)
    await session.press("escape")
    assert target.read_bytes() == b"mine"


@pytest.mark.broad
async def test_nodes_with_subgraphs(branches: Path) -> None:
    async with opened(branches) as session:
        await session.in_turn(
            nodes_of_several_graphs_are_deleted_in_one_step,
            a_subgraph_is_extracted_and_keeps_what_is_there,
        )


async def shared_attributes_are_set_in_one_step(session: Session) -> None:
    await session.press(",", "i", "E")
    (group, *_) = (dialog := session.in_front(BatchDialog)).groups
    shown = {item.name: item.text for item in group.attributes}
    assert (group.op_type, shown["group"]) == ("Conv", "1")
    assert (shown["dilations"], shown["strides"]) == ("(mixed)", "(not set)")
    rows = [*shown]
    # Editing begins with what all have, or the default; with nothing where they differ.
    for name, begun in {"dilations": "", "group": "1", "strides": ""}.items():
        dialog.query_one(LineView).cursor = 1 + rows.index(name)  # below the title
        await session.press("enter")
        assert dialog.query_one(Input).value == begun
        await session.press("escape")
    dialog.query_one(LineView).cursor = 1
    await session.press(*["down"] * rows.index("dilations"), "delete")
    await session.press(*["down"] * (rows.index("group") - rows.index("dilations")), "enter")
    (said,) = dialog.query_one("#problem", Rows).content(80)
    assert "".join(text for text, _ in said) == "1 attribute to set"
    await session.press("ctrl+u", "x", "enter")
    assert "is not a whole number" in session.text
    await session.press("ctrl+u", "2", "enter")
    assert "2 attributes to set" in session.text
    await session.press("f5")
    nodes = session.screen.document.main.nodes
    assert [node.integer("group", 1) for node in nodes if node.op_type == "Conv"] == [2, 2]
    assert nodes[2].attribute("dilations") is None
    assert len(session.screen.document.history.done) == 1


async def extract_a_name_scope(session: Session) -> None:
    rows = session.screen.explorer.list
    rows.cursor = next(at for at in range(len(rows.lines)) if "/b" in rows.lines.text(at))
    await session.pilot.pause()
    await session.press("x")
    assert "2 nodes" in session.text
    assert "input   b" in session.text


@pytest.mark.broad
async def test_marks_and_parts_of_a_model_with_name_scopes(scoped: Path) -> None:
    async with opened(scoped) as session:
        await session.in_turn(
            mark_by_name_and_type,
            mark_by_filter_adds_to_the_marks,
            extract_a_name_scope,
            shared_attributes_are_set_in_one_step,
        )


@pytest.mark.broad
async def test_fold_marked_nodes_to_an_initializer(tmp_path: Path) -> None:
    text = models.CHAIN.replace(
        "[first] a = Relu(x)", "[sum] s = Add(w, w) [square] t = Mul(s, s) [first] a = Add(x, t)"
    ).replace("<float[4] w", "<float[4] t, float[4] w")
    async with opened(models.write(tmp_path, text)) as session:
        every = names(session)
        for key, left in (("k", every), ("f", every[2:])):
            await mark(session, "sum", "square")
            await session.press("ctrl+p", *"fold to init", "enter")
            session.in_front(ChoiceDialog)
            assert "2 nodes become a constant" in session.text
            assert "t  float32[4]" in session.text
            await session.press(key)
            await session.until(lambda: not session.screen.tasks.is_working)
            assert names(session) == left
            session.screen.explorer.list.set_marks(set())
        folded = session.screen.document.main.initializer("t")
        assert folded is not None
        assert list(folded.read()) == [4, 16, 36, 64]
        await session.press("u")
        await session.until(lambda: names(session) == every)
        await session.go("first", "escape", "ctrl+p", *"fold to init", "enter")
        await session.until(lambda: any("depends on input 'x'" in told for told in session.told))
