"""Edits of sessions that were killed, and edits that were thrown away."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.checks import Finding
from dld_tui.core.dataclass import dataclass
from dld_tui.core.document.scripting.journal import (
    DISCARDED_DAYS,
    CrashJournal,
    discard_journal,
    discarded_journals,
    forget_journal,
    standing_edits,
)
from dld_tui.core.errors import DldError
from dld_tui.core.process import paths
from dld_tui.core.process.paths import journal_dir
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace.checks import Checks
from dld_tui.screens.workspace.controller import Controller, Option
from dld_tui.screens.workspace.node_list import NodeList
from dld_tui.widgets.shell.page import host

if TYPE_CHECKING:
    from dld_tui.core.document.scripting.scripts import ReplayResult

_KEYS = "123456789"


def kept_text() -> str:
    """Return where discarded edits are, how long, and how to get them back."""
    folder = visible(paths.short(str(journal_dir())))
    return (
        f"Discarded edits are kept for {DISCARDED_DAYS} days in {folder}. The command “restore"
        " discarded edits” of their model makes them again."
    )


@dataclass(eq=False)
class Recovery(Controller):
    """Makes edits again that were not saved."""

    COMMAND_TABLE = table(
        "workspace",
        ("model.restore_discarded", "recovery.restore_discarded", "", "", "restore discarded edits",
         "Make edits again that were discarded in the last days.",
         "recover, get edits back, unsaved edits, lost edits"),
        common="document",
    )  # fmt: skip

    node_list: NodeList
    checks: Checks

    def offer(self, journal: CrashJournal) -> None:
        """Ask what to do with the edits of a session that was killed."""
        message = (
            f"The last session ended without saving this model: {_count(journal)} can be restored."
        )
        self.ask_which(
            "Unsaved edits",
            f"{message}{_about_changes(journal)}\n{kept_text()}",
            [
                ("r", "restore them", partial(self._restore, journal)),
                ("l", "ask me next time", None),
                ("d", "discard them", partial(self._discard, journal)),
            ],
            loses=True,
        )

    def _discard(self, journal: CrashJournal) -> None:
        discard_journal(journal)
        self.say(kept_text(), 10)

    def restore_discarded(self) -> None:
        """Make edits again that were thrown away."""
        from dld_tui.core.preview import ago

        journals = discarded_journals(self.document.path)
        if not journals:
            self.say(f"No edits of this model were discarded in the last {DISCARDED_DAYS} days")
            return
        options: list[Option] = [
            (
                key,
                f"{_count(journal)}, {ago(time.time() - journal.written)}",
                partial(self._restore, journal),
            )
            for key, journal in zip(_KEYS, journals, strict=False)
        ]
        self.ask_which("Restore", f"Which edits?{_about_changes(journals[0])}", options)

    def _restore(self, journal: CrashJournal) -> None:
        from dld_tui.core.document.scripting.scripts import replay

        document = self.document
        results: list[ReplayResult] = []
        document.hold_changes()

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            results.append(replay(document, journal.lines))
            self.node_list.reindex()

        def ended(error: DldError | None) -> None:
            document.tell_changes(as_reset=True)
            if error is not None:
                host(self.page).show_error(error)
                return
            forget_journal(journal)
            self._say_restored(journal, results[0])

        self.work.run("Restoring the edits", task, ended)

    def _say_restored(self, journal: CrashJournal, result: ReplayResult) -> None:
        refused = {number for number, _ in result.refused}
        lines = [line for number, line in enumerate(journal.lines, 1) if number not in refused]
        self.say(f"Restored {fmt.plural(len(standing_edits(lines)), 'edit')}", 4)
        self.checks.notices += [
            Finding("warning", "journal", f"line {number} no longer applies: {why}")
            for number, why in result.refused
        ]
        self.checks.check()


def _count(journal: CrashJournal) -> str:
    return fmt.plural(len(standing_edits(journal.lines)), "edit")


def _about_changes(journal: CrashJournal) -> str:
    if journal.matches:
        return ""
    return " The file has changed since then: edits that no longer fit are left out."
