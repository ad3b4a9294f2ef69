"""How a person is asked for a password or a host's key, and told how the test of a target goes.

The command line asks on the terminal, the user interface with a dialog; a program without a
person refuses. An asker is called from a thread that may wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Asker(Protocol):
    """Asks a person; every text it is given may be foreign."""

    def secret(self, question: str) -> str | None:
        """Return what was typed, not shown while it is; None when the person gave up."""

    def confirm(self, question: str, detail: str) -> bool:
        """Return whether the person said yes.

        Args:
            question: One line.
            detail: What to know before the answer; may have several lines.
        """


class Nobody:
    """Stands in where no person is: every answer is no."""

    def secret(self, question: str) -> str | None:
        """Return None."""
        return None

    def confirm(self, question: str, detail: str) -> bool:
        """Return False."""
        return False


class _Current:
    """The asker of this process."""

    asker: Asker = Nobody()


def use(asker: Asker) -> None:
    """Make an asker the one of this process."""
    _Current.asker = asker


def current() -> Asker:
    """Return the asker of this process; until :func:`use` was called that is nobody."""
    return _Current.asker


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
