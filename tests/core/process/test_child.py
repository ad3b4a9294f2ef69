from __future__ import annotations

import ctypes
import fcntl
import inspect
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from onnx import parser

from dld_tui.core.process import child
from dld_tui.core.process.child import (
    Child,
    CrashError,
    LimitError,
    Limits,
    RefusedError,
    ask,
    compute,
    free_memory,
    has_memory_limit,
    has_news,
)
from tests.support.jobs import wait_until
from tests.support.known import known

pytestmark = pytest.mark.real_workers

# Native code that never returns, with the interpreter's lock held: no thread and no handler of a
# signal can run, as in a library that loops.
SPIN = (
    "import ctypes, signal; signal.signal(signal.SIGTERM, lambda *_: None);"
    " clock = ctypes.PyDLL(None).usleep;"
    " clock.argtypes = [ctypes.c_uint]; print('spins', flush=True)\n"
    "while True: clock(900_000)"
)
ANY = Limits(60, 4 << 30)


def sleep() -> bytes:
    time.sleep(900)
    return b""


def is_gone(pid: int) -> bool:
    """Tell whether a process that is not our child has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def are_gone(processes: list[int]) -> bool:
    return all(map(is_gone, processes))


def children_of(pid: int) -> set[int]:
    """Return what a process has started, and what that has started."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for number in map(int, task.read_text().split()):
            found |= {number} | children_of(number)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spin_tool.py").write_text(f"def main():\n{textwrap.indent(SPIN, '    ')}\n")
    (tmp_path / "spin.py").write_text(SPIN)
    return tmp_path


# Each starts a child and prints a line when that spins; `python` and `folder` are given.
KINDS = {
    "a child from a thread that ends": """
        from dld_tui.core.process.child import Child
        def start():
            global it
            it = Child([python, f"{folder}/spin.py"], stdout=subprocess.PIPE)
        thread = threading.Thread(target=start); thread.start(); thread.join()
        it.stdout.readline()
    """,
    "with what it has started": """
        from dld_tui.core.process.child import Child
        code = f"import subprocess, sys; subprocess.run([sys.executable, '{folder}/spin.py'])"
        it = Child([python, "-c", code], stdout=subprocess.PIPE)
        it.stdout.readline()
    """,
    "the worker of a job": """
        from dld_tui.targets.process import LocalTarget
        code = f"input(); exec(open('{folder}/spin.py').read())"
        job = LocalTarget([python, "-c", code]).start("any", {})
        for event in job.events(): break
    """,
    "a tool": """
        from dld_tui.backends.processes import run_tool
        sys.path.insert(0, folder)
        running = run_tool("spin_tool", [], None)
        next(running); next(running); next(running)
    """,
    "a fork of a server": """
        from dld_tui.backends.processes import ForkServer
        sys.path.insert(0, folder)
        server = ForkServer("spin_tool", [])
        running = server.run([], None)
        while len(open(f"/proc/{server.pid}/task/{server.pid}/children").read().split()) < 1:
            next(running)
    """,
    "a program of the user": """
        from dld_tui.backends.processes import run_program
        running = run_program([python, f"{folder}/spin.py"], Path(folder), 0)
        while type(next(running)).__name__ != "Log": pass
    """,
    "a command of the gate": """
        from dld_tui.core.compare.gate import time_command
        go(lambda: time_command(f"{python} {folder}/spin.py"))
    """,
    "something asked": """
        from dld_tui.core.process.child import ask
        go(lambda: ask([python, f"{folder}/spin.py"], 60))
    """,
    "the previewer": """
        from dld_tui.core.reading.preview import Previewer
        it = Previewer()
        it.preview(f"{folder}/spin.py", "model", lambda: False)
    """,
    "the arranger of a graph": """
        from dld_tui.core.model.graph.layout_process import LayoutProcess
        it = LayoutProcess()
    """,
    "the command of a connection": """
        from dld_tui.targets.ssh.route import Proxy
        it = Proxy([python, f"{folder}/spin.py"])
    """,
    "a fork that computes": """
        import ctypes
        from dld_tui.core.process.child import Limits, compute
        limits = Limits(900, 1 << 30)
        go(lambda: compute(lambda: ctypes.PyDLL(None).sleep(1000) and b"", limits), guarded=False)
    """,
}
PARENT = """
import json, os, subprocess, sys, threading, time
from pathlib import Path
from dld_tui.core.process import child
def go(call, guarded=True):
    before, groups = children_of(os.getpid()), len(child._guard._groups)
    threading.Thread(target=call, daemon=True).start()
    while children_of(os.getpid()) == before or len(child._guard._groups) < groups + guarded:
        time.sleep(0.01)
kept, known = [], set()
for kind, code in json.loads(sys.argv[2]).items():
    kept.append({**globals(), "python": sys.executable, "folder": sys.argv[1]})
    guarded = len(child._guard._groups)
    exec(code, kept[-1])
    started = children_of(os.getpid()) - known
    guarded = len(child._guard._groups) - guarded
    print(json.dumps([kind, [[*started], guarded]]), flush=True)
    known |= started
time.sleep(900)
"""


def test_nothing_outlives_a_parent_that_is_killed(folder: Path) -> None:
    kinds = {kind: textwrap.dedent(code) for kind, code in KINDS.items()}
    code = inspect.getsource(children_of) + PARENT
    command = [sys.executable, "-c", code, str(folder), json.dumps(kinds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        started = dict(json.loads(parent.stdout.readline() or "[0, 0]") for _ in KINDS)
        parent.kill()
    assert [*started] == [*KINDS]
    for kind, (processes, guarded) in started.items():
        assert processes, kind
        assert guarded == (kind != "a fork that computes"), kind
    began = time.monotonic()
    for kind, (processes, _) in started.items():
        wait_until(partial(are_gone, processes), f"the end of {kind}")
    assert time.monotonic() - began < 1.0 + os.getloadavg()[0] / 4


def test_a_killed_guard_is_replaced() -> None:
    first = Child(["sleep", "900"])
    guard = child._guard._process
    guard.kill()
    guard.wait()
    second = Child(["sleep", "900"])
    assert child._guard._process.poll() is None
    assert child._guard._groups >= {b"+%d\n" % first.pid, b"+%d\n" % second.pid}
    for one in (first, second):
        one.end()
    assert not child._guard._groups & {b"+%d\n" % first.pid, b"+%d\n" % second.pid}


def test_a_fork_keeps_no_guard_of_its_parent() -> None:
    with Child(["sleep", "900"]) as one:
        write = child._guard._write

        def look() -> bytes:
            try:
                os.fstat(write)
            except OSError:
                return b"closed"
            return b"open"

        os.fstat(write)
        assert compute(look, ANY) == b"closed"
        one.end()


def test_what_must_outlive_does(tmp_path: Path) -> None:
    code = (
        "import sys; from dld_tui.core.process.child import Child;"
        " print(Child(['sleep', '900'], stdout=-3, stderr=-3, outlives=True).pid)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    pid = int(done.stdout)
    assert not is_gone(pid)
    os.kill(pid, signal.SIGKILL)


def test_ending_asks_first_and_then_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    polite = Child([sys.executable, "-S", "-c", "import time; time.sleep(900)"])
    assert polite.end() == -signal.SIGTERM
    monkeypatch.setattr(child, "LEAVE_S", 0.1)
    deaf = Child(["sh", "-c", "trap '' TERM; echo; while :; do sleep 1; done"], stdout=-1)
    assert deaf.stdout is not None
    with deaf.stdout:
        deaf.stdout.read(1)
        assert deaf.end() == -signal.SIGKILL


def test_the_processor_time_of_a_child() -> None:
    code = "sum(range(3_000_000)); print(flush=True); input()"
    with Child([sys.executable, "-S", "-c", code], stdin=-1, stdout=-1) as one:
        assert one.stdout is not None
        one.stdout.read(1)
        assert 0.01 <= known(one.processor_seconds()) < 60
        one.end()
    assert one.processor_seconds() is None


def test_where_the_end_of_a_child_cannot_be_seen_without_reaping_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS."""
    monkeypatch.delattr(os, "waitid")
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    with Child(["cat"], stdin=-1) as one:
        assert one.stdin is not None
        assert not one.has_ended()
        with pytest.raises(subprocess.TimeoutExpired):
            one.wait(0.001)
        one.stdin.close()
        assert one.wait(60) == 0
    assert Child(["sh", "-c", "exit 3"]).wait() == 3


def test_what_is_left_of_a_group_is_killed() -> None:
    with Child(["sh", "-c", "sleep 900 & echo $!"], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        left = int(parent.stdout.readline())
        assert parent.wait() == 0
    wait_until(lambda: is_gone(left), "the end of what it had started")


@pytest.mark.broad
def test_the_limit_of_memory() -> None:
    code = (
        "from dld_tui.core.process.child import limit_memory; limit_memory({} << 20);"
        " b = bytearray(300 << 20)"
    )
    limited = Child([sys.executable, "-c", code.format(200)], stderr=subprocess.PIPE)
    _, errors = limited.communicate()
    assert limited.returncode == 1
    assert child.says_no_memory(errors.decode())
    assert Child([sys.executable, "-c", code.format(400)]).wait() == 0


def test_asking() -> None:
    answer = ask(["sh", "-c", "pwd; echo no >&2; exit 3"], 60)
    assert (answer.status, answer.output, answer.errors) == (3, "/\n", "no\n")
    with pytest.raises(subprocess.TimeoutExpired):
        ask(["sleep", "900"], 0.1)


def test_a_computation_gives_its_result_of_any_size() -> None:
    assert compute(lambda: b"%d" % has_memory_limit(), ANY) == b"1"
    data = os.urandom(5 << 20)
    assert compute(lambda: data, ANY) == data
    assert compute(lambda: b"", ANY) == b""


def test_the_system_ends_a_computation_that_its_parent_does_not() -> None:
    def limits() -> bytes:
        kinds = (resource.RLIMIT_CPU, resource.RLIMIT_CORE)
        return repr([resource.getrlimit(kind) for kind in kinds]).encode()

    assert compute(limits, Limits(3.4, 1 << 30)) == b"[(3, 4), (0, 0)]"
    assert compute(limits, Limits(0.1, 1 << 30)) == b"[(1, 2), (0, 0)]"


def test_a_computation_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> bytes:
        raise ValueError("ä no")

    def no_fork() -> int:
        raise BlockingIOError

    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as patched:
        patched.setattr("os.fork", no_fork)
        with pytest.raises(BlockingIOError):
            compute(fail, ANY)
    assert os.listdir("/proc/self/fd") == before
    with pytest.raises(RefusedError, match=r"^ä no$"):
        compute(fail, ANY)
    with pytest.raises(CrashError, match=r"^it ends the process \(SIGSEGV\)$"):
        compute(lambda: ctypes.string_at(0), ANY)


@pytest.mark.broad
def test_a_computation_ends_at_its_limits() -> None:
    def spin() -> bytes:
        while True:
            sum(range(1_000_000))

    began = time.process_time()
    with pytest.raises(LimitError, match="it takes over 1 s of processor time") as caught:
        compute(spin, Limits(1, 1 << 30))
    assert caught.value.what == "time"
    assert time.process_time() - began < 0.5  # it waits, and does not spin
    with pytest.raises(LimitError, match=r"it takes over 0\.3 GB") as caught:
        compute(lambda: bytes(400 << 20), Limits(60, 300 << 20))
    assert caught.value.what == "memory"
    assert compute(lambda: b"%d" % len(bytes(200 << 20)), Limits(60, 300 << 20)) == b"209715200"
    with pytest.raises(LimitError) as caught:
        compute(sleep, Limits(0.02, 1 << 30))
    assert caught.value.what == "time"


def test_a_computation_that_waits_for_ever_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait() -> bytes:
        signal.pause()
        return b""

    monkeypatch.setattr(child, "IDLE_S", 0.3)
    with pytest.raises(LimitError):
        compute(wait, ANY)


def test_a_computation_goes_on_while_it_uses_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wait() -> bytes:
        time.sleep(0.1)
        return b"done"

    monkeypatch.setattr(child, "IDLE_S", 0.01)
    for used in (itertools.count(), itertools.repeat(None)):
        monkeypatch.setattr(child, "_processor_seconds", lambda pid, used=used: next(used))
        assert compute(wait, ANY) == b"done"
    monkeypatch.setattr(child, "_processor_seconds", lambda pid: 1.0)
    with pytest.raises(LimitError):
        compute(wait, ANY)


@pytest.mark.parametrize("fail", [lambda: ctypes.string_at(0), signal.pause])
def test_a_fork_that_fails_by_itself_is_tried_again(
    fail: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a lock that another thread held when it was forked."""
    first = tmp_path / "first"

    def answer() -> bytes:
        if not first.exists():
            first.touch()
            fail()
        return b"answer"

    monkeypatch.setattr(child, "IDLE_S", 0.3)
    assert compute(answer, ANY) == b"answer"


def test_a_limit_leaves_room_for_threads() -> None:
    ort = pytest.importorskip("onnxruntime")
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Abs (x) }'
    )

    def load() -> bytes:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 64
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return b"loaded"

    assert compute(load, Limits(60, 256 << 20)) == b"loaded"


def test_a_signal_ends_a_computation() -> None:
    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    def signal_and_sleep() -> bytes:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(parent, signal.SIGUSR1))
        signal.setitimer(signal.ITIMER_REAL, 0.2)  # hooks behind a fork would swallow it
        return sleep()

    parent, had = os.getpid(), children_of(os.getpid())
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(Stop):
            compute(signal_and_sleep, ANY)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert children_of(os.getpid()) == had


def test_free_memory(tmp_path: Path) -> None:
    assert free_memory(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    4000 kB\n")
    assert free_memory(tmp_path) == 4000 << 10
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    assert free_memory(tmp_path) == 4000 << 10
    (group / "memory.max").write_text("3000000\n")
    (group / "memory.current").write_text("2500000\n")
    (group / "memory.stat").write_text("anon 5\ninactive_file 100000\n")
    assert free_memory(tmp_path) == 600_000
    assert free_memory() is not None


def test_descriptors_of_a_process_with_many_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2000, hard)), hard))
    read, write = os.pipe()
    high = fcntl.fcntl(read, fcntl.F_DUPFD, 1024)
    try:
        assert not has_news(high, 0)
        os.write(write, b"x")
        assert has_news(high, 0)
    finally:
        for descriptor in (read, write, high):
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
