from __future__ import annotations

import os
from pathlib import Path

import pytest

from dld_tui.backends.processes import run_tool
from dld_tui.core.events import result_of

TOOL = """
import os, signal, sys, time
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
"""


@pytest.fixture(autouse=True)
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_tool.py").write_text(TOOL)
    monkeypatch.syspath_prepend(tmp_path)


def test_status_and_what_it_said() -> None:
    end = result_of(run_tool("a_tool", ["fail"], None))
    assert (end.status, end.output, end.timed_out, end.crashed) == (3, "said fail\n", False, None)
    assert result_of(run_tool("a_tool", ["well"], 60)).status == 0


def test_a_crash_is_named() -> None:
    assert result_of(run_tool("a_tool", ["crash"], None)).crashed == "SIGSEGV"


def test_the_time_limit() -> None:
    end = result_of(run_tool("a_tool", ["wait", os.devnull], 0.2))
    assert end.timed_out
    assert end.crashed is None


def test_closing_ends_the_process(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    running = run_tool("a_tool", ["wait", str(note)], None)
    while not (note.exists() and note.read_text()):
        next(running)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
