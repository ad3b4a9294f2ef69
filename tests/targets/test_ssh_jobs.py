from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.events import Cancelled, Event, Failed, Finished, Log, Metric, Progress, Started
from dld_tui.core.notes import NoteKind
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.targets.ssh import bootstrap
from dld_tui.targets.ssh.results import JobsStore, new_id
from tests.support.jobs import wait_until
from tests.support.slow_line import SlowLine
from tests.support.ssh_jobs import is_running, script, target_of, until
from tests.support.sshd import Sshd

METRIC = ["event", '{"event": "metric", "name": "n", "value": 1.0, "unit": ""}']


def waits(gate: Path) -> list[object]:
    """A step that waits for a file."""
    return ["wait_for", str(gate)]


def jobs_there(connection: Connection) -> list[Path]:
    return list(Path(connection.directory, "jobs").glob("*"))


def test_events_and_the_result_come_as_from_this_machine(connection: Connection) -> None:
    steps = script(METRIC, ["write", 2, "[W: careful\n"], ["print", "printed"],
                   ["finish", {"a": [1, "x"]}])  # fmt: skip
    job = target_of(connection).start("fake", steps)
    events = list(job.events())
    assert Started("fake", "Fake") in events
    assert Metric("n", 1.0) in events
    assert Log("[W: careful", NoteKind.WARNING) in events
    assert Log("printed") in events
    assert events[-1] == Finished({"a": [1, "x"]})
    assert jobs_there(connection) == []
    assert JobsStore().all() == []


def test_a_second_job_sends_next_to_nothing(connection: Connection) -> None:
    target = target_of(connection)
    with target.start("fake", script(["finish"])) as first:
        first.result()
    with target.start("fake", script(["finish"])) as second:
        second.result()
    assert first.bytes_sent > 100_000  # our package
    assert second.bytes_sent < 10_000


def test_an_error_comes_with_its_class(connection: Connection) -> None:
    job = target_of(connection).start("fake", script(["raise", "activity", "no luck"]))
    with pytest.raises(ActivityError, match="no luck"), job:
        job.result()
    assert jobs_there(connection) == []


def test_a_crash_is_told_with_the_last_lines(connection: Connection) -> None:
    steps = script(["write", 2, "before the crash\n"], ["kill", 11])
    with target_of(connection).start("fake", steps) as job:
        end = job.wait()
    assert isinstance(end, Failed)
    assert "SIGSEGV" in end.message
    assert end.where == "box"
    assert "before the crash" in str(end.details)


def test_a_job_without_declared_settings_is_refused(connection: Connection) -> None:
    job = target_of(connection).start("fake", {"steps": []})
    with pytest.raises(UsageError, match="only runs on this machine"), job:
        job.result()


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


def test_a_broken_connection_does_not_end_the_job(
    connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    steps = script(METRIC, waits(gate), METRIC, ["finish", {"done": True}])
    with SlowLine(sshd.port) as line:
        job = target_of(connection, port=line.port, known_hosts=known(tmp_path, sshd, line)).start(
            "fake", steps
        )
        seen = until(job, Metric)
        line.drop()
        seen += until(job, Log)
        gate.touch()
        seen += list(job.events())
    assert seen[-1] == Finished({"done": True})
    assert seen.count(Metric("n", 1.0)) == 2  # nothing is lost, nothing comes twice
    lost = [event for event in seen if isinstance(event, Log)]
    assert lost[0].level == "warning"
    assert "the job continues there" in lost[0].text


def test_a_pulled_cable_is_noticed_within_seconds(
    connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    steps = script(METRIC, waits(gate), ["finish", {"done": True}])
    with SlowLine(sshd.port) as line:
        target = target_of(connection, port=line.port, known_hosts=known(tmp_path, sshd, line))
        job = target.start("fake", steps)
        until(job, Metric)
        line.cut()
        until(job, Log)  # of its own accord: the line is cut for as long as it takes
        gate.touch()
        line.mend()
        assert job.wait() == Finished({"done": True})


def test_a_job_outlives_its_server(
    own_sshd: Callable[..., Sshd], connection: Connection, tmp_path: Path
) -> None:
    server = own_sshd()
    gate = tmp_path / "gate"
    target = target_of(
        connection, port=server.port, key=server.user_key, known_hosts=server.known_hosts()
    )
    job = target.start("fake", script(METRIC, waits(gate), ["finish", {"done": True}]))
    until(job, Metric)
    server.kill()
    until(job, Log)
    gate.touch()
    server.start()
    assert job.wait() == Finished({"done": True})


def test_a_connection_that_stays_away_leaves_the_job(
    own_sshd: Callable[..., Sshd], connection: Connection, tmp_path: Path
) -> None:
    from dataclasses import replace

    from dld_tui.targets.ssh.target import SshTarget
    from tests.support.asker import Answers
    from tests.support.ssh_jobs import FAKE, QUICK

    server = own_sshd()
    gate = tmp_path / "gate"
    at_server = changed(
        target_of(connection).connection,
        port=server.port, key=server.user_key, known_hosts=server.known_hosts(),
    )  # fmt: skip
    setup = replace(FAKE, retries=replace(QUICK, total=0.3))
    target = SshTarget(at_server, Answers(), setup)
    job = target.start("fake", script(METRIC, waits(gate), ["finish", {"done": True}]))
    until(job, Metric)
    server.kill()
    with pytest.raises(UnavailableError, match=f"dld target attach {job.id}"):
        job.result()

    # A later run of the program finds it again.
    server.start()
    gate.touch()
    stored = JobsStore().find(job.id)
    wait_until(lambda: [j.state for j in target.jobs()] == ["finished"], "it has ended")
    with target.attach(stored) as again:
        assert again.result() == {"done": True}
    assert target.jobs() == []
    assert JobsStore().all() == []


def test_a_job_that_is_left_goes_on(connection: Connection, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    target = target_of(connection)
    job = target.start("fake", script(METRIC, waits(gate), ["finish", {"done": True}]))
    assert not job.leave(), "it is not there yet"
    until(job, Metric)
    assert job.leave()
    assert not job.leave()
    assert [each.state for each in target.jobs()] == ["running"]
    gate.touch()
    with target.attach(JobsStore().find(job.id)) as again:
        assert again.wait() == Finished({"done": True})
    assert jobs_there(connection) == []


def test_a_newer_version_of_this_program_takes_a_job_up(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    target = target_of(connection)
    job = target.start("fake", script(METRIC, waits(gate), ["finish", {"done": True}]))
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


def test_clean_removes_ended_jobs_and_wipe_all(connection: Connection, tmp_path: Path) -> None:
    target = target_of(connection)
    gate = tmp_path / "gate"
    job = target.start("fake", script(METRIC, waits(gate), ["finish"]))
    until(job, Metric)
    assert [(j.id, j.state) for j in target.jobs()] == [(job.id, "running")]
    assert target.clean(0).jobs == 0  # one that runs is left alone
    with pytest.raises(ActivityError, match="runs"):
        target.wipe()
    gate.touch()
    job.wait()
    target.wipe()
    assert [path.name for path in Path(connection.directory).iterdir()] == []


def test_launcher_and_environment_reach_the_worker(connection: Connection, tmp_path: Path) -> None:
    launcher = tmp_path / "launch er"
    launcher.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/seen\nexec "$@"\n')
    launcher.chmod(0o755)
    value = "a 'quoted' $(value)"
    target = target_of(connection, launcher=(str(launcher), "-x"), environment={"DLD_PROOF": value})
    launcher.write_text(f'#!/bin/sh\nshift\necho "$@" > {tmp_path}/seen\nexec "$@"\n')
    with target.start("fake", script(["variable", "DLD_PROOF"])) as job:
        assert job.result() == {"value": value}
    assert value not in (tmp_path / "seen").read_text()  # nor in a list of processes


def test_a_python_that_is_a_script_takes_all_of_the_target_elsewhere(
    connection: Connection, tmp_path: Path
) -> None:
    """As ``docker exec -i NAME python3`` does: docs/guides/targets.md."""
    script_of_python = tmp_path / "python in a container"
    script_of_python.write_text(f'#!/bin/sh\nDLD_PROOF=inside exec {sys.executable} "$@"\n')
    script_of_python.chmod(0o755)
    target = target_of(connection, python=str(script_of_python))
    with target.start("fake", script(["variable", "DLD_PROOF"])) as job:
        assert job.result() == {"value": "inside"}


def test_a_launcher_that_is_not_there(connection: Connection) -> None:
    with (
        target_of(connection, launcher=("no-such-launcher",)).start(
            "fake", script(["finish"])
        ) as job,
        pytest.raises(ActivityError, match=r"cannot be started.*no-such-launcher"),
    ):
        job.result()


def known(folder: Path, sshd: Sshd, line: SlowLine) -> Path:
    """Return a file of known hosts where the server is at a line's port."""
    path = folder / "known_hosts_of_line"
    path.write_text(sshd.known_line.replace(f":{sshd.port} ", f":{line.port} "))
    return path


def test_what_a_machine_lacks_names_the_machine(connection: Connection) -> None:
    steps = script(["raise", "unavailable", "onnxruntime is not installed"])
    job = target_of(connection).start("fake", steps)
    with pytest.raises(UnavailableError, match=r"^box: onnxruntime is not installed"), job:
        job.result()


def old_job(connection: Connection, *, written: bool) -> Path:
    """Leave a job there that ended a year ago, with a result that nobody fetched, or without."""
    folder = Path(connection.directory, "jobs", new_id())
    (folder / "out" / "output").mkdir(parents=True)
    if written:
        (folder / "out" / "output" / "r.dldprof").write_bytes(b"result")
    (folder / "lock").touch()
    end = '{"code": 0, "cancelled": false, "reason": ""}'
    (folder / "events").write_text(f"x{end}\n")
    os.utime(folder / "events", (0, 0))
    return folder


def test_a_result_is_not_cleaned_away_before_it_is_fetched(connection: Connection) -> None:
    target = target_of(connection)
    result, nothing = old_job(connection, written=True), old_job(connection, written=False)
    target.start("fake", script(["finish"])).result()  # cleans, too
    assert result.exists()
    assert not nothing.exists()
    assert target.clean(0).unfetched == (result.name,)
    with pytest.raises(ActivityError, match=f"{result.name} was not fetched.*--unfetched"):
        target.wipe()
    assert (result / "out" / "output" / "r.dldprof").read_bytes() == b"result"
    assert target.clean(0, results=True).jobs == 1
    assert not result.exists()
