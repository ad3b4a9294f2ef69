"""The phases of a build as the library tells them: a tree, and a way to stop."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.events import Progress
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt_library import trt

_MOST_PHASES = 40


@dataclass
class _Phase:
    """One phase that goes on."""

    name: str
    parent: str | None
    steps: int
    done: int = 0


class Phases:
    """Keeps the phases that go on, from any thread of the library."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        """Set it to let the build end at its next step."""
        self._lock = threading.Lock()
        self._phases: dict[str, _Phase] = {}

    def start(self, name: str, parent: str | None, steps: int) -> None:
        """Begin a phase, inside another or as the whole."""
        with self._lock:
            self._phases[name] = _Phase(name, parent or None, max(0, steps))

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
            self._phases.pop(name, None)

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
        rows: list[JSON] = []
        self._list(below, root.name, 0, rows)
        for other in roots[1:]:
            rows.append(_row(other, 0))
            self._list(below, other.name, 1, rows)
        done = root.done + self._share(below, root)
        return Progress(round(done, 3), root.steps or None, "steps", root.name, rows[:_MOST_PHASES])

    def _list(
        self, below: dict[str | None, list[_Phase]], name: str, depth: int, rows: list[JSON]
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


def _row(phase: _Phase, depth: int) -> JSON:
    return {
        "name": phase.name,
        "depth": depth,
        "done": phase.done,
        "total": phase.steps or None,
    }


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
