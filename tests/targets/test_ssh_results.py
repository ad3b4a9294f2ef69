"""Jobs that were started on targets: how they are kept, found and listed, without a server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.events import (
    Cancelled,
    Event,
    Failed,
    Finished,
    Log,
    Metric,
    Progress,
    event_to_line,
)
from dld_tui.core.types import NodePlace
from dld_tui.targets.ssh.results import (
    End,
    JobsStore,
    Listener,
    StoredJob,
    StoredOutput,
    job_table,
    new_id,
)
from tests.support.recorded import Recorded, table_text

JOBS = [
    StoredJob("20261201-010203-0123abcd", "box", "profile_onnxruntime", 1000.0,
              (StoredOutput("report", "/home/me/a.dldprof"), StoredOutput("log", "b", False, True)),
              {"/there/x": "x"}),
    StoredJob("20261201-010204-1123abcd", "board", "build", 1060.0),
    StoredJob("20261202-000000-00000000", "board", "check", 4600.0, (StoredOutput("o", "c"),)),
    StoredJob("20261203-000000-ffffffff", "board", "tune", 4690.0),
    StoredJob("20261203-000001-ffffffff", "board", "tune", 4700.0),
]  # fmt: skip
STATES = ("running", "finished", "failed", "lost", "unknown")


def state(job: StoredJob) -> str:
    return STATES[JOBS.index(job)]


def test_the_table_of_jobs(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 4700.0)
    titled = job_table(JOBS, state, lambda job: job.activity.upper())
    plain = job_table(JOBS[:1], state)
    assert titled.row_key is not None
    assert [titled.row_key(job) for job in JOBS] == [job.id for job in JOBS]
    recorded("ssh_results", {"titled": table_text(titled), "plain": table_text(plain)})


def test_jobs_are_kept_in_files_and_found_by_the_end_of_their_names(tmp_path: Path) -> None:
    store = JobsStore(tmp_path / "jobs")
    assert store.all() == []
    for job in reversed(JOBS):
        store.put(job)
    (tmp_path / "jobs" / "0.json").write_text("{}")  # damaged files hide no others
    (tmp_path / "jobs" / "1.json").write_text("[")
    assert JobsStore(tmp_path / "jobs").all() == JOBS
    assert store.find("-1123abcd") == JOBS[1]
    for name, problem in (
        ("123abcd", "means several jobs"), ("", "is not a job started from here"),
        ("gone", "is not a job started from here"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=problem):
            store.find(name)
    store.forget(JOBS[1].id)
    store.forget(JOBS[1].id)
    store.put(JOBS[0].with_fetched({"/home/me/a.dldprof"}))
    found = store.all()
    assert [job.id for job in found] == [job.id for job in JOBS if job is not JOBS[1]]
    assert [output.replaces for output in found[0].outputs] == [True, True]
    assert [o.replaces for o in JOBS[0].with_fetched(()).outputs] == [False, True]
    with pytest.raises(UsageError, match="is not the name of a job"):
        store.forget("../20261201-010203-0123abcd")
    assert new_id() < f"{new_id()[:16]}~"


RENAMES = {"/job/ä/out/r": "my report", "/job/ä/in/m.onnx": "m.onnx"}
PLACE = NodePlace("/job/ä/in/m.onnx", (), "n")
NO_LIBRARY = Failed.from_error(UnavailableError("no TensorRT", where="TensorRT"))
OUTPUT = {"report": "/job/ä/out/r", "others": ["/job/ä/out/r", 3], "log": "/job/ä/log", "x": "y"}
FAILED = Failed("cannot read /job/ä/in/m.onnx", "m.onnx", details="/job/ä/out/r", finding=PLACE)
LINES: dict[str, tuple[list[Event | str], dict[str, Any] | str]] = {
    "a result": ([Log("to /job/ä/out/r"), Progress(1, 2, "passes", "/job/ä/in/m.onnx"),
                  Metric("ms", 3.0), Finished(OUTPUT)], {"code": 0}),
    "more after the result": ([Finished({"a": 1}), Log("late"), "late, of /job/ä/in/m.onnx",
                               Failed("later")], {"code": 0}),
    "other lines": (["", "  ", "of /job/ä/in/m.onnx\x1b[1m", "[W:onnxruntime:, x.cc:1 y] odd"],
                    {"code": 1}),
    "a failure": ([FAILED], {"code": 1}),
    "one of no file": ([Failed("odd")], {"code": 1}),
    "one of another model": ([replace(FAILED, finding=replace(PLACE, model="/other"))], {}),
    "one of no model": ([replace(FAILED, finding=replace(PLACE, model=None))], {}),
    "a package that is missing": ([NO_LIBRARY], {"code": 3}),
    "cancelled": ([Cancelled()], {"code": 0, "cancelled": True}),
    "cancelled too late": ([Finished({"a": 1})], {"code": 0, "cancelled": True}),
    "cancelled while it failed": ([Failed("odd")], {"code": 1, "cancelled": True}),
    "cancelled before it told": (["working"], {"code": -15, "cancelled": True}),
    "killed": (["one", "two"], {"code": -9}),
    "a reason": (["one"], {"code": None, "reason": "its disk is full\x1b"}),
    "a long reason": ([], {"code": None, "reason": "x" * 400}),
    "lost": (["one"], {"code": None, "reason": "lost"}),
    "odd ends": (["one"], {"code": "0", "cancelled": 1, "reason": 0}),
    "no end": (["one"], "{"),
    "a list": ([], "[]"),
}  # fmt: skip


def listened(lines: list[Event | str], end: dict[str, Any] | str) -> Iterator[str]:
    listener = Listener("box", "/job/ä", RENAMES)
    for one in lines:
        if isinstance(one, str):
            yield f"{listener.event('e', one.encode())}"
        else:
            yield f"{listener.event('o', event_to_line(one).encode())}"
    last = End.parse((end if isinstance(end, str) else json.dumps(end)).encode())
    yield f"{last}"
    yield f"{listener.end(last)}"


def test_all_that_is_heard_of_a_job(recorded: Recorded) -> None:
    heard = {name: "\n".join(listened(*case)) for name, case in LINES.items()}
    recorded("ssh_heard", {name: text.replace("x" * 299, "X") for name, text in heard.items()})


def test_of_the_output_of_a_job_the_last_lines_are_told() -> None:
    listener = Listener("box", "/job", {})
    for number in range(60):
        listener.event("e", f"line {number}".encode())
    end = listener.end(End(1, False, ""))
    assert isinstance(end, Failed)
    assert end.details == "\n".join(f"line {number}" for number in range(10, 60))
