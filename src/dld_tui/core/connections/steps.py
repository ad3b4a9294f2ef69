"""The steps of a test of a target, and how each went."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from dld_tui.core.types import JSON

GOOD = "good"
WEAK = "weak"
"""It works, with a but."""
BAD = "bad"


@dataclass(frozen=True)
class Step:
    """One step of a test."""

    name: str
    state: str
    """:data:`GOOD`, :data:`WEAK` or :data:`BAD`."""
    found: str
    """What was found; foreign text."""
    fix: str = ""
    """What mends it; empty when there is nothing to mend."""

    def to_json(self) -> dict[str, JSON]:
        """Return the step as JSON data."""
        return {**asdict(self)}
