"""Types at the program in a pseudo-terminal: slowly, or everything in one write.

The program is imported once, in a process that forks for each run, so that a run costs half a
second. What is shown, what the documents hold and where the focus is are asked for over a pipe; the
terminal sees nothing of that. A slow typist waits until every thread of the program sleeps and
nothing has been sent for a while, which uses nothing of the program's own idea of rest.
"""

from __future__ import annotations

import array
import asyncio
import faulthandler
import fcntl
import hashlib
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

LIMIT_S = 90.0
_STACKS = "stacks"
"""The file in the folder of a run that tells what its threads do, when it is asked."""
SPECIAL = {
    "<enter>": "\r", "<esc>": "\x1b", "<tab>": "\t", "<backtab>": "\x1b[Z", "<up>": "\x1b[A",
    "<down>": "\x1b[B", "<right>": "\x1b[C", "<left>": "\x1b[D", "<backspace>": "\x7f",
    "<space>": " ", "<home>": "\x1b[H", "<end>": "\x1b[F", "<pgdn>": "\x1b[6~",
    "<pgup>": "\x1b[5~", "<del>": "\x1b[3~", "<f1>": "\x1bOP", "<f2>": "\x1bOQ", "<f4>": "\x1bOS",
    "<f5>": "\x1b[15~", "<f6>": "\x1b[17~", "<f8>": "\x1b[19~", "<f9>": "\x1b[20~",
    "<f10>": "\x1b[21~",
    **{f"<^{letter}>": chr(ord(letter) - 96) for letter in "acefklnopqrstuwy"},
}  # fmt: skip
"""How keys are written in sequences, and what a terminal sends for them."""


def keys_of(text: str) -> list[str]:
    """Cut a sequence into what each of its keys sends."""
    keys: list[str] = []
    while text:
        name = text[: text.index(">") + 1] if text[0] == "<" and ">" in text else ""
        if name in SPECIAL:
            keys.append(SPECIAL[name])
            text = text[len(name) :]
        else:
            keys.append(text[0])
            text = text[1:]
    return keys


_AGE = re.compile(r" *(just now|\d+ \w+ ago)")
"""What the time says, not the keys."""


def _state(app: Any) -> dict[str, Any]:
    """Return what a person sees, and what is in the documents."""
    from tests.support.sessions import bytes_of

    if app._exit:
        return {"ending": True}
    screens: list[list[str]] = []
    seen = True  # a page hides what is under it, which is laid out when it is seen again
    for screen in reversed(app.screen_stack):
        strips = screen._compositor.render_strips() if seen else ()
        shown = (_AGE.sub("", strip.text).rstrip() for strip in strips)
        screens.insert(0, [type(screen).__name__, *shown])
        seen = seen and screen.is_modal
    documents, sources = {}, {}
    for page in app.pages:
        if getattr(page, "is_open", False) and hasattr(page, "document"):
            document = page.document
            digest = hashlib.sha256(bytes_of(document)).hexdigest()[:16]
            documents[page.tab_title] = digest
            sources[page.tab_title] = {
                "path": None if document.path is None else os.path.abspath(document.path),
                "digest": digest, "dirty": document.dirty,
                "unjournaled": document.journal_error is not None,
            }  # fmt: skip
    top = app.screen
    focused = top.focused
    faults = []
    if focused is None and top.focus_chain and app.app_focus:
        faults.append("nothing has the focus")
    if focused is not None and focused not in top._compositor.visible_widgets:
        faults.append(f"{focused!r} has the focus and is not seen")
    return {
        "screens": screens,
        "documents": documents,
        "sources": sources,
        "focus": None if focused is None else f"{type(focused).__name__}#{focused.id}",
        "told": app.told,
        "faults": faults,
    }


def _run(paths: Sequence[str], control: int) -> None:
    """Be the program, with an ear on a pipe, and an eye on its threads."""
    faulthandler.register(signal.SIGUSR2, open(_STACKS, "w"), all_threads=True)  # noqa: SIM115
    from textual._context import active_app

    from dld_tui.app import DldApp, show
    from dld_tui.core.process import terminal
    from dld_tui.widgets.shell.driver import DiffDriver

    class Watched(DldApp):
        """Keeps what is told for a few seconds, which would depend on the time."""

        CSS_PATH = str(Path(sys.modules["dld_tui"].__file__ or "").parent / "styles/base.tcss")

        def __init__(self) -> None:
            super().__init__(paths, driver_class=DiffDriver)
            self.told: list[str] = []

        def notify(self, message: str, **options: Any) -> None:
            self.told.append(message)

    app = Watched()

    def listen() -> None:
        with open(control, "r+b", buffering=0) as pipe:
            while question := pipe.read(1):

                async def ask(question: bytes = question) -> dict[str, Any]:
                    active_app.set(app)
                    if question == b"!":
                        tasks = [worker.name for worker in app.workers if worker.is_running]
                        screens = [type(screen).__name__ for screen in app.screen_stack]
                        busy = [type(pump).__name__ for pump in app.keys.busy_pumps()]
                        return {
                            "rests": app.keys.is_empty, "waiting": app.keys.waiting,
                            "tasks": tasks, "screens": screens,
                            "busy": [] if app.keys.is_empty else busy,
                        }  # fmt: skip
                    return _state(app)

                loop = app._loop
                try:
                    assert loop is not None, "it has ended"
                    state = asyncio.run_coroutine_threadsafe(ask(), loop).result(LIMIT_S)
                except Exception as error:  # noqa: BLE001  # the typist shows it
                    state = {"faults": [f"{type(error).__name__}: {error}"]}
                pipe.write(json.dumps(state).encode() + b"\n")

    threading.Thread(target=listen, daemon=True).start()
    with terminal.guarded() as restore:
        show(app, restore)
    if app.ending.error is not None:
        sys.stderr.write(f"dld: {app.ending.error}\n")
        sys.stderr.flush()
        os._exit(int(app.ending.error.status))
    os._exit(int(app.return_value or 0))


_WARMING = (
    "ctrl+p", "escape", "question_mark", "escape", "f2", "escape", "ctrl+o", "escape", "j", "3",
    "1", "2", "4", "1", "r", "escape", "a", "escape", "d", "escape", "i", "escape", "R", "escape",
    "I", "escape", "D", "escape", "e", "escape", "slash", "escape", "f5", "escape",
)  # fmt: skip
"""What makes the program import and read most of what it ever does."""


def _warm() -> None:
    """Run the program once without a terminal, so that those that are forked have all imported."""
    from dld_tui.app import DldApp
    from tests.support import models, sessions

    assert sessions

    async def use(folder: Path) -> None:
        app = DldApp([models.write(folder, models.CHAIN)])
        async with app.run_test() as pilot:
            for key in _WARMING:
                await pilot.press(key)
                while not app.keys.at_rest:
                    await asyncio.sleep(0.01)

    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(private(Path(folder)))
        asyncio.run(use(Path(folder)))


def private(folder: Path) -> dict[str, str]:
    """Return the variables that keep the settings of a run inside a folder."""
    names = ("CONFIG", "STATE", "CACHE", "DATA")
    folders = {f"XDG_{name}_HOME": str(folder / "home" / name.lower()) for name in names}
    return {"HOME": str(folder / "home"), **folders}


def _serve(channel: socket.socket) -> None:
    """Fork the program for each request: its terminal and its pipe go back over the channel."""
    import gc

    _warm()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while data := channel.recv(1 << 16):
        request = json.loads(data)
        ours, theirs = socket.socketpair()
        pid, master = pty.fork()
        if not pid:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            ours.close()
            os.environ.update(request["environment"])
            os.chdir(request["folder"])
            rows, columns = request["size"][1], request["size"][0]
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            try:
                _run(request["paths"], theirs.detach())
            finally:
                os._exit(1)
        theirs.close()
        descriptors = array.array("i", [master, ours.fileno()])
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
        channel.sendmsg([str(pid).encode()], rights)
        os.close(master)
        ours.close()


class Programs:
    """The process that has everything imported; use it as a context manager."""

    def __enter__(self) -> Programs:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        root = Path(__file__).parents[2]
        code = "import socket, sys; from tests.support import typist; typist._serve("
        code += f"socket.socket(fileno={theirs.fileno()}))"
        environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path]),
            "TEXTUAL_ANIMATIONS": "none", "COLORTERM": "truecolor", "TERM": "xterm-256color",
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], pass_fds=[theirs.fileno()], env=environment
        )
        theirs.close()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()
        self._process.wait(LIMIT_S)

    def start(self, folder: Path, *paths: str, size: tuple[int, int] = (80, 24)) -> Typist:
        """Start the program in a folder, which holds its settings, too."""
        request = {
            "environment": private(folder), "folder": str(folder), "paths": paths, "size": size,
        }  # fmt: skip
        with self._one_at_a_time:
            self._channel.send(json.dumps(request).encode())
            pid, (master, control), _, _ = socket.recv_fds(self._channel, 64, 2)
        return Typist(int(pid), master, control)


class Typist:
    """One run of the program."""

    def __init__(self, pid: int, master: int, control: int) -> None:
        self.pid = pid
        self.sent = bytearray()
        """What the program wrote on its terminal."""
        self.pages: set[str] = set()
        """The classes of the screens that :meth:`answer` saw."""
        self._master = master
        self._control = socket.socket(fileno=control)
        self._control.settimeout(LIMIT_S)
        os.set_blocking(master, False)

    def __enter__(self) -> Typist:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.runs():
            os.killpg(self.pid, signal.SIGKILL)
        os.close(self._master)
        self._control.close()

    def runs(self) -> bool:
        """Tell whether the program has not ended; what it suspended goes on, as by a shell's `fg`.

        Ctrl+Z has many forms in the kitty protocol.
        """
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state == "T":
            os.kill(self.pid, signal.SIGCONT)
        return True

    def stacks(self) -> str:
        """Return what the threads of the program do at the moment."""
        with suppress(OSError):
            folder = os.readlink(f"/proc/{self.pid}/cwd")
            os.kill(self.pid, signal.SIGUSR2)
            time.sleep(0.5)
            return Path(folder, _STACKS).read_text()
        return "it has ended"

    def wait_for_end(self) -> None:
        """Wait until the program has ended.

        Raises:
            TimeoutError: It does not.
        """
        limit = time.monotonic() + LIMIT_S
        while self.runs():
            if time.monotonic() > limit:
                raise TimeoutError("the program does not end")
            self.settle(0.02)

    def write(self, text: str | bytes) -> None:
        """Send something in one write, or in as few as the terminal's buffer of 4 kB needs."""
        data = text.encode() if isinstance(text, str) else text
        limit = time.monotonic() + LIMIT_S
        while data:
            if time.monotonic() > limit:
                raise TimeoutError("the program does not read what is typed")
            readable, writable, _ = select.select([self._master], [self._master], [], 0.05)
            if readable:
                self._read()
            if writable:
                with suppress(BlockingIOError):
                    data = data[os.write(self._master, data) :]
            if not self.runs():
                return

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size; the kernel tells the program."""
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def flags(self) -> int:
        """Return the local flags of the terminal."""
        return int(termios.tcgetattr(self._master)[3])

    def answer(self, limit_s: float, *, all_keys: bool) -> float:
        """Wait until the event loop answers; return the longest time that it did not.

        Args:
            limit_s: So long at most.
            all_keys: Wait, too, until no key waits.

        Raises:
            TimeoutError: It does not answer, or none of the keys that wait is given out, in time.
        """
        began = time.monotonic()
        longest, waiting = 0.0, -1
        while self.runs():
            asked = time.monotonic()
            try:
                self._control.sendall(b"!")
            except BrokenPipeError:  # it has just ended
                break
            while not select.select([self._control], [], [], 0.005)[0] and self.runs():
                if select.select([self._master], [], [], 0)[0]:
                    self._read()
                if time.monotonic() - asked > limit_s:
                    raise TimeoutError("the program does not answer")
            longest = max(longest, time.monotonic() - asked)
            try:
                answer = json.loads(self._control.recv(1 << 16))
            except (ConnectionResetError, ValueError):  # it has just ended
                break
            self.pages.update(answer.get("screens", ()))
            if not all_keys or answer.get("rests", True):
                break
            if answer["waiting"] != waiting:
                began, waiting = time.monotonic(), answer["waiting"]
            if time.monotonic() - began > limit_s:
                raise TimeoutError(f"keys wait for ever: {answer}")
            self.settle(0.0)
        return longest

    def slowly(self, keys: Iterable[str]) -> None:
        """Send keys, each when the one before has had all its effects."""
        for key in keys:
            if not self.runs():
                return
            self.write(key)
            self.settle()

    def wait_for_screen(self) -> None:
        """Wait until the program has taken the terminal, so that keys are not lines any more."""
        limit = time.monotonic() + LIMIT_S
        while b"\x1b[?1049h" not in self.sent and time.monotonic() < limit:
            if select.select([self._master], [], [], 0.01)[0]:
                self._read()

    def _read(self) -> None:
        try:
            self.sent += os.read(self._master, 1 << 16)
        except OSError:
            if self.runs():  # else it has ended, and its terminal with it
                raise

    def settle(self, quiet_s: float = 0.12, limit_s: float = LIMIT_S) -> None:
        """Wait until the program sleeps and has sent nothing for a while."""
        limit = time.monotonic() + limit_s
        calm_since = time.monotonic()
        ticks = -1
        while time.monotonic() - calm_since < quiet_s:
            if time.monotonic() > limit:
                raise TimeoutError("the program never comes to rest")
            if select.select([self._master], [], [], 0.03)[0]:
                try:
                    self.sent += os.read(self._master, 1 << 16)
                except OSError:
                    if not self.runs():
                        return
                calm_since = time.monotonic()
                continue
            states, now = self._load()
            if not states:
                return
            if "R" in states or "D" in states or now != ticks:
                calm_since = time.monotonic()
            ticks = now

    def _load(self) -> tuple[str, int]:
        """Return the states of all threads of the session, and the ticks that they have used."""
        states, ticks = "", 0
        pids = [self.pid]
        while pids:
            pid = pids.pop()
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    folder = f"/proc/{pid}/task/{task}"
                    with open(f"{folder}/stat") as file:
                        fields = file.read().rpartition(")")[2].split()
                    states += fields[0]
                    ticks += int(fields[11]) + int(fields[12])
                    with open(f"{folder}/children") as file:
                        pids += map(int, file.read().split())
            except (OSError, IndexError):
                continue
        return states, ticks

    def state(self) -> dict[str, Any]:
        """Return what is shown, held and focused; after the end only that it has ended."""
        if not self.runs():
            return {"ended": True, "faults": self._crash()}
        data = b""
        with suppress(BrokenPipeError, ConnectionResetError):  # it has just ended
            self._control.sendall(b"?")
            while part := self._control.recv(1 << 16):
                data += part
                if data.endswith(b"\n"):
                    break
        if not data.endswith(b"\n"):
            return {"ended": True, "faults": self._crash()}
        state: dict[str, Any] = json.loads(data)
        if state.get("ending"):  # and waits for a thread or a child process
            self.wait_for_end()
            return self.state()
        return state

    def _crash(self) -> list[str]:
        text = self.sent.decode("utf-8", "replace")
        at = max(text.find("internal error"), text.find("Traceback"))
        return [text[at : at + 200]] if at >= 0 else []
