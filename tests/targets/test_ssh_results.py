"""Jobs that were started on targets: how they are kept, found and listed, without a server."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.targets.ssh.results import JobsStore, StoredJob, StoredOutput, job_table, new_id
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
