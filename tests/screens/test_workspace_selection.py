"""Marking, copying, pasting, extracting and editing many nodes, by keys alone."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.errors import ActivityError
from dld_tui.screens.workspace import conversion
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, PromptDialog
from dld_tui.widgets.dialogs.nodes import BatchDialog, ExtractDialog
from dld_tui.widgets.explorer.node_filter import FilterDialog
from tests.support import models
from tests.support.tui import flat_text, until
from tests.support.workspace import SIZES, Session, opened

SCOPED = """
<ir_version: 10, opset_import: ["" : 18]>
scoped (float[1, 2, 8, 8] x) => (float[1, 2, 8, 8] y)
<float[2, 2, 1, 1] w = {1, 2, 3, 4}>
{
    ["/a/one"] a = Conv <group = 1, kernel_shape = [1, 1]> (x, w)
    ["/a/two"] b = Relu(a)
    ["/b/one"] c = Conv <group = 1, kernel_shape = [1, 1], dilations = [2, 2]> (b, w)
    ["/b/two"] y = Add(c, a)
}
"""


@pytest.fixture
def scoped(tmp_path: Path) -> Path:
    model = models.parse(SCOPED.replace('["/', "[n_").replace('"]', "]").replace("/", "_"))
    for node in model.graph.node:
        node.name = node.name.replace("n_", "/").replace("_", "/")
    path = tmp_path / "scoped.onnx"
    onnx.save(model, path)
    return path


def marked(session: Session) -> list[str]:
    return [node.name for node in session.screen.explorer.marked]


def names(session: Session) -> list[str]:
    return [node.name for node in session.screen.document.main.nodes]


async def mark(session: Session, *found: str) -> None:
    for name in found:
        await session.go(name)
        await session.press("space")


@pytest.mark.broad
@SIZES
async def test_mark_along_the_links(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        await mark(session, "first", "third")
        assert "2 marked" in session.text
        await session.press("comma", "b")
        assert marked(session) == ["first", "second", "third"]
        await session.press("comma", "i")
        assert marked(session) == ["last"]
        await session.press("comma", "u")
        assert len(marked(session)) == 4
        await session.press("comma", "c")
        assert marked(session) == []
        assert "marked" not in session.text.splitlines()[1]
        await session.go("second")
        await session.press("comma", "d")
        assert marked(session) == ["second", "third", "last"]


async def mark_by_name_and_type(session: Session) -> None:
    await session.go("/b/one")
    await session.press("comma", "n")
    assert isinstance(session.app.screen, PromptDialog)
    await session.press("enter")
    assert marked(session) == ["/b/one", "/b/two"]
    await session.press("comma", "c", "comma", "t")
    assert marked(session) == ["/a/one", "/b/one"]
    await session.press("comma", "n", "ctrl+u")
    await session.type("/x")
    assert "No node's name begins with this" in session.text


async def mark_by_filter_adds_to_the_marks(session: Session) -> None:
    await mark(session, "/a/two")
    await session.press("comma", "f")
    assert isinstance(session.app.screen, FilterDialog)
    await session.press("tab")
    await session.type("has dilations")
    await session.press("enter")
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
    await mark(session, "second", "third")
    await session.press("ctrl+x")
    assert names(session) == ["first", "last"]
    assert len(session.screen.document.history.done) == 1
    await session.press("p")
    assert names(session) == ["first", "second", "third", "last"]
    assert session.screen.document.main.nodes[1].inputs == ("a", "w")


async def paste_needs_something_copied(session: Session) -> None:
    await session.go("first")
    assert session.screen.check_action("command", ("selection.paste",)) is None
    await session.press("p")
    assert len(names(session)) == 4


@pytest.mark.broad
async def test_cut_and_paste(chain: Path) -> None:
    async with opened(chain) as session:
        for check in (
            paste_needs_something_copied,
            cut_and_paste_is_as_before,
        ):
            await check(session)
            await session.reset()


@pytest.mark.broad
async def test_delete_in_several_scopes_is_one_step(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.BRANCHES)) as session:
        await mark(session, "pre", "inner")
        await session.press("d", "d")
        assert names(session) == ["choose"]
        assert len(session.screen.document.history.done) == 1
        await session.press("u")
        assert names(session) == ["pre", "choose"]
        assert not session.screen.document.dirty


@pytest.mark.broad
@SIZES
async def test_extract_marked_nodes_and_open_them(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        await mark(session, "second", "third")
        await session.press("x")
        assert isinstance(session.app.screen, ExtractDialog)
        assert "2 nodes, 1 initializer of 16 B" in session.text
        assert "input   a" in session.text
        assert "output  c" in session.text
        await session.press("enter")
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        part = onnx.load(chain.with_name("model.part.onnx"))
        assert [node.name for node in part.graph.node] == ["second", "third"]
        await session.press("o")
        await session.until(lambda: len(session.app.pages) == 2)


@pytest.mark.broad
async def test_what_lies_between_marked_nodes_is_extracted_if_wanted(chain: Path) -> None:
    async with opened(chain) as session:
        await mark(session, "first", "third")
        await session.press("x")
        assert "the marked nodes and 1 node between them" in session.text
        await session.press("b")
        assert "3 nodes, 1 initializer of 16 B" in session.text
        await session.press("escape", "x", "m")
        assert "3 nodes" not in session.text


@pytest.mark.broad
async def test_an_extract_that_is_not_valid_is_told(
    chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(before: Path, after: Path, cancelled: object) -> list[str]:
        assert len(onnx.load(before).graph.node) == len(onnx.load(chain).graph.node)
        assert len(onnx.load(after).graph.node) == 1
        raise ActivityError("the result is not valid: no [kernel]")

    monkeypatch.setattr(conversion, "require_sound", refuses)
    async with opened(chain) as session:
        await session.go("second")
        await session.press("x", "enter")
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        assert "buttheresultisnotvalid:no[kernel]." in flat_text(session.app)


@pytest.mark.broad
async def test_folding_says_what_becomes_of_the_nodes(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y)
        <float[2] b> {
            [one] a = Constant<value = float[2] {1, 2}>() [two] b = Neg(a) [add] y = Add(x, b)
        }"""
    async with opened(models.write(tmp_path, text)) as session:
        for key, left in (("k", ["one", "two", "add"]), ("f", ["add"])):
            await mark(session, "one", "two")
            session.screen.selection.fold()
            await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
            known = session.screen.document.main.value_type("b")
            assert known is not None
            assert f"b  {known.text}" in session.text
            await session.press(key)
            await session.until(lambda: not session.screen.tasks.is_working)
            assert names(session) == left
            session.screen.explorer.list.set_marks(set())
        await session.press("u")
        assert names(session) == ["one", "two", "add"]


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
        for check in (
            mark_by_name_and_type,
            mark_by_filter_adds_to_the_marks,
            extract_a_name_scope,
        ):
            await check(session)
            await session.reset()


@pytest.mark.broad
async def test_extract_a_body_and_keep_what_is_there(tmp_path: Path) -> None:
    target = tmp_path / "model.then_branch.onnx"
    target.write_bytes(b"mine")
    async with opened(models.write(tmp_path, models.BRANCHES)) as session:
        await session.go("choose")
        await session.press("x", "b")
        assert "input   a" in session.text
        await session.press("enter")
        assert "Overwrite?" in session.text
        await session.press("a")
        assert isinstance(session.app.screen, ExtractDialog)
        await session.press("escape")
        assert target.read_bytes() == b"mine"


@pytest.mark.broad
@SIZES
async def test_shared_attributes_in_one_step(scoped: Path, size: tuple[int, int]) -> None:
    async with opened(scoped, size) as session:
        await session.press("comma", "i", "E")
        dialog = session.app.screen
        assert isinstance(dialog, BatchDialog)
        shown = {item.name: item.text for item in dialog.groups[0].attributes}
        assert (dialog.groups[0].op_type, shown["group"]) == ("Conv", "1")
        assert (shown["dilations"], shown["strides"]) == ("(mixed)", "(not set)")
        rows = [item.name for item in dialog.groups[0].attributes]
        await session.press(*["down"] * rows.index("dilations"), "delete")
        await session.press(*["down"] * (rows.index("group") - rows.index("dilations")), "enter")
        await session.press("ctrl+u", "x", "enter")
        assert "is not a whole number" in session.text
        await session.press("ctrl+u", "2", "enter")
        assert "2 attributes to set" in session.text
        await session.press("f5")
        nodes = session.screen.document.main.nodes
        groups = [n.attribute("group") for n in nodes if n.op_type == "Conv"]
        assert [found.value for found in groups if found is not None] == [2, 2]
        assert nodes[2].attribute("dilations") is None
        assert len(session.screen.document.history.done) == 1
        await session.press("u")
        assert not session.screen.document.dirty


@pytest.mark.broad
async def test_export_edits(chain: Path) -> None:
    async with opened(chain) as session:
        await session.go("first")
        await session.press("d", "r")
        session.screen.conversion.export_script()
        await session.pilot.pause()
        await session.press("enter")
        script = chain.with_name("model.edits.jsonl")
        await session.until(script.exists)
        assert '"delete_many"' in script.read_text()


@pytest.mark.broad
async def test_fold_marked_nodes_to_an_initializer(tmp_path: Path) -> None:
    text = models.CHAIN.replace(
        "[first] a = Relu(x)", "[sum] s = Add(w, w) [square] t = Mul(s, s) [first] a = Add(x, t)"
    )
    async with opened(models.write(tmp_path, text)) as session:
        await mark(session, "sum", "square")
        await session.press("ctrl+p", *"fold to init", "enter")
        assert isinstance(session.app.screen, ChoiceDialog)
        assert "2 nodes become a constant" in session.text
        await session.press("f")
        await session.until(lambda: names(session) == ["first", "second", "third", "last"])
        folded = session.screen.document.main.initializer("t")
        assert folded is not None
        assert list(folded.read()) == [4, 16, 36, 64]
        await session.press("u")
        await session.until(lambda: names(session)[:2] == ["sum", "square"])
        await session.go("first")
        await session.press("escape")  # the marks
        await session.press("ctrl+p", *"fold to init")
        await session.press("enter")
        told = session.app._notifications
        await session.until(lambda: any("depends on input 'x'" in one.message for one in told))
