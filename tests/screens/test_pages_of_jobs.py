"""What pages of jobs show after each event and key, as ``pages_of_*.txt`` here say."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import textual

from dld_tui.app import DldApp
from dld_tui.core import events as events_module
from dld_tui.core.events import (
    Cancelled,
    Event,
    Failed,
    Finished,
    Log,
    Metric,
    Phase,
    Progress,
    Started,
)
from dld_tui.core.notes import NoteKind
from dld_tui.core.types import NodePlace
from dld_tui.screens.activity import jobs as job_module
from dld_tui.screens.activity.jobs import JobScreen, ManyJobsScreen
from dld_tui.screens.home import welcome
from dld_tui.targets.base import Job
from dld_tui.widgets.charts.plots import Stages
from tests.support.pages import Running, running
from tests.support.recorded import Recorded
from tests.support.screen_transcripts import Row, changed, focus_of, rows_of
from tests.support.tui import ESCAPE

pytestmark = [
    pytest.mark.broad,
    pytest.mark.skipif(textual.__version__ != "8.2.8", reason="written with Textual 8.2.8"),
]


class _Waiting(Job):
    """Runs until it is stopped."""

    made: ClassVar[list[_Waiting]] = []

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.made.append(self)

    def events(self) -> Iterator[Event]:
        yield Started("fake")
        self.ended.wait()

    def cancel(self) -> None:
        self.ended.set()

    def close(self) -> None:
        self.ended.set()


class _Far(_Waiting):
    """Goes on without the program."""

    @property
    def can_leave(self) -> bool:
        return True

    def leave(self) -> bool:
        self.ended.set()
        return True


class _Shown:
    """What the screen shows after each step, as it differs from the step before."""

    def __init__(self, run: Running) -> None:
        self.run = run
        self.texts: dict[str, str] = {}
        self._rows: list[Row] = []

    async def step(self, title: str) -> None:
        await self.run.pilot.pause()
        await self.run.pilot.pause()
        app = self.run.app
        rows = rows_of(app)
        lines = changed(self._rows, rows) if len(rows) == len(self._rows) else changed([], rows)
        told = [f"! {one.message}" for one in app._notifications]
        app.clear_notifications()
        self.texts[f"{len(self.texts) + 1}. {title}"] = "\n".join(
            [f"= {focus_of(app)}", *lines, *told]
        )
        self._rows = rows

    async def keys(self, *keys: str) -> None:
        await self.run.press(*keys)
        await self.step(f"> {' '.join(keys)}")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """Seconds that pass only when a test says so; the process is in an empty folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(welcome, "__version__", "0")
    now = [0.0]
    read = lambda: 1000.0 + now[0]  # noqa: E731
    monkeypatch.setattr(job_module, "monotonic", read)
    monkeypatch.setattr(job_module, "Stages", partial(Stages, read))
    monkeypatch.setattr(events_module.RateMeter.__init__, "__defaults__", (read,))
    monkeypatch.setattr(time, "strftime", lambda _: "12:34:56")
    return now


@asynccontextmanager
async def _shown(width: int, height: int) -> AsyncIterator[_Shown]:
    async with running(DldApp(), (width, height)) as run:
        yield _Shown(run)
        for job in _Waiting.made:
            job.ended.set()
        _Waiting.made.clear()


_BEGINNING: list[tuple[float, list[Event]]] = [
    (0.5, [Started("fake"), Progress(0, None, "", "Loading")]),
    (2.0, [Progress(25, 100, "passes", f"Warming {ESCAPE}up"), Metric("latency", 2.44, "ms")]),
    (1.5, [
        Log(f"library: {ESCAPE}"), Log("a warning that is long " * 5, NoteKind.WARNING),
        Metric("latency", 2.04, "ms"), Metric("memory", 1234567.0, "B"), Metric("took", 75.5, "s"),
    ]),
    (61.0, [
        Progress(50, 100, "passes", "Measuring", [
            Phase("outer", 0, 1, 2), Phase(f"in{ESCAPE}ner", 1, 3, None), Phase("last", 0, 0, 4),
        ]),
        *(Metric("latency", 2.0 + 0.1 * (at % 5), "ms") for at in range(12)),
    ]),
    (1.0, [Progress(3 << 20, 8 << 20, "bytes", "Sending"), Log("sent", NoteKind.INFO)]),
]  # fmt: skip
_FAILURE = Failed(
    "out of memory",
    f"model{ESCAPE}.onnx",
    "Use a smaller batch, or another target that has more memory than this one has",
    "line a\nline b",
    finding=NodePlace("/m/net.onnx", ("choose:then",), "conv1"),
)


async def _take(
    shown: _Shown, screen: JobScreen, clock: list[float], steps: Sequence[tuple[float, list[Event]]]
) -> None:
    for seconds, events in steps:
        clock[0] += seconds
        screen.take(events)
        screen._show_work()
        await shown.step(f"{clock[0]:g} s: {', '.join(type(event).__name__ for event in events)}")


async def test_a_job_that_fails_is_run_again_and_is_kept(
    clock: list[float], recorded: Recorded
) -> None:
    async with _shown(90, 30) as shown:
        run = shown.run
        copied: list[str] = []
        run.app.copy_to_clipboard = copied.append  # type: ignore[method-assign, assignment]
        screen = JobScreen("fake", {}, lambda _: None, title="Measure", start=_Waiting)
        run.app.push_screen(screen)
        await shown.step("begun")
        await _take(shown, screen, clock, _BEGINNING)
        await shown.keys("escape")
        await shown.keys("g")
        await run.pilot.resize_terminal(60, 20)
        await shown.step("60x20")
        await _take(shown, screen, clock, [(1.0, [_FAILURE])])
        await shown.keys("y")
        shown.texts["copied"] = "\n".join(copied)
        await shown.keys("f5")
        await _take(shown, screen, clock, [(2.0, [Progress(1, 4, "", "")]), (0.0, [Cancelled()])])
        await shown.keys("f5")
        await shown.keys("escape")
        await _take(shown, screen, clock, [(3.0, [Cancelled("3 of 4 sizes")])])
        await shown.keys("f5")
        await _take(shown, screen, clock, [(1.0, [Progress(1, 4, "", "")]), (0.0, [Cancelled()])])
        await shown.keys("escape")
        run.app.action_ended_jobs()
        await shown.step("ended jobs")
        for _ in range(3):
            await shown.keys("down")
        await shown.keys("enter")
        await shown.keys("y")
        shown.texts["copied then"] = copied[-1]
    recorded("pages_of_jobs", shown.texts)


async def test_jobs_that_end_otherwise(clock: list[float], recorded: Recorded) -> None:
    Path("r.txt").write_text("x")
    async with _shown(90, 24) as shown:
        run = shown.run
        results: list[Any] = []
        end = Finished({"report": "r.txt", "ms": 7.25, "rows": [{}, {}], "of": {"a": 1}, "no": []})
        screen = JobScreen("fake", {}, results.append, title="Measure", start=_Waiting)
        run.app.push_screen(screen)
        await shown.step("begun")
        await shown.keys("escape")
        await _take(shown, screen, clock, [(0.25, [Log("done"), end])])
        shown.texts["results"] = repr(results)
        far = JobScreen(
            "fake", {}, results.append, title="Far", target="box",
            start=_Far,
        )  # fmt: skip
        run.app.push_screen(far)
        await shown.step("on a target")
        await shown.keys("ctrl+q")
        await shown.keys("escape")
        await shown.keys("escape")
        await shown.keys("c")
        run.app.action_ended_jobs()
        await shown.step("ended jobs")
        opened: list[Any] = []
        run.app.open_path = lambda path, then=None: opened.append(path)  # type: ignore[method-assign]
        await shown.keys("enter")
        shown.texts["opened"] = repr(opened)
    recorded("pages_of_jobs_that_end", shown.texts)


async def test_jobs_on_several_targets(clock: list[float], recorded: Recorded) -> None:
    names = ["here", "box", f"a-long-name-of-a-{ESCAPE}-machine"]
    async with _shown(110, 24) as shown:
        run = shown.run
        copied: list[str] = []
        run.app.copy_to_clipboard = copied.append  # type: ignore[method-assign, assignment]
        screen = ManyJobsScreen("Profile", [(name, _Waiting) for name in names])
        run.app.push_screen(screen)
        await shown.step("begun")
        here, box, other = screen.runs
        steps: list[tuple[Any, list[Event]]] = [
            (here, [Progress(3, 4, stage="measuring"), Metric("latency", 1234.56, "ms")]),
            (box, [Progress(3, None, stage=""), Log("a word", NoteKind.WARNING)]),
            (other, [Progress(1, 3, stage="a stage that has a name that is long")]),
            (here, [Failed("broke", "here", "mend it", "line a\nline b")]),
            (box, [Finished({"report": "/a/long/path/to/one.dldprof"})]),
        ]
        for target, events in steps:
            clock[0] += 2.5
            screen.take(target, events)
            await shown.step(f"{clock[0]:g} s: {target.target!a} {events[0]!a}"[:80])
        await shown.keys("ctrl+q")
        await shown.keys("escape")
        await shown.keys("escape")
        await shown.keys("g")
        screen.take(other, [Cancelled()])
        await shown.step("all have ended")
        await shown.keys("y")
        shown.texts["copied"] = copied[-1]
        opened: list[Any] = []
        run.app.open_path = lambda path, then=None: opened.append(path)  # type: ignore[method-assign]
        await shown.keys("enter")
        shown.texts["opened"] = repr(opened)
    recorded("pages_of_many_jobs", shown.texts)
