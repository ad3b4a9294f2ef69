"""The one service for long work, without an app: an owner is what starts coroutines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
from textual.css.query import NoMatches

from dld_tui.core.errors import DldError, InputError
from dld_tui.core.events import Cancelled, Event, Failed, Finished, Log
from dld_tui.widgets.tasks import JobRun, Tasks, on_thread, task, with_progress


class Owner:
    """Runs coroutines as asyncio does, and cancels those of a group."""

    def __init__(self) -> None:
        self.running: dict[str, list[asyncio.Task[None]]] = {}
        self.tasks = Tasks(cast("Any", self))
        self.workers = self
        self.seen: list[object] = []

    def run_worker(self, work: Any, *, group: str, name: str, exclusive: bool) -> None:
        if exclusive:
            self.cancel_group(self, group)
        self.running.setdefault(group, []).append(asyncio.ensure_future(work))

    def cancel_group(self, node: object, group: str) -> None:
        for running in self.running.pop(group, []):
            running.cancel()

    async def ended(self) -> None:
        await asyncio.gather(*[each for group in self.running.values() for each in group])

    @task("rows", replace=True)
    async def show(self, what: str, gate: threading.Event) -> None:
        self.seen.append(f"asked {what}")
        await on_thread(gate.wait)
        self.seen.append(what)


@pytest.mark.parametrize("is_there", [False, True])
async def test_a_task_may_miss_what_has_gone_with_its_owner(is_there: bool) -> None:
    owner: Any = Owner()
    owner.is_attached, owner._pruning = True, not is_there
    owner._closing = owner._closed = False

    async def fill() -> None:
        await asyncio.sleep(0)
        raise NoMatches("no row")

    owner.tasks.start(fill(), "rows")
    if is_there:
        with pytest.raises(NoMatches):
            await owner.ended()
    else:
        await owner.ended()


async def test_a_task_without_a_wait_needs_no_worker() -> None:
    owner = Owner()

    async def quick() -> None:
        owner.seen.append("done")

    owner.tasks.start(quick(), "rows")
    assert owner.seen == ["done"]
    assert not owner.running


async def test_a_task_replaces_those_of_its_group() -> None:
    owner, gate = Owner(), threading.Event()
    owner.show("a", gate)
    owner.show("b", gate)
    gate.set()
    await owner.ended()
    assert owner.seen == ["asked a", "asked b", "b"]


async def test_a_group_is_of_the_table() -> None:
    owner = Owner()

    async def nothing() -> None: ...

    coroutine = nothing()
    with pytest.raises(KeyError):
        owner.tasks.start(coroutine, "no such group")
    coroutine.close()


async def test_a_thread_is_told_to_stop_when_its_task_is_cancelled() -> None:
    owner, stopped = Owner(), threading.Event()
    began = threading.Event()

    def read(progress: Any, cancelled: Any) -> None:
        began.set()
        while not cancelled():
            progress(1, 2)
        stopped.set()

    async def load() -> None:
        await with_progress(read)

    owner.tasks.start(load(), "load")
    assert await on_thread(began.wait, 5)
    await asyncio.sleep(0)
    owner.tasks.cancel("load")
    assert await on_thread(stopped.wait, 5)


async def test_work_is_one_at_a_time_and_esc_stops_it() -> None:
    tasks = Owner().tasks
    told: list[tuple[int, int]] = []

    def copy(progress: Any, cancelled: Any) -> str:
        progress(0, 2)
        while not cancelled():
            progress(1, 2)
        return "stopped"

    first = asyncio.ensure_future(tasks.work(copy, lambda *parts: told.append(parts)))
    while not told:
        await asyncio.sleep(0.001)
    with pytest.raises(DldError, match="wait for"):
        await tasks.work(copy)
    assert [tasks.is_working, tasks.cancel_work()] == [True, True]
    assert await first == "stopped"
    assert [tasks.is_working, tasks.cancel_work()] == [False, False]
    assert told[0] in {(0, 2), (1, 2)}


class FakeJob:
    """Says so many lines, and then waits for the end."""

    can_leave = False

    def __init__(self, lines: int) -> None:
        self.lines = lines
        self.stop = threading.Event()
        self.is_closed = False

    def __enter__(self) -> FakeJob:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any, /) -> None:
        self.close()

    def events(self) -> Iterator[Event]:
        for number in range(self.lines):
            yield Log(str(number))
        if not self.lines:
            self.stop.wait(5)
        yield Cancelled() if self.stop.is_set() else Finished({})

    def cancel(self) -> None:
        self.stop.set()

    def leave(self) -> bool:
        return self.can_leave

    def close(self) -> None:
        self.is_closed = True


async def test_events_of_a_job_come_in_order_and_in_batches() -> None:
    job = FakeJob(4000)
    batches = [list(batch) async for batch in JobRun(lambda: job).batches()]
    events = [event for batch in batches for event in batch]
    texts = [event.text for event in events if isinstance(event, Log)]
    assert texts == [str(number) for number in range(4000)]
    assert isinstance(events[-1], Finished)
    assert len(batches) < 100
    assert job.is_closed


async def test_a_job_that_does_not_start_has_failed() -> None:
    def start() -> FakeJob:
        raise InputError("no such model")

    batches = [list(batch) async for batch in JobRun(start).batches()]
    ((event,),) = batches
    assert isinstance(event, Failed)
    assert event.message == "no such model"


async def test_a_job_is_cancelled_before_it_starts_or_while_it_runs() -> None:
    early = JobRun(lambda: FakeJob(0))
    early.cancel()
    assert [type(event) async for batch in early.batches() for event in batch] == [Cancelled]
    run = JobRun(lambda: FakeJob(0))
    ends: list[type[Event]] = []

    async def follow() -> None:
        async for batch in run.batches():
            ends.extend(map(type, batch))

    following = asyncio.ensure_future(follow())
    await asyncio.sleep(0.01)
    run.cancel()
    await following
    assert ends == [Cancelled]
