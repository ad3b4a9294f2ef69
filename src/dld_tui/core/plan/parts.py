"""The files of one plan, and what has been learnt of them so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dld_tui.core.plan.trtexec_log import Tactics, TrtexecLog
from dld_tui.core.types import JSON

_CHOOSE = {"profile": "--profile", "timing": "--timing", "metadata": "--metadata"}


@dataclass
class Parts:
    """The files of a plan, and what has been learnt of them."""

    path: Path
    graph: Path
    profile_index: int | None = None
    roles: dict[str, list[Path]] = field(default_factory=dict)
    """Candidates by role, the likeliest first."""
    notes: list[str] = field(default_factory=list)
    timing_given: bool = False
    """The timing file was named by the user, so nothing speaks against it."""
    sums: dict[Path, float] = field(default_factory=dict)
    """Milliseconds of all rows of the profiles that lie beside, by file."""
    files: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, JSON] = field(default_factory=dict)
    log: TrtexecLog | None = None
    tactics: list[Tactics] = field(default_factory=list)
    """Names of tactics from the logs of the engine."""


def note_choice(parts: Parts, role: str, taken: Path, candidates: Sequence[Path]) -> None:
    """Say which of several files of a role was taken, and how to take another."""
    if len(candidates) > 1:
        option = _CHOOSE[role]
        parts.notes.append(
            f"{len(candidates)} {role} files lie beside it: {taken.name} was taken;"
            f" {option} takes another"
        )
