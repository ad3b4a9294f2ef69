"""Saving from the workspace, other programs that write the file, and crashed sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from textual.widgets import Input

from dld_tui.app import DldApp
from dld_tui.core.errors import CancelledError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.new_model import NewModel
from dld_tui.core.model.document.scripting.journal import crash_journals, discarded_journals
from dld_tui.core.model.document.serialise import save
from dld_tui.core.process.paths import journal_dir
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog
from tests.support import models
from tests.support.pages import running
from tests.support.tui import flat_text, front, until
from tests.support.workspace import WIDE, Session, leave_journal, opened


def rename(session: Session, name: str = "renamed") -> None:
    session.screen.document.apply("rename_node", scope=[], node="second", name=name)


def names(path: Path) -> list[str]:
    return [node.name for node in onnx.load(path).graph.node]


def change_on_disk(session: Session, path: Path) -> None:
    """Let another program change the file, and the terminal get the focus."""
    models.write(path.parent, models.BRANCHES)
    session.app.app_focus = False
    session.app.app_focus = True


@pytest.mark.broad
async def test_a_file_that_another_program_changed_is_asked_about(chain: Path) -> None:
    async with opened(chain) as session:
        rename(session)
        change_on_disk(session, chain)
        await session.until(lambda: any("Saving will ask" in text for text in session.told))
        for key in ("escape", "o"):
            assert len(names(chain)) == 2
            await session.press("ctrl+s")
            await session.front(ChoiceDialog)
            assert "changed or removed by another program" in session.text
            await session.press(key)
        await session.until(lambda: not session.screen.tab_dirty)
        assert names(chain)[1] == "renamed"
    async with opened(chain) as session:
        change_on_disk(session, chain)
        await session.front(ChoiceDialog)
        await session.press("k")  # keep what is open
        await session.until(lambda: session.app.screen is session.screen)
        await session.press("ctrl+s")
        await session.front(ChoiceDialog)
        await session.press("o")
        await session.until(lambda: len(names(chain)) > 2)
    async with opened(chain) as session:
        change_on_disk(session, chain)
        await session.front(ChoiceDialog)
        await session.press("r")  # read it again
        await session.until(lambda: session.app.screen is not session.screen)
        screen = await session.front(WorkspaceScreen)
        await session.until(lambda: screen.is_open)
        assert len(screen.document.main.nodes) == 2


@pytest.mark.broad
async def test_a_failed_save_keeps_the_file_and_the_edits(
    chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = chain.read_bytes()
    async with opened(chain) as session:
        rename(session)

        def fail(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", fail)
        monkeypatch.setattr(os, "rename", fail)
        await session.press("ctrl+s")
        await session.front(ErrorDialog)
        assert "thediskisfull" in flat_text(session.app)
        await session.press("escape")
        assert session.screen.document.dirty
    assert chain.read_bytes() == before


@pytest.mark.broad
async def test_profiling_unsaved_edits_asks_first(
    chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(chain) as session:
        started: list[tuple[str, str]] = []

        def start(activity: str, values: dict[str, str]) -> None:
            started.append((activity, values["model"]))

        monkeypatch.setattr(session.app, "start_activity", start)
        await session.press("f5")
        assert started == [("profile_onnxruntime", str(chain))]
        rename(session)
        await session.press("f5", "c")
        await session.until(lambda: len(started) == 2)
        copy = Path(started[1][1])
        assert names(copy)[1] == "renamed"
        assert names(chain)[1] == "second"
        assert session.screen.document.dirty
        await session.press("f5", "s")
        await session.until(lambda: len(started) == 3)
        assert names(chain)[1] == "renamed"
    assert not copy.exists()


@pytest.mark.broad
async def test_a_new_model_asks_for_its_path(tmp_path: Path) -> None:
    async with running(size=WIDE) as run:
        screen = WorkspaceScreen(None)
        run.app.add_page(screen)
        await run.until(lambda: screen.is_open)
        assert screen.unsaved()
        saved: list[bool] = []
        screen.save_then(lambda: saved.append(True))
        await run.pilot.pause()
        run.app.screen.query_one(Input).value = str(tmp_path / "new.onnx")
        await run.press("enter")
        await run.until(lambda: saved)
    assert onnx.load(tmp_path / "new.onnx").opset_import[0].version == 20


@pytest.mark.broad
async def test_edits_of_a_killed_session_are_offered_until_they_are_made_or_discarded(
    chain: Path,
) -> None:
    leave_journal(chain)
    async with opened(chain) as session:
        await session.front(ChoiceDialog)
        assert "ended without saving this model: 1 edit " in session.text  # the other is undone
        await session.press("l")
        assert crash_journals(chain)
    async with opened(chain) as session:
        await session.front(ChoiceDialog)
        await session.press("d")
        assert "Add  second" in session.rows
        assert not crash_journals(chain)
        assert any("kept for 7 days" in text for text in session.told)
        session.screen.saving.restore_discarded()
        await session.front(ChoiceDialog)
        await session.press("1")
        await session.until(lambda: "Add  renamed" in session.rows)
        assert not discarded_journals(chain)
    leave_journal(chain)
    async with opened(chain) as session:
        await session.front(ChoiceDialog)
        await session.press("r")
        await session.until(lambda: "Add  renamed" in session.rows)
        assert session.screen.tab_dirty
        await session.until(lambda: not crash_journals(chain))
        await session.press("u")
        assert "Add  second" in session.rows
    assert not crash_journals(chain)


@pytest.mark.broad
async def test_lines_of_a_journal_that_no_longer_fit_are_told(chain: Path) -> None:
    leave_journal(chain)
    chain.write_bytes(models.parse(models.CHAIN.replace("[second]", "[other]")).SerializeToString())
    async with opened(chain) as session:
        await session.front(ChoiceDialog)
        assert "has changed since then" in session.text
        await session.press("r")
        await session.until(lambda: session.screen.findings.findings)
        await session.shows("no longer applies")


@pytest.mark.broad
async def test_closing_after_a_crash_keeps_the_journal(chain: Path) -> None:
    async with opened(chain) as session:
        rename(session)
        journal = next(journal_dir().glob("*.jsonl"))
        assert json.loads(journal.read_text().splitlines()[1])["edit"] == "rename_node"
        session.app.exit(return_code=1)
    assert journal.exists()


@pytest.mark.broad
async def test_opening_can_be_stopped(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(path: Path, *, progress: object, cancelled: object, **_: object) -> Document:
        while not cancelled():  # type: ignore[operator]
            progress(50, 100)  # type: ignore[operator]
        raise CancelledError

    monkeypatch.setattr(Document, "open", slow)
    async with running(size=WIDE) as run:
        screen = WorkspaceScreen(chain)
        run.app.add_page(screen)
        await run.shows("50 %")
        await run.press("escape")
        await run.until(lambda: not run.app.pages)


NEW_AND_KILLED = """
import os
from dld_tui.core.model.edits.new_document import new_document
from dld_tui.core.model.document.new_model import NewModel
new = NewModel(name="fresh", inputs=("x:float32[1,4]",))
document = new_document(new)
document.journal_as_new(new)
document.apply("add_node", scope=[], op_type="Relu", inputs=["x"], outputs=["y"], name="kept")
os.kill(os.getpid(), 9)
"""


@pytest.mark.broad
async def test_edits_of_a_new_model_that_was_never_saved_are_offered_at_the_next_start(
    tmp_path: Path,
) -> None:
    subprocess.run([sys.executable, "-c", NEW_AND_KILLED], check=False)
    (journal,) = crash_journals(None)
    assert journal.new == NewModel(name="fresh", inputs=("x:float32[1,4]",))
    app = DldApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await front(pilot, ChoiceDialog)
        page = app.pages[0]
        assert isinstance(page, WorkspaceScreen)
        await pilot.press("r")
        await until(pilot, lambda: [node.name for node in page.document.main.nodes] == ["kept"])
        await until(pilot, lambda: not crash_journals(None))
        assert page.tab_dirty
        assert page.document.main.inputs == ("x",)
        save(page.document, tmp_path / "saved.onnx")
        assert [*journal_dir().iterdir()] == []
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.pages == []
