"""Child processes: each is started, limited and ended here, and dies with its parent.

A child leads its own process group. A *guard*, one small process for each process that has
children, reads a pipe whose other end only the parent has. When the parent is gone, however it
ended, the guard ends the groups of its children: SIGTERM, then SIGKILL. So it does not matter
whether a child is in native code that holds the interpreter, whether it is a program of somebody
else, what it has started, or which thread has started it; and no system call of one kernel is
needed. (The kernel's own PR_SET_PDEATHSIG kills no grandchildren, is lost in programs with other
rights, and comes when only the *thread* that started the child has ended.) A fork of this process
that computes one thing is waited for by the thread that made it: there it is right, and used.

Needs nothing but Python, as it also runs on targets.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final, Literal, NoReturn

from dld_tui.core.dataclass import dataclass

LEAVE_S = 2.0
"""From SIGTERM until SIGKILL, in seconds."""
_LOOK_S = 0.05
_CHUNK = 1 << 20
_PR_SET_PDEATHSIG = 1
_MEMORY = re.compile(
    r"MemoryError|bad_alloc|[Oo]ut of memory|llocate memory|Memory allocation still failed"
    r"|can't start new thread|pthread_create failed"
)
"""What libraries say where they get no more memory; the stack of a thread is memory, too."""


class Child(subprocess.Popen[bytes]):
    """A child process in a group of its own, which ends with this process.

    Signals go to the whole group, and what is left of it is killed when the child has ended.

    Args:
        command: The program and its arguments.
        stdin: As for `Popen`; by default nothing can be read.
        stdout: As for `Popen`.
        stderr: As for `Popen`.
        cwd: The working directory; the current one by default.
        env: The environment; that of this process by default.
        pass_fds: Descriptors that it gets, too.
        outlives: It does not end with this process. It must end by itself.

    Raises:
        OSError: It cannot be started.
        ValueError: The command cannot be one.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: int | IO[bytes] | None = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = None,
        stderr: int | IO[bytes] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        outlives: bool = False,
    ) -> None:
        self._end_lock = threading.Lock()
        self._is_guarded = self._is_over = False
        environment = {**(os.environ if env is None else env)}
        environment.pop(_MARK, None)
        if not outlives:
            _guard.open()  # before it: so there is no moment without it
            environment[_MARK] = _guard.mark
        super().__init__(
            command,
            bufsize=0,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            env=environment,
            pass_fds=pass_fds,
            start_new_session=True,
        )
        if not outlives:
            _guard.tell(b"+%d\n" % self.pid)
            self._is_guarded = True

    def processor_seconds(self) -> float | None:
        """Return the processor time that it has used; None if it is not known."""
        return _processor_seconds(self.pid)

    def has_ended(self) -> bool:
        """Return whether it has ended, without reaping it: its group keeps its number."""
        return self.returncode is not None or self._waitid(os.WNOHANG)

    def poll(self) -> int | None:
        """Return how it ended; None if it runs."""
        if not self._is_over and self.has_ended():
            self._reap()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return how it ended.

        Raises:
            subprocess.TimeoutExpired: It runs longer than `timeout` seconds.
        """
        if not self._is_over:
            self._await(timeout)
            self._reap()
        return super().wait()

    def send_signal(self, sig: int) -> None:
        """Send a signal to the group, unless the child has ended."""
        with self._end_lock:
            if not self._is_over:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, sig)

    def end(self, leave_s: float | None = None) -> int:
        """End it with what it has started: SIGTERM, and SIGKILL after a while.

        Args:
            leave_s: The while in seconds; :data:`LEAVE_S` by default.

        Returns:
            How it ended, as `returncode`.
        """
        if self.poll() is None:
            self.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.wait(LEAVE_S if leave_s is None else leave_s)
            self.kill()
        return self.wait()

    def close(self) -> None:
        """Kill it, whatever it is doing, and close its pipes; does not wait for long."""
        self.kill()
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # on a drive that does not answer
            self.wait(_LOOK_S)

    def _waitid(self, how: int) -> bool:
        if not hasattr(os, "waitid"):  # macOS: it is reaped at once
            return super().poll() is not None if how else super().wait() is not None
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | how) is not None
        except ChildProcessError:  # another thread has reaped it
            return True

    def _await(self, timeout: float | None) -> None:
        if timeout is None:
            self._waitid(0)
            return
        until = time.monotonic() + timeout
        descriptor = -1
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # an old kernel, or a sandbox that forbids it
                descriptor = os.pidfd_open(self.pid)
        try:
            while not self.has_ended():
                rest = until - time.monotonic()
                if rest <= 0:
                    raise subprocess.TimeoutExpired(self.args, timeout)
                if descriptor < 0:
                    time.sleep(min(rest, _LOOK_S))
                else:
                    has_news(descriptor, rest)
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _reap(self) -> None:
        """Kill what is left of the group of a child that has ended, and forget it."""
        with self._end_lock:
            if not self._is_over:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
                if self._is_guarded:
                    _guard.tell(b"-%d\n" % self.pid)
                super().wait()
                self._is_over = True


def _processor_seconds(pid: int) -> float | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        times = map(int, text.rpartition(")")[2].split()[11:15])
        return sum(times) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class Answer:
    """What a program said that was asked something."""

    status: int
    """As :attr:`subprocess.Popen.returncode`."""
    output: str
    """Untrusted text."""
    errors: str
    """Untrusted text."""


def ask(
    command: Sequence[str], limit_s: float, *, cwd: str | os.PathLike[str] | None = "/"
) -> Answer:
    """Run a program and return what it says; its standard input is empty.

    Args:
        command: The program and its arguments.
        limit_s: The time limit in seconds; the program is killed then.
        cwd: The working directory. By default one in which no module lies around; None is the
            current one.

    Raises:
        OSError: It cannot be started.
        subprocess.TimeoutExpired: It takes longer.
    """
    child = Child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd)
    try:
        output, errors = child.communicate(timeout=limit_s)
    finally:
        child.close()
    return Answer(
        child.returncode, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace")
    )


@dataclass(frozen=True)
class ProcessEnd:
    """How a process ended."""

    status: int
    """Its exit status; the negative number of a signal that ended it."""
    seconds: float
    timed_out: bool

    @property
    def crashed(self) -> str | None:
        """The signal that ended it; None if it exited or was stopped."""
        if self.timed_out or self.status >= 0:
            return None
        return signal_name(-self.status)


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def says_no_memory(text: str) -> bool:
    """Return whether the output of a process says that it got no more memory."""
    return _MEMORY.search(text) is not None


# A group whose leader's number belongs to another process by now is left alone. When the parent is
# gone, the groups get a moment for SIGTERM, so that they can remove their temporary files. A child
# that the parent had no time to tell of is found by its environment, where there is /proc.
_GUARD_CODE: Final = """
import os, signal, sys, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
mark = sys.argv[1].encode()
groups = {}
def read(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""
def birth(pid):
    return read(pid, "stat").rpartition(b")")[2].split()[19:20]
def is_alive(pid):
    return read(pid, "stat").rpartition(b")")[2].split()[:1] not in ([], [b"Z"])
for line in sys.stdin.buffer:
    pid = int(line[1:])
    if line[:1] == b"+":
        groups[pid] = birth(pid)
    else:
        groups.pop(pid, None)
def end(signal):
    left = False
    for pid, born in groups.items():
        if birth(pid) in ([], born):
            try:
                os.killpg(pid, signal)
                left = True
            except OSError:
                pass
    for pid in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if pid.isdigit() and mark in read(pid, "environ") and is_alive(pid):
            try:
                os.kill(int(pid), signal)
                left = True
            except OSError:
                pass
    return left
if end(signal.SIGTERM):
    until = time.monotonic() + 0.4
    while time.monotonic() < until and end(0):
        time.sleep(0.02)
end(signal.SIGKILL)
time.sleep(0.1)
end(signal.SIGKILL)
"""
_MARK: Final = "DLD_PARENT"
"""The variable that marks the children of a process."""


class _Guard:
    """The guard of this process, started with its first child."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Know of no guard: in a fork of a process that has one."""
        self._lock = threading.Lock()
        if (write := getattr(self, "_write", -1)) >= 0:
            os.close(write)
        self._write = -1
        self._groups: set[bytes] = set()
        self.mark = f"{os.getpid()}-{os.urandom(8).hex()}"
        """What the environment of the children has."""

    def open(self) -> None:
        """Start the guard, if there is none.

        Raises:
            OSError: No process can be started.
        """
        with self._lock:
            if self._write < 0:
                self._start()

    def tell(self, line: bytes) -> None:
        """Tell of a child that was started, or that is over."""
        with self._lock:
            if line[:1] == b"+":
                self._groups.add(line)
            else:
                self._groups.discard(b"+" + line[1:])
            try:
                os.write(self._write, line)
            except OSError:  # somebody has killed it
                os.close(self._write)
                self._write = -1
                with contextlib.suppress(OSError):
                    self._start()

    def _start(self) -> None:
        read, write = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _GUARD_CODE, f"{_MARK}={self.mark}"],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: text for name, text in os.environ.items() if name != _MARK},
                start_new_session=True,  # a signal to the group of this process is not for it
            )
        except BaseException:
            os.close(write)
            raise
        finally:
            os.close(read)
        self._write = write
        for line in self._groups:
            os.write(write, line)


_guard = _Guard()
os.register_at_fork(after_in_child=_guard.forget)


class LimitError(Exception):
    """A fork was ended at its limit; the text is a phrase, such as ``it takes over 4 s``."""

    def __init__(self, what: str, limit: float) -> None:
        most = f"{limit:.3g} s of processor time" if what == "time" else f"{limit / 1e9:.1f} GB"
        super().__init__(f"it takes over {most}")
        self.what = what
        """``time`` or ``memory``."""


class _StallError(LimitError):
    """A fork waited for something and used no processor time."""


class CrashError(Exception):
    """A fork ended without a result."""


class RefusedError(Exception):
    """The function of a fork raised an exception; the text is that of the exception."""


@dataclass(frozen=True)
class Limits:
    """What a computation may take."""

    seconds: float
    """Of processor time, so that a loaded machine ends nothing; ten times as much by the clock.
    A computation that waits for something, and uses none, ends after a few seconds."""
    memory: int
    """Bytes, beyond those that this process has."""


_READY, _NO_MEMORY, _RAISED = b"=", b"m", b"!"


def compute(function: Callable[[], bytes], limits: Limits) -> bytes:
    """Return what a function returns, which runs in a fork of this process.

    The fork has only this thread. A signal whose handler raises in this thread ends it, too.
    A fork that crashes, or waits and uses no processor time, is believed the second time only:
    what another thread held when it was forked, such as a lock, can be the cause as well.

    Raises:
        LimitError: It reached a limit.
        CrashError: It ended the process.
        RefusedError: It raised an exception.
        OSError: No process can be started.
    """
    try:
        return _compute_once(function, limits)
    except (CrashError, _StallError):
        return _compute_once(function, limits)


def _compute_once(function: Callable[[], bytes], limits: Limits) -> bytes:
    parent = os.getpid()
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Of threads that may hold a lock: the functions of native code that run here take none.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            pid = os.fork()
        except OSError:
            os.close(read)
            os.close(write)
            raise
    if not pid:
        os.close(read)
        _serve(function, limits, parent, write)
    os.close(write)
    status = None
    try:
        reply, end = _reply(read, pid, limits.seconds)
        if end == "closed":
            status = os.waitpid(pid, 0)[1]
    finally:
        os.close(read)
        if status is None:
            os.kill(pid, signal.SIGKILL)
            status = os.waitpid(pid, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    if end == "stalled":
        raise _StallError("time", limits.seconds)
    if end == "late" or -code == signal.SIGXCPU:
        raise LimitError("time", limits.seconds)
    kind, data = reply[:1], reply[1:]
    if kind == _NO_MEMORY:
        raise LimitError("memory", limits.memory)
    if kind == _READY and code == 0:
        return bytes(data)
    if kind == _RAISED:
        raise RefusedError(data.decode("utf-8", "replace"))
    how = signal_name(-code) if code < 0 else f"exit status {code}"
    raise CrashError(f"it ends the process ({how})")


def has_news(descriptor: int, seconds: float) -> bool:
    """Wait until a descriptor can be read, or its other end is closed; return whether it is so.

    ``select`` takes none above 1,023, which a process with many open models has.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


IDLE_S = 5.0
"""So long a fork may use no processor time: a library that gets no thread may wait for ever."""
_LOOKS = 10
"""How often it is looked at in that time: counted, as this process may be stopped, too."""


def _reply(
    read: int, pid: int, seconds: float
) -> tuple[bytearray, Literal["closed", "late", "stalled"]]:
    """Return what comes from a fork, and how that ended."""
    until = time.monotonic() + 10 * seconds
    reply = bytearray()
    used, idle = None, 0
    while (rest := until - time.monotonic()) > 0:
        if idle == _LOOKS:
            return reply, "stalled"
        if has_news(read, min(rest, IDLE_S / _LOOKS)):
            part = os.read(read, _CHUNK)
            if not part:
                return reply, "closed"
            reply += part
            idle = 0
            continue
        before, used = used, _processor_seconds(pid)
        idle = idle + 1 if used is not None and used == before else 0
    return reply, "late"


def _serve(function: Callable[[], bytes], limits: Limits, parent: int, write: int) -> NoReturn:
    """Compute in the fork, write the result, and leave without any clean-up."""
    try:
        die_with(parent)
        faulthandler.disable()  # the caller tells of a crash
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU):
            signal.signal(number, signal.SIG_DFL)
        seconds = max(1, round(limits.seconds))
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit_data(limits.memory)
        try:
            reply = _READY + function()
            if len(reply) > max(_CHUNK, limits.memory // 8):  # more than the caller can take
                reply = _NO_MEMORY
        except MemoryError:
            reply = _NO_MEMORY
        except BaseException as error:  # noqa: BLE001 - the seam: its text reaches the caller
            text = str(error)
            is_full = says_no_memory(text)
            reply = _NO_MEMORY if is_full else _RAISED + text.encode("utf-8", "replace")
        view = memoryview(reply)
        while view:
            view = view[os.write(write, view) :]
    finally:
        os._exit(0)


def die_with(parent: int) -> None:
    """Let the kernel kill this fork when the thread that has made it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before that
        os._exit(1)


def is_child() -> bool:
    """Return whether this process is a :class:`Child`, which may limit itself."""
    return _MARK in os.environ


def limit_memory(most: int) -> None:
    """Limit the memory of this process, if it is a child, beyond what it has.

    Libraries raise an error then, which may name a node, before the system kills something. Files
    that it maps do not count. Not for a process that uses a GPU: its driver reserves more than it
    uses.

    Args:
        most: Bytes.
    """
    if is_child():
        _limit_data(most)


def has_memory_limit() -> bool:
    """Return whether the memory of this process is limited."""
    return resource.getrlimit(resource.RLIMIT_DATA)[0] != resource.RLIM_INFINITY


def _limit_data(memory: int) -> None:
    """Limit what this process may write to, beyond what it has.

    The stacks of threads count by their size, of which they use little, and libraries start one
    thread for each processor. So stacks get small, and are not counted.
    """
    count = os.cpu_count() or 1
    _shrink_stacks()
    # Only for NumPy that is loaded later: it reserves a buffer for each of these threads.
    threads = str(min(max(memory // (8 * _BLAS_BUFFER), 1), count))
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, threads)
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        most = pages * os.sysconf("SC_PAGE_SIZE") + memory + _POOLS * count * _STACK
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


_STACK, _OWN_STACK = 2 << 20, 16 << 20
"""Bytes of the stack of a thread of a library, and of one of Python, which may recurse deeply."""
_POOLS = 4
"""Sessions that have a thread for each processor at the same time."""
_BLAS_BUFFER = 32 << 20


def _shrink_stacks() -> None:
    """Let threads that libraries start have small stacks; with the GNU C library."""
    library = ctypes.CDLL(None)
    attributes = ctypes.create_string_buffer(256)  # more than pthread_attr_t takes
    if not hasattr(library, "pthread_setattr_default_np"):
        return
    if not library.pthread_getattr_default_np(attributes):
        library.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK))
        library.pthread_setattr_default_np(attributes)
        threading.stack_size(_OWN_STACK)


_CGROUP = Path("/sys/fs/cgroup")


def free_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that programs can still have; None if it is not known.

    That is what the system has available, and no more than a container may have.
    """
    limits = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = (root / "proc/meminfo").read_text(encoding="ascii")
        limits.append(1024 * int(text.split("MemAvailable:")[1].split()[0]))
    group = root / _CGROUP.relative_to("/")
    with contextlib.suppress(OSError, ValueError):  # "max", or none
        most = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
        cache = re.search(
            r"^inactive_file (\d+)", (group / "memory.stat").read_text(encoding="ascii"), re.M
        )
        limits.append(max(0, most - used + (int(cache[1]) if cache else 0)))
    return min(limits, default=None)
