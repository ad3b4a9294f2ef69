"""What `dld selftest` found: whether the ways to run a model work on a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.machine.health import Check
from dld_tui.core.tables.table import Column, Table, Unit
from dld_tui.core.text import visible

PASSED, FAILED, UNAVAILABLE, SKIPPED = "passed", "failed", "unavailable", "skipped"
"""Statuses: did what it should; did not; needs what this machine has not; needs a step before it
that did not pass."""


@dataclass(frozen=True)
class Step:
    """One thing that was tried."""

    backend: str
    step: str
    status: str
    seconds: float
    detail: str
    """A figure of the result, or why there is none. Foreign text."""
    fix: str = ""
    """What to do. Foreign text."""
    log: str = ""
    """The traceback or the library's last lines. Foreign text."""


@dataclass(frozen=True)
class SelfTest:
    """The result of the activity ``selftest``. Fields may be added, never renamed."""

    rows: tuple[Step, ...]
    machine: dict[str, Any]
    checks: list[Check]
    """Those of `dld doctor`."""

    def count(self, status: str) -> int:
        """Return how many steps ended so."""
        return sum(step.status == status for step in self.rows)


_SECONDS = Unit("s", lambda value: f"{value:.1f}")
COLUMNS: tuple[Column[Step], ...] = (
    Column("backend", "backend", lambda step: step.backend, width=12),
    Column("step", "step", lambda step: step.step, least=20),
    Column("status", "status", lambda step: step.status, width=11),
    Column("seconds", "s", lambda step: step.seconds, _SECONDS, 7),
    Column("detail", "result", lambda step: step.detail, least=30),
)


def step_table(result: SelfTest) -> Table[Step]:
    """Return the steps as they were made."""
    return Table(COLUMNS, result.rows, name="selftest", title="Self-test")


def selftest_lines(result: SelfTest) -> list[str]:
    """Return the verdict and what to do, in lines for people."""
    counts = ", ".join(
        f"{number} {status}"
        for status in (PASSED, FAILED, UNAVAILABLE, SKIPPED)
        if (number := result.count(status))
    )
    machine = visible(str(result.machine.get("cpu", "")))
    lines = [f"{fmt.plural(len(result.rows), 'step')} on {machine or 'this machine'}: {counts}."]
    for step in result.rows:
        if step.fix and step.status != PASSED:
            lines.append(f"{step.backend}, {step.step}: {visible(step.fix)}.")
    return lines
