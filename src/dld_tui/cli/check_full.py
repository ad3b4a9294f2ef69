"""The part of ``dld check --full`` that runs the checks of others."""

from __future__ import annotations

from pathlib import Path

from dld_tui.activities.check_full import LIMIT_S, Request
from dld_tui.cli.activity import run_activity
from dld_tui.core.checks.findings import Finding, findings_of
from dld_tui.core.document.document import Document
from dld_tui.core.errors import UnavailableError

MISSING = "polygraphy:missing"


def full_findings(
    document: Document,
    model: Path,
    *,
    onnx: bool = True,
    polygraphy: bool = False,
    time_limit: float = LIMIT_S,
    target: str | None = None,
) -> list[Finding]:
    """Return what onnx's full checker and Polygraphy's lint find in a model.

    Args:
        document: The model, opened from `model` and not edited.
        model: Its file.
        onnx: Run onnx's full checker.
        polygraphy: Run Polygraphy's lint.
        time_limit: Seconds for each of them.
        target: Where to run them; None is this machine.

    Raises:
        UnavailableError: Polygraphy is asked for and is not installed.
        DldError: The job failed or was cancelled.
    """
    request = Request(model, onnx=onnx, polygraphy=polygraphy, time_limit=time_limit)
    found = findings_of(document, run_activity("check_full", request, target).findings)
    for finding in found:
        if finding.rule == MISSING:
            what, _, install = finding.message.partition(": ")
            raise UnavailableError(what, where="Polygraphy", hint=install)
    return found
