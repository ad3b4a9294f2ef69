"""Saving, changes of the file on disk, and edits that were not saved."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.checks import Finding
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError, FileChangedError
from dld_tui.core.model.document.scripting.journal import (
    DISCARDED_DAYS,
    CrashJournal,
    discard_journal,
    discarded_journals,
    forget_journal,
    standing_edits,
)
from dld_tui.core.params import is_same_file
from dld_tui.core.process import paths
from dld_tui.core.process.paths import journal_dir
from dld_tui.core.text import clip, visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace.checks import Checks
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.inference import Inference
from dld_tui.screens.workspace.node_list import NodeList
from dld_tui.screens.workspace.state import Cursor
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import on_thread, task

if TYPE_CHECKING:
    from dld_tui.core.model.document.scripting.scripts import ReplayResult
    from dld_tui.core.model.document.serialise import DataMode


_ASK_BYTES = 64 << 20
"""Data files of another folder that are smaller are copied without a question."""
_KEYS = "123456789"


def _edited(path: Path) -> Path:
    """Return the name that is offered for another version of a model."""
    return path.with_name(f"{path.stem.removesuffix('-edited')}-edited{path.suffix}")


@dataclass(eq=False)
class Saving(Controller):
    """Saves the model, watches its file, and makes edits again that were not saved."""

    COMMAND_TABLE = table(
        "workspace",
        ("model.save", "saving.save", "ctrl+s", "dirty", "save",
         "Save the model.", "write, store"),
        ("model.save_as", "saving.save_as", "ctrl+shift+s,S,f12", "", "save as",
         "Save the model under another name.", "another name, save a copy, export model"),
        ("model.restore_discarded", "saving.restore_discarded", "", "",
         "restore discarded edits",
         "Make edits again that were discarded in the last days.",
         "recover, get edits back, unsaved edits, lost edits"),
        common="document", footer="model.save",
    )  # fmt: skip

    node_list: NodeList
    checks: Checks
    inference: Inference

    _said_changed: bool = False
    _is_saving: bool = False
    _after_save: list[Callable[[], None]] = field(default_factory=list)

    def conditions(self, cursor: Cursor) -> set[str]:
        # What another program changed may be written over; an edit on a thread is not there yet.
        differs = self.document.dirty or self._said_changed or self.work.is_running
        return {"dirty"} if differs else set()

    def unsaved(self) -> list[str]:
        """Return what closing would lose."""
        if not self.model.is_open or not self.document.dirty:
            return []
        edits = len(self.document.history.done)
        if not edits:
            lost = "never saved" if self.document.path is None else "edits were undone after a save"
        else:
            lost = f"{edits} edits" if edits != 1 else "1 edit"
        return [f"{visible(self.document.title)}: {lost}"]

    def when_saved(self, action: Callable[[], None]) -> None:
        """Do something once the running save has ended well; at once when none runs."""
        if self._is_saving:
            self._after_save.append(action)
        else:
            action()

    def save_as(self) -> None:
        """Save under another name."""
        self._ask_path(lambda: None)

    def save(self, done: Callable[[], None] = lambda: None) -> None:
        """Save to the model's own file, after asking when another program has changed it."""
        if self.document.path is None:
            self._ask_path(done)
        else:
            self._write(None, done)

    @task()
    async def _ask_path(self, done: Callable[[], None]) -> None:
        from dld_tui.widgets.dialogs.dialogs import MODELS, OpenPathDialog
        from dld_tui.widgets.dialogs.overwrite import ask_file

        present = self.document.path
        start = "" if present is None else str(paths.unused(_edited(present)))
        about = self._about_errors()

        def dialog(start: str) -> OpenPathDialog:
            return OpenPathDialog(
                "Save as", start, "path of the model", about, endings=MODELS, is_new=True
            )

        chosen = await ask_file(self.tasks, dialog, start, ending=".onnx")
        if chosen is None:
            return
        path, replaced = chosen
        if present is not None and is_same_file(path, present):
            self._write(path, done)
        else:
            await self._ask_data(path, bool(replaced), done)

    def _about_errors(self) -> str:
        """Return a line on the errors that the model has, so that nobody saves them unknowingly."""
        errors = len(self.checks.errors)
        verb = "remains" if errors == 1 else "remain"
        return f"{fmt.plural(errors, 'error')} {verb}." if errors else ""

    async def _ask_data(self, path: Path, overwrite: bool, done: Callable[[], None]) -> None:
        """Ask whether large data files of another folder are copied or linked, and save."""
        from dld_tui.core.model.document.serialise import data_to_copy
        from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog

        data = await on_thread(partial(data_to_copy, self.document, path))
        answer: str | None = "copy"
        if data.size >= _ASK_BYTES:
            choices = [
                Choice("c", f"copy them: {fmt.size(data.stored)} more on the disk", "copy"),
                Choice(
                    "l", "link them: no room, one file under two names (onnx takes none)", "link"
                ),
            ]
            if data.can_reflink:
                text = "reflink them: no room until one of the two files is changed"
                choices.append(Choice("r", text, "reflink"))
            dialog = ChoiceDialog(
                "External data",
                f"{fmt.size(data.size)} of weights are in data files of another folder.",
                choices,
            )
            answer = await self.ask(dialog)
        if answer is not None:
            self._write(path, done, overwrite=overwrite, data=cast("DataMode", answer))

    @task("await types")
    async def _write(
        self,
        path: Path | None,
        done: Callable[[], None],
        *,
        overwrite: bool = False,
        force: bool = False,
        data: DataMode = "copy",
    ) -> None:
        from dld_tui.core.model.document.serialise import save

        self._is_saving = True
        # An output without a type makes a model that onnx's checker refuses.
        await self.inference.typed(always=False)
        if self.work.is_running:
            self._is_saving, self._after_save = False, []
            self.complain(DldError("wait for the running task to end"))
            return
        document = self.document
        target = path or document.path
        remarks: list[str] = []

        def write(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            remarks.extend(
                save(
                    document,
                    path,
                    overwrite=overwrite,
                    force=force,
                    data=data,
                    progress=progress,
                    cancelled=cancelled,
                )
            )

        def ended(error: DldError | None) -> None:
            actions = self._after_save
            self._is_saving, self._after_save = False, []
            if isinstance(error, CancelledError):
                self.say("Not saved: stopped")
            elif isinstance(error, FileChangedError) and not force:
                self._ask_changed(done)
            elif error is not None:
                host(self.page).show_error(error, "Not saved")
            else:
                self._saved(target, remarks)
                done()
                for action in actions:
                    action()

        self.work.run(f"Saving {clip(visible(str(target)), 60, keep='end')}", write, ended)

    def _saved(self, target: Path | None, remarks: list[str]) -> None:
        self.page.path = self.document.path
        self._said_changed = False
        self.page.tab_title = self.document.title
        self.page.tab_dirty = self.document.dirty
        self.page.tab_changed()
        self.page.conditions_changed()
        self.say(f"Saved {visible(paths.short(str(target)))}")
        for remark in remarks:
            self.say(visible(remark), 8, warning=True)
        self.inference.when_answered(lambda: self._say_errors(target))

    def _say_errors(self, target: Path | None) -> None:
        """Say what is wrong with a model that was saved: a save is never refused."""
        errors = self.checks.errors
        if not errors:
            return
        name = visible(paths.short(str(target)))
        more = f", and {fmt.plural(len(errors) - 1, 'more error')}" if errors[1:] else ""
        self.say(f"{name} was saved with an error{more}: {errors[0].message}", 8, warning=True)

    def look_at_disk(self) -> None:
        """Warn once if another program has changed the file. The check runs on a thread."""
        if not self.model.is_open or self._said_changed or self.work.is_running:
            return
        self._look_at_disk()

    @task("disk", replace=True)
    async def _look_at_disk(self) -> None:
        is_changed = await on_thread(self.document.changed_on_disk)
        if not is_changed or self._said_changed or self.app.screen is not self.page:
            return
        self._said_changed = True
        if self.document.dirty:
            self.say(
                "The file was changed by another program. Saving will ask what to do.",
                8,
                warning=True,
            )
            return

        if await self.pick(
            "Changed on disk",
            f"{visible(self.document.title)} was changed by another program.",
            [("k", "keep what is shown", False), ("r", "read it again", True)],
            loses=True,
        ):
            self.reload()

    @task()
    async def _ask_changed(self, done: Callable[[], None]) -> None:
        answer = await self.pick(
            "Changed on disk",
            f"{visible(self.document.title)} was changed or removed by another program since "
            "it was opened.",
            [
                ("a", "save under another name", "rename"),
                ("o", "overwrite it with this model", "overwrite"),
                ("r", "read it again and lose the edits here", "reload"),
            ],
            loses=True,
        )
        if answer == "rename":
            self._ask_path(done)
        elif answer == "overwrite":
            self._write(None, done, force=True)
        elif answer == "reload":
            self.reload()

    def reload(self) -> None:
        """Open the file again in place of this tab; its edits are lost."""
        path = self.document.path
        app = host(self.page)
        self.document.close()
        app.close_page(self.page)
        if path is not None:
            app.open_path(path)

    @task()
    async def offer(self, journal: CrashJournal) -> None:
        """Ask what to do with the edits of a session that was killed."""
        message = (
            f"The last session ended without saving this model: {_count(journal)} can be restored."
        )
        answer = await self.pick(
            "Unsaved edits",
            f"{message}{_about_changes(journal)}\n{kept_text()}",
            [
                ("r", "restore them", "restore"),
                ("l", "ask me next time", "later"),
                ("d", "discard them", "discard"),
            ],
            loses=True,
        )
        if answer == "restore":
            self._restore(journal)
        elif answer == "discard":
            discard_journal(journal)
            self.say(kept_text(), 10)

    @task()
    async def restore_discarded(self) -> None:
        """Make edits again that were thrown away."""
        from dld_tui.core.reading.preview import ago

        journals = discarded_journals(self.document.path)
        if not journals:
            self.say(f"No edits of this model were discarded in the last {DISCARDED_DAYS} days")
            return
        options = [
            (key, f"{_count(journal)}, {ago(time.time() - journal.written)}", journal)
            for key, journal in zip(_KEYS, journals, strict=False)
        ]
        journal = await self.pick("Restore", f"Which edits?{_about_changes(journals[0])}", options)
        if journal is not None:
            self._restore(journal)

    def _restore(self, journal: CrashJournal) -> None:
        from dld_tui.core.model.document.scripting.scripts import replay

        document = self.document
        results: list[ReplayResult] = []
        document.hold_changes()

        def run(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            results.append(replay(document, journal.lines))
            self.node_list.reindex()

        def ended(error: DldError | None) -> None:
            document.tell_changes(as_reset=True)
            if error is not None:
                host(self.page).show_error(error)
                return
            forget_journal(journal)
            self._say_restored(journal, results[0])

        self.work.run("Restoring the edits", run, ended)

    def _say_restored(self, journal: CrashJournal, result: ReplayResult) -> None:
        refused = {number for number, _ in result.refused}
        lines = [line for number, line in enumerate(journal.lines, 1) if number not in refused]
        self.say(f"Restored {fmt.plural(len(standing_edits(lines)), 'edit')}", 4)
        self.checks.notices += [
            Finding("warning", "journal", f"line {number} no longer applies: {why}")
            for number, why in result.refused
        ]
        self.checks.check()


def kept_text() -> str:
    """Return where discarded edits are, how long, and how to get them back."""
    folder = visible(paths.short(str(journal_dir())))
    return (
        f"Discarded edits are kept for {DISCARDED_DAYS} days in {folder}. The command “restore"
        " discarded edits” of their model makes them again."
    )


def _count(journal: CrashJournal) -> str:
    return fmt.plural(len(standing_edits(journal.lines)), "edit")


def _about_changes(journal: CrashJournal) -> str:
    if journal.matches:
        return ""
    return " The file has changed since then: edits that no longer fit are left out."
