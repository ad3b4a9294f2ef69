"""An SSH server in the process of the tests, whose commands of Python are forks of this process.

What starts Python takes a tenth of a second and more on a machine that has nothing imported; an
agent, a supervisor and a worker are three such. A fork has all of it, and runs what the test has
changed in this process. Other commands go to the shell, as with the servers of
:mod:`tests.support.sshd`; so do those of Python when :attr:`ForkingSshd.forks` is false.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import gc
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import asyncssh

from tests.support import fork_server, python_sshd
from tests.support.sshd import Sshd

_BY_SH = "/bin/sh -c "
_OCTAL = re.compile(r"\\0([0-7]{3})")
_FLAGS = {"-I", "-S"}
_FREE = 100
"""Descriptors from here on are not those of standard streams."""
_ROUNDS = 5
_START: Any = subprocess.Popen._execute_child  # type: ignore[attr-defined]


class ForkingSshd(Sshd):
    """A server on a thread of this process."""

    forks = True

    def start(self) -> ForkingSshd:
        self._ended = threading.Event()
        self._serving: set[asyncio.Task[Any]] = set()
        """Kept from the collector: one whose connection was cut may wait for good."""
        self._thread = threading.Thread(target=self._run, name="sshd", daemon=True)
        self._thread.start()
        while not self._answers():
            assert self._thread.is_alive(), "the server does not start"
            self._ended.wait(0.01)
        return self

    def _end(self, number: signal.Signals) -> None:
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)

    def _run(self) -> None:
        async def listen() -> None:
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.ensure_future(python_sshd.listen(self._config(), self._serve))
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            for _ in range(_ROUNDS):  # the end of one command can begin the end of another
                if others := asyncio.all_tasks() - {asyncio.current_task()}:
                    for one in others:
                        one.cancel()
                    await asyncio.wait(others, timeout=1)
                await asyncio.sleep(0)  # pipes that were closed are let go of now

        asyncio.run(listen())

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes], home: str) -> None:
        if (task := asyncio.current_task()) is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        words = _words(process.command or "") if self.forks else None
        if words is None or words[0] != sys.executable:
            await python_sshd.serve(process, home)
            return
        (given, stdin), (stdout, printed), (stderr, said) = (os.pipe() for _ in range(3))
        pid = _fork(words[1:], (given, printed, said), python_sshd.environment(process, home), home)
        for end in (given, printed, said):
            os.close(end)
        ended = asyncio.ensure_future(_end(pid))
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(ended.cancel)
            writer = await _writer(stdin, stack)
            out, errors = [await _reader(one, stack) for one in (stdout, stderr)]
            await python_sshd.attend(process, writer, out, errors, ended)


async def _reader(descriptor: int, stack: contextlib.AsyncExitStack) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    stack.callback(transport.close)
    return reader


async def _writer(descriptor: int, stack: contextlib.AsyncExitStack) -> asyncio.StreamWriter:
    running = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await running.connect_write_pipe(
        lambda: protocol, os.fdopen(descriptor, "wb", 0)
    )
    stack.callback(transport.close)
    return asyncio.StreamWriter(transport, protocol, None, running)


async def _end(pid: int) -> int:
    ended = asyncio.Event()
    descriptor = os.pidfd_open(pid)
    asyncio.get_running_loop().add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _words(command: str) -> list[str] | None:
    """Return the words of a command that a shell would run as they are."""
    if command.startswith(_BY_SH):
        command = _OCTAL.sub(lambda match: chr(int(match[1], 8)), shlex.split(command)[-1])
    words = shlex.split(command)
    return _code(words) and words


def _code(words: Sequence[str]) -> list[str] | None:
    """Return the code and the arguments of a command of Python, or None if it has no code."""
    rest = [word for word in words[1:4] if word not in _FLAGS] + list(words[4:])
    return rest[1:] if words and words[0] == sys.executable and rest[:1] == ["-c"] else None


def _fork(
    words: Sequence[str],
    descriptors: Sequence[int],
    environment: Mapping[str, str],
    folder: str,
    passed: Sequence[int] = (),
    in_new_session: bool = True,
) -> int:
    """Run ``python WORDS`` in a fork; return its process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads
        pid = os.fork()
    if pid:
        return pid
    atexit._clear()
    gc.freeze()  # an object that is dropped must not close a descriptor of another
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    own = [fcntl.fcntl(one, fcntl.F_DUPFD, _FREE) for one in descriptors]
    for one in map(int, os.listdir("/proc/self/fd")):
        if one not in (*own, *passed):
            with contextlib.suppress(OSError):
                os.close(one)
    subprocess.Popen._execute_child = _start  # type: ignore[attr-defined]
    code, *arguments = _code([sys.executable, *words]) or [""]
    fork_server.run(
        {
            "code": code, "arguments": ["-c", *arguments], "environment": environment,
            "folder": folder, "in_new_session": in_new_session,
        },
        own, parent=-1,
    )  # fmt: skip


def _start(self: Any, args: Any, executable: Any, *rest: Any) -> None:
    """Start a process: Python, and the script of a job that only starts it, as a fork."""
    _, _, passed, folder, environment = rest[:5]
    environment, words = dict(os.environ if environment is None else environment), args
    if args[0] == "/bin/sh" and args[-1].endswith("/run.sh"):
        words = shlex.split(Path(args[-1]).read_text())
        while words.pop(0) == "export":
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
    if _code(words) is None:
        _START(self, args, executable, *rest)
        return
    pipes, in_new_session = rest[8:14], rest[19]
    ends = [own if end < 0 else end for own, end in enumerate((pipes[0], pipes[3], pipes[5]))]
    folder = os.fspath(folder or os.getcwd())
    self.pid = _fork(words[1:], ends, environment, folder, passed, in_new_session)
    self._child_created = True
    self._close_pipe_fds(*pipes)
