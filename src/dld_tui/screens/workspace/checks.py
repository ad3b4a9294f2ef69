"""Findings of the model: of the checks, and of other checkers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.checks.findings import Finding, RuntimeAnswer, by_severity
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document import DocumentChange
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.workspace.controller import Controller, hears
from dld_tui.screens.workspace.history import EditHistory
from dld_tui.screens.workspace.jobs import Jobs, model_view
from dld_tui.screens.workspace.layout import FINDINGS
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import Cursor
from dld_tui.widgets.explorer.findings import Findings
from dld_tui.widgets.shell.command_dispatch import holding
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import on_thread

if TYPE_CHECKING:
    from dld_tui.activities.check.full import Result
    from dld_tui.core.checks import Finding
    from dld_tui.core.checks.checker import Checker
    from dld_tui.core.checks.findings import RuntimeAnswer
    from dld_tui.core.model.document import DocumentChange, Transaction


_BREAK_S = 0.002
"""How long the event loop is left alone between two slices of a check."""
_LOOK_S = 0.02
"""How often to check whether the user still types."""
_LARGE = 5_000
"""Nodes from which on a repair is made on a thread."""
_WAIT_S = 0.1
"""How often to look whether a thread that changes or saves the model has ended, or the keys."""
_MOST_S = 10.0
"""So long a key waits for the findings."""
_BEFORE = " (before the last edit)"


def _checker_type() -> type[Checker]:
    from dld_tui.core.checks.checker import Checker
    from dld_tui.core.model.operators.registry import known_domains

    known_domains()
    return Checker


@dataclass(eq=False)
class Checks(Controller):
    """Runs the checks of dld, onnx's full checker and Polygraphy's lint.

    The check runs on the event loop in short slices: a thread would fight for the interpreter with
    the keys, and would see the model while it is edited. It rests while somebody types.
    """

    COMMAND_TABLE = (
        *table(
            "workspace",
            ("model.allow_links", "checks.allow_links", "", "", "allow links",
             "Read external data through links that leave the model's folder."),
            ("finding.fix_all", "checks.fix_all", "", "repairs", "fix everything",
             "Apply all safe fixes as one edit.", "repair everything, fix all, fix everything"),
            ("check.again", "checks.check", "", "", "check again",
             "Check the whole model again, including data files.", "validate again, recheck"),
            ("check.speed", "checks.toggle_speed", "", "", "speed check",
             "Also report what slows the model down on a GPU; again to stop."),
            ("check.full", "checks.check_full", "f7", "", "full check",
             "Run onnx's full checker on the edited model.",
             "validate, checker, onnx checker, verify"),
            ("check.polygraphy", "checks.check_polygraphy", "shift+f7", "", "Polygraphy lint",
             "Run Polygraphy's lint, if installed: it runs every node on random data.", "lint"),
            common="document", menus={"finding.fix_all": "finding"},
        ),
        *table(
            "workspace",
            ("pane.4", "checks.go_to", "4", "", "findings", "Focus the findings.",
             "errors, warnings, problems, checks"),
        ),
    )  # fmt: skip

    panes: Panes
    history: EditHistory
    jobs: Jobs

    CHECK_SLICE_S: ClassVar[float] = 0.008
    """Seconds that the check may keep the event loop."""
    offer_rules: Callable[[str], None] = field(default=lambda names: None)
    """Shows what rules would change, to be carried out or not."""
    notices: list[Finding] = field(default_factory=list)
    """Findings that no check made, such as refused journal lines."""
    is_checked: bool = False
    """Whether the findings are of the current model."""
    _checker: Checker | None = None
    _answer: RuntimeAnswer | None = None
    """What ONNX Runtime said of the current model."""
    _external: dict[str, list[Finding]] = field(default_factory=dict)
    _findings: list[Finding] = field(default_factory=list)
    _full: dict[str, list[Finding]] = field(default_factory=dict)
    """The findings of each external check on the current model."""
    _is_awaited: bool = False
    _is_first: bool = True
    """Whether the model has not been checked before: when it opens, its picture comes first."""
    _with_speed: bool = False

    @property
    def errors(self) -> list[Finding]:
        """The errors that are shown."""
        return [one for one in self.panes.findings.findings if one.level == "error"]

    @property
    def is_answered(self) -> bool:
        """Whether ONNX Runtime has said what it makes of the current model."""
        return self._answer is not None

    def conditions(self, cursor: Cursor) -> set[str]:
        return holding(
            repairs=any(item.repair is not None and item.is_fixable for item in self._findings),
        )

    def note(self, change: DocumentChange) -> None:
        """Take note of an edit: what was found so far is of the model before it."""
        for source, findings in self._full.items():
            old = [replace(finding, message=finding.message + _BEFORE) for finding in findings]
            self.add_external(old, source)
        self._full.clear()
        self._answer = None

    def check_changed(self, change: DocumentChange) -> None:
        """Check the model again after an edit."""
        if self._checker is not None:
            self.check()

    def check(self) -> None:
        """Check the whole model, as soon as the event loop has time."""
        if self._checker is None:
            self.page.tasks.start(self._begin(), "check")
            return
        self._checker.restart()
        self.is_checked = False
        if not self.model.is_checking:
            self.model.is_checking = True
            self.page.tasks.start(self._run_checks(), "check")

    async def _begin(self) -> None:
        """Import the rules and read the operator sets, on a thread, and check."""
        checker = await on_thread(_checker_type)
        if not self.model.is_closed:
            self._checker = self._checker or checker(self.document)
            self.check()

    async def _run_checks(self) -> None:
        checker = self._checker
        assert checker is not None
        try:
            began = perf_counter()
            speed: list[Finding] | None = None
            while not (self.model.is_closed or (checker.done and speed is not None)):
                is_drawn_first = self.model.is_arranging and self._is_first
                if self.work.is_running or is_drawn_first:
                    await asyncio.sleep(_WAIT_S)  # a thread changes, saves or draws the model
                    continue
                if checker.done:
                    speed = await self._look_for_speed(checker)
                    continue
                self._check_slice(checker)
                if not checker.done and perf_counter() - began > _WAIT_S:
                    self.panes.findings.say(older=True)
                await self._let_keys_pass()
        finally:
            self.model.is_checking = False
        if not self.model.is_closed and self.page.is_attached:
            self.is_checked, self._is_first = True, False
            self._findings = [*checker.findings(), *(speed or ())]
            self._show_all()

    async def _look_for_speed(self, checker: Checker) -> list[Finding] | None:
        """Return what costs speed, if that is wanted; None when an edit came in between."""
        if not self._with_speed:
            return []
        from dld_tui.core.checks.speed import speed_steps  # lazy: few sessions ask for it

        findings: list[Finding] = []
        end = perf_counter() + self.CHECK_SLICE_S
        for part in speed_steps(self.document):
            findings += part
            if perf_counter() > end:
                await self._let_keys_pass()
                if not checker.done or self.model.is_closed or self.work.is_running:
                    return None
                end = perf_counter() + self.CHECK_SLICE_S
        return findings

    def go_to(self) -> None:
        """Go to the findings, once it is known whether there are any."""
        self._when_checked(partial(self.panes.focus, FINDINGS))

    def _when_checked(self, task: Callable[[], None]) -> None:
        """Do something with the findings; keys wait for the check that still runs."""

        async def wait() -> None:
            until = perf_counter() + _MOST_S
            self._is_awaited = True
            try:
                while not self.is_checked and perf_counter() < until:
                    await asyncio.sleep(_BREAK_S)
            finally:
                self._is_awaited = False
            if not self.model.is_closed:
                task()

        if self.is_checked:
            task()
        else:
            self.page.tasks.start(wait(), "await findings")

    async def _let_keys_pass(self) -> None:
        await asyncio.sleep(_BREAK_S)
        while host(self.page).is_used and not (self._is_awaited or self.model.is_closed):
            await asyncio.sleep(_LOOK_S)

    def _check_slice(self, checker: Checker) -> None:
        end = perf_counter() + self.CHECK_SLICE_S
        for _ in checker.steps():
            if perf_counter() > end:
                return

    def add_external(self, findings: list[Finding], source: str) -> None:
        """Show findings of another tool instead of what it found before."""
        self._external[source] = findings
        self._show_all()

    def add_verdict(self, answer: RuntimeAnswer, findings: list[Finding]) -> None:
        """Show what ONNX Runtime says of the current model."""
        self._answer = answer
        self.add_external(findings, "onnxruntime")

    def _show_all(self) -> None:
        from dld_tui.core.checks import Finding
        from dld_tui.core.checks.findings import settled, without_repeats

        external = [
            finding
            for findings_of_source in self._external.values()
            for finding in findings_of_source
        ]
        external = without_repeats(external, self._findings)
        findings = settled([*self.notices, *self._findings, *external], self._answer)
        if self.document.journal_error:
            message = visible(self.document.journal_error)
            findings.insert(0, Finding("warning", "journal", message))
        before = len(self.panes.findings.findings)
        self.panes.findings.show(by_severity(findings), older=not self.is_checked)
        self.panes.graph.set_findings(findings)
        if before != len(findings) or not self.panes.findings.display:
            self.panes.lay_out()
        self.page.conditions_changed()

    @hears(Findings.FixAsked)
    def repair_asked(self, event: Findings.FixAsked) -> None:
        """Repair a finding, or all of its rule."""
        rule = event.finding.rule
        self._repair(
            [f for f in self._findings if f.rule == rule] if event.every else [event.finding]
        )

    def fix_all(self) -> None:
        """Make every repair that is safe."""
        from dld_tui.core.checks.findings import safe

        self._when_checked(lambda: self._repair(safe(self._findings)))

    def _repair(self, findings: list[Finding]) -> None:
        from dld_tui.core.checks.findings import repair_steps
        from dld_tui.core.model.edits import repairs

        if not self.is_checked:
            self.say("The model is still being checked")
            return
        steps = repair_steps(findings)
        names = dict.fromkeys(name for f in findings if f.repair is None for name in f.rules)
        if not steps and names:
            self.offer_rules(" ".join(names))
            return
        if not steps:
            self.say("There is no safe repair for this")
            return
        document = self.document
        size = sum(len(scope.nodes) for scope in document.scopes())

        def make() -> Transaction:
            return document.apply(steps[0] if len(steps) == 1 else repairs.repair_of(steps))

        self.history.change("Repairing", [make], large=size > _LARGE)

    def toggle_speed(self) -> None:
        """Look for what keeps the model from running fast too, after each edit again; or stop."""
        self._with_speed = not self._with_speed
        self.check()

    def allow_links(self) -> None:
        """Read external data through links that leave the model's folder."""
        self.document.external.allow_linked = True
        self.panes.parameters.rebuild()
        self.check()
        self.say("Linked data is read from now on, and never written", 4)

    def check_full(self) -> None:
        """Run onnx's full checker."""
        self._check_with("onnx full check", "onnx", values=False)

    def check_polygraphy(self) -> None:
        """Run Polygraphy's lint."""
        self._check_with("Polygraphy lint", "polygraphy", values=True)

    def _check_with(self, title: str, source: str, *, values: bool) -> None:
        from dld_tui.core.checks.findings import findings_of

        document = self.document

        @contextmanager
        def view(snapshot: Path, cancelled: CancelCheck) -> Iterator[Mapping[str, JSON]]:
            with model_view(document, snapshot, cancelled, values=values) as edited:
                yield {
                    "model": str(edited), "view": True, "onnx": not values, "polygraphy": values
                }  # fmt: skip

        def done(result: Result, is_current: bool) -> None:
            others = [finding for name, known in self._external.items() if name != source
                      for finding in known]  # fmt: skip
            findings = [
                finding
                for finding in findings_of(document, result.findings)
                if finding not in others
            ]
            if is_current:
                self._full[source] = findings
            else:  # places are by position: they may lead elsewhere now
                findings = [
                    replace(finding, message=finding.message + _BEFORE, scope=None, node=None)
                    for finding in findings
                ]
            self.add_external(findings, source)
            count = fmt.plural(len(findings), "finding") if findings else "nothing found"
            self.say(f"{title}: {count}", 4)

        self.jobs.run_beside(title, "check_full", view, done)
