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
from dld_tui.targets.process import Delays, LocalTarget
from tests.support.jobs import FAST, PATIENT, read, start, start_program, texts, wait_until

pytestmark = pytest.mark.real_workers


def state_of(pid: int) -> str:
    """Return the state letter of a process, or nothing when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_gone(pid: int) -> bool:
    """Tell whether a process that may not be our child has ended."""
    return state_of(pid) in ("", "Z")


def cancel_when(ready: threading.Event, action: Callable[[], None]) -> threading.Thread:
    """Do something from another thread as soon as the reader says so."""

    def wait() -> None:
        assert ready.wait(60)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_events_come_in_order_and_the_result_is_the_last() -> None:
    events = read(
        start(
            ["event", '{"event": "progress", "done": 1, "total": 2}'],
            ["event", '{"event": "log", "text": "é \\u001b[0m"}'],
            ["finish", {"answer": 42}],
        )
    )

    assert events == [
        Started("fake", "Fake"),
        Progress(1, 2),
        Log("é \x1b[0m"),
        Finished({"answer": 42}),
    ]


def test_what_a_library_prints_becomes_a_log_and_breaks_nothing() -> None:
    events = read(
        start(
            ["write", 1, "native to stdout\n"],
            ["write", 2, "native to stderr\n"],
            ["write", 1, '{"event": "finished", "result": {"forged": 1}}\n'],
            ["print", "python print\n"],
            ["write", 2, "\x1b[0;93m2026-11-21 [W:onnxruntime:, x.cc:1] careful\x1b[m\n"],
            ["write", 2, "10%\r20%\r30%\n\n"],
            ["finish", {"real": 1}],
        )
    )

    assert events[-1] == Finished({"real": 1})
    logs = texts(events)
    assert set(logs) == {
        "native to stdout",
        "native to stderr",
        '{"event": "finished", "result": {"forged": 1}}',
        "python print",
        "2026-11-21 [W:onnxruntime:, x.cc:1] careful",
        "30%",
    }
    levels = {event.text: event.level for event in events if isinstance(event, Log)}
    assert levels["2026-11-21 [W:onnxruntime:, x.cc:1] careful"] == "warning"
    assert levels["native to stderr"] == "info"


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (["kill", signal.SIGKILL], "SIGKILL"),
        (["kill", signal.SIGABRT], "SIGABRT"),
        (["kill", signal.SIGRTMIN + 1], f"signal {signal.SIGRTMIN + 1}"),
        (["crash"], "SIGSEGV"),
        (["exit", 3], "exit status 3"),
        (["exit", 0], "without a result"),
    ],
)
def test_a_dead_worker_is_a_failure_that_says_how_it_died(step: list[object], message: str) -> None:
    events = read(start(["write", 2, "last words\n"], step))

    failure = events[-1]
    assert isinstance(failure, Failed)
    assert message in failure.message
    assert failure.status == 5
    assert "last words" in (failure.details or "")


def test_a_crash_shows_the_python_stack_of_the_native_call() -> None:
    failure = read(start(["crash"]))[-1]

    assert isinstance(failure, Failed)
    assert "fake_activity.py" in (failure.details or "")


def test_killed_from_outside_while_running() -> None:
    job = start(["hang"])
    with job:
        for event in job.events():
            if event == Log("hanging"):
                os.kill(job.pid, signal.SIGKILL)
    assert isinstance(event, Failed)
    assert "memory" in (event.hint or "")


def test_cancel_between_two_events_lets_the_activity_clean_up(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with start(["until_cancelled", str(trace)]) as job:
        seen: list[Event] = []
        for event in job.events():
            seen.append(event)
            if isinstance(event, Progress) and event.done == 3:
                job.cancel()
                job.cancel()

    assert seen[-1] == Cancelled()
    assert texts(seen) == []  # asking was enough
    assert trace.read_text() == "cleaned up"


def test_sigterm_breaks_off_a_python_call_and_cleans_up(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with start(["hang_with_clean_up", str(trace)], delays=Delays(0.05, 60, 60)) as job:
        events: list[Event] = []
        for event in job.events():
            events.append(event)
            if event == Log("hanging"):
                job.cancel()

    assert events[-1] == Cancelled()
    assert texts(events)[-1] == "sent SIGTERM to the job"
    assert trace.read_text() == "cleaned up"


def test_sigkill_ends_what_ignores_sigterm() -> None:
    with start(["hang_deaf"], delays=FAST) as job:
        events: list[Event] = []
        for event in job.events():
            events.append(event)
            if event == Log("hanging"):
                job.cancel()

    assert events[-1] == Cancelled()
    assert texts(events)[-2:] == ["sent SIGTERM to the job", "sent SIGKILL to the job"]


def test_cancel_from_another_thread_wakes_a_blocked_reader() -> None:
    job = start(["hang"], delays=FAST)
    hanging = threading.Event()
    timer = cancel_when(hanging, job.cancel)
    for event in job.events():
        if event == Log("hanging"):
            hanging.set()
    timer.join()

    assert event == Cancelled()


def test_cancel_before_anything_was_read() -> None:
    job = start(["until_cancelled", os.devnull])
    job.cancel()

    assert job.wait() == Cancelled()


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

    assert is_gone(job.pid)
    assert list(job.events())[-1] == Cancelled()


def test_close_from_another_thread_ends_the_iteration() -> None:
    job = start(["hang_deaf"])
    hanging = threading.Event()
    closer = cancel_when(hanging, job.close)
    for event in job.events():
        if event == Log("hanging"):
            hanging.set()
    closer.join()

    assert event == Cancelled()


def test_a_worker_that_does_not_leave_after_its_result_is_killed() -> None:
    program = (
        "import time;"
        'print(\'{"event": "finished", "result": {"a": 1}}\', flush=True); time.sleep(60)'
    )
    events = read(start_program(program, FAST))

    assert events == [Finished({"a": 1})]


def test_a_worker_that_closes_its_outputs_does_not_hang_the_reader() -> None:
    failure = read(start(["close_outputs"], delays=FAST))[-1]

    assert isinstance(failure, Failed)
    assert "SIGKILL" in failure.message


def test_children_of_the_worker_do_not_outlive_it_nor_hold_the_reader(tmp_path: Path) -> None:
    trace = tmp_path / "pid"
    events = read(start(["child", 36_000, str(trace)], ["finish"]))  # it does not wait for that

    assert events[-1] == Finished({})
    wait_until(lambda: is_gone(int(trace.read_text())), "the grandchild is gone")


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
        assert state_of(job.pid) == ""  # not even a zombie

    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert threading.active_count() <= threads
    assert folders
    assert not any(Path(folder).exists() for folder in folders)


def test_the_temporary_folder_goes_even_when_the_worker_is_killed() -> None:
    job = start(["kill", signal.SIGKILL])
    folder = Path(job._folder)
    assert folder.is_dir()
    read(job)
    assert not folder.exists()


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

    wait_until(lambda: is_gone(pid), "the worker is gone")
    assert trace.read_text() == "cleaned up"


def test_result_returns_or_raises_what_the_job_says() -> None:
    seen: list[Event] = []
    with start(["finish", {"a": 1}]) as job:
        assert job.result(seen.append) == {"a": 1}
    assert seen == [Started("fake", "Fake")]
    with start(["raise", "activity", "no"]) as job, pytest.raises(ActivityError, match="no"):
        job.result()


def test_ctrl_c_in_result_cancels_and_still_cleans_up(tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    def interrupt(event: Event) -> None:
        if isinstance(event, Progress) and event.done == 2:
            raise KeyboardInterrupt

    with start(["until_cancelled", str(trace)]) as job, pytest.raises(CancelledError):
        job.result(interrupt)
    assert trace.read_text() == "cleaned up"


def test_a_second_ctrl_c_ends_the_job_at_once() -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, Log):
            raise KeyboardInterrupt

    steps = (["write", 2, "a line\n", 100], ["hang_deaf"])
    with start(*steps) as job, pytest.raises(CancelledError):
        job.result(interrupt)
    assert is_gone(job.pid)


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
