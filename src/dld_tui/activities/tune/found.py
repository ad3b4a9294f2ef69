"""What a tuning has found so far, which its parts share."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.text import visible
from dld_tui.core.tune.changes import Setup
from dld_tui.core.tune.result import CandidateState, Closeness, Exclusion, no_time

if TYPE_CHECKING:
    from dld_tui.core.compare.gate import GateRow
    from dld_tui.core.tune.race import Race


NO_TIME = no_time("before it was measured")


@dataclass(eq=False)
class Found:
    """The set-ups that were tried, by their keys, and what came of them."""

    setups: dict[str, Setup]
    problems: dict[str, Exclusion] = field(default_factory=dict)
    """Why set-ups do not count."""
    near: dict[str, Closeness] = field(default_factory=dict)
    races: list[Race] = field(default_factory=list)
    proofs: dict[str, GateRow] = field(default_factory=dict)
    """The winners of races against the original model."""
    again: set[str] = field(default_factory=set)
    """Candidates for which there was no time in the races before."""
    is_whole: bool = True


def failed(why: str) -> Exclusion:
    """Return the exclusion of a candidate that failed; the text need not be fit for a terminal."""
    return Exclusion(CandidateState.FAILED, visible(why))
