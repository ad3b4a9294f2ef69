"""Custom tools: managed on their page, run on the model with its edits, stopped."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest
from textual.widgets import Input

from dld_tui.core.events import Finished
from dld_tui.core.model import edits
from dld_tui.core.settings import custom_tools
from dld_tui.core.settings.custom_tools import Tool
from dld_tui.screens.activity.document_forms import ToolJobScreen
from dld_tui.screens.home.palette import Palette, entries_for
from dld_tui.screens.settings import ToolsScreen
from dld_tui.widgets.dialogs.dialogs import PromptDialog
from tests.support import models
from tests.support.workspace import NARROW, Session, opened

COPY = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2]); print('copied', sys.argv[1])"


def python(name: str, program: str, *arguments: str, **about: object) -> Tool:
    given = ("-u", "-S", "-c", program, *arguments)
    return Tool(name, sys.executable, given, **about)  # type: ignore[arg-type]


def job(session: Session) -> ToolJobScreen:
    screen = session.in_front(ToolJobScreen)
    return screen


async def start(session: Session, at: int = 0) -> None:
    """Run a tool from its page."""
    await session.press("f10")
    await session.front(ToolsScreen)
    await session.press(*["down"] * at, "f5")


@pytest.mark.broad
async def test_the_edited_model_is_given_and_the_output_opened(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    before = path.read_bytes()
    custom_tools.save(python("a/copy", COPY, "$Model", "$Output", output=".onnx", open=True))
    async with opened(path, NARROW) as session:
        node = session.screen.document.main.nodes[0]
        session.edit(edits.renaming.rename_node(scope=[], node=node.name, name="new name"))
        await start(session)
        await session.front(PromptDialog)
        offered = session.app.screen.query_one(Input).value
        assert offered == str(tmp_path / "model-a-copy.onnx")
        await session.press("enter")
        await session.until(lambda: len(session.app.pages) == 2)
        assert onnx.load(offered).graph.node[0].name == "new name"
        onnx.checker.check_model(offered)
        assert path.read_bytes() == before
        assert sorted(p.name for p in tmp_path.iterdir()) == ["model-a-copy.onnx", path.name]


async def test_a_model_without_edits_is_given_as_it_is_and_the_log_stays(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    custom_tools.save(python("show", "import sys; print('given', sys.argv[1:])", "$Model"))
    async with opened(path) as session:
        await start(session)
        await session.front(ToolJobScreen)
        await session.until(lambda: isinstance(job(session).end, Finished))
        assert f"given ['{path}']" in session.text
        assert "done" in session.text
        await session.press("enter")
        assert isinstance(session.app.screen, ToolJobScreen), "there is no result to open"
        await session.press("escape")
        await session.until(lambda: session.app.screen is session.screen)


@pytest.mark.broad
async def test_what_it_says_is_seen_while_it_runs_and_esc_stops_it(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    program = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        " print('\\x1b]0;up', sys.argv[1]); time.sleep(1000)"
    )
    custom_tools.save(python("hang", program, "$Model", limit=0))
    async with opened(path) as session:
        node = session.screen.document.main.nodes[0]
        session.edit(edits.renaming.rename_node(scope=[], node=node.name, name="new name"))
        await start(session)
        await session.shows("\\x1b]0;up")
        folder = job(session)._folder
        assert folder is not None
        assert [each.name for each in folder.iterdir()] == [path.name]
        await session.press("escape")
        await session.until(lambda: job(session).end is not None)
        assert "stopped" in session.text
        await session.press("escape")
        await session.until(lambda: session.app.screen is session.screen)
        await session.until(lambda: not folder.exists())


async def test_each_tool_is_a_command_of_the_palette(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    name = "it's [b]\"x\"(1), 'y'"
    custom_tools.save(python(name, "print('was run')"))
    async with opened(path) as session:
        commands = [each.command for each in entries_for(session.app.screen)]
        mine = [command for command in commands if command.id.startswith("tool.")]
        assert [command.parameter for command in mine] == [name]
        await session.press("ctrl+p")
        await session.front(Palette)
        await session.type("run it's [b]", "enter")
        await session.front(ToolJobScreen)
        await session.shows("was run")


async def test_a_tool_that_asks_for_nothing_makes_a_name(tmp_path: Path) -> None:
    custom_tools.save(python("copy", COPY, "$Model", "$Output", output=".onnx", ask=False))
    path = models.write(tmp_path, models.CHAIN)
    async with opened(path, NARROW) as session:
        await start(session)
        await session.front(ToolJobScreen)
        await session.until(lambda: isinstance(job(session).end, Finished))
    assert path.with_name(f"{path.stem}-copy.onnx").read_bytes() == path.read_bytes()
