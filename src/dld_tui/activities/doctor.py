"""Say what works where this worker runs: Python, backends, GPUs, folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dld_tui.backends.machine import probe
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.health import folder_checks, python_checks


@dataclass(frozen=True)
class Request:
    """Nothing to choose."""


def run(request: Request) -> Iterator[Event]:
    """Look at everything; the result is ``{"checks": [...]}``, see :class:`core.health.Check`."""
    checks = [*python_checks(), *folder_checks()]
    steps = probe.steps()
    for index, (title, look) in enumerate(steps):
        yield Progress(index, len(steps), "checks", stage=title)
        checks += look()
    yield Finished({"checks": [check.to_json() for check in checks]})
