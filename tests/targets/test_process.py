from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dld_tui.core.errors import ActivityError, CancelledError, UnavailableError
from dld_tui.core.events import Cancelled, Event, Failed, Finished, Log, Progress, Started
from dld_tui.core.files.temporary import hold_folder, release
from dld_tui.targets.process import Delays, LocalTarget, ProcessJob
from tests.support.jobs import (
    FAST,
    PATIENT,
    is_running,
    read,
    start,
    start_program,
    texts,
    wait_until,
)

pytestmark = pytest.mark.real_workers


def test_a_result_that_comes_after_cancel_is_kept() -> None:
    with start(["hang_deaf"], delays=FAST) as other, start(["finish", {"a": 1}]) as job:
        events = job.events()
        assert isinstance(next(events), Started)
        other.cancel()
        wait_until(lambda: job._process.poll() is not None, "the worker is done")
        job.cancel()
        assert list(events) == [Finished({"a": 1})]


def test_cancel_after_the_end_does_nothing() -> None:
    job = start(["finish"])
    assert job.wait() == Finished({})
    job.cancel()
    job.close()
    assert list(job.events()) == []


def test_close_ends_a_job_that_nobody_reads() -> None:
    job = start(["hang_deaf"])
    assert next(job.events()) == Started("fake", "Fake")
    job.close()

    assert not is_running(job.pid)
    assert list(job.events())[-1] == Cancelled()


def test_children_of_the_worker_do_not_outlive_it_nor_hold_the_reader(tmp_path: Path) -> None:
    trace = tmp_path / "pid"
    events = read(start(["child", 36_000, str(trace)], ["finish"]))  # it does not wait for that

    assert events[-1] == Finished({})
    wait_until(lambda: not is_running(int(trace.read_text())), "the grandchild is gone")


@pytest.mark.broad
def test_nothing_is_left_of_ended_jobs() -> None:
    read(start(["finish"]))
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    folders = set()
    for step in (["finish"], ["exit", 1], ["crash"], ["raise", "value", "no"]):
        job = start(["environment"]) if step == ["finish"] else start(step)
        events = read(job)
        last = events[-1]
        if isinstance(last, Finished):
            folders.add(str(last.result["folder"]))
        assert not Path(f"/proc/{job.pid}").exists()  # not even a zombie

    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert threading.active_count() <= threads
    assert folders
    assert not any(Path(folder).exists() for folder in folders)


def test_the_worker_leads_a_group_and_has_our_module_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a file beside the model was imported')")
    monkeypatch.chdir(tmp_path)
    last = read(start(["environment"]))[-1]

    assert isinstance(last, Finished)
    assert last.result["leads"] is True
    assert last.result["path"] == sys.path


@pytest.mark.broad
def test_a_large_request_arrives_whole() -> None:
    steps = [["event", '{"event": "log", "text": "' + "a" * 1000 + '"}']] * 2000
    events = read(start(*steps, ["finish"]))

    assert len(texts(events)) == 2000


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(UnavailableError, match="cannot be started"):
        LocalTarget(["/nonexistent/python"], PATIENT).start("fake", {})


@pytest.mark.broad
def test_the_worker_stops_when_its_parent_is_killed(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    program = (
        "import sys; sys.path[:] = sys.argv.pop().split('\\n')\n"
        "from tests.support.jobs import start\n"
        f"job = start(['until_cancelled', {str(trace)!r}])\n"
        "for event in job.events(): print(job.pid, flush=True)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, "\n".join(sys.path)], stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout is not None
        for _ in range(3):  # the first event comes before the activity begins
            pid = int(parent.stdout.readline())
        parent.kill()

    wait_until(lambda: not is_running(pid), "the worker is gone")
    assert trace.read_text() == "cleaned up"


def test_result_returns_or_raises_what_the_job_says() -> None:
    seen: list[Event] = []
    with start(["finish", {"a": 1}]) as job:
        assert job.result(seen.append) == {"a": 1}
    assert seen == [Started("fake", "Fake")]
    with start(["raise", "activity", "no"]) as job, pytest.raises(ActivityError, match="no"):
        job.result()


def test_the_folder_of_a_job_whose_program_was_killed_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = hold_folder("job", tmp_path)
    release(left)
    (left / "dld-inner").mkdir()
    (tmp_path / "dld-other").mkdir()
    with start(["hang"]) as job, start(["finish"]) as other:
        own = job._folder
        assert other.wait() == Finished({})
        assert own.exists()
        assert not left.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["dld-other"]


def test_the_real_worker_answers() -> None:
    with LocalTarget().start("no such activity", {}) as job:
        (event,) = job.events()

    assert isinstance(event, Failed)
    assert event.status == 2
    assert "no such activity" in event.message
    assert not isinstance(event, Started)


@pytest.mark.parametrize(
    ("step", "message", "detail"),
    [
        (["kill", signal.SIGKILL], "SIGKILL", ""),
        (["kill", signal.SIGABRT], "SIGABRT", ""),
        (["kill", signal.SIGRTMIN + 1], f"signal {signal.SIGRTMIN + 1}", ""),
        (["crash"], "SIGSEGV", "fake_activity.py"),  # the Python stack of the native call
        (["exit", 3], "exit status 3", ""),
        (["exit", 0], "without a result", ""),
    ],
)
def test_a_dead_worker_is_a_failure_that_says_how_it_died(
    step: list[object], message: str, detail: str
) -> None:
    job = start(["write", 2, "last words\n"], step)
    folder = Path(job._folder)
    assert folder.is_dir()
    failure = read(job)[-1]
    assert isinstance(failure, Failed)
    assert message in failure.message
    assert failure.status == 5
    assert "last words" in (failure.details or "")
    assert detail in (failure.details or "")
    assert not folder.exists()


HANGS = Log("hanging")


def seen_by(job: ProcessJob, when: Event, action: Callable[[], object]) -> list[Event]:
    """Read a job to its end, and do something at an event."""
    seen: list[Event] = []
    with job:
        for event in job.events():
            seen.append(event)
            if event == when:
                action()
    return seen


def test_killed_from_outside_while_running() -> None:
    job = start(["hang"])
    *_, end = seen_by(job, HANGS, lambda: os.kill(job.pid, signal.SIGKILL))
    assert isinstance(end, Failed)
    assert "memory" in (end.hint or "")


@pytest.mark.parametrize(
    ("step", "when", "delays", "said"),
    [
        ("until_cancelled", Progress(3), PATIENT, []),  # asking is enough
        ("hang_with_clean_up", HANGS, Delays(0.05, 60, 60), ["sent SIGTERM to the job"]),
        ("hang_deaf", HANGS, FAST, ["sent SIGTERM to the job", "sent SIGKILL to the job"]),
    ],
    ids=["between two events", "in a Python call", "deaf to SIGTERM"],
)
def test_cancel(step: str, when: Event, delays: Delays, said: list[str], tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    job = start([step, *([] if step == "hang_deaf" else [str(trace)])], delays=delays)

    def cancel_twice() -> None:
        job.cancel()
        job.cancel()

    seen = seen_by(job, when, cancel_twice)
    assert seen[-1] == Cancelled()
    assert [text for text in texts(seen) if text != HANGS.text] == said
    assert step == "hang_deaf" or trace.read_text() == "cleaned up"


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_another_thread_wakes_a_blocked_reader(way: str) -> None:
    job = start(["hang_deaf"], delays=FAST)
    hangs = threading.Event()
    other = threading.Thread(target=lambda: hangs.wait(60) and getattr(job, way)())
    other.start()
    *_, end = seen_by(job, HANGS, hangs.set)
    other.join()
    assert end == Cancelled()


def test_cancel_before_anything_was_read() -> None:
    job = start(["until_cancelled", os.devnull])
    job.cancel()
    assert job.wait() == Cancelled()


RESULT_FIRST = (
    'import time; print(\'{"event": "finished", "result": {"a": 1}}\', flush=True); time.sleep(60)'
)


@pytest.mark.parametrize("pidfd", [True, False])
def test_a_worker_that_does_not_leave_is_killed_and_then_given_up(
    monkeypatch: pytest.MonkeyPatch, pidfd: bool
) -> None:
    """Also where no descriptor tells of its end: it is looked at again and again."""
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    assert read(start_program(RESULT_FIRST, FAST)) == [Finished({"a": 1})]
    failure = read(start(["close_outputs"], delays=FAST))[-1]
    assert isinstance(failure, Failed)
    assert "SIGKILL" in failure.message
    job = start_program(RESULT_FIRST, FAST)
    with monkeypatch.context() as patch:
        patch.setattr(job._process, "has_ended", lambda: False)  # as in an uninterruptible call
        assert read(job) == [Finished({"a": 1})]
    job._process.wait()


def test_ctrl_c_cancels_and_a_second_one_ends_the_job_at_once(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    def interrupt(event: Event) -> None:
        if event == Progress(2) or isinstance(event, Log):
            raise KeyboardInterrupt

    with start(["until_cancelled", str(trace)]) as job, pytest.raises(CancelledError):
        job.result(interrupt)
    assert trace.read_text() == "cleaned up"
    lines = ["write", 2, "a line\n", 100]
    with start(lines, ["hang_deaf"]) as job, pytest.raises(CancelledError):
        job.result(interrupt)
    assert not is_running(job.pid)
