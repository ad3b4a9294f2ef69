"""Metadata, doc strings, precisions and shape profiles are shown and changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import TextArea

from dld_tui.core.model import edits
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.screens.model.metadata import (
    MetadataList,
    ProfilesScreen,
)
from dld_tui.widgets.dialogs.dialogs import PromptDialog, TextDialog
from dld_tui.widgets.lists.line_view import LineView
from tests.support.workspace import Session, opened


def go(session: Session, label: str, part: str = "") -> None:
    """Put the cursor of the metadata page on a row."""
    view = session.app.screen.query_one(MetadataList)
    texts = [view.lines.text(at) for at in range(len(view.lines))]
    start = next(at for at, text in enumerate(texts) if text.startswith(part))
    view.cursor = next(at for at in range(start, len(texts)) if texts[at].startswith(label))


async def doc_strings_have_lines(session: Session) -> None:
    node = await session.go("second", "@", "e")
    assert isinstance(session.app.screen, TextDialog)
    await session.press("a", "enter", "b", "ctrl+s")
    assert node.doc_string == "a\nb"
    assert "and 1 more line" in session.text
    go(session, "doc string", "Model")
    await session.press("e", "m", "ctrl+s")
    assert session.screen.document.model.doc_string == "m"


async def model_fields_are_checked(session: Session) -> None:
    model = session.screen.document.model
    await session.press("@")
    go(session, "IR version")
    await session.press("e")
    assert isinstance(session.app.screen, PromptDialog)
    await session.press("ctrl+u", "x", "enter")
    assert "a whole number is needed" in session.text
    await session.press("ctrl+u", "9", "enter")
    assert model.ir_version == 9
    go(session, "producer")
    await session.press("e", "m", "e", "enter")
    assert model.producer_name == "me"


async def types_of_values_are_listed_and_changed(session: Session) -> None:
    document = session.screen.document
    document.apply("set_value_type", scope=[], value="a", dtype="float32", dims=["N", 4])
    await session.press("@")
    go(session, "a ", "Declared types")
    await session.press("e", "ctrl+u")
    await session.type("f16[")
    assert "not a type" in session.text
    await session.type("2]", "enter")
    known = document.main.value_type("a")
    assert known is not None
    assert known.text == "float16[2]"
    go(session, "a ", "Declared types")
    await session.press("d")
    assert document.main.value_type("a") is None


async def metadata_of_a_node_is_edited_in_its_parameters(session: Session) -> None:
    node = await session.go("second")
    session.edit(edits.metadata.set_metadata(key="k", value="v", scope=[], nodes=["second"]))
    session.edit(edits.metadata.set_doc_string(text="text", scope=[], nodes=["second"]))
    await session.row("k v", "e", "w", "ctrl+s")
    assert node.metadata == {"k": "vw"}
    await session.row("k vw", "d")
    assert node.metadata == {}
    await session.row("Doc string", "d")
    assert node.doc_string == ""


@pytest.mark.broad
async def test_precision_of_marked_nodes_is_a_column(chain: Path) -> None:
    async with opened(chain) as session:
        nodes = session.screen.document.main.nodes
        assert "TRT" not in session.text
        await session.go("first", "space", "space", "P", "2")
        assert [precision_of(node) for node in nodes] == ["fp16", "fp16", "", ""]
        await session.until(lambda: "TRT" in session.text and "fp16" in session.text)
        await session.press("escape")
        session.screen.selection.mark_precision()
        await session.settle()
        await session.press("1")
        assert session.screen.explorer.list.marks == set(nodes[:2])
        await session.press("P", "c")
        assert {precision_of(node) for node in nodes} == {""}


async def profiles_that_fit_no_more_are_marked(session: Session) -> None:
    document = session.screen.document
    document.apply("set_profiles", profiles=[{"x": {"min": [1, 4], "opt": [1, 4], "max": [1, 4]}}])
    document.apply("set_value_type", scope=[], value="x", dtype="float32", dims=["N", 5])
    session.screen.editing.show_profiles()
    await session.front(ProfilesScreen)
    assert "dimension 1 is fixed to 5" in session.text
    document.apply("set_metadata", key="dld.profiles", value="{")
    await session.pilot.pause()
    assert "is not JSON" in session.text


async def odd_characters_are_edited_as_escapes(session: Session) -> None:
    node = await session.go("second")
    text = "a\\b\n\x1b]0;x\x07"
    session.edit(edits.metadata.set_doc_string(text=text, scope=[], nodes=["second"]))
    await session.press("@")
    session.app.screen.query_one(LineView).cursor = 1
    await session.press("e")
    area = session.app.screen.query_one(TextArea)
    assert area.text == "a\\\\b\n\\x1b]0;x\\x07"
    await session.press("\\", "q", "ctrl+s")
    assert isinstance(session.app.screen, TextDialog), "it is no escape, so the dialog stays"
    await session.press("backspace", "backspace", "z", "ctrl+s")
    assert node.doc_string == text + "z"


@pytest.mark.broad
async def test_texts_and_types(chain: Path) -> None:
    async with opened(chain) as session:
        await session.in_turn(
            doc_strings_have_lines,
            model_fields_are_checked,
            types_of_values_are_listed_and_changed,
            metadata_of_a_node_is_edited_in_its_parameters,
            profiles_that_fit_no_more_are_marked,
            odd_characters_are_edited_as_escapes,
        )
