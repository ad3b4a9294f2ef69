from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dld_tui.app import DldApp
from dld_tui.core.events import Cancelled, Event, Failed, Log, Metric, Progress, Started
from dld_tui.core.notes import NoteKind
from dld_tui.core.types import JSON, NodePlace
from dld_tui.screens.activity import jobs as job_module
from dld_tui.screens.activity.jobs import JobScreen, LogView
from dld_tui.targets.base import Job
from dld_tui.widgets.tasks import EndedJob
from tests.support.pages import ScriptedJob, running
from tests.support.tui import ESCAPE, HOSTILE, rows_of, screen_text, until
from tests.support.work import steps_in


def shown(
    app: DldApp, start: Callable[[], Job], results: list[dict[str, JSON]] | None = None
) -> JobScreen:
    taken = [] if results is None else results
    screen = JobScreen("fake", {}, taken.append, title="Measure", start=start)
    app.push_screen(screen)
    return screen


async def test_progress_metrics_and_log_are_shown() -> None:
    job = ScriptedJob(
        [
            Started("fake"),
            Progress(25, 100, "passes", "Warming up"),
            Metric("latency", 2.44, "ms"),
            Log(f"library: {HOSTILE}{ESCAPE}", NoteKind.WARNING),
        ],
        hold=True,
    )
    async with running() as run:
        shown(run.app, lambda: job)
        await run.shows("Warming up")
        text = run.text
        assert "25 %" in text
        assert "25 of 100 passes" in text
        assert "latency 2.44 ms" in text
        assert f"library: {HOSTILE}\\x1b]0;x\\x07" in text
    assert job.closed.is_set()  # leaving the program leaves no job behind


async def test_escape_stops_a_young_job_at_once() -> None:
    job = ScriptedJob([Progress(1, 10, "passes", "Running")], hold=True)
    async with running() as run:
        screen = shown(run.app, lambda: job)
        await run.shows("Running")
        await run.press("escape")
        await run.until(lambda: isinstance(screen.end, Cancelled))
        await run.pilot.pause()
        assert "stopped; no partial files are left" in run.text
        assert "Measure was stopped after" in run.text


async def test_a_failure_at_a_node_leads_to_the_node() -> None:
    finding = NodePlace("/m/net.onnx", ("choose:then",), "conv1")
    failure = Failed("no operator Fake", "/m/net.onnx: node 'conv1'", finding=finding)
    app = DldApp()
    shown_nodes: list[tuple[str, list[str], str]] = []
    async with app.run_test(size=(80, 24)) as pilot:
        screen = shown(app, lambda: ScriptedJob([failure]))
        await until(pilot, lambda: screen.end is not None)
        await pilot.pause()
        assert "s go to node" in screen_text(app)
        app.reveal = lambda path, scope, node: shown_nodes.append(  # type: ignore[method-assign, assignment]
            (str(path), list(scope), node)
        )
        await pilot.press("s")
        assert shown_nodes == [("/m/net.onnx", ["choose:then"], "conv1")]
        assert not isinstance(app.screen, JobScreen)


@pytest.mark.broad
async def test_quitting_asks_while_a_job_runs() -> None:
    job = ScriptedJob([Log("x")], hold=True)
    async with running() as run:
        shown(run.app, lambda: job)
        await run.pilot.pause()
        await run.press("ctrl+q")
        assert "Measure still runs" in run.text
        await run.press("ctrl+q")  # asks only once
        assert len(run.app.screen_stack) == 3
        await run.press("d")
    assert run.app.return_code == 0


@pytest.mark.broad
async def test_a_burst_of_events_comes_in_few_batches_and_does_not_stall() -> None:
    events: list[Event] = [Log(f"line {number}") for number in range(4000)]
    events += [Progress(number, 4000, "passes", "Run") for number in range(4000)]
    batches: list[int] = []
    work = 0
    async with running() as run:
        job = ScriptedJob(events, hold=True)
        screen = JobScreen("fake", {}, lambda _: None, start=lambda: job)
        take = screen.take

        def spy(taken: Sequence[Event]) -> None:
            nonlocal work
            job.told.wait(60)  # meanwhile the loop stands still, so the others come together
            work += steps_in(take, taken)
            batches.append(len(taken))

        screen.take = spy  # type: ignore[method-assign, assignment]
        run.app.push_screen(screen)
        await run.until(lambda: sum(batches) == len(events))
        assert len(batches) <= 2
        assert work < 40 * len(events)
        await run.until(lambda: any("line 3999" in row for row in rows_of(run.app)))
        view: Any = screen.query_one(LogView)
        assert view.cursor == len(view.lines) - 1


async def test_a_log_that_is_cut_stays_where_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "_MOST_LINES", 40)
    monkeypatch.setattr(job_module, "_LEFT_LINES", 30)
    async with running() as run:
        screen = shown(run.app, lambda: ScriptedJob([], hold=True))
        await run.until(lambda: screen.query(LogView))
        view = screen.query_one(LogView)
        for number in range(38):
            screen.take([Log(f"line {number}")])
        view.cursor = 20
        for number in range(38, 50):
            screen.take([Log(f"line {number}")])
            assert view.lines.text(view.cursor) == "line 20"


def test_few_jobs_and_few_lines_are_kept() -> None:
    app = DldApp()
    for number in range(50):
        app.job_ended(EndedJob.of(f"job {number}", "done", {}, ["line"] * 5000))
    assert len(app.ended_jobs) == 20
    assert app.ended_jobs[-1].title == "job 49"
    assert len(app.ended_jobs[-1].log) == 2000
