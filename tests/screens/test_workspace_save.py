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
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.new_model import NewModel
from dld_tui.core.model.document.scripting.journal import crash_journals, discarded_journals
from dld_tui.core.model.document.serialise import save
from dld_tui.core.process.paths import journal_dir
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog
from tests.support import models
from tests.support.tui import flat_text, until
from tests.support.workspace import NARROW, Session, opened


def rename(session: Session, name: str = "renamed") -> None:
    session.screen.document.apply("rename_node", scope=[], node="second", name=name)


def names(path: Path) -> list[str]:
    return [node.name for node in onnx.load(path).graph.node]


async def changed_on_disk(session: Session, path: Path) -> None:
    """Let another program change the file, and wait until that is asked about."""
    models.write(path.parent, models.BRANCHES)
    session.app.app_focus = False
    session.app.app_focus = True
    await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))


@pytest.mark.broad
async def test_save_writes_the_file_and_clears_the_mark(chain: Path) -> None:
    async with opened(chain, NARROW) as session:
        rename(session)
        assert session.screen.tab_dirty
        assert session.screen.unsaved() == ["model.onnx: 1 edit"]
        await session.press("ctrl+s")
        await session.until(lambda: not session.screen.tab_dirty)
        assert names(chain)[1] == "renamed"
        assert session.screen.unsaved() == []
        await session.press("u")
        assert session.screen.tab_dirty


@pytest.mark.broad
async def test_save_as_takes_the_new_name(chain: Path) -> None:
    target = chain.with_name("copy.onnx")
    async with opened(chain) as session:
        rename(session)
        await session.press("S")
        session.app.screen.query_one(Input).value = str(chain.with_name("copy"))
        await session.press("enter")
        await session.until(target.exists)
        await session.until(lambda: session.screen.tab_title == "copy.onnx")
        assert session.screen.path == target
    assert names(target)[1] == "renamed"
    assert names(chain)[1] == "second"


async def save_as(session: Session, path: Path) -> None:
    await session.press("S")
    session.app.screen.query_one(Input).value = str(path)
    await session.press("enter")


@pytest.mark.broad
async def test_save_as_offers_a_name_that_is_free_and_says_what_is_wrong(chain: Path) -> None:
    chain.with_name(f"{chain.stem}-edited.onnx").touch()
    async with opened(chain) as session:
        rename(session)
        session.screen.document.apply("set_input", scope=[], node="renamed", index=0, value="")
        await session.until(lambda: len(session.screen.checks.errors) == 1)
        before = chain.read_bytes()
        await session.press("S")
        offered = Path(session.app.screen.query_one(Input).value)
        assert offered == chain.with_name(f"{chain.stem}-edited-2.onnx")
        assert "1errorremains." in flat_text(session.app)
        await session.press("escape")
        await save_as(session, chain)  # the model itself
        assert "exists." in flat_text(session.app)
        await session.press("enter")
        assert chain.read_bytes() == before


@pytest.mark.broad
async def test_a_save_says_what_is_wrong_with_the_model(chain: Path) -> None:
    def told(session: Session) -> list[str]:
        return [one.message for one in session.app._notifications if one.severity == "warning"]

    async with opened(chain) as session:
        rename(session)
        await session.press("ctrl+s")
        await session.until(lambda: not session.screen.tab_dirty)
        session.screen.document.apply("set_input", scope=[], node="renamed", index=0, value="")
        await session.press("ctrl+s")
        await session.until(lambda: bool(told(session)))
        (text,) = told(session)
        assert "model.onnx was saved with an error: " in text
    assert onnx.load(chain).graph.node[1].input[0] == ""


@pytest.mark.broad
async def test_save_as_over_another_file_asks(chain: Path) -> None:
    other = models.write(chain.parent, models.BRANCHES, "other.onnx")
    before = other.read_bytes()
    async with opened(chain) as session:
        await save_as(session, other)
        assert "exists." in flat_text(session.app)
        await session.press("enter")  # the safe answer is the first
        assert other.read_bytes() == before
        await save_as(session, other)
        await session.press("o")
        await session.until(lambda: session.screen.path == other)
    assert other.read_bytes() != before


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
        await session.until(lambda: isinstance(session.app.screen, ErrorDialog))
        assert "thediskisfull" in flat_text(session.app)
        await session.press("escape")
        assert session.screen.document.dirty
    assert chain.read_bytes() == before


@pytest.mark.broad
async def test_saving_a_file_that_changed_asks_what_to_do(chain: Path) -> None:
    async with opened(chain) as session:
        rename(session)
        models.write(chain.parent, models.BRANCHES)
        await session.press("ctrl+s")
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        assert "changed or removed by another program" in session.text
        await session.press("escape")
        assert len(names(chain)) == 2
        await session.press("ctrl+s")
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        await session.press("o")
        await session.until(lambda: not session.screen.tab_dirty)
        assert names(chain)[1] == "renamed"


@pytest.mark.broad
async def test_a_change_on_disk_is_seen_when_the_terminal_gets_the_focus(chain: Path) -> None:
    async with opened(chain) as session:
        await changed_on_disk(session, chain)
        await session.press("r")
        await session.until(lambda: session.app.screen is not session.screen)
        await session.until(lambda: getattr(session.app.screen, "is_open", False))
        screen = session.app.screen
        assert isinstance(screen, WorkspaceScreen)
        assert len(screen.document.main.nodes) == 2


@pytest.mark.broad
async def test_the_bar_offers_saving_where_there_is_something_to_save(chain: Path) -> None:
    async with opened(chain, (80, 24)) as session:
        assert "F5 profile" in session.text
        assert "^S save" not in session.text
        await session.press("ctrl+s")
        assert [one.message for one in session.app._notifications] == ["save: no unsaved changes"]
        await session.press("j", "j", "r", *"other", "enter", "ctrl+s")  # all at once
        await session.until(lambda: "other" in names(chain))
        await session.press("u")
        await session.until(lambda: "^S save" in session.text)


@pytest.mark.broad
async def test_what_is_kept_of_a_file_that_changed_can_be_written_over_it(chain: Path) -> None:
    async with opened(chain) as session:
        await changed_on_disk(session, chain)
        await session.press("k")
        await session.until(lambda: session.app.screen is session.screen)
        await session.press("ctrl+s")
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        await session.press("o")
        await session.until(lambda: len(names(chain)) > 2)


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
    from dld_tui.app import DldApp
    from tests.support.tui import until
    from tests.support.workspace import WIDE

    app = DldApp()
    async with app.run_test(size=WIDE) as pilot:
        screen = WorkspaceScreen(None)
        app.add_page(screen)
        await until(pilot, lambda: screen.is_open)
        assert screen.unsaved()
        saved: list[bool] = []
        screen.save_then(lambda: saved.append(True))
        await pilot.pause()
        app.screen.query_one(Input).value = str(tmp_path / "new.onnx")
        await pilot.press("enter")
        await until(pilot, lambda: saved)
    assert onnx.load(tmp_path / "new.onnx").opset_import[0].version == 20


KILLED = """
import os, sys
from dld_tui.core.model.document import Document
document = Document.open(sys.argv[1], journaled=True)
document.apply("rename_node", scope=[], node="second", name="renamed")
document.apply("set_attribute", scope=[], node="renamed", attribute="a", kind="int", value=1)
document.undo()
os.kill(os.getpid(), 9)
"""


def crash(path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert crash_journals(path)


@pytest.mark.broad
async def test_edits_of_a_killed_session_are_offered_and_made_again(chain: Path) -> None:
    crash(chain)
    async with opened(chain) as session:
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        assert "ended without saving this model: 1 edit " in session.text  # the other is undone
        await session.press("r")
        await session.until(lambda: "Add  renamed" in session.rows)
        assert session.screen.tab_dirty
        await session.until(lambda: not crash_journals(chain))
        await session.press("u")
        assert "Add  second" in session.rows
    assert not crash_journals(chain)


@pytest.mark.broad
async def test_edits_of_a_killed_session_can_wait_or_go(chain: Path) -> None:
    crash(chain)
    async with opened(chain) as session:
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        await session.press("l")
        assert crash_journals(chain)
    async with opened(chain) as session:
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        await session.press("d")
        assert "Add  second" in session.rows
        assert not crash_journals(chain)
        assert any("kept for 7 days" in note.message for note in session.app._notifications)
        session.screen.saving.restore_discarded()
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        await session.press("1")
        await session.until(lambda: "Add  renamed" in session.rows)
        assert not discarded_journals(chain)


@pytest.mark.broad
async def test_lines_of_a_journal_that_no_longer_fit_are_told(chain: Path) -> None:
    crash(chain)
    chain.write_bytes(models.parse(models.CHAIN.replace("[second]", "[other]")).SerializeToString())
    async with opened(chain) as session:
        await session.until(lambda: isinstance(session.app.screen, ChoiceDialog))
        assert "has changed since then" in session.text
        await session.press("r")
        await session.until(lambda: session.screen.findings.findings)
        await session.until(lambda: "no longer applies" in session.text)


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
    from dld_tui.app import DldApp
    from dld_tui.core.errors import CancelledError
    from tests.support.tui import until
    from tests.support.workspace import WIDE

    def slow(path: Path, *, progress: object, cancelled: object, **_: object) -> Document:
        while not cancelled():  # type: ignore[operator]
            progress(50, 100)  # type: ignore[operator]
        raise CancelledError

    monkeypatch.setattr(Document, "open", slow)
    app = DldApp()
    async with app.run_test(size=WIDE) as pilot:
        screen = WorkspaceScreen(chain)
        app.add_page(screen)
        await until(pilot, lambda: "50%" in _text(app))
        await pilot.press("escape")
        await until(pilot, lambda: not app.pages)


def _text(app: object) -> str:
    strips = app.screen._compositor.render_strips()  # type: ignore[attr-defined]
    return "\n".join(strip.text for strip in strips)


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
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
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
