"""Editing in the workspace, by keys alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import TextArea

from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.widgets.dialogs.dialogs import TextDialog
from dld_tui.widgets.parameters.edit_bar import EditBar, name_editor
from tests.support import models
from tests.support.workspace import Session, opened

CONVOLUTION = """
<ir_version: 10, opset_import: ["" : 18]>
convolution (float[1, 4, 8, 8] x) => (int64[M] y)
<float[8, 4, 3, 3] w>
{
    [conv] a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w)
    [value] c = Constant <value = float[2] {1.5, 2.0}> ()
    [mode] b = Resize <mode = "linear"> (a, c, c)
    [out] y = Cast <to = 7> (b)
}
"""


@pytest.fixture
def convolution(tmp_path: Path) -> Path:
    return models.write(tmp_path, CONVOLUTION)


def value_of(session: Session, node: str, name: str) -> Any:
    """Return the value of an attribute, an array as a list."""
    found = session.screen.document.main.find(node)
    assert found is not None
    attribute = found.attribute(name)
    value = None if attribute is None else attribute.value
    return value.read().tolist() if isinstance(value, Tensor) else value


async def rename_a_value_follows_every_use(session: Session) -> None:
    pre = await session.go("pre")
    inner = await session.go("inner", "enter")
    await session.row("X Relu", "r")
    await session.retype("renamed", "enter")
    assert pre.outputs == inner.inputs == ("renamed",)
    assert any("renamed" in row for row in session.details)


async def attributes_are_typed_as_literals(session: Session) -> None:
    for node, name, typed, value in (
        ("conv", "kernel_shape", "[5, 5]", [5, 5]),
        ("mode", "mode", "'it\\'s'", b"it's"),
        ("value", "value", "[3, 4]", [3.0, 4.0]),
        ("out", "to", "int32", 6),
    ):
        await session.go(node, "e", "e")
        await session.retype(typed, "enter")
        assert value_of(session, node, name) == value
        assert session.screen.model.cursor.in_parameters
        assert any(name in row and typed[1:3] in row for row in session.details)


async def a_malformed_literal_is_explained_and_kept(session: Session) -> None:
    await session.go("conv", "e", "e")
    await session.retype("[5, x]", "enter")
    assert "column 5" in session.text
    assert "[5, x]" in session.text
    await session.press("escape")
    assert value_of(session, "conv", "kernel_shape") == [3, 3]


async def a_default_is_found_set_and_reverted(session: Session) -> None:
    await session.go("conv", "3")
    await session.press("/", *"group", "enter")
    assert session.screen.parameters.row is not None
    assert session.screen.parameters.row.attribute == "group"
    await session.press("e")
    await session.retype("4", "enter")
    assert value_of(session, "conv", "group") == 4
    await session.row("group 4 int", "\\")
    assert value_of(session, "conv", "group") is None
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


async def deleting_can_leave_inputs_without_a_source_or_be_given_up(session: Session) -> None:
    third = await session.go("third")
    await session.go("second", "d", "k")
    assert len(session.screen.document.main.nodes) == 4
    await session.press("d", "d")
    assert third.inputs == ("b", "b")
    await session.go("third")
    assert any("no node produces this value" in row for row in session.details)
    await session.until(lambda: session.screen.findings.findings)


async def deleting_the_holder_of_the_opened_scope_goes_back_to_main(session: Session) -> None:
    holder = await session.go("choose", "s", "1")
    session.screen.document.apply("delete_nodes", scope=[], nodes=[holder.ref])
    await session.settle()
    assert session.rows == ["main", "Relu  pre"]
    await session.press("backspace", "u", "d", "escape")


async def names_are_copied(session: Session) -> None:
    await session.go("second")
    session.screen.editing.copy_name()
    assert session.app.clipboard == "second"
    await session.press("enter")
    await session.row("B w")
    session.screen.editing.copy_name()
    assert session.app.clipboard == "w"


@pytest.mark.broad
async def test_edits_in_subgraphs(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.BRANCHES)) as session:
        await session.in_turn(
            rename_a_value_follows_every_use,
            deleting_the_holder_of_the_opened_scope_goes_back_to_main,
        )


async def keys_that_do_nothing_here_say_why(session: Session) -> None:
    await session.press("g", "u", "s", "backspace", "\\", "2", "4")
    assert not session.screen.document.history.done


@pytest.mark.broad
async def test_names_and_deletions(chain: Path) -> None:
    async with opened(chain) as session:
        await session.in_turn(
            keys_that_do_nothing_here_say_why,
            deleting_can_leave_inputs_without_a_source_or_be_given_up,
            names_are_copied,
        )


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


async def an_attribute_with_few_values_offers_them(session: Session) -> None:
    await session.go("mode", "e", "e")
    assert session.screen.query_one(EditBar).choices == ("'nearest'", "'linear'", "'cubic'")
    await session.press("down", "enter")
    assert value_of(session, "mode", "mode") == b"cubic"


async def a_list_is_edited_a_value_a_line(session: Session) -> None:
    await session.go("conv", "e", "e", "f2")
    area = (await session.front(TextDialog)).query_one(TextArea)
    assert area.text == "3\n3"
    for text, shown in (("1, 2\nx", "line 2"), ("1, 2\n[3 4]", "[1, 2, 3, 4]")):
        area.text = text
        await session.press("ctrl+s")
        await session.shows(shown)
    assert value_of(session, "conv", "kernel_shape") == [1, 2, 3, 4]
    assert not session.screen.query(EditBar)


@pytest.mark.broad
async def test_attributes(convolution: Path) -> None:
    async with opened(convolution) as session:
        await session.in_turn(
            attributes_are_typed_as_literals,
            a_malformed_literal_is_explained_and_kept,
            a_default_is_found_set_and_reverted,
            deleting_an_unused_node_needs_no_question,
            an_attribute_with_few_values_offers_them,
            a_list_is_edited_a_value_a_line,
        )
