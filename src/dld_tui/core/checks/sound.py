"""Whether what was made of a model is as sound as the model was."""

from __future__ import annotations

import contextlib
from pathlib import Path
from time import sleep

from dld_tui.core.checks.checker import Checker
from dld_tui.core.checks.findings import Finding
from dld_tui.core.document import Document
from dld_tui.core.errors import ActivityError, CancelledError
from dld_tui.core.types import CancelCheck

_NO_FAULT = {"tensor-without-data"}
"""Errors that conversions are asked for: a model without weights is not to be run."""


def require_sound(before: Path, after: Path, cancelled: CancelCheck) -> None:
    """Refuse a model with errors of a kind that the one that it was made of has not.

    Args:
        before: The model that was converted.
        after: The result.
        cancelled: Asked now and then.

    Raises:
        InputError: One of them cannot be opened.
        ActivityError: The result has new errors.
        CancelledError: `cancelled` said so.
    """
    errors = _errors(after, cancelled)
    if not errors:
        return
    known = {finding.rule for finding in _errors(before, cancelled)}
    known |= _NO_FAULT
    added = [finding for finding in errors if finding.rule not in known]
    if added:
        more = f" (and {len(added) - 1} more)" if added[1:] else ""
        raise ActivityError(f"the result is not valid: {added[0].message}{more}")


def _errors(path: Path, cancelled: CancelCheck) -> list[Finding]:
    with contextlib.closing(Document.open(path, cancelled=cancelled)) as document:
        checker = Checker(document)
        for _ in checker.steps():
            if cancelled():
                raise CancelledError
            sleep(0)  # on a thread: let others have the interpreter
        return [finding for finding in checker.findings() if finding.level == "error"]
