from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from textual.widgets import TextArea

from dld_tui.core.model.document import Document
from dld_tui.screens.tensors.create_initializer import CreateInitializer
from dld_tui.screens.tensors.initializers import InitializersScreen
from dld_tui.screens.tensors.tensor_editor import TensorScreen
from dld_tui.widgets.dialogs.dialogs import FieldsDialog, TextDialog
from dld_tui.widgets.dialogs.search import PickDialog
from tests.support.tensors import listed
from tests.support.workspace import WIDE, Session


def names(page: InitializersScreen) -> list[str]:
    """Return the names that are listed, in order."""
    return [row.name for row in page.pane.shown()]


def go(page: InitializersScreen, name: str) -> None:
    """Put the cursor on an initializer."""
    row = next(row for row in page.pane.rows if row.name == name)
    assert page.pane.table.go_to_key(row.key)


async def reset(session: Session, page: InitializersScreen) -> None:
    """Take back what a check did, and list everything."""
    while session.app.screen is not page and page.is_attached:
        session.app.screen.dismiss(None)
        await session.pilot.pause()
    document = session.screen.document
    while document.history.done:
        document.undo()
    await session.until(lambda: not page.is_attached or len(names(page)) == 13)


def initializers(document: Document) -> list[str]:
    """Return the names of the dense initializers of the main graph."""
    return [tensor.name for tensor in document.main.initializers]


@pytest.mark.broad
async def test_the_largest_is_first_and_problems_are_counted(tmp_path: Path) -> None:
    async with listed(tmp_path, WIDE) as (session, page):
        assert names(page)[0] == "volume"
        await session.shows("1 problem")
        rows = session.text.splitlines()
        assert any("thin" in row and "sparse" in row and "[10]" in row for row in rows)
        assert any("gone" in row and "gone.bin @0" in row and "✖" in row for row in rows)
        assert any(" w " in row and "float32" in row and "16 B" in row for row in rows)
        assert "k" not in names(page)
        await session.press("C")
        await session.until(lambda: "k" in names(page))


async def unused_ones_are_deleted_and_come_back(session: Session, page: InitializersScreen) -> None:
    document = session.screen.document
    page.action_delete_unused()
    await session.until(lambda: session.app.screen is not page)
    await session.press("d")
    await session.until(lambda: initializers(document) == ["w"])
    await session.until(lambda: names(page) == ["w"])
    await session.press("u")
    await session.until(lambda: len(names(page)) == 13)


async def deleting_a_used_one_asks_and_disconnects(
    session: Session, page: InitializersScreen
) -> None:
    document = session.screen.document
    go(page, "w")
    await session.press("d")
    await session.until(lambda: session.app.screen is not page)
    await session.pilot.pause()
    assert "used in 2 places" in session.text
    await session.press("d")
    await session.until(lambda: "w" not in initializers(document))
    last = document.main.find("last")
    assert last is not None
    assert last.inputs == ("b",)


async def renaming_keeps_the_cursor(session: Session, page: InitializersScreen) -> None:
    go(page, "w")
    await session.press("r", "end", "2", "enter")
    await session.until(lambda: "w2" in names(page))
    await session.until(lambda: page.row is not None and page.row.name == "w2")
    await session.until(lambda: "●" in session.text.partition("\n")[0])  # the tab of the model


async def pick(session: Session, page: InitializersScreen, text: str) -> None:
    """Choose what a text finds in the dialog."""
    await session.front(PickDialog)
    await session.type(text)
    await session.pilot.pause()
    await session.press("enter")
    await session.until(lambda: not isinstance(session.app.screen, PickDialog))


async def connecting_switching_and_disconnecting(
    session: Session, page: InitializersScreen
) -> None:
    main = session.screen.document.main
    second, first = main.find("second"), main.find("first")
    assert second is not None
    assert first is not None
    go(page, "odd")
    await session.press("c")
    await pick(session, page, "mul b")
    await session.until(lambda: second.inputs == ("a", "odd"))
    await session.until(lambda: page.row is not None and page.row.uses == 1)
    await session.press("R")
    await pick(session, page, "brain")
    await session.until(lambda: second.inputs == ("a", "brain"))
    await session.until(lambda: any(row.name == "brain" and row.uses for row in page.pane.rows))
    go(page, "brain")
    await session.press("K")
    await session.until(lambda: second.inputs == ("a",))
    await session.until(lambda: page.row is not None and not page.row.uses)


async def going_to_a_user(session: Session, page: InitializersScreen) -> None:
    go(page, "w")
    await session.press("s")
    await pick(session, page, "sub")
    await session.until(lambda: session.app.screen is session.screen)
    node = session.screen.explorer.node
    assert node is not None
    assert node.name == "last"


@pytest.mark.broad
async def test_marked_ones_are_converted_with_a_preview(tmp_path: Path) -> None:
    async with listed(tmp_path, WIDE) as (session, page):
        go(page, "w")
        await session.press("space")
        go(page, "odd")
        await session.press("space", "T")
        await pick(session, page, "float16")
        await session.shows("No value changes")
        await session.press("enter")
        main = session.screen.document.main
        await session.until(
            lambda: (
                [t.dtype for t in main.initializers if t.name in ("w", "odd")]
                == ["float16", "float16"]
            )
        )


async def values_move_to_a_data_file_and_back(session: Session, page: InitializersScreen) -> None:
    main = session.screen.document.main
    go(page, "volume")
    await session.press("x")
    await session.until(lambda: session.app.screen is not page)
    await session.press("enter")
    await session.until(lambda: main.initializers[1].is_external)
    entries = main.initializers[1].external_entries
    assert entries["location"] == "tensors.onnx.data"
    await session.until(lambda: page.row is not None and page.row.tensor.is_external)
    await session.press("I")
    await session.until(lambda: not main.initializers[1].is_external)


@pytest.mark.broad
async def test_the_place_of_external_values_is_edited(tmp_path: Path) -> None:
    (tmp_path / "other.bin").write_bytes(bytes(8) + np.arange(4, dtype=np.float32).tobytes())
    async with listed(tmp_path) as (session, page):
        tensor = session.screen.document.main.initializer
        go(page, "gone")
        await session.press("E")
        await session.front(FieldsDialog)
        await session.press("ctrl+u", "ctrl+k")
        await session.type("other.bin", "tab")
        await session.type("9", "enter")
        await session.shows("bytes 9 to 25")
        await session.press("backspace")
        await session.type("8", "enter")
        await session.until(lambda: session.app.screen is page)
        found = tensor("gone")
        assert found is not None
        assert found.read().tolist() == [0, 1, 2, 3]
        await session.press("enter")
        editor = await session.front(TensorScreen)
        editor.action_data_file()
        await session.front(FieldsDialog)
        await session.press("tab")
        await session.type("4", "enter")
        await session.front(TensorScreen)
        found = tensor("gone")
        assert found is not None
        assert found.read().tolist() == [0, 0, 1, 2]


async def sparse_and_dense(session: Session, page: InitializersScreen) -> None:
    main = session.screen.document.main
    go(page, "thin")
    page.action_sparse()
    await session.until(lambda: main.initializer("thin") is not None)
    tensor = main.initializer("thin")
    assert tensor is not None
    assert tensor.read().tolist() == [0, 0, 0, 1, 0, 0, 0, 2, 0, 0]


async def a_sparse_one_is_edited_as_text(session: Session, page: InitializersScreen) -> None:
    main = session.screen.document.main
    go(page, "thin")
    await session.press("e")
    await session.front(TextDialog)
    area = session.app.screen.query_one(TextArea)
    assert area.text == "float32 [10]\n3 = 1.0\n7 = 2.0"
    area.text = "float32 [4]\n3 = 0.5\n4 = 1"
    await session.press("ctrl+s")
    await session.shows("line 3: index 4 is not below 4")
    area.text = "float32 [4]\n3 = 0.5\n0 = 1"
    await session.press("ctrl+s")
    await session.until(lambda: session.app.screen is page)
    assert list(main.records["sparse_initializer"][0].dims) == [4]
    await session.until(lambda: page.row is not None and page.row.shape == (4,))


async def a_new_one_is_made_by_the_form(session: Session, page: InitializersScreen) -> None:
    await session.press("a")
    form = await session.front(CreateInitializer)
    await session.until(lambda: form.focused is not None)
    await session.type("w")
    form.form.set_values({"dims": "2, 3", "fill": "uniform", "low": -1.0, "seed": 5})
    await session.until(lambda: "valid" in form.conditions())
    await session.press("f5")
    await session.shows("already a value called")
    await session.type("ide")
    await session.until(lambda: form.form.values()["name"] == "wide")
    await session.press("f5")
    await session.until(lambda: session.app.screen is page)
    await session.until(lambda: page.row is not None and page.row.name == "wide")
    assert page.row is not None
    assert page.row.shape == (2, 3)
    assert -1 <= float(page.row.tensor.read().min()) < 0


async def only_fields_that_count_are_shown(session: Session, page: InitializersScreen) -> None:
    await session.press("a")
    form = await session.front(CreateInitializer)
    assert not form.form.rows["seed"].display
    form.form.set_values({"fill": "normal"})
    await session.pilot.pause()
    hidden = [name for name, row in form.form.rows.items() if not row.display]
    assert hidden == ["values", "low", "high", "file", "offset", "length"]


@pytest.mark.broad
async def test_the_list_of_initializers(tmp_path: Path) -> None:
    async with listed(tmp_path) as (session, page):
        for check in (
            unused_ones_are_deleted_and_come_back,
            deleting_a_used_one_asks_and_disconnects,
            renaming_keeps_the_cursor,
            connecting_switching_and_disconnecting,
            values_move_to_a_data_file_and_back,
            sparse_and_dense,
            a_sparse_one_is_edited_as_text,
            a_new_one_is_made_by_the_form,
            only_fields_that_count_are_shown,
            going_to_a_user,
        ):
            await check(session, page)
            await reset(session, page)
