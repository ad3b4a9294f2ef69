"""Errors that a user can act on, and the exit status that each one means.

::

    DldError
    ├── UsageError            2    the request itself is wrong
    ├── InputError            3    a file cannot be read or is not valid
    │   ├── CorruptFileError       the bytes are not what the format says
    │   ├── FileChangedError       the file changed on disk under us
    │   └── EditError              an edit that does not fit the model
    ├── UnavailableError      4    a backend or target is missing
    ├── ActivityError         5    the work itself failed
    │   └── SaveError              a file could not be written; the old one is intact
    └── CancelledError      130    stopped on request

Anything else that is raised is a bug: it may show a traceback, these never do.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:  # `dld --help` loads this module and nothing else
    from dld_tui.core.types import NodePlace


class ExitStatus(IntEnum):
    """The exit status of every ``dld`` command."""

    DONE = 0
    FOUND = 1
    """Done, and the check or comparison found something."""
    USAGE = 2
    INPUT = 3
    UNAVAILABLE = 4
    FAILED = 5
    CANCELLED = 130


class DldError(Exception):
    """Base of all errors that are shown as one line and have an exit status.

    Args:
        message: What failed, without the file, node or host and without a full stop.
        where: The file, node or host.
        hint: What to do next.
        details: Further text for a dialog or a log, of any length.
    """

    status: ClassVar[ExitStatus] = ExitStatus.FAILED

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        details: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.details = details
        self.finding: NodePlace | None = None
        """The node that caused it."""

    def __str__(self) -> str:
        """Return one line: where, what, what next. The text may hold foreign characters."""
        line = f"{self.where}: {self.message}" if self.where else self.message
        if not self.hint:
            return line
        return f"{line} {self.hint}" if line.endswith((".", "?")) else f"{line}. {self.hint}"


class UsageError(DldError):
    """The request is malformed."""

    status = ExitStatus.USAGE


class InputError(DldError):
    """An input cannot be read or is not valid."""

    status = ExitStatus.INPUT


class CorruptFileError(InputError):
    """The bytes of a file break the rules of its format."""


class FileChangedError(InputError):
    """A file was changed on disk by another program since it was opened."""


class EditError(InputError):
    """An edit does not fit the model; the model is as it was before."""


class UnavailableError(DldError):
    """A backend or target is not there, or cannot do this here."""

    status = ExitStatus.UNAVAILABLE


class ActivityError(DldError):
    """The work was started and failed."""

    status = ExitStatus.FAILED


class TimeLimitError(ActivityError):
    """The work was stopped at its time limit."""


class SaveError(ActivityError):
    """A file could not be written; the existing one is unchanged."""


class CancelledError(DldError):
    """The user stopped the work."""

    status = ExitStatus.CANCELLED

    def __init__(self, message: str = "cancelled", **context: str | None) -> None:
        super().__init__(message, **context)
