"""The log of a TensorRT library, in a file and as events, and the phases of a build."""

from __future__ import annotations

import contextlib
import re
import threading
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import SaveError
from dld_tui.core.events import Log, Phase, Progress
from dld_tui.core.files import permission
from dld_tui.core.notes import NoteKind
from dld_tui.core.text import visible

if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt.library import trt

_LEVELS = {
    "INTERNAL_ERROR": ("F", NoteKind.ERROR),
    "ERROR": ("E", NoteKind.ERROR),
    "WARNING": ("W", NoteKind.WARNING),
    "INFO": ("I", NoteKind.INFO),
    "VERBOSE": ("V", NoteKind.DEBUG),
}
"""Severity to the letter that trtexec prints and the level of an event."""
_BANNER = re.compile(
    r"^(-{8,}|(Input filename|ONNX IR version|Opset version|Producer name|Producer version|Domain"
    r"|Model version|Doc string):.*|(ModelImporter\.cpp:\d+: )?--- (Begin|End) node ---.*|)$"
)
"""What the parser says of every model, and around the dump of a node that it cannot parse: the
record and the error of the build have that anyway."""
_MOST_BYTES = 64 << 20
_LONGEST = 4000
_TAIL = 60
_MOST_TEXTS = 5000
_SEVERITIES_KEPT = 40


class BuildLog:
    """Takes the messages of a library, from any of its threads.

    Args:
        path: The file that gets every message, in the form of trtexec's; None is no file.
        say: Gets the events that people should see.
        verbose: Say the verbose messages, too; the file has them in any case.
    """

    def __init__(self, path: Path | None, say: Callable[[Log], None], verbose: bool = False):
        self.path = path
        self.errors: deque[str] = deque(maxlen=_SEVERITIES_KEPT)
        """The last errors. Untrusted text."""
        self.warnings = 0
        self.tail: deque[str] = deque(maxlen=_TAIL)
        """The last lines that are not verbose."""
        self._say = say
        self._verbose = verbose
        self._lock = threading.Lock()
        self._seen: Counter[tuple[NoteKind, str]] = Counter()
        self._written = 0
        self._file = self._open(path)

    @staticmethod
    def _open(path: Path | None) -> IO[str] | None:
        if path is None:
            return None
        try:
            mode = "w" if permission.may_replace(path) else "x"
            return open(path, mode, encoding="utf-8", errors="replace")
        except OSError as error:
            raise SaveError(
                f"the log cannot be written: {error.strerror}", where=str(path)
            ) from None

    def take(self, severity: str, text: str) -> None:
        """Take one message; `severity` is a name of ``ILogger.Severity``."""
        letter, level = _LEVELS.get(severity, ("I", NoteKind.INFO))
        with self._lock:
            self._write(f"[{letter}] {text}\n")
            if level is NoteKind.DEBUG and not self._verbose:
                return
            self._count(level, text)
            line = " ".join(text[:_LONGEST].split())
            if _BANNER.match(line):
                return
            shown = visible(line)
            self.tail.append(f"[{letter}] {shown}")
            if len(self._seen) < _MOST_TEXTS or (level, shown) in self._seen:
                self._seen[level, shown] += 1
                if self._seen[level, shown] > 1:
                    return
        self._say(Log(shown, level))

    def detail(self, text: str) -> None:
        """Take one verbose message: of tens of thousands, most only go to the file."""
        if self._verbose:
            self.take("VERBOSE", text)
            return
        with self._lock:
            self._write(f"[V] {text}\n")

    def note(self, text: str, kind: NoteKind = NoteKind.INFO) -> None:
        """Say something of our own, and keep it in the file."""
        with self._lock:
            self._write(f"[dld] {text}\n")
        self._say(Log(visible(text), kind))

    def _count(self, level: NoteKind, text: str) -> None:
        if level is NoteKind.ERROR:
            self.errors.append(text)
        elif level is NoteKind.WARNING:
            self.warnings += 1

    def _write(self, line: str) -> None:
        if self._file is None or self._written > _MOST_BYTES:
            return
        self._written += len(line)
        if self._written > _MOST_BYTES:
            line = "[dld] The log is cut here: it is too long\n"
        with contextlib.suppress(OSError, ValueError):  # a full disk must not end the build
            self._file.write(line)

    def close(self) -> None:
        """Say how often lines were repeated, and close the file."""
        with self._lock:
            repeated = [(key, count) for key, count in self._seen.items() if count > 1]
            self._seen.clear()
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.close()
                self._file = None
        for (level, text), count in repeated:
            self._say(Log(f"said {count:,} times: {text}", level))


def logger_of(log: BuildLog) -> trt.ILogger:
    """Return the library's logger that hands everything to a log."""
    verbose = int(trt.ILogger.Severity.VERBOSE)

    class Logger(trt.ILogger):
        """Takes messages."""

        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: trt.ILogger.Severity, msg: str) -> None:
            """Take one message."""
            if int(severity) == verbose:  # a name takes longer than all the rest
                log.detail(msg)
            else:
                log.take(severity.name, msg)

    return Logger()


if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt.library import trt

_MOST_PHASES = 40


@dataclass
class _Phase:
    """One phase that goes on."""

    name: str
    parent: str | None
    steps: int
    began: float
    done: int = 0


class Phases:
    """Keeps the phases that go on, from any thread of the library."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        """Set it to let the build end at its next step."""
        self._lock = threading.Lock()
        self._phases: dict[str, _Phase] = {}
        self._seconds: dict[tuple[str | None, str], float] = {}
        """By the parent and the name, of phases that are over."""

    def start(self, name: str, parent: str | None, steps: int) -> None:
        """Begin a phase, inside another or as the whole."""
        with self._lock:
            self._phases[name] = _Phase(name, parent or None, max(0, steps), monotonic())

    def step(self, name: str, step: int) -> bool:
        """Note a step that is done, counted from 0; return whether to go on."""
        with self._lock:
            phase = self._phases.get(name)
            if phase is not None:
                phase.done = step + 1
        return not self.stopped.is_set()

    def finish(self, name: str) -> None:
        """End a phase."""
        with self._lock:
            phase = self._phases.pop(name, None)
            if phase is not None:
                key = phase.parent, name
                self._seconds[key] = self._seconds.get(key, 0.0) + monotonic() - phase.began

    def durations(self) -> list[tuple[str, float]]:
        """Return the seconds of the phases that are over, in rows that add up.

        A phase is divided into those directly inside it, unless these overlap. Names are untrusted
        text.
        """
        with self._lock:
            seconds = dict(self._seconds)
        rows: list[tuple[str, float]] = []
        for (parent, name), whole in seconds.items():
            if parent is not None:
                continue
            inside = {inner: took for (outer, inner), took in seconds.items() if outer == name}
            rest = whole - sum(inside.values())
            if not inside or rest < 0:
                rows.append((name, whole))
            else:
                rows += [*inside.items(), (f"{name}, other", rest)]
        return rows

    def progress(self) -> Progress | None:
        """Return how far the build is; None between its stages."""
        with self._lock:
            phases = list(self._phases.values())
        names = {phase.name for phase in phases}
        below: dict[str | None, list[_Phase]] = {}
        for phase in phases:
            parent = phase.parent if phase.parent in names else None
            below.setdefault(parent, []).append(phase)
        roots = below.get(None, [])
        if not roots:
            return None
        root = roots[0]
        rows: list[Phase] = []
        self._list(below, root.name, 0, rows)
        for other in roots[1:]:
            rows.append(_row(other, 0))
            self._list(below, other.name, 1, rows)
        done = root.done + self._share(below, root)
        return Progress(round(done, 3), root.steps or None, "steps", root.name, rows[:_MOST_PHASES])

    def _list(
        self, below: dict[str | None, list[_Phase]], name: str, depth: int, rows: list[Phase]
    ) -> None:
        for phase in below.get(name, []):
            rows.append(_row(phase, depth))
            if depth < _MOST_PHASES and phase.name != name:
                self._list(below, phase.name, depth + 1, rows)

    def _share(self, below: dict[str | None, list[_Phase]], phase: _Phase, depth: int = 0) -> float:
        """Return which part of the next step of a phase its own phases have done, below 1."""
        inner = [child for child in below.get(phase.name, []) if child.steps]
        if not inner or phase.done >= phase.steps or depth > _MOST_PHASES:
            return 0.0
        parts = [
            (child.done + self._share(below, child, depth + 1)) / child.steps for child in inner
        ]
        return min(0.99, sum(parts) / len(parts))


def _row(phase: _Phase, depth: int) -> Phase:
    return Phase(phase.name, depth, phase.done, phase.steps or None)


def monitor_of(phases: Phases) -> trt.IProgressMonitor:
    """Return the library's progress monitor that tells everything to `phases`."""

    class Monitor(trt.IProgressMonitor):
        """Takes steps."""

        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            """Begin a phase."""
            phases.start(phase_name, parent_phase, num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            """Note a step."""
            return phases.step(phase_name, step)

        def phase_finish(self, phase_name: str) -> None:
            """End a phase."""
            phases.finish(phase_name)

    return Monitor()
