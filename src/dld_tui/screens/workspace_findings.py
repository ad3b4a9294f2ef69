"""Looking for what is wrong with the model, showing it, and repairing it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter
from typing import ClassVar, cast

from textual import on
from textual.worker import Worker

from dld_tui.core.checks import Checker, Finding
from dld_tui.core.checks.findings import by_severity
from dld_tui.core.checks.remarks import without_repeats
from dld_tui.core.checks.repairs import repair_steps
from dld_tui.core.document import Change, Transaction
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace_edit import Editing
from dld_tui.widgets.findings import Findings

_BREAK_S = 0.002
"""How long the event loop is left alone between two slices of a check."""
_LARGE = 5_000
"""Nodes from which on a repair is made on a thread."""
_WAIT_S = 0.1
"""How often to look whether a thread that changes or saves the model has ended."""


class Checking(Editing):
    """The part of the workspace that finds faults.

    The check runs on the event loop in short slices: a thread would fight for the interpreter with
    the keys, and would see the model while it is edited.
    """

    CHECK_SLICE_S: ClassVar[float] = 0.008
    """Seconds that the check may keep the event loop."""

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(path)
        self.notices: list[Finding] = []
        """What is not found by a check: refused journal lines and the like."""
        self._checker: Checker | None = None
        self._external: dict[str, list[Finding]] = {}
        self._found: list[Finding] = []
        self._checks_run = False
        self._with_speed = False
        self._left = False
        self.is_checked = False
        """Whether the findings are of the model as it is now."""

    def on_unmount(self) -> None:
        """Stop checking."""
        self._left = True

    def facts(self) -> set[str]:
        """Return whether there is something to repair."""
        facts = super().facts()
        if not self.is_open:
            return facts
        finding = self.findings.current if self.findings.list.has_focus else None
        if finding is not None and finding.repair is not None:
            facts.add("fixable")
        if any(finding.repair is not None for finding in self._found):
            facts.add("repairs")
        return facts

    # --- checking -------------------------------------------------------------------------------

    def document_changed(self, change: Change) -> None:
        """Show what an edit did, and check what it may have changed."""
        if self._checker is not None:
            self._checker.note(change)
        super().document_changed(change)

    def check_later(self) -> None:
        """Check again what changed, as soon as the event loop has time."""
        self.is_checked = False
        self._start_checking()

    def check(self) -> None:
        """Check the whole model."""
        if self._checker is None:
            self._checker = Checker(self.document)
        self._checker.restart()
        self.check_later()

    def types_changed(self) -> None:
        """Compare the types that shape inference has found with what the model says."""
        if self._checker is not None:
            self._checker.types_changed()
            self._start_checking()

    def _start_checking(self) -> None:
        if not self._checks_run and self._checker is not None:
            self._checks_run = True
            _: Worker[None] = self.run_worker(self._run_checks, group="check", name="check")

    async def _run_checks(self) -> None:
        checker = self._checker
        assert checker is not None
        try:
            began = perf_counter()
            speed: list[Finding] | None = None
            while not (self._left or (checker.done and speed is not None)):
                if self._cancel is not None or self.is_arranging:
                    await asyncio.sleep(_WAIT_S)  # a thread changes, saves or draws the model
                    continue
                if checker.done:
                    speed = await self._look_for_speed(checker)
                    continue
                self._check_slice(checker)
                if not checker.done and perf_counter() - began > _WAIT_S:
                    self.findings.say("checking")
                await asyncio.sleep(_BREAK_S)
        finally:
            self._checks_run = False
        if not self._left and self.is_attached:
            self.is_checked = True
            self._found = [*checker.findings(), *(speed or ())]
            self._show_all()

    async def _look_for_speed(self, checker: Checker) -> list[Finding] | None:
        """Return what costs speed, if that is wanted; None when an edit came in between."""
        if not self._with_speed:
            return []
        from dld_tui.core.checks.speed import speed_steps  # lazy: few sessions ask for it

        self.findings.say("checking")
        found: list[Finding] = []
        end = perf_counter() + self.CHECK_SLICE_S
        for part in speed_steps(self.document):
            found += part
            if perf_counter() > end:
                await asyncio.sleep(_BREAK_S)
                if not checker.done or self._left or self._cancel is not None:
                    return None
                end = perf_counter() + self.CHECK_SLICE_S
        return found

    def _check_slice(self, checker: Checker) -> None:
        end = perf_counter() + self.CHECK_SLICE_S
        for _ in checker.steps():
            if perf_counter() > end:
                return

    # --- showing --------------------------------------------------------------------------------

    def add_external(self, findings: list[Finding], source: str) -> None:
        """Show findings of another tool instead of what it found before."""
        self._external[source] = findings
        self._show_all()

    def _show_all(self) -> None:
        external = [finding for found in self._external.values() for finding in found]
        external = without_repeats(external, self._found)
        findings = [*self.notices, *self._found, *external]
        if self.document.journal_error:
            message = visible(self.document.journal_error)
            findings.insert(0, Finding("warning", "journal", message))
        before = len(self.findings.findings)
        self.findings.show(by_severity(findings), state="" if self.is_checked else "checking")
        self.graph.set_findings(findings)
        if before != len(findings) or not self.findings.display:
            self.lay_out()
        self.facts_changed()

    # --- repairing ------------------------------------------------------------------------------

    @on(Findings.FixAsked)
    def fix_asked(self, event: Findings.FixAsked) -> None:
        """Repair a finding, or all of its rule."""
        event.stop()
        if event.every:
            self._repair([f for f in self._found if f.rule == event.finding.rule])
        else:
            self._repair([event.finding])

    def action_fix_finding(self) -> None:
        """Repair what the finding under the cursor is about."""
        finding = self.findings.current
        if finding is not None:
            self._repair([finding])

    def action_fix_rule(self) -> None:
        """Repair all findings of the rule under the cursor."""
        finding = self.findings.current
        if finding is not None:
            self._repair([f for f in self._found if f.rule == finding.rule])

    def action_fix_all(self) -> None:
        """Make every repair that is safe."""
        self._repair(self._found)

    def _repair(self, findings: list[Finding]) -> None:
        if not self.is_checked:
            self.notify("The model is still being checked", timeout=3)
            return
        steps = repair_steps(findings)
        if not steps:
            self.notify("There is no safe repair for this", timeout=3)
            return
        document = self.document
        size = sum(len(scope.nodes) for scope in document.scopes())

        def make() -> Transaction:
            if len(steps) > 1:
                return document.apply("repair", steps=steps)
            edit, arguments = cast("tuple[str, dict[str, JSON]]", steps[0])
            return document.apply(edit, **arguments)

        def ended() -> None:
            done = document.history.done
            title = visible(done[-1].title) if done else ""
            self.notify(f"Done: {title}", timeout=3, markup=False)

        self.change("Repairing", [make], large=size > _LARGE, done=ended)

    def action_only_rule(self) -> None:
        """Show only findings of the rule under the cursor, or all again."""
        self.findings.toggle_rule()

    def action_check_speed(self) -> None:
        """Look for what keeps the model from running fast too, after each edit again; or stop."""
        self._with_speed = not self._with_speed
        if self._checker is None:
            self.check()
        else:
            self.check_later()

    def action_check_again(self) -> None:
        """Check the whole model again."""
        self.check()
