from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from threading import Event
from time import monotonic, sleep

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from textual.events import Paste

from dld_tui.core.errors import CancelledError
from dld_tui.core.model import edits
from dld_tui.core.model.document.packed_weights import WeightPart, weight_views
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.settings import config
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.tensors import tensor_editor
from dld_tui.screens.tensors.conversion import TensorPlace
from dld_tui.screens.tensors.tensor_editor import TensorScreen
from dld_tui.widgets.dialogs.dialogs import PromptDialog
from dld_tui.widgets.shell import key_queue
from dld_tui.widgets.tensors.grid import CellEditor
from dld_tui.widgets.tensors.grid_layout import exact_text
from tests.support import decoders, models
from tests.support.tensors import VOLUME, editor, write_tensors
from tests.support.workspace import NARROW, WIDE, Session, opened


async def shown(session: Session, name: str) -> TensorScreen:
    """Show the editor of an initializer."""
    session.screen.editing.show_tensor(TensorPlace(session.screen.document.main, name))
    page = await session.front(TensorScreen)
    await focused(session, page)
    return page


async def edit(session: Session, page: TensorScreen, text: str, key: str = "enter") -> None:
    """Type a value into the cell that is being edited."""
    await session.until(lambda: isinstance(page.focused, CellEditor) and page.focused.selection)
    await session.press("backspace", *(KEYS.get(char, char) for char in text), key)
    await session.pilot.pause()


async def focused(session: Session, page: TensorScreen) -> None:
    """Wait until the grid has the keys."""
    await session.until(lambda: page.focused is page.grid)


def waiting_for(event: Event) -> Callable[[ProgressCallback, CancelCheck], None]:
    """Return work that ends when something has happened."""

    def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
        assert event.wait(60)

    return task


KEYS = {".": "full_stop", "-": "minus", " ": "space", "'": "apostrophe"}


async def cells_are_edited_in_place_and_taken_back(session: Session) -> None:
    page = await shown(session, "w")
    await session.press("right", "e")
    await edit(session, page, "2.5")
    assert page.tensor.read().tolist() == [1, 2.5, 3, 4]
    assert "[1] = 2.5" in session.text
    await session.press("u")
    assert page.tensor.read().tolist() == [1, 2, 3, 4]
    await session.press("ctrl+y")
    assert page.tensor.read().tolist() == [1, 2.5, 3, 4]


@pytest.mark.broad
async def test_the_model_is_saved_from_the_editor_but_not_while_it_changes(tmp_path: Path) -> None:
    async with editor(tmp_path, "w") as (session, page):
        path = session.screen.document.path
        assert path is not None
        await session.press("right", "e")
        await edit(session, page, "2.5")
        goes_on = Event()
        page.edits.work("Waiting", waiting_for(goes_on), lambda error: None)
        page.edits.save()  # keys would wait for the work
        page.edits.undo()
        assert session.screen.document.dirty
        goes_on.set()
        await session.until(lambda: not page.edits.is_working)
        await session.press("right", "e")
        await edit(session, page, "abc", "ctrl+s")
        assert session.screen.document.dirty  # what is typed is no number, and stays
        assert "abc" in session.text
        page.query_one(CellEditor).value = "7"
        await session.press("ctrl+s")  # takes the value, and saves
        await session.until(lambda: not session.screen.document.dirty)
        assert session.app.screen is page
        (stored,) = [
            t for t in onnx.load(path, load_external_data=False).graph.initializer if t.name == "w"
        ]
        assert numpy_helper.to_array(stored).tolist() == [1, 2.5, 7, 4]


@pytest.mark.broad
async def test_nothing_is_edited_while_the_model_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_queue, "_PATIENCE_S", 0.2)
    async with editor(tmp_path, "w") as (session, page):
        goes_on = Event()
        session.screen.work.run("Saving", waiting_for(goes_on), lambda error: None)
        await session.press("right", "e")
        await edit(session, page, "2.5")
        await session.press("escape")
        never = edits.renaming.rename_value(scope=[], value="x", name="y")
        page.edits.edit_on_thread("Replacing", [lambda: page.edits.edit(never)])
        assert not session.screen.document.dirty
        goes_on.set()
        await session.until(lambda: not page.edits.is_working)


async def tab_and_arrows_go_on_to_other_cells(session: Session) -> None:
    page = await shown(session, "matrix")
    await session.press("enter")
    await edit(session, page, "5", "tab")
    await edit(session, page, "6", "down")
    await edit(session, page, "7")
    assert page.tensor.read().tolist() == [5, 6, 0, 7]


async def going_to_an_index(session: Session) -> None:
    page = await shown(session, "volume")
    await session.press(":", *"2", "space", "1", "space", "-", "1", "enter")
    await session.until(lambda: session.app.screen is page)
    await session.pilot.pause()
    assert f"[2, 1, 4] = {VOLUME[2, 1, 4]:g}" in session.text
    await session.press(":", "9", "9", "enter")
    assert "flat index goes from 0 to 59" in session.text


async def a_range_is_filled_added_to_and_multiplied(session: Session) -> None:
    page = await shown(session, "volume")
    await session.press("]", "shift+down", "shift+right", "E")
    await session.press("9", "enter")
    wanted = VOLUME.copy()
    wanted[1, :2, :2] = 9
    assert np.array_equal(page.tensor.read().reshape(3, 4, 5), wanted)
    assert len(session.screen.document.history.done) == 1
    await session.press("+", "1", "enter")
    await session.press("*", "2", "enter")
    wanted[1, :2, :2] = 20
    assert np.array_equal(page.tensor.read().reshape(3, 4, 5), wanted)


@pytest.mark.broad
async def test_escape_stops_only_a_reading_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(tensor: Tensor, progress: ProgressCallback, cancelled: CancelCheck) -> None:
        until = monotonic() + 60
        while not cancelled():
            assert monotonic() < until
            sleep(0.005)
        raise CancelledError

    monkeypatch.setattr(tensor_editor, "_statistics", read)
    async with editor(tmp_path, "volume") as (session, page):
        await session.press("i")
        await session.until(lambda: page.side.state == "reading")
        config.save({"preview_bytes": 8})
        page.read_side(anyway=True)
        await session.press("escape")
        await session.until(lambda: page.side.state == "ask")
        assert session.app.screen is page
        config.save({"preview_bytes": 1 << 20})
        page.read_side(anyway=False)
        assert page.side.state == "reading"
        await session.press("escape")
        await session.until(lambda: session.app.screen is session.screen)


async def a_tensor_that_cannot_be_read_says_why(session: Session) -> None:
    page = await shown(session, "gone")
    assert "External data gone.bin not found" in session.text
    await session.press("e", "E", "G", "space", ":")
    assert session.app.screen is page


async def test_undoing_what_made_the_tensor_leaves_the_page(tmp_path: Path) -> None:
    async with opened(write_tensors(tmp_path)) as session:
        session.screen.document.apply(
            "add_initializer", scope=[], name="new", dtype="float32", dims=[2],
            fill={"kind": "zeros"},
        )  # fmt: skip
        session.screen.editing.show_tensor(TensorPlace(session.screen.document.main, "new"))
        await session.front(TensorScreen)
        await session.until(lambda: session.app.screen.focused is not None)
        await session.press("u")
        await session.until(lambda: session.app.screen is session.screen)


async def test_arrays_go_out_and_come_in(tmp_path: Path) -> None:
    async with editor(tmp_path, "volume") as (session, page):
        page._export(tmp_path / "out.npy", False)
        await session.until((tmp_path / "out.npy").exists)
        await session.until(lambda: not page.edits.is_working)
        assert np.array_equal(np.load(tmp_path / "out.npy"), VOLUME)
        np.save(tmp_path / "in.npy", np.ones((2, 2), np.int64))
        page._import(tmp_path / "in.npy")
        await session.until(lambda: session.app.screen is not page)
        await session.pilot.pause()
        assert "the file has int64[2, 2]" in " ".join(session.text.split())
        await session.press("r")
        await session.until(lambda: page.tensor.dtype == "int64")
        assert page.grid.view.shape == (2, 2)
        await session.until(lambda: session.app.screen is page and not page.edits.is_working)
        np.save(tmp_path / "pickle.npy", np.array([{}], object))
        page._import(tmp_path / "pickle.npy")
        await session.shows("pickle")


@pytest.mark.broad
async def test_enter_and_e_open_it_from_the_parameters(tmp_path: Path) -> None:
    async with opened(write_tensors(tmp_path), WIDE) as session:
        await session.go("first")
        await session.row("B w", "enter")
        await session.front(TensorScreen)
        await session.press("escape")
        await session.until(lambda: session.app.screen is session.screen)
        await session.go("const")
        await session.row("value", "enter")
        page = await session.front(TensorScreen)
        await session.until(lambda: page.focused is page.grid)
        await session.press("e")
        await edit(session, page, "9")
        const = session.screen.document.main.find("const")
        assert const is not None
        value = const.attribute("value")
        assert value is not None
        assert value.value.read().tolist() == [9, 6, 7, 8]


@pytest.mark.broad
async def test_a_weight_in_few_bits_is_shown_by_what_it_stands_for(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "decoder.onnx")
    async with opened(path, WIDE) as session:
        scope = session.screen.document.main
        session.screen.editing.show_tensor(TensorPlace(scope, "layers.0.q.q"))
        page = await session.front(TensorScreen)
        await session.until(lambda: page.focused is page.grid)
        await session.pilot.pause()
        assert "4 bits, blocks of 32, MatMulNBits" in session.text
        assert "as stored" in session.text
        weight = weight_views(scope, "layers.0.q.q")
        assert weight is not None
        values = weight.matrix().T
        for name in (*WeightPart, "as stored"):
            await session.press("v")
            await session.until(lambda name=name: name in session.text)  # type: ignore[misc]
            if name == "dequantized":
                await session.press("right", "down", "e")  # nothing to edit
                text = exact_text(values[1, 1:2].astype(np.float32), "float32")
                assert f"[1, 1] = {text} " in session.text
                assert not session.screen.document.dirty
        assert page.grid.view.shape == (64, 2, 16)


async def dimensions_are_changed(session: Session) -> None:
    page = await shown(session, "w")
    for text, expected in (("2, 2", [[1, 2], [3, 4]]), ("3x2", [[1, 2], [3, 4], [0, 0]]),
                           ("1 1", [[1]])):  # fmt: skip
        page.action_dims()
        await session.front(PromptDialog)
        await session.press("ctrl+u", "ctrl+k")
        await session.type(text, "enter")
        await session.until(lambda: session.app.screen is page and not page.tasks.is_working)
        assert page.tensor.read().reshape(page.tensor.shape).tolist() == expected
    page.action_dims()
    await session.front(PromptDialog)
    await session.press("ctrl+u", "ctrl+k")
    await session.type("5", "enter")
    assert "5 elements; the tensor has 1" in session.text
    await session.press("escape", "u", "u", "u")
    await session.until(lambda: page.tensor.shape == (4,))


@pytest.mark.broad
async def test_a_list_of_an_attribute_is_edited_in_the_grid(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "my": 1]>
        g (float[1] x) => (float[1] y) { [n] y = my.F<ints=[1, 2, 3], names=["a"]>(x) }"""
    )
    onnx.save(model, tmp_path / "m.onnx")
    async with opened(tmp_path / "m.onnx", NARROW) as session:
        document = session.screen.document
        node = document.main.nodes[0]
        session.screen.navigation.go_to(node)
        session.screen.panes.focus("parameters")
        session.screen.panes.parameters.go_to_attributes()
        await session.press("e", "f4")
        page = await session.front(TensorScreen)
        await focused(session, page)
        assert "n · ints" in session.text
        assert "int64[3]" in session.text

        def ints() -> list[int]:
            return list(node.proto.attribute[0].ints)

        await session.press("right", "e")
        await edit(session, page, "-7")
        assert ints() == [1, -7, 3]
        await session.press("delete")
        await session.until(lambda: ints() == [1, 3])
        assert page.grid.column == 1
        await session.press("shift+left", "a")  # as many as are marked
        await session.until(lambda: ints() == [0, 0, 1, 3])
        await session.until(lambda: not page.edits.is_working)
        await session.press("end")
        page.post_message(Paste("5, 6\n7"))
        await session.until(lambda: ints() == [0, 0, 1, 5, 6, 7])
        await session.until(lambda: not page.edits.is_working)
        page.post_message(Paste("5, 0.5"))
        await session.until(lambda: any("0.5" in n.message for n in session.app._notifications))
        assert ints() == [0, 0, 1, 5, 6, 7]
        assert page.check_action("convert", ()) is None
        await session.press("u", "u", "u", "u")
        await session.until(lambda: ints() == [1, 2, 3])


async def rows_of_a_matrix_are_inserted_deleted_and_pasted(session: Session) -> None:
    page = await shown(session, "matrix")
    start = page.tensor.read().reshape(page.tensor.shape)

    def values() -> list[list[float]]:
        rows: list[list[float]] = page.tensor.read().reshape(page.tensor.shape).tolist()
        return rows

    await session.press("down", "a")
    zeros = [0] * len(start[0])
    expected = np.insert(start, 1, zeros, 0)
    await session.until(lambda: values() == expected.tolist())
    await session.until(lambda: not page.edits.is_working)
    page.post_message(Paste("4\t5\n6\t7"))
    expected[1:3] = [[4, 5], [6, 7]]
    await session.until(lambda: values() == expected.tolist())

    def refused() -> int:
        return sum("do not fit" in n.message for n in session.app._notifications)

    page.post_message(Paste("1 2\n3 4\n5 6"))
    await session.until(lambda: refused() == 1)
    page.post_message(Paste("\t".join("1" * (len(start[0]) + 1))))
    await session.until(lambda: refused() == 2)
    await session.press("d")
    await session.until(lambda: values() == np.delete(expected, 1, 0).tolist())


async def converting_shows_the_loss_first(session: Session) -> None:
    page = await shown(session, "volume")
    await session.press("T")
    await session.until(lambda: session.app.screen is not page)
    await session.type("int4")
    await session.until(lambda: "2 bytes" not in session.text)
    await session.press("enter")
    await session.shows("out of range")
    assert page.tensor.dtype == "float32"
    await session.press("enter")
    await session.until(lambda: page.tensor.dtype == "int4")
    assert "int4[3, 4, 5]" in session.text


async def test_statistics_are_beside_when_wide_and_asked_for_when_narrow_or_large(
    tmp_path: Path,
) -> None:
    async with editor(tmp_path, "odd", WIDE) as (session, page):
        await session.until(lambda: page.side.state == "done")
        assert page.side.statistics is not None
        assert (page.side.statistics.nans, page.side.statistics.infinities) == (1, 1)
        await session.shows("at most 1 a bar")
        await session.pilot.resize_terminal(*NARROW)
        config.save({"preview_bytes": 8})
        await session.until(lambda: "Statistics" not in session.text)
        for is_shown in (True, False):
            await session.press("i")
            await session.until(lambda: ("at most 1 a bar" in session.text) is is_shown)  # noqa: B023


async def test_slices_of_more_dimensions(tmp_path: Path) -> None:
    """Each cell has the element of its index, whichever dimensions are rows and columns."""
    array = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    model = models.parse(models.CHAIN)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "four"))
    path = tmp_path / "four.onnx"
    path.write_bytes(model.SerializeToString())
    async with opened(path, NARROW) as session:
        page = await shown(session, "four")
        view = page.grid.view
        assert (view.rows, view.columns, view.fixed) == (4, 5, (0, 0, 0, 0))
        for keys, index in (
            ("]", (0, 1, 0, 0)), ("jl", (0, 1, 1, 1)), (";]", (1, 1, 1, 1)), ("]", (0, 1, 1, 1)),
            (";]]", (0, 0, 1, 1)), ("[", (0, 2, 1, 1)), ("\\", (0, 2, 1, 1)), ("_", None),
            ("jj]", None), ("|", None), ("ll;]", None), ("_|\\j[", None),
        ):  # fmt: skip
            await session.press(*keys)
            found = re.search(r"\[([\d, ]+)\] = (\S+)", session.text)
            assert found is not None
            at = tuple(int(text) for text in found[1].split(","))
            assert float(found[2]) == array[at]
            assert at == index or index is None, keys
            if keys == "\\":
                assert (page.grid.view.rows, page.grid.view.columns) == (5, 4)


@pytest.mark.broad
async def test_the_editor_of_tensors(tmp_path: Path) -> None:
    async with opened(write_tensors(tmp_path), NARROW) as session:
        await session.in_turn(
            cells_are_edited_in_place_and_taken_back,
            tab_and_arrows_go_on_to_other_cells,
            going_to_an_index,
            a_range_is_filled_added_to_and_multiplied,
            a_tensor_that_cannot_be_read_says_why,
            dimensions_are_changed,
            rows_of_a_matrix_are_inserted_deleted_and_pasted,
            converting_shows_the_loss_first,
        )
