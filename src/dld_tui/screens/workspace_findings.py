"""Looking for what is wrong with the model, and showing it."""

from __future__ import annotations

from pathlib import Path

from textual.timer import Timer

from dld_tui.core.checks import Finding, check
from dld_tui.core.checks.findings import by_severity
from dld_tui.core.errors import CancelledError
from dld_tui.core.text import visible
from dld_tui.screens.workspace_edit import Editing

_CHECK_AGAIN_S = 0.5
_MOST_CHECKED = 20_000
"""Nodes of the largest model that is checked again after every edit."""


class Checking(Editing):
    """The part of the workspace that finds faults."""

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(path)
        self._edits = 0
        self._check_timer: Timer | None = None
        self.notices: list[Finding] = []
        """What is not found by a check: refused journal lines and the like."""
        self._left = False
        self.is_checked = False
        """Whether the findings are of the model as it is now."""

    def on_unmount(self) -> None:
        """Stop checking."""
        self._left = True

    def check_later(self) -> None:
        """Look for findings again, some time after the last edit."""
        self._edits += 1
        self.is_checked = False
        if self._check_timer is not None:
            self._check_timer.stop()
        summary = self.parameters.summary
        if summary is not None and summary.nodes_total > _MOST_CHECKED:
            self.show_findings(self.findings.findings, "before the last edit")
            return
        self._check_timer = self.set_timer(_CHECK_AGAIN_S, self.check)

    def check(self) -> None:
        """Look for what is wrong, on a thread."""
        edits, document = self._edits, self.document

        def outdated() -> bool:
            return self._left or self._edits != edits

        def task() -> None:
            try:
                found = check(document, cancelled=outdated)
            except CancelledError:
                return
            except (RuntimeError, ValueError, KeyError):
                if outdated():  # an edit changed the model while it was read
                    return
                raise
            self.call_later(self._checked, edits, found)

        self.run_worker(task, thread=True, group="check", name="check")

    def _checked(self, edits: int, found: list[Finding]) -> None:
        if edits == self._edits and self.is_attached:
            self.is_checked = True
            self.show_findings([*self.notices, *found], "")

    def show_findings(self, findings: list[Finding], state: str) -> None:
        """Show findings, and what the journal says."""
        before = len(self.findings.findings)
        if self.document.journal_error:
            message = visible(self.document.journal_error)
            findings = [Finding("warning", "journal", message), *findings]
        self.findings.show(by_severity(findings), state=state)
        if before != len(findings) or not self.findings.display:
            self.lay_out()
