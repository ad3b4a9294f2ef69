"""Editing in the workspace, by keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import TextArea

from dld_tui.widgets.dialogs.dialogs import TextDialog
from dld_tui.widgets.parameters.edit_bar import EditBar, name_editor
from tests.support import models
from tests.support.workspace import SIZES, Session, opened

CONVOLUTION = """
<ir_version: 10, opset_import: ["" : 18]>
convolution (float[1, 4, 8, 8] x) => (float[M] y)
<float[8, 4, 3, 3] w>
{
    [conv] a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w)
    [value] c = Constant <value = float[2] {1.5, 2.0}> ()
    [mode] b = Resize <mode = "linear"> (a, c, c)
    [out] y = Relu(b)
}
"""


@pytest.fixture
def convolution(tmp_path: Path) -> Path:
    return models.write(tmp_path, CONVOLUTION)


async def retype(session: Session, text: str) -> None:
    """Replace the text in the edit bar and press Enter."""
    await session.press("ctrl+u", "ctrl+k")
    await session.type(text)
    await session.press("enter")


@pytest.mark.broad
@SIZES
async def test_rename_a_node_undo_and_redo(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        node = await session.go("second")
        await session.press("r")
        await retype(session, "other")
        assert node.name == "other"
        assert "Add  other" in session.rows
        assert session.screen.unsaved()
        assert session.screen.explorer.node is node
        assert session.screen.explorer.list.has_focus
        await session.press("u")
        assert node.name == "second"
        assert not session.screen.unsaved()
        await session.press("ctrl+r")
        assert node.name == "other"


@pytest.mark.broad
async def test_rename_by_pattern_shows_what_changes_before(chain: Path) -> None:
    async with opened(chain) as session:
        await session.press("ctrl+p", *"rename by")
        await session.press("enter")
        await session.press("tab")
        await session.type("^(f|l)")
        await session.press("tab")
        await session.type("node_{n}_")
        await session.until(lambda: "2 names: first → node_0_irst" in session.text)
        await session.type("(")
        await session.press("enter")
        names = [node.name for node in session.screen.document.main.nodes]
        assert names == ["node_0_(irst", "second", "third", "node_1_(ast"]
        await session.press("u")
        assert session.screen.document.main.nodes[0].name == "first"


@pytest.mark.broad
async def test_a_plugin_is_made_by_keyboard(chain: Path) -> None:
    async with opened(chain) as session:
        node = await session.go("second")
        await session.press("ctrl+p", *"change operator")
        await session.press("enter")
        await session.press("ctrl+u", "ctrl+k")
        await session.type("trt.MyPlugin")
        await session.press("enter")
        assert (node.op_type, node.domain) == ("MyPlugin", "trt")
        assert session.screen.document.opset_imports["trt"] == 1
        await session.press("ctrl+p", *"add attribute")
        await session.press("enter")
        await session.type("boxes")
        await session.press("tab", "tab")
        await session.type("7")
        await session.press("enter")
        assert node.integer("boxes", 0) == 7
        await session.press("ctrl+p", *"add attribute")
        await session.press("enter")
        await session.type("table")
        await session.press("tab", *["right"] * 8)
        await session.press("tab")
        await session.type("float32 [9]; 4 = 1.5")
        await session.press("enter")
        sparse = node.attribute("table")
        assert sparse is not None
        assert (sparse.kind, list(sparse.value.dims)) == ("sparse_tensor", [9])
        await session.row("table")
        assert any("sparse float32[9], 1 element" in row for row in session.details), (
            session.details
        )
        await session.press("e")
        await session.until(lambda: "4 = 1.5" in session.text)
        await session.press("escape", "backslash")
        assert node.attribute("table") is None
        await session.press("a")
        await session.type("trt.Another")
        await session.press("enter")
        await session.until(lambda: "Add Another" in session.text)
        await session.press("f5")
        await session.until(lambda: len(session.screen.document.main.nodes) == 5)
        added = next(n for n in session.screen.document.main.nodes if n.op_type == "Another")
        assert (added.domain, added.inputs) == ("trt", node.outputs)


@pytest.mark.broad
async def test_types_are_shown_and_typed_as_words(tmp_path: Path) -> None:
    text = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[2, 2] x) => (int64[2, 2] y) { [cast] y = Cast <to = 7> (x) }
"""
    async with opened(models.write(tmp_path, text)) as session:
        node = await session.go("cast")
        assert any("int64" in row for row in session.details if row.strip().startswith("to"))
        await session.row("to")
        await session.press("e")
        await retype(session, "int32")
        assert node.integer("to", 0) == 6


async def a_refused_name_stays_in_the_field_with_the_reason(session: Session) -> None:
    node = await session.go("second")
    await session.press("r")
    await retype(session, "first")
    assert "already called 'first'" in session.text
    assert session.screen.query_one(EditBar).is_attached
    await session.press("escape")
    assert node.name == "second"
    assert session.screen.explorer.list.has_focus


async def rename_a_value_follows_every_use(session: Session) -> None:
    pre = await session.go("pre")
    inner = await session.go("inner")
    await session.press("enter")
    await session.row("X Relu")
    await session.press("r")
    await retype(session, "renamed")
    assert pre.outputs == ("renamed",)
    assert inner.inputs == ("renamed",)
    assert any("renamed" in row for row in session.details)


@SIZES
async def test_edit_an_attribute_with_a_literal(convolution: Path, size: tuple[int, int]) -> None:
    async with opened(convolution, size) as session:
        node = await session.go("conv")
        await session.press("e", "e")
        bar = session.screen.query_one(EditBar)
        assert bar.is_attached
        await retype(session, "[5, 5]")
        attribute = node.attribute("kernel_shape")
        assert attribute is not None
        assert attribute.value == [5, 5]
        assert "kernel_shape [5, 5] ints" in session.details
        assert session.screen.model.cursor.in_parameters


async def a_malformed_literal_is_explained_and_kept(session: Session) -> None:
    node = await session.go("conv")
    await session.press("e", "e")
    await retype(session, "[5, x]")
    assert "column 5" in session.text
    assert "[5, x]" in session.text
    await session.press("escape")
    attribute = node.attribute("kernel_shape")
    assert attribute is not None
    assert attribute.value == [3, 3]


async def edit_a_string_with_a_quote(session: Session) -> None:
    node = await session.go("mode")
    await session.press("e", "e")
    await retype(session, "'it\\'s'")
    attribute = node.attribute("mode")
    assert attribute is not None
    assert attribute.value == b"it's"


async def edit_the_value_of_a_constant(session: Session) -> None:
    node = await session.go("value")
    await session.press("e", "e")
    await retype(session, "[3, 4]")
    attribute = node.attribute("value")
    assert attribute is not None
    assert attribute.value.dtype == "float32"
    assert attribute.value.read().tolist() == [3.0, 4.0]


async def setting_a_default_and_reverting_it(session: Session) -> None:
    node = await session.go("conv")
    await session.press("enter")
    await session.row("Defaults")
    await session.press("enter")
    await session.row("group 1 int")
    await session.press("e")
    await retype(session, "4")
    assert node.attribute("group") is not None
    await session.row("group 4 int")
    await session.press("backslash")
    assert node.attribute("group") is None
    assert "group 1 int" in session.details


async def deleting_an_unused_node_needs_no_question(session: Session) -> None:
    scope = session.screen.document.main
    conv = await session.go("conv")
    session.screen.document.apply("delete_nodes", scope=[], nodes=["mode"])
    await session.press("d")
    assert "conv" not in {node.name for node in scope.nodes}
    await session.press("u", "u")
    assert [node.name for node in scope.nodes] == ["conv", "value", "mode", "out"]
    assert session.screen.explorer.node is conv


async def deleting_a_used_node_asks_and_reconnects(session: Session) -> None:
    third = await session.go("third")
    second = await session.go("second")
    await session.press("delete")
    assert "used in 2 places" in session.text
    await session.press("r")
    assert third.inputs == ("a", "a")
    assert second not in session.screen.document.main.nodes
    assert "Add  second" not in session.rows
    await session.press("u")
    assert third.inputs == ("b", "b")


async def deleting_can_leave_inputs_without_a_source_or_be_given_up(session: Session) -> None:
    third = await session.go("third")
    await session.go("second")
    await session.press("d", "k")
    assert len(session.screen.document.main.nodes) == 4
    await session.press("d", "d")
    assert third.inputs == ("b", "b")
    await session.go("third")
    assert any("no node produces this value" in row for row in session.details)
    await session.until(lambda: session.screen.findings.findings)


async def deleting_marked_nodes_with_those_nested_in_them(session: Session) -> None:
    await session.go("choose")
    await session.press("space", "space")
    assert len(session.screen.explorer.marked) == 3
    await session.press("d", "d")
    assert [node.name for node in session.screen.document.main.nodes] == ["pre"]
    assert session.screen.explorer.marked == []
    await session.press("u")
    assert [node.name for node in session.screen.document.main.nodes] == ["pre", "choose"]


async def deleting_the_holder_of_the_opened_scope_goes_back_to_main(session: Session) -> None:
    holder = await session.go("choose")
    await session.press("s", "1")
    session.screen.document.apply("delete_nodes", scope=[], nodes=[holder.ref])
    await session.settle()
    assert session.rows == ["main", "Relu  pre"]
    await session.press("backspace", "u", "d", "escape")


async def undo_goes_to_what_it_changed(session: Session) -> None:
    first = await session.go("first")
    await session.press("r")
    await retype(session, "other")
    await session.go("last")
    await session.press("u")
    assert session.screen.explorer.node is first


async def edit_in_a_subgraph(session: Session) -> None:
    inner = await session.go("inner")
    await session.press("r")
    await retype(session, "deep")
    assert inner.name == "deep"
    await session.press("ctrl+z")
    assert inner.name == "inner"


@pytest.mark.broad
async def test_edits_in_subgraphs(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.BRANCHES)) as session:
        for check in (
            rename_a_value_follows_every_use,
            deleting_marked_nodes_with_those_nested_in_them,
            edit_in_a_subgraph,
            deleting_the_holder_of_the_opened_scope_goes_back_to_main,
        ):
            await check(session)
            await session.reset()


@pytest.mark.broad
async def test_copy_names(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(chain) as session:
        copied: list[str] = []
        monkeypatch.setattr(session.app, "copy_to_clipboard", copied.append)
        await session.go("second")
        session.screen.editing.copy_name()
        await session.press("enter")
        await session.row("B w")
        session.screen.editing.copy_name()
        assert copied == ["second", "w"]


async def keys_that_do_nothing_here_say_why(session: Session) -> None:
    await session.press("g", "u", "s", "backspace", "backslash", "2", "4")
    assert not session.screen.document.history.done


@pytest.mark.broad
async def test_names_and_deletions(chain: Path) -> None:
    async with opened(chain) as session:
        for check in (
            keys_that_do_nothing_here_say_why,
            a_refused_name_stays_in_the_field_with_the_reason,
            deleting_a_used_node_asks_and_reconnects,
            deleting_can_leave_inputs_without_a_source_or_be_given_up,
            undo_goes_to_what_it_changed,
        ):
            await check(session)
            await session.reset()


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
async def test_a_name_with_control_characters_can_be_changed(tmp_path: Path) -> None:
    proto = models.parse(models.CHAIN)
    proto.graph.node[1].name = "esc\x1b[2J"
    path = tmp_path / "escape.onnx"
    path.write_bytes(proto.SerializeToString())
    async with opened(path) as session:
        node = await session.go("esc\x1b[2J")
        await session.press("r", "end", "x", "enter")
        assert node.name == "esc\x1b[2Jx"


@pytest.mark.broad
async def test_a_large_deletion_is_made_on_a_thread_and_undone(tmp_path: Path) -> None:
    text = "\n".join(f"    [n{at}] o{at} = Relu(x)" for at in range(700))
    model = f'<ir_version: 10, opset_import: ["" : 18]>\nlarge (float[N] x) => () {{\n{text}\n}}'
    async with opened(models.write(tmp_path, model)) as session:
        nodes = session.screen.document.main.nodes
        await session.press("g", "space")
        assert len(session.screen.explorer.marked) == 700
        await session.press("d", "d")
        await session.until(lambda: not nodes)
        await session.until(lambda: session.rows == ["main"])
        await session.press("u")
        await session.until(lambda: len(nodes) == 700)
        await session.until(lambda: len(session.rows) > 600)


async def an_attribute_with_few_values_offers_them(session: Session) -> None:
    node = await session.go("mode")
    await session.press("e", "e")
    assert session.screen.query_one(EditBar).choices == ("'nearest'", "'linear'", "'cubic'")
    await session.press("down", "enter")
    attribute = node.attribute("mode")
    assert attribute is not None
    assert attribute.value == b"cubic"


async def a_list_is_edited_a_value_a_line(session: Session) -> None:
    node = await session.go("conv")
    await session.press("e", "e", "f2")
    await session.until(lambda: isinstance(session.app.screen, TextDialog))
    area = session.app.screen.query_one(TextArea)
    assert area.text == "3\n3"
    area.text = "1, 2\nx"
    await session.press("ctrl+s")
    await session.until(lambda: "line 2" in session.text)
    area.text = "1, 2\n[3 4]"
    await session.press("ctrl+s")
    await session.until(lambda: node.attribute("kernel_shape").value == [1, 2, 3, 4])  # type: ignore[union-attr]
    assert not session.screen.query(EditBar)


@pytest.mark.broad
async def test_attributes(convolution: Path) -> None:
    async with opened(convolution) as session:
        for check in (
            a_malformed_literal_is_explained_and_kept,
            edit_a_string_with_a_quote,
            edit_the_value_of_a_constant,
            setting_a_default_and_reverting_it,
            deleting_an_unused_node_needs_no_question,
            an_attribute_with_few_values_offers_them,
            a_list_is_edited_a_value_a_line,
        ):
            await check(session)
            await session.reset()
