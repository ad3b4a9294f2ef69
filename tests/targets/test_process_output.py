"""Workers that write what is no event, or too much of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dld_tui.core.events import Cancelled, Failed, Finished, Log, Started
from tests.support.jobs import FAST, read, start, start_program, texts


def memory_held() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_only_the_first_terminal_event_counts() -> None:
    program = (
        'print(\'{"event": "finished"}\\n{"event": "failed", "message": "no"}\\n'
        '{"event": "progress", "done": 1}\')'
    )

    assert read(start_program(program)) == [Finished({})]


def test_lines_that_are_almost_events_are_logs() -> None:
    lines = [
        '{"event": "progress", "done": "much"}',
        '{"event": "progress"}',
        '{"event": "unknown"}',
        '{"event": "log", "text": "x", "more": 1}',
        "[" * 5000,
        "\\xff\\xfe",
    ]
    program = f"import sys; sys.stdout.buffer.write({chr(10).join(lines).encode()!r})"
    events = read(start_program(program))

    assert [type(event) for event in events[:-1]] == [Log] * len(lines)
    assert texts(events)[0] == lines[0]
    assert isinstance(events[-1], Failed)


@pytest.mark.broad
def test_a_flood_of_output_is_read_in_bounded_memory() -> None:
    line = "x" * 1000 + "\n"
    held = memory_held()
    with start(["write", 2, line, 100_000], ["finish"]) as job:  # 100 MB
        count = sum(1 for event in job.events() if isinstance(event, Log))

    assert count == 100_000
    assert memory_held() - held < 30e6


def test_a_flood_without_a_newline_is_cut() -> None:
    with start(["write", 2, "x" * 100_000, 500], ["write", 2, "\nend\n"], ["finish"]) as job:
        logs = texts(list(job.events()))

    assert [len(text) for text in logs] == [4001, 3]
    assert logs[0].endswith("x…")


@pytest.mark.broad
def test_a_reader_that_pauses_holds_the_worker_back() -> None:
    with start(["write", 2, "y" * 3999 + "\n", 5_000], ["finish"]) as job:
        events = job.events()
        assert isinstance(next(events), Started)
        next(events)
        assert job._process.poll() is None
        assert len(job._ready) < 1000
        assert sum(1 for _ in events) == 5_000


def test_a_flood_can_be_cancelled() -> None:
    with start(["write", 2, "z" * 100 + "\n", 2_000_000_000], delays=FAST) as job:
        job.cancel()
        assert job.wait() == Cancelled()
