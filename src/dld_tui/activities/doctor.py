"""Say what works where this worker runs: Python, backends, GPUs, folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dld_tui.backends.machine import probe
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.machine.health import Check, folder_checks, python_checks


@dataclass(frozen=True)
class Request:
    """Nothing to choose."""


@dataclass(frozen=True)
class Result:
    """What was looked at."""

    checks: list[Check]


def run(request: Request) -> Iterator[Event]:
    """Look at everything; the result has a check for each thing."""
    checks = [*python_checks(), *folder_checks()]
    steps = probe.steps()
    for index, (title, look) in enumerate(steps):
        yield Progress(index, len(steps), "checks", stage=title)
        checks += look()
    yield Finished(Result(checks))
