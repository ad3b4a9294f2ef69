"""Keys that are typed behind a command wait until it has done its work or has asked.

Threads start late here, so a command that does not hold keys loses them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.app import DldApp
from dld_tui.core.model.document.scripting.journal import crash_journals, discarded_journals
from dld_tui.screens.results.report import ReportScreen
from dld_tui.screens.workspace.inference import Inference
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, QuestionDialog, QuitDialog
from dld_tui.widgets.graph import colours as graph_colours
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.shell import key_queue
from tests.support import models, report_screen
from tests.support.report_files import make_report
from tests.support.tui import type_at, until
from tests.support.workspace import leave_journal, opened

_LATE_S = 0.05


@pytest.fixture(autouse=True)
def late_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each thread begin late."""
    to_thread = asyncio.to_thread

    async def late(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(_LATE_S)
        return await to_thread(function, *args, **kwargs)

    monkeypatch.setattr(asyncio, "to_thread", late)


def _typed(text: str) -> list[str]:
    """Return the keys of a text with the names of keys in angle brackets."""
    return [name or char for name, char in re.findall(r"<([^>]+)>|(.)", text)]


def _names(path: Path) -> list[str]:
    return [node.name for node in onnx.load(path).graph.node]


@pytest.mark.broad
@pytest.mark.parametrize(
    "save", ["S<ctrl+u>saved.onnx<enter>", "<ctrl+s>"], ids=["save as", "save"]
)
async def test_a_tab_closes_behind_a_save_without_a_question(
    chain: Path, monkeypatch: pytest.MonkeyPatch, save: str
) -> None:
    monkeypatch.chdir(chain.parent)
    async with opened(chain) as session:
        app = session.app
        type_at(app, *_typed(f"jr<ctrl+u>renamed<enter>{save}<ctrl+w>"))
        await session.until(lambda: app.keys.at_rest)
        assert app.pages == []
        assert len(app.screen_stack) == 1
    path = chain.with_name("saved.onnx") if "saved" in save else chain
    assert "renamed" in _names(path)
    assert ("renamed" in _names(chain)) == (path == chain)


@pytest.mark.broad
async def test_several_saves_and_edits_in_one_write(
    chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(chain.parent)
    monkeypatch.setattr(Inference, "INFER", True)
    keys = "".join(
        f"r<ctrl+u>name {number}<enter>S<ctrl+u>{number}.onnx<enter>" for number in range(2)
    )
    async with opened(chain) as session:
        app = session.app
        type_at(app, *_typed(f"j{keys}xs<ctrl+u>part.onnx<enter>u<ctrl+s><ctrl+w>"))
        await session.until(lambda: app.keys.at_rest)
        assert [_names(chain.with_name(f"{number}.onnx"))[0] for number in range(2)] == [
            "name 0", "name 1",
        ]  # fmt: skip
    assert _names(chain)[0] == "first"


@pytest.mark.broad
async def test_closing_waits_for_a_save_that_takes_long(
    chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl+W passes keys that are held for a second, but not the save."""
    async with opened(chain) as session:
        app = session.app
        monkeypatch.setattr(key_queue, "_AT_ONCE_S", 0.0)
        session.screen.document.apply("rename_node", scope=[], node="second", name="renamed")
        type_at(app, "ctrl+s")
        await session.until(lambda: session.screen.work.is_running)
        type_at(app, "ctrl+w")
        await session.until(lambda: app.keys.at_rest and not app.pages)
        assert len(app.screen_stack) == 1
    assert "renamed" in _names(chain)


@pytest.mark.broad
async def test_closing_asks_when_the_save_failed(
    chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(chain) as session:
        app = session.app
        session.screen.document.apply("rename_node", scope=[], node="second", name="renamed")
        models.write(chain.parent, models.BRANCHES)  # another program changes the file
        type_at(app, "ctrl+s", "ctrl+w")
        await session.until(lambda: isinstance(app.screen, ChoiceDialog) and app.keys.at_rest)
        assert app.pages == [session.screen]


@pytest.mark.broad
async def test_commands_of_a_report_answer_the_keys_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with report_screen.opened(make_report(tmp_path / "tiny.dldprof")) as (pilot, screen):
        app = screen.app
        assert isinstance(app, DldApp)
        copied: list[str] = []
        monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
        type_at(app, "y", "c", "i", "escape", "y", "c")
        await until(pilot, lambda: app.keys.at_rest)
        assert len(copied) == 2
        assert app.screen is screen


@pytest.mark.broad
async def test_keys_behind_a_jump_to_the_model_go_to_the_model(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    path = make_report(tmp_path / "tiny.dldprof", model=model)
    async with report_screen.opened(path) as (pilot, screen):
        app = screen.app
        assert isinstance(app, DldApp)
        screen.show_pane("layers")
        await pilot.pause()
        type_at(app, "s", "r")
        await until(pilot, lambda: app.keys.at_rest and app.screen is not screen)
        assert not isinstance(app.screen, ReportScreen)
        assert isinstance(app.pages[-1], WorkspaceScreen)


@pytest.mark.broad
async def test_each_press_takes_the_next_overlay_of_a_large_graph(
    chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_colours, "_LARGE", 0)
    async with opened(chain, pane="graph") as session:
        colours = session.screen.panes.graph.colours
        names = [overlay.name for overlay in colours.overlays()]
        at = names.index(colours.overlay.name)
        type_at(session.app, "%", "%")
        await session.until(lambda: session.app.keys.at_rest)
        assert len(names) > 2
        assert colours.overlay.name == names[(at + 2) % len(names)]


@pytest.mark.parametrize("keys", [["d"], [" ", "enter"], ["down", "down", "enter"], ["escape"]])
async def test_keys_while_a_model_opens_do_not_answer_the_recovery_question(
    chain: Path, keys: list[str]
) -> None:
    leave_journal(chain)
    app = DldApp([chain])
    async with app.run_test() as pilot:
        type_at(app, *keys)
        await until(pilot, lambda: isinstance(app.screen, QuestionDialog) and app.keys.at_rest)
        assert crash_journals(chain)
        assert app.screen.query_one(LineView).cursor == 0
        await pilot.press("d")
        await until(pilot, lambda: not crash_journals(chain))
        assert discarded_journals(chain)


@pytest.mark.broad
async def test_keys_typed_behind_ctrl_w_do_not_throw_edits_away(chain: Path) -> None:
    async with opened(chain) as session:
        app = session.app
        session.screen.document.apply("rename_node", scope=[], node="second", name="renamed")
        type_at(app, "ctrl+w", "d", "down", "down", "enter")
        await session.until(lambda: isinstance(app.screen, QuestionDialog) and app.keys.at_rest)
        assert app.pages == [session.screen]
        await session.press("enter")  # the safe answer is the first
        assert app.pages == [session.screen]
        type_at(app, "ctrl+q", "d")
        await session.until(lambda: isinstance(app.screen, QuitDialog) and app.keys.at_rest)
        await session.press("enter")
        assert app.pages == [session.screen]
        assert app.is_running


@pytest.mark.broad
async def test_keys_typed_before_a_file_is_found_do_not_replace_it(
    chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(chain.parent)
    other = models.write(chain.parent, models.BRANCHES, "other.onnx")
    before = other.read_bytes()
    async with opened(chain) as session:
        type_at(session.app, *_typed("S<ctrl+u>other.onnx<enter>o"))
        await session.until(
            lambda: isinstance(session.app.screen, QuestionDialog) and session.app.keys.at_rest
        )
        assert other.read_bytes() == before
        await session.press("o")
        await session.until(lambda: other.read_bytes() != before)


@pytest.mark.broad
async def test_an_error_is_not_closed_by_keys_that_were_typed_before_it(tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"no model")
    app = DldApp([bad])
    async with app.run_test() as pilot:
        type_at(app, "escape", "enter", "escape")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog) and app.keys.at_rest)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ErrorDialog))
