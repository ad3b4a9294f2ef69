"""Transcripts of pages: ``tests/screens/transcripts/*.txt`` hold keys and what the screen shows.

``$ dld PATH`` opens a file (:mod:`tests.support.transcript_files`), ``@ 80x24`` before or after it
is the size, ``> KEY KEY`` presses keys as Textual names them, and ``> "text"`` types. Below a step
stand the rows of the screen that differ from those of the step before, each with its number. Where
cells have the same text in another style, such as those of the cursor, ``^`` marks them. ``= NAME``
names what has the focus now, instead of its heavier border, and ``as after > KEY`` stands for a
whole screen that was shown before. ``## …`` says what the steps show.
``pytest tests/screens/test_screen_transcripts.py --write-transcripts`` writes what is shown now, to
be read as a diff.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.settings.config import Config
from dld_tui.screens.workspace.page import WorkspaceScreen
from tests.support.transcript_files import FILES
from tests.support.tui import until

FOLDER = Path(__file__).resolve().parents[1] / "screens" / "transcripts"
_SIZE = (80, 24)
_LIGHT = str.maketrans("┏━┓┃┗┛", "┌─┐│└┘")
"""Borders of the pane with the focus, as of the others."""
Row = list[tuple[str, str]]
"""The cells of a row: the character and its style."""


def rows_of(app: DldApp) -> list[Row]:
    """Return the cells of the screen; those of borders have no style, as the focus gives it."""
    return [
        [
            (char, "" if char in "┌─┐│└┘" else str(segment.style))
            for segment in strip
            for char in segment.text.translate(_LIGHT)
        ]
        for strip in app.screen._compositor.render_strips()
    ]


def focus_of(app: DldApp) -> str:
    """Return what has the focus: its id, or its class."""
    focused = app.focused
    return "nothing" if focused is None else focused.id or type(focused).__name__


def changed(old: list[Row], new: list[Row]) -> list[str]:
    """Return the rows that differ, with marks below those that differ in style only."""
    lines: list[str] = []
    for at, row in enumerate(new):
        before = old[at] if at < len(old) else []
        if row == before:
            continue
        text = "".join(char for char, _ in row)
        lines.append(f"{at + 1:3} {text}".rstrip())
        if text == "".join(char for char, _ in before):
            marks = "".join(
                " " if cell == other else "^" for cell, other in zip(row, before, strict=True)
            )
            lines.append(f"    {marks}".rstrip())
    return lines


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until the page has nothing to do."""
    app = pilot.app
    assert isinstance(app, DldApp)

    def rests() -> bool:
        page = app.page
        if isinstance(page, WorkspaceScreen):
            is_there = page.is_open and page.navigation.follows
            return is_there and not page.tasks.is_working
        return page is None or not page.tasks.is_working

    await until(pilot, rests)
    await until(pilot, rests)


async def opened(pilot: Pilot[Any]) -> Pilot[Any]:
    """Wait until the file that the program was given has its page."""
    app = pilot.app
    assert isinstance(app, DldApp)
    await until(pilot, lambda: app.pages)
    return pilot


async def press(pilot: Pilot[Any], keys: str) -> None:
    """Press the keys of a step."""
    for word in re.findall(r'"[^"]*"|\S+', keys):
        if word.startswith('"'):
            await pilot.press(*json.loads(word))
        else:
            await pilot.press(word)
        await settled(pilot)


async def written(path: Path) -> str:
    """Return a transcript with what the screen shows now; the process is in an empty folder."""
    return "\n".join([line async for line in _lines(path)]).rstrip("\n") + "\n"


async def _lines(path: Path) -> AsyncIterator[str]:
    size, focus = _SIZE, ""
    shown: list[tuple[str, list[Row]]] = []
    pilot: Pilot[Any] | None = None
    async with AsyncExitStack() as stack:
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "##":
                yield line
                continue
            if kind == "@":
                width, _, height = rest.partition("x")
                size = (int(width), int(height))
                if pilot is not None:
                    await pilot.resize_terminal(*size)
            elif kind == "$":
                await stack.aclose()
                names = shlex.split(rest)[1:]
                for name in names:
                    if not Path(name).exists():
                        FILES[name](Path(name))
                app = DldApp(names, Config())
                pilot = await opened(await stack.enter_async_context(app.run_test(size=size)))
                shown = []
            elif kind == ">":
                assert pilot is not None, "no program is open"
                await press(pilot, rest)
            else:
                continue
            yield line
            if pilot is None:
                continue
            await settled(pilot)
            assert isinstance(pilot.app, DldApp)
            if focus != focus_of(pilot.app):
                focus = focus_of(pilot.app)
                yield f"= {focus}"
            new = rows_of(pilot.app)
            old = shown[-1][1] if shown and len(shown[-1][1]) == len(new) else []
            before = [step for step, rows in shown[:-1] if rows == new]
            if before and new != old:
                yield f"as after {before[-1]}"
            else:
                for row in changed(old, new):
                    yield row
            yield ""
            shown.append((line, new))
