from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import pytest

from dld_tui.backends.processes import ForkServer, ToolEnd, run_tool
from dld_tui.core.events import result_of

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


def test_status_and_what_it_said(run: Run) -> None:
    end = result_of(run(["fail"], None))
    assert (end.status, end.output, end.timed_out, end.crashed) == (3, "said fail\n", False, None)
    assert result_of(run(["well"], 60)).status == 0


def test_a_crash_is_named(run: Run) -> None:
    assert result_of(run(["crash"], None)).crashed == "SIGSEGV"


def test_the_time_limit(run: Run) -> None:
    end = result_of(run(["wait", os.devnull], 0.2))
    assert end.timed_out
    assert end.crashed is None


def test_closing_ends_the_process(run: Run, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    running = run(["wait", str(note)], None)
    while not (note.exists() and note.read_text()):
        next(running)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_an_error_is_in_the_output(run: Run) -> None:
    end = result_of(run(["raise"], None))
    assert end.status == 1
    assert end.output.startswith("said raise\n")
    assert "ValueError: no" in end.output


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


def test_a_crash_of_a_fork_leaves_the_server(tmp_path: Path) -> None:
    with contextlib.closing(ForkServer("a_tool", [])) as server:
        assert result_of(server.run(["crash"], None)).crashed == "SIGSEGV"
        assert result_of(server.run(["well"], None)).status == 0


def test_a_fork_server_that_cannot_start(tmp_path: Path) -> None:
    with contextlib.closing(ForkServer("a_tool", ["no_such_module"])) as server:
        end = result_of(server.run(["well"], 60))
    assert end.status == 1
    assert "No module named 'no_such_module'" in end.output


def test_a_time_limit_ends_a_fork(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with contextlib.closing(ForkServer("a_tool", [])) as server:
        assert result_of(server.run(["well"], None)).status == 0
        assert result_of(server.run(["wait", str(note)], 0.5)).timed_out
        with pytest.raises(ProcessLookupError):
            os.kill(int(note.read_text()), 0)
