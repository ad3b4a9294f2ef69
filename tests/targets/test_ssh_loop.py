from __future__ import annotations

import asyncio
import threading
import time

import pytest

from dld_tui.targets.ssh import loop


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_a_result_and_an_error_come_back() -> None:
    assert loop.call(answer(7)) == 7

    async def fail() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        loop.call(fail())


def test_what_takes_too_long_is_cancelled() -> None:
    ended = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        loop.call(wait(), 0.05)
    assert ended.wait(60)


def test_waiting_functions_run_beside_the_loop() -> None:
    released = threading.Event()

    async def both() -> tuple[str, int]:
        waiting = asyncio.ensure_future(loop.in_thread(lambda: "done" if released.wait(60) else ""))
        value = await answer(1)
        released.set()
        return await waiting, value

    assert loop.call(both()) == ("done", 1)

    def fail() -> None:
        raise KeyError("k")

    with pytest.raises(KeyError):
        loop.call(loop.in_thread(fail))


def test_it_stops_whatever_waits_and_starts_again() -> None:
    future = loop.submit(loop.in_thread(time.sleep, 0.2))
    loop.stop()
    assert future.cancelled() or future.done()
    loop.stop()
    assert loop.call(answer(8)) == 8
