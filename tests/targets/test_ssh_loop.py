from __future__ import annotations

import asyncio
import threading
import time

import pytest

from dld_tui.targets.ssh import loop


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


@pytest.mark.parametrize("turns", range(6))
def test_a_cancellation_is_never_lost(turns: int) -> None:
    async def both_at_once() -> bool:
        work = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(loop.within(60, work))
        for _ in range(5):
            await asyncio.sleep(0)
        work.set_result(1)
        for _ in range(turns):
            await asyncio.sleep(0)
        if task.done():
            return True  # it was earlier
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert loop.call(both_at_once(), 60)


def test_it_stops_whatever_waits_and_starts_again() -> None:
    future = loop.submit(loop.in_thread(time.sleep, 0.2))
    loop.stop()
    assert future.cancelled() or future.done()
    loop.stop()
    assert loop.call(answer(8)) == 8


async def fail() -> None:
    raise ZeroDivisionError


def test_results_and_errors_come_back() -> None:
    assert loop.call(answer(7)) == 7
    assert loop.call(loop.within(60, answer(3)), 60) == 3
    for work in (fail(), loop.within(60, fail()), loop.in_thread(lambda: 1 / 0)):
        with pytest.raises(ZeroDivisionError):
            loop.call(work, 60)


@pytest.mark.parametrize("way", ["the caller", "the work itself"])
def test_what_takes_longer_than_it_may_is_ended(way: str) -> None:
    ended = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    work, limit_s = (wait(), 0.05) if way == "the caller" else (loop.within(0.01, wait()), 60)
    with pytest.raises((TimeoutError, asyncio.TimeoutError)):
        loop.call(work, limit_s)
    assert ended.wait(60)


def test_waiting_functions_run_beside_the_loop() -> None:
    released = threading.Event()

    async def both() -> tuple[str, int]:
        waiting = asyncio.ensure_future(loop.in_thread(lambda: "done" if released.wait(60) else ""))
        value = await answer(1)
        released.set()
        return await waiting, value

    assert loop.call(both()) == ("done", 1)
