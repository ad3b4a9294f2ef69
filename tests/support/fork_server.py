"""Workers of jobs without what Python takes to start and to import: 0.4 to 0.6 s each.

A process of its own has imported what workers import and nothing else. It forks the workers that
tests start, with the pipes, the environment and the folder that each would have had, and they
become children of the test's process, so that all that watches them is as ever. Tests of the
process itself, those marked ``real_workers``, start workers as users do; so does every test
whose environment or module path could change what is imported.

What a shell calls ``dld`` and ``python FILE`` is forked in the same way (:class:`Programs`), and
what that starts, too.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import pytest

BOOTSTRAP = "import sys; sys.path[:] = sys.argv.pop().split("
"""How the code of a worker begins; its last argument is the module path."""

PASSES = 10
"""As many are timed of the result of a conversion: how long they take is not tested."""
_PROGRAM = "dld_tui.__main__"
"""A module that starts workers in its turn."""
_AT_START = ("LD_", "MALLOC_", "OMP_", "ORT_", "PYTHON")
"""Variables that Python or a library reads once, while it starts."""
_CHILD_SUBREAPER = 36
_LARGEST = 1 << 20
_IMPORTED = (
    "numpy", "onnx", "onnx.shape_inference", "onnxruntime", "dld_tui.activities.worker",
    "onnxruntime.quantization.matmul_nbits_quantizer", "onnxslim",  # they import sympy: 0.4 s
    "onnxruntime.transformers.float16", "polygraphy.backend.onnx", "onnx_graphsurgeon",
    "polygraphy.tools",
)  # fmt: skip
_ROOMS = ("activities", "backends", "core")
_START = (
    "import sys; sys.path[:] = sys.argv[2].split('\\n');"
    " from tests.support import fork_server; fork_server.{}(int(sys.argv[1]))"
)
_CALL = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(sys.argv[1])
    asked = {"words": sys.argv[2:], "environment": dict(os.environ), "folder": os.getcwd()}
    socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
    sys.exit(int(server.recv(16)))
"""


def python(code: str, *arguments: object) -> list[str]:
    """Return the command of a Python that is forked as a worker is, with the imports done."""
    given = map(str, arguments)
    return [sys.executable, "-c", f"{BOOTSTRAP}'\\n')\n{code}", *given, "\n".join(sys.path)]


class ForkServer:
    """The process that forks, started when it is first needed."""

    def __init__(self) -> None:
        self._path = list(sys.path)
        self._environment: dict[str, str] | None = None
        self._socket: socket.socket | None = None
        self._lock = threading.RLock()
        self._modules: set[str] = set()

    def learn(self) -> None:
        """Take the environment of a test for the usual one; that of pytest may have more."""
        if self._environment is None:
            self._environment = _at_start(os.environ)

    def takes(self, command: Any, environment: Mapping[str, str]) -> bool:
        """Return whether a command is that of a worker that imports what this has imported."""
        if not isinstance(command, list) or command[:2] != [sys.executable, "-c"]:
            return False
        if not str(command[2]).startswith(BOOTSTRAP) or _at_start(environment) != self._environment:
            return False
        return not any(map(self._hides, command[-1].split("\n")))

    def _hides(self, folder: str) -> bool:
        """Return whether a folder has another one of the modules that are imported already."""
        if folder in self._path:
            return False
        self._started()
        # Libraries add folders of theirs to the path, here as there.
        if folder in self._path or not Path(folder).is_dir():
            return False
        return not self._modules.isdisjoint(name.split(".")[0] for name in os.listdir(folder))

    def fork(self, asked: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Start a worker and return the number of its process, a child of this one."""
        connection = self._started()
        data = json.dumps(asked).encode()
        assert len(data) < _LARGEST, "a message on a socket is not cut into pieces up to here"
        ancillary = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        with self._lock:  # several threads may start one each
            _adopt_orphans(True)
            try:
                connection.sendmsg([data], [ancillary])
                return int(connection.recv(_LARGEST))
            finally:
                _adopt_orphans(False)

    def _started(self) -> socket.socket:
        with self._lock:
            return self._socket or self._start()

    def start_by_fork(self) -> None:
        """Start the process as a fork of this one, which has imported all already."""
        ours, theirs = _socket_pair()
        if not os.fork():
            ours.close()
            serve(theirs.detach())
        theirs.close()
        self._learn(ours)

    def _learn(self, connection: socket.socket) -> None:
        self._socket = connection
        modules, path = json.loads(connection.recv(_LARGEST))
        self._modules = set(modules)
        self._path += path

    def _start(self) -> socket.socket:
        ours, theirs = _socket_pair()
        process = _serving("serve", theirs)
        theirs.close()
        self._learn(ours)

        def leave() -> None:
            ours.close()
            process.wait()

        atexit.register(leave)
        return ours


class Programs:
    """A process that forks what a shell calls ``dld`` and ``python FILE``.

    Args:
        folder: For its socket.
    """

    def __init__(self, folder: Path) -> None:
        self._address = str(folder / "programs")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._address)
            listener.listen()
            self._process = _serving("serve_programs", listener)

    def line(self, words: Sequence[str]) -> str:
        """Return a line of a shell for ``python`` with these words."""
        return shlex.join([sys.executable, "-I", "-S", "-c", _CALL, self._address, *words])

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def _serving(function: str, asks: socket.socket) -> subprocess.Popen[bytes]:
    path = "\n".join([str(Path(__file__).parents[2]), *sys.path])
    command = [sys.executable, "-c", _START.format(function), str(asks.fileno()), path]
    return subprocess.Popen(command, pass_fds=[asks.fileno()], cwd="/")


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _LARGEST)
    return ends


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_AT_START) and name != "PYTHONPATH"  # it is in the module path
    }


def _adopt_orphans(wanted: bool) -> None:
    """Become the parent of what a child leaves behind, or not."""
    ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


server = ForkServer()


def apply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process start workers by the server."""
    if sys.platform == "linux":
        monkeypatch.setattr(subprocess.Popen, "_execute_child", _by_the_server())


def _by_the_server() -> Any:
    """Return how a process starts others: workers by the server."""
    server.learn()
    start: Any = subprocess.Popen._execute_child  # type: ignore[attr-defined]

    def execute_child(self: Any, args: Any, executable: Any, *rest: Any) -> None:
        preexec_fn, _, pass_fds, folder, environment = rest[:5]
        environment = os.environ if environment is None else environment
        if executable or preexec_fn or pass_fds or not server.takes(args, environment):
            start(self, args, executable, *rest)
            return
        pipes, in_new_session = rest[8:14], rest[19]
        theirs = (pipes[0], pipes[3], pipes[5])
        asked = {
            "code": args[2], "arguments": ["-c", *args[3:]], "environment": dict(environment),
            "folder": os.fspath(folder or os.getcwd()), "in_new_session": in_new_session,
        }  # fmt: skip
        self.pid = server.fork(asked, [own if end < 0 else end for own, end in enumerate(theirs)])
        self._child_created = True
        self._close_pipe_fds(*pipes)

    return execute_child


def serve(number: int) -> NoReturn:
    """Fork a worker for each message, until nobody asks any more."""
    connection = socket.socket(fileno=number)
    import_all()
    prepare()
    modules = {name.partition(".")[0] for name in sys.modules} - {"tests", "__main__"}
    connection.send(json.dumps([sorted(modules), sys.path]).encode())
    while True:
        data, descriptors, *_ = socket.recv_fds(connection, _LARGEST, 3)
        if not data:
            os._exit(0)
        asked = json.loads(data)
        if _PROGRAM in asked["code"]:
            import_all(("cli",))
        read, write = os.pipe()
        between = os.fork()
        if not between:
            parent = os.getpid()
            if worker := os.fork():
                os.write(write, str(worker).encode())
                os._exit(0)
            os.close(read)
            os.close(write)
            connection.close()
            run(asked, descriptors, parent)
        for descriptor in (write, *descriptors):
            os.close(descriptor)
        os.waitpid(between, 0)  # now the worker is a child of the test's process
        connection.send(os.read(read, 32))
        os.close(read)


def prepare() -> None:
    """Learn the operators of onnx, as each worker would; its calls need no further fork."""
    from dld_tui.backends.conversion import verification
    from dld_tui.core.model.operators import native, registry
    from tests.support import quick_forks

    registry.onnx_operators()
    native.compute = quick_forks.compute  # type: ignore[attr-defined]
    verification._MOST = PASSES
    gc.freeze()


def serve_programs(number: int) -> NoReturn:
    """Fork a program for each connection."""
    listener = socket.socket(fileno=number)
    import_all((*_ROOMS, "cli"))
    prepare()
    while True:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            _start_program(connection)
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _start_program(connection: socket.socket) -> NoReturn:
    """Run a program and tell its exit status; it ends with the one who asked for it."""
    data, descriptors, *_ = socket.recv_fds(connection, _LARGEST, 3)
    program = os.fork()
    if not program:
        connection.close()
        asked = json.loads(data)
        words, environment = asked["words"], asked["environment"]
        if not {*environment["PYTHONPATH"].split(os.pathsep)} <= {*sys.path}:  # it has extensions
            for own, given in enumerate(descriptors):
                os.dup2(given, own)
            os.chdir(asked["folder"])
            os.execve(sys.executable, [sys.executable, *words], environment)
        if words[0] == "-m":
            code = f"import {_PROGRAM} as program; raise SystemExit(program.main())"
            words = words[1:]
        else:
            code = f"import runpy; runpy.run_path({words[0]!r}, run_name='__main__')"
        run(asked | {"code": code, "arguments": words}, descriptors, parent=0)
    for descriptor in descriptors:
        os.close(descriptor)
    asker = connection.fileno()
    if asker in select.select([asker, os.pidfd_open(program)], [], [])[0]:
        os.kill(program, signal.SIGTERM)
    status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    with contextlib.suppress(OSError):
        connection.send(str(status if status >= 0 else 128 - status).encode())
    os._exit(0)


def import_all(rooms: Sequence[str] = _ROOMS) -> None:
    """Import what workers import, and more rooms of the program."""
    import dld_tui

    names = [*_IMPORTED]
    for room in rooms:
        folder = str(Path(dld_tui.__path__[0], room))
        names += (found.name for found in pkgutil.walk_packages([folder], f"dld_tui.{room}."))
    for name in names:
        with contextlib.suppress(ImportError):  # a library that is not installed
            importlib.import_module(name)


def run(asked: Any, descriptors: Sequence[int], parent: int) -> NoReturn:
    """Be the process that was asked for."""
    status = 1
    try:
        while os.getppid() == parent:  # until the test's process is that
            time.sleep(0.0001)
        if asked.get("in_new_session"):
            os.setsid()
        for own, given in enumerate(descriptors):
            os.dup2(given, own)
        for given in descriptors:
            os.close(given)
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        time.tzset()
        for own, (name, mode) in enumerate((("stdin", "rb"), ("stdout", "wb"), ("stderr", "wb"))):
            stream = io.TextIOWrapper(open(own, mode, closefd=False))  # noqa: SIM115
            if name == "stderr":
                stream.reconfigure(errors="backslashreplace", line_buffering=True)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        sys.argv = asked["arguments"]
        main = type(sys)("__main__")
        sys.modules["__main__"] = main
        if _PROGRAM in asked["code"]:
            server.start_by_fork()
            subprocess.Popen._execute_child = _by_the_server()  # type: ignore[attr-defined]
        exec(asked["code"], main.__dict__)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001 - as Python does
        traceback.print_exc()
    with contextlib.suppress(OSError, ValueError):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)
