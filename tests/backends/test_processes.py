from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dld_tui.backends import processes
from dld_tui.backends.processes import (
    ForkServer,
    ProgramEnd,
    ToolEnd,
    find_program,
    run_program,
    run_tool,
)
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.events import Event, Log, Progress, result_of
from dld_tui.core.process import child
from tests.support.jobs import is_running, wait_until

TOOL = """
import os, signal, sys, time
IMPORTED_BY = os.getpid()
def main():
    what = sys.argv[1]
    print("said", what, flush=True)
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "fail":
        sys.exit(3)
    if what == "wait":
        open(sys.argv[2], "w").write(str(os.getpid()))
        time.sleep(36_000)
    if what == "who":
        open(sys.argv[2], "w").write(f"{IMPORTED_BY} {os.getpid()} {sys.stdin.read()!r}")
    if what == "raise":
        raise ValueError("no")
"""

Run = Callable[[Sequence[str], float | None], Generator[float, None, ToolEnd]]


@pytest.fixture(autouse=True)
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_tool.py").write_text(TOOL)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture(params=["new process", "fork"])
def run(request: pytest.FixtureRequest, tool: None) -> Iterator[Run]:
    """How a tool is run, which makes no difference to it."""
    if request.param == "new process":
        yield lambda arguments, limit_s: run_tool("a_tool", arguments, limit_s)
    else:
        with contextlib.closing(ForkServer("a_tool", [])) as server:
            yield server.run


def test_a_fork_server_imports_once(tmp_path: Path) -> None:
    note, seen = tmp_path / "who", []
    with contextlib.closing(ForkServer("a_tool:main", ["json"])) as server:
        for _ in range(3):
            end = result_of(server.run(["who", str(note)], 60))
            assert (end.status, end.output) == (0, "said who\n")
            seen.append(note.read_text().split())
        server_pid = server.pid
    assert {who[0] for who in seen} == {str(server_pid)}
    assert len({who[1] for who in seen} | {str(server_pid)}) == 4
    assert {who[2] for who in seen} == {"''"}  # nothing is left of the requests
    with pytest.raises(ProcessLookupError):
        os.kill(server_pid, 0)


def test_a_fork_server_that_cannot_start(tmp_path: Path) -> None:
    with contextlib.closing(ForkServer("a_tool", ["no_such_module"])) as server:
        end = result_of(server.run(["well"], 60))
    assert end.status == 1
    assert "No module named 'no_such_module'" in end.output


def python(program: str) -> list[str]:
    return [sys.executable, "-u", "-S", "-c", program]


def played(program: str, folder: Path, limit_s: float = 60) -> tuple[list[Event], ProgramEnd]:
    running = run_program(python(program), folder, limit_s)
    events = []
    while True:
        try:
            events.append(next(running))
        except StopIteration as end:
            return events, end.value


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Log)]


def test_both_outputs_are_heard_in_order_and_the_folder_is_right(tmp_path: Path) -> None:
    program = "import os, sys; print(os.getcwd()); print('\\x1b[1mtwo\\t\\x1b]2', file=sys.stderr)"
    events, end = played(program + "; sys.stdout.write('no end')", tmp_path)
    assert texts(events) == [str(tmp_path), "two    \x1b]2", "no end"]
    assert (end.status, end.lines, end.left_out, end.timed_out) == (0, 3, 0, False)
    assert end.crashed is None


@pytest.mark.broad
def test_a_flood_is_left_out_but_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_LINES_A_SECOND", 0)  # what is shown at first is all
    program = "[print(n) for n in range(200_000)]; print('at last')"
    events, end = played(program, tmp_path)
    said = texts(events)
    assert end.lines == 200_001
    assert 1000 <= len(said) < 1100
    assert said[:2] == ["0", "1"]
    assert said[-2:] == ["199999", "at last"]
    assert any("lines are not shown" in text for text in said)
    shown = [text for text in said if "not shown" not in text]
    assert end.left_out == end.lines - len(shown)


def test_a_progress_bar_is_the_stage_and_its_last_state_the_line(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "for n in range(4): sys.stdout.write(f'\\r{n} of 3'); time.sleep(0.15)\n"
        "print('\\rdone')"
    )
    events, _ = played(program, tmp_path)
    assert texts(events) == ["done"]
    assert {"1 of 3", "2 of 3", "3 of 3"} & {e.stage for e in events if isinstance(e, Progress)}


def test_what_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "LEAVE_S", 0.2)
    program = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        " print(os.getpid()); time.sleep(1000)"
    )
    running = run_program(python(program), tmp_path, 0)
    pid = next(int(event.text) for event in running if isinstance(event, Log))
    os.kill(pid, 0)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_closes_its_output_and_goes_on_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    listen = processes._listen

    def spy(*arguments: Any) -> None:
        nonlocal looks
        looks += 1
        listen(*arguments)

    monkeypatch.setattr(processes, "_listen", spy)
    program = "import os, time; os.close(1); os.close(2); time.sleep(0.5); os._exit(3)"
    _, end = played(program, tmp_path)
    assert end.status == 3
    assert looks < 1000, "nobody spins meanwhile"


def test_a_child_that_keeps_the_pipe_open_holds_nothing_up(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys; print(subprocess.Popen([sys.executable, '-S', '-c',"
        " 'import time; time.sleep(36_000)']).pid)"
    )
    events, end = played(program, tmp_path)
    assert end.status == 0
    stat = Path(f"/proc/{texts(events)[0]}/stat")  # it has ended with the program
    wait_until(lambda: not stat.exists() or stat.read_text().split()[2] == "Z", "its end")


def test_programs_are_found_by_name_and_by_path(tmp_path: Path) -> None:
    program = tmp_path / "a tool"
    program.write_text("#!/bin/sh\n")
    with pytest.raises(UnavailableError, match="not executable"):
        find_program(str(program))
    program.chmod(0o755)
    assert find_program(str(program)) == str(program)
    assert os.path.isabs(find_program("sh"))
    with pytest.raises(UnavailableError, match="not on the PATH"):
        find_program("no-such-program-here")
    with pytest.raises(UnavailableError):
        find_program(str(tmp_path))


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00\x01")
    broken.chmod(0o755)
    with pytest.raises(UsageError, match="cannot be started"):
        next(run_program([str(broken)], tmp_path, 1))


def test_how_a_tool_ends(run: Run) -> None:
    end = result_of(run(["fail"], None))
    assert (end.status, end.output, end.timed_out, end.crashed) == (3, "said fail\n", False, None)
    assert result_of(run(["crash"], None)).crashed == "SIGSEGV"
    assert result_of(run(["well"], 60)).status == 0  # a crash of a fork leaves the server
    end = result_of(run(["raise"], None))
    assert end.status == 1
    assert end.output.startswith("said raise\n")
    assert "ValueError: no" in end.output


def test_the_time_limit_ends_the_process(run: Run, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    end = result_of(run(["wait", str(note)], 1.0))
    assert end.timed_out
    assert end.crashed is None
    assert not (note.exists() and is_running(int(note.read_text())))


def test_closing_ends_the_process(run: Run, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    running = run(["wait", str(note)], None)
    while not (note.exists() and note.read_text()):
        next(running)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


@pytest.mark.parametrize(
    ("program", "limit_s", "status", "crashed", "said"),
    [
        ("print(repr(input()))", 60, 1, None, "EOFError"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 60, None, "SIGSEGV", ""),
        ("import time; time.sleep(36_000)", 0.3, None, None, ""),
        ("import sys; sys.stdout.write('x' * 50_000_000)", 60, 0, None, "x" * 2000),
    ],
    ids=["reads", "crashes", "hangs", "a line without an end"],
)
def test_how_a_program_ends(
    tmp_path: Path, program: str, limit_s: float, status: int | None, crashed: str | None, said: str
) -> None:
    events, end = played(program, tmp_path, limit_s)
    assert status is None or end.status == status
    assert end.crashed == crashed
    assert end.timed_out == (limit_s < 1)
    assert not said or texts(events)[-1].startswith(said)
    assert max(map(len, texts(events)), default=0) <= 2000
