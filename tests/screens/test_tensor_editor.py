from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from time import monotonic, sleep

import pytest

from dld_tui.core.errors import CancelledError
from dld_tui.core.model import edits
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.settings import config
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.tensors import tensor_editor
from dld_tui.screens.tensors.conversion import TensorPlace
from dld_tui.screens.tensors.tensor_editor import TensorScreen
from dld_tui.widgets.shell import key_queue
from dld_tui.widgets.tensors.grid import CellEditor
from tests.support.tensors import editor, write_tensors
from tests.support.workspace import Session, opened


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
