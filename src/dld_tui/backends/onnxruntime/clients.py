"""Several clients that send requests to one session at the same time."""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from dld_tui.core.report.latency import TimeCalls
from dld_tui.core.report.load import Requests

_CALLS = 1 << 12
"""Passes between two looks at the clock in a closed loop."""


def closed_loop(timers: list[TimeCalls], seconds: float) -> Requests:
    """Let each client send its next request when the one before is answered.

    Args:
        timers: Of each client, all of one session.
        seconds: No request begins after it.
    """
    began = time.perf_counter_ns()
    until = began + int(seconds * 1e9)

    def client(timer: TimeCalls) -> list[tuple[float, float]]:
        done: list[tuple[float, float]] = []
        durations = array("q", bytes(8 * _CALLS))
        while (now := time.perf_counter_ns()) < until or not done:
            calls = timer(0, durations, _CALLS if len(done) else 1, until)
            end = (time.perf_counter_ns() - began) / 1e9
            begin = (now - began) / 1e9
            # Between two requests nothing happens: the ends follow from the durations.
            lengths = [nanoseconds / 1e9 for nanoseconds in durations[:calls]]
            spare = max(0.0, end - begin - sum(lengths)) / calls
            at = begin
            for length in lengths:
                done.append((at, at + length))
                at += length + spare
        return done

    with ThreadPoolExecutor(len(timers), "client") as pool:
        found = sorted(pair for pairs in pool.map(client, timers) for pair in pairs)
    begins = tuple(begin for begin, _ in found)
    return Requests(begins, begins, tuple(end for _, end in found))


def open_loop(timers: list[TimeCalls], rate: float, seconds: float, seed: int) -> Requests:
    """Let requests arrive at random with a mean rate, whether or not others are answered.

    They are those of a Poisson process with that many arrivals: independent of each other, each at
    any time alike. A request waits while all clients are busy.

    Args:
        timers: Of each client, all of one session.
        rate: Requests a second.
        seconds: No request arrives after it.
        seed: Of the arrivals.
    """
    drawn = random.Random(seed)
    number = max(1, round(rate * seconds))
    arrivals = sorted(drawn.uniform(0, seconds) for _ in range(number))
    begun, ended = [0.0] * number, [0.0] * number
    take: Callable[[], int] = count().__next__  # one step of the interpreter: no lock is needed
    began = time.perf_counter()

    def client(timer: TimeCalls) -> None:
        durations = array("q", bytes(8))
        while (at := take()) < number:
            if (early := arrivals[at] - (time.perf_counter() - began)) > 0:
                time.sleep(early)
            begun[at] = max(time.perf_counter() - began, arrivals[at])
            timer(0, durations, 1, 0)
            ended[at] = time.perf_counter() - began

    with ThreadPoolExecutor(len(timers), "client") as pool:
        list(pool.map(client, timers))
    return Requests(tuple(arrivals), tuple(begun), tuple(ended))
