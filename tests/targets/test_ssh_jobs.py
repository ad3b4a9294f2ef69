from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.events import Cancelled, Event, Failed, Finished, Log, Metric, Progress, Started
from dld_tui.core.params import RequestData
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.targets.ssh import bootstrap
from dld_tui.targets.ssh import job as ssh_job
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.results import JobsStore
from tests.support.jobs import is_running, wait_until
from tests.support.slow_line import SlowLine
from tests.support.ssh_jobs import (
    FAKE,
    QUICK,
    Servers,
    at,
    behind,
    script,
    target_of,
    until,
)
from tests.support.sshd import Sshd

METRIC = ["event", '{"event": "metric", "name": "n", "value": 1.0, "unit": ""}']


def jobs_there(connection: Connection) -> list[Path]:
    return list(Path(connection.directory, "jobs").glob("*"))


def test_a_crash_is_told_with_the_last_lines(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, called = Agent.call, list[str]()

    async def noted(agent: Agent, command: str, **more: Any) -> dict[str, Any]:
        called.append(command)
        return await call(agent, command, **more)

    monkeypatch.setattr(Agent, "call", noted)
    steps = script(["write", 2, "before the crash\n"], ["kill", 11])
    with target_of(connection).start("fake", steps) as job:
        end = job.wait()
    assert isinstance(end, Failed)
    assert "SIGSEGV" in end.message
    assert end.where == "box"
    assert "before the crash" in str(end.details)
    assert 1 <= called.count("remove") < ssh_job._REMOVE_TRIES


def test_whatever_a_library_raises_is_the_end(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*unused: object) -> None:
        raise ZeroDivisionError("x" * 500)

    monkeypatch.setattr(ssh_job, "plan_inputs", fail)
    text = f"unexpected ZeroDivisionError: {'x' * 500}"[:500]
    assert target_of(connection).start("fake", script()).wait() == Failed(text, "box")


def test_cancel_leaves_nothing(connection: Connection, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    job = target_of(connection).start("fake", script(["until_cancelled", str(trace)]))
    until(job, Started)
    wait_until(lambda: any(isinstance(e, Progress) and e.done > 3 for e in job.events()), "work")
    job.cancel()
    assert job.wait() == Cancelled()
    assert trace.read_text() == "cleaned up"
    assert jobs_there(connection) == []
    assert JobsStore().all() == []


@pytest.mark.broad
@pytest.mark.parametrize(
    ("step", "end"),
    [(["raise", "activity", "no luck"], Cancelled()), (["finish", {}], Finished({}))],
)
def test_cancel_after_the_job_was_removed(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, step: list[object], end: Event
) -> None:
    forget = JobsStore.forget

    def forget_and_cancel(store: JobsStore, job_id: str) -> None:
        forget(store, job_id)
        job.cancel()

    monkeypatch.setattr(JobsStore, "forget", forget_and_cancel)
    job = target_of(connection).start("fake", script(step))
    assert job.wait() == end


@pytest.mark.broad
def test_closing_kills_even_what_does_not_listen(connection: Connection, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    job = target_of(connection).start("fake", script(["child", 600, str(pid)], ["hang_deaf"]))
    wait_until(lambda: any(isinstance(e, Log) and e.text == "hanging" for e in job.events()), "it")
    job.close()
    wait_until(lambda: not is_running(int(pid.read_text())), "the child of the worker has ended")
    assert [job.state for job in target_of(connection).jobs()] in ([], ["cancelled"])


@pytest.mark.parametrize("late_us", [0, 10, 20, 50, 100, 200, 500, 1000])
def test_cancel_before_the_connection_stands(connection: Connection, late_us: int) -> None:
    job = target_of(connection).start("fake", script(["hang"]))
    time.sleep(late_us / 1e6)
    job.cancel()
    assert job.wait() == Cancelled()


@pytest.mark.broad
def test_a_job_that_is_left_goes_on(connection: Connection, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    target = target_of(connection)
    job = target.start("fake", gated(gate))
    assert not job.leave(), "it is not there yet"
    until(job, Metric)
    assert job.leave()
    assert not job.leave()
    assert [each.state for each in target.jobs()] == ["running"]
    gate.touch()
    with target.attach(JobsStore().find(job.id)) as again:
        assert again.wait() == Finished({"done": True})
    assert jobs_there(connection) == []


@pytest.mark.broad
def test_a_newer_version_of_this_program_takes_a_job_up(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    target = target_of(connection)
    job = target.start("fake", gated(gate))
    until(job, Metric)
    files = dict(sorted({**bootstrap.package_files(), "dld_tui/newer.py": b""}.items()))
    monkeypatch.setattr(bootstrap, "package_files", lambda: files)
    bootstrap.package_digest.cache_clear()
    try:
        with target.attach(JobsStore().find(job.id)) as again:
            again.cancel()
            assert again.wait() == Cancelled()
    finally:
        bootstrap.package_digest.cache_clear()
    assert jobs_there(connection) == []


def gated(gate: Path) -> RequestData:
    """Return the request of a job that says something, and ends when a file is there."""
    return script(METRIC, ["wait_for", str(gate)], ["finish", {"done": True}])


@pytest.mark.broad
def test_a_target_waits_until_its_lines_are_read(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_job, "_MOST_UNREAD_BYTES", 0)
    monkeypatch.setattr(ssh_job, "_TICK_S", 0.01)
    lines = [f"line {number}" for number in range(20)]
    steps = script(*(["print", f"{line}\n"] for line in lines), ["finish"])
    job = target_of(connection).start("fake", steps)
    seen = []
    for event in job.events():
        seen.append(event)
        assert sum(isinstance(waiting, Log) for waiting, _ in job._ready) <= 1
    assert [event.text for event in seen if isinstance(event, Log)][-20:] == lines
    assert isinstance(seen[-1], Finished)


@pytest.mark.broad
@pytest.mark.parametrize(
    ("changes", "request_", "kind", "said"),
    [
        ({}, script(["raise", "activity", "no luck"]), ActivityError, "no luck"),
        ({}, script(["raise", "unavailable", "no onnxruntime"]), UnavailableError,
         "^box: no onnxruntime"),
        ({}, {"steps": []}, UsageError, "only runs on this machine"),
        ({"launcher": ("no-such-launcher",)}, script(["finish"]), ActivityError,
         "cannot be started.*no-such-launcher"),
    ],
    ids=["by its class", "what the machine lacks", "no declared settings", "no launcher"],
)  # fmt: skip
def test_an_error_comes_with_its_class(
    connection: Connection, changes: Any, request_: Any, kind: type[Exception], said: str
) -> None:
    job = target_of(connection, **changes).start("fake", request_)
    with pytest.raises(kind, match=said), job:
        job.result()
    assert jobs_there(connection) == []
    assert JobsStore().all() == []


@pytest.mark.broad
def test_a_broken_connection_does_not_end_the_job(
    connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    steps = script(METRIC, ["wait_for", str(gate)], METRIC, ["finish", {"done": True}])
    with SlowLine(sshd.port) as line:
        job = target_of(behind(connection, line)).start("fake", steps)
        seen = until(job, Metric)
        line.drop()
        seen += until(job, Log)
        gate.touch()
        seen += list(job.events())
    assert seen[-1] == Finished({"done": True})
    assert seen.count(Metric("n", 1.0)) == 2  # nothing is lost, nothing comes twice
    lost = next(event for event in seen if isinstance(event, Log))
    assert lost.level == "warning"
    assert "the job continues there" in lost.text


@pytest.mark.broad
def test_a_pulled_cable_is_noticed_within_seconds(
    connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with SlowLine(sshd.port) as line:
        job = target_of(behind(connection, line)).start("fake", gated(gate))
        until(job, Metric)
        line.cut()
        until(job, Log)  # of its own accord: the line is cut for as long as it takes
        gate.touch()
        line.mend()
        assert job.wait() == Finished({"done": True})


@pytest.mark.real_workers
@pytest.mark.broad
def test_a_job_outlives_its_server(
    own_sshd: Servers, connection: Connection, tmp_path: Path
) -> None:
    server, gate = own_sshd(), tmp_path / "gate"
    job = target_of(at(server, connection)).start("fake", gated(gate))
    until(job, Metric)
    server.kill()
    until(job, Log)
    gate.touch()
    server.start()
    assert job.wait() == Finished({"done": True})


@pytest.mark.real_workers
@pytest.mark.broad
def test_a_connection_that_stays_away_leaves_the_job(
    own_sshd: Servers, connection: Connection, tmp_path: Path
) -> None:
    server, gate = own_sshd(), tmp_path / "gate"
    setup = replace(FAKE, retries=replace(QUICK, total=0.3))
    target = target_of(at(server, connection), setup)
    job = target.start("fake", gated(gate))
    until(job, Metric)
    server.kill()
    with pytest.raises(UnavailableError, match=f"dld target attach {job.id}"):
        job.result()
    # A later run of the program finds it again.
    server.start()
    gate.touch()
    wait_until(lambda: [j.state for j in target.jobs()] == ["finished"], "it has ended")
    with target.attach(JobsStore().find(job.id)) as again:
        assert again.result() == {"done": True}
    assert target.jobs() == []
    assert JobsStore().all() == []


def executable(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.real_workers
def test_launcher_and_environment_reach_the_worker(connection: Connection, tmp_path: Path) -> None:
    seen, value = tmp_path / "seen", "a 'quoted' $(value)"
    launcher = executable(tmp_path / "launch er", f'shift\necho "$@" > {seen}\nexec "$@"')
    target = target_of(connection, launcher=(launcher, "-x"), environment={"DLD_PROOF": value})
    with target.start("fake", script(["variable", "DLD_PROOF"])) as job:
        assert job.result() == {"value": value}
    assert value not in seen.read_text()  # nor in a list of processes


@pytest.mark.real_workers
def test_a_python_that_is_a_script_takes_all_of_the_target_elsewhere(
    connection: Connection, tmp_path: Path
) -> None:
    """As ``docker exec -i NAME python3`` does: docs/guides/targets.md."""
    text = f'DLD_PROOF=inside exec {sys.executable} "$@"'
    python = executable(tmp_path / "python in a container", text)
    target = target_of(connection, python=python)
    with target.start("fake", script(["variable", "DLD_PROOF"])) as job:
        assert job.result() == {"value": "inside"}
