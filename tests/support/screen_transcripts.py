"""Transcripts of pages: ``tests/screens/transcripts/*.txt`` hold keys and what the screen shows.

``$ dld PATH`` opens a file (:mod:`tests.support.transcript_files`), ``@ 80x24`` before or after it
is the size, ``> KEY KEY`` presses keys as Textual names them, and ``> "text"`` types. With the
mouse, ``click:12,5`` clicks in column 12 of row 5, ``double:…`` twice, ``menu:…`` with the right
button, ``ctrl:…`` with Ctrl down, ``wheel:…`` turns the wheel down there, ``up:…`` up, ``side:…``
and ``back:…`` the same with Shift down, and ``drag:12,5-20,8`` moves with the button down.
``paste:1\\t2`` pastes what stands there as a literal of Python.
Below a step stand the rows of the screen that differ from those of the step before, each with its
number. Where cells have the same text in another style, such as those of the cursor, ``^`` marks
them. ``= NAME`` names what has the focus now, instead of its heavier border, and ``as after > KEY``
stands for a whole screen that was shown before. ``! TEXT`` is told in a corner for a moment.
``+ NAME`` puts a file there, ``~`` shows the colours: a letter a cell, and what the letters mean;
a cell of the most frequent colour has none. ``## …`` says what the steps show.
``pytest tests/screens/test_screen_transcripts.py --write-transcripts`` writes what is shown now, to
be read as a diff.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import shlex
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from string import ascii_letters, digits, punctuation
from typing import Any

import onnxruntime
from textual.events import MouseScrollDown, MouseScrollUp, Paste
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.settings.config import Config
from dld_tui.screens.home.tabs import OPENING
from dld_tui.screens.results.results_page import ResultsPage
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.tasks import RestOfTask
from tests.support.transcript_files import FILES
from tests.support.tui import until

FOLDER = Path(__file__).resolve().parents[1] / "screens" / "transcripts"
_SIZE = (80, 24)
_LIGHT = str.maketrans("┏━┓┃┗┛", "┌─┐│└┘")
"""Borders of the pane with the focus, as of the others."""
Row = list[tuple[str, str]]
"""The cells of a row: the character and its style."""
_WHEELS = {
    "wheel": (MouseScrollDown, False), "up": (MouseScrollUp, False),
    "side": (MouseScrollDown, True), "back": (MouseScrollUp, True),
}  # fmt: skip


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


def _text(row: Row) -> str:
    return "".join(char for char, _ in row).replace(onnxruntime.__version__, "1.31.1").rstrip()


def _marks(row: Row, before: Row) -> list[str]:
    """Return what stands below a row, if its text is the same, but not its style."""
    if not before or _text(row) != _text(before):
        return []
    pairs = zip(row, before, strict=True)
    return ["".join(" " if cell == other else "^" for cell, other in pairs).rstrip()]


def changed(old: list[Row], new: list[Row]) -> list[str]:
    """Return the rows that differ; ``⋮ 9`` says that those up to the ninth are as the one above."""
    before = old or [[] for _ in new]
    runs: list[tuple[int, int, list[str]]] = []
    for number, (row, other) in enumerate(zip(new, before, strict=True), 1):
        if row == other:
            continue
        shown = [_text(row), *_marks(row, other)]
        if runs and runs[-1][1:] == (number - 1, shown):
            runs[-1] = (runs[-1][0], number, shown)
        else:
            runs.append((number, number, shown))
    lines: list[str] = []
    for first, last, (text, *marks) in runs:
        lines += [f"{first:3} {text}".rstrip(), *(f"    {one}" for one in marks)]
        if last > first:
            lines.append(f"  ⋮ {last}")
    return lines


def colours(rows: list[Row]) -> list[str]:
    """Return the style of each cell as a letter, row by row, and what the letters mean."""
    counts = Counter(style for row in rows for _, style in row)
    usual = counts.most_common(1)[0][0]
    letters = {usual: " ", "": " "}
    blanks = len(letters)
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        for _, style in row:
            letters.setdefault(style, (ascii_letters + digits + punctuation)[len(letters) - blanks])
        text = "".join(letters[style] for _, style in row).rstrip()
        if text:
            lines.append(f"{number:3} {text}")
    meant = {letter: style for style, letter in letters.items() if letter != " "}
    return [*lines, *(f"    {letter} = {style}" for letter, style in meant.items())]


def _busy_with(app: DldApp) -> list[str]:
    """Return what the program has to do before it only waits for keys."""
    busy = [
        f"the task {worker.name} of {worker.group}"
        for worker in app.workers
        if not (
            worker.is_finished or (isinstance(rest := worker._work, RestOfTask) and rest.is_asking)
        )
    ]
    page = app.page
    if isinstance(page, WorkspaceScreen):
        steps = {
            "opening": page.is_open,
            "following the cursor": page.navigation.follows,
            "checking": page.checks.is_checked,
            "arranging the graph": not page.model.is_arranging,
        }
        busy += [step for step, is_done in steps.items() if not is_done]
        area = page.panes.area
        bottoms = [pane.region.bottom for pane in area.children if pane.display]
        if app.screen is page and max(bottoms, default=0) != area.region.bottom:
            busy.append("laying out")  # once more, after a line came or went below the panes
    if isinstance(page, ResultsPage) and (page.loaded is None or app._batch_count):
        busy.append("reading, or coming to the front")
    pool: Any = getattr(asyncio.get_running_loop(), "_default_executor", None)
    if pool is not None and len(pool._threads) > pool._idle_semaphore._value:
        busy.append("working on a thread")
    return busy


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until the program has nothing to do."""
    app = pilot.app
    assert isinstance(app, DldApp)
    for _ in range(5):  # each step of work may begin another, after a timer or a message
        await until(pilot, lambda: not _busy_with(app), partial(_busy_with, app))


async def opened(pilot: Pilot[Any]) -> Pilot[Any]:
    """Wait until the file that the program was given has its page, or cannot be opened."""
    app = pilot.app
    assert isinstance(app, DldApp)
    await until(pilot, lambda: app.current_mode != OPENING)
    return pilot


async def point(pilot: Pilot[Any], what: str, places: str) -> None:
    """Use the mouse at places of the screen, which are counted from 1."""
    found = [tuple(map(int, place.split(","))) for place in places.split("-")]
    at, *other = ((column - 1, row - 1) for column, row in found)
    if what == "drag":
        await pilot.mouse_down(offset=at)
        await pilot.hover(offset=other[0])
        await pilot.mouse_up(offset=other[0])
    elif what in _WHEELS:
        kind, shift = _WHEELS[what]
        await pilot._post_mouse_events([kind], offset=at, shift=shift)
    else:
        await pilot.click(
            offset=at, times=2 if what == "double" else 1, button=3 if what == "menu" else 1,
            control=what == "ctrl",
        )  # fmt: skip


async def press(pilot: Pilot[Any], keys: str) -> None:
    """Press the keys of a step."""
    for word in re.findall(r'"[^"]*"|\S+', keys):
        what, _, places = word.partition(":")
        if word.startswith('"'):
            await pilot.press(*json.loads(word))
        elif what == "paste":
            pilot.app.post_message(Paste(ast.literal_eval(f'"{places}"')))
            await pilot.pause()
        elif places:
            await point(pilot, what, places)
        else:
            await pilot.press(word)
        await settled(pilot)


def _make(names: list[str]) -> None:
    for name in names:
        if name in FILES and not Path(name).exists():
            FILES[name](Path(name))


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
                _make(names)
                app = DldApp(names, Config())
                pilot = await opened(await stack.enter_async_context(app.run_test(size=size)))
                shown = []
            elif kind == "+":
                _make(rest.split())
            elif kind == ">":
                assert pilot is not None, "no program is open"
                pilot.app.clear_notifications()
                await press(pilot, rest)
            elif kind != "~":
                continue
            yield line
            if kind == "~":
                for row in colours(shown[-1][1]):
                    yield row
                yield ""
                continue
            if pilot is None or kind == "+":
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
            for told in pilot.app._notifications:
                kind = "" if told.severity == "information" else f"{told.severity}: "
                yield f"! {kind}{told.message}"
            yield ""
            shown.append((line, new))
