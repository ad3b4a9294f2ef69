"""Something said to a person, as data: programs go by its kind, and only people read its text."""

from __future__ import annotations

from collections.abc import Iterable

from dld_tui.core.dataclass import dataclass
from dld_tui.core.types import TextEnum


class NoteKind(TextEnum):
    """What a note is; the first four are how loud it is, and the others say what came of it."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    ADVICE = "advice"
    GOOD = "good"
    """It is as one wishes."""
    UNCHANGED = "unchanged"
    """There was nothing to do."""
    UNTRIED = "untried"
    """There was no time for it."""
    UNVERIFIED = "unverified"
    """A result could not be compared with what it was made of."""
    NOT_RUN = "not-run"
    """A result was loaded, but not run."""


@dataclass(frozen=True)
class Note:
    """A sentence for people."""

    kind: NoteKind
    text: str
    """May contain untrusted text."""
    action: str = ""
    """What to do about it, as a command or an imperative sentence; empty if nothing is known."""


@dataclass(frozen=True)
class Claim(Note):
    """A note with what it shows in two or three words, such as ``half the size``."""

    claim: str = ""


def plain_notes(lines: Iterable[str]) -> list[Note]:
    """Return lines as notes that only inform."""
    return [Note(NoteKind.INFO, line) for line in lines]


def texts(notes: Iterable[Note]) -> list[str]:
    """Return what is shown of notes."""
    return [note.text for note in notes]
