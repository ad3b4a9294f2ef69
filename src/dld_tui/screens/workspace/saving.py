"""Saving, and handling changes of the file on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError, FileChangedError
from dld_tui.core.params import is_same_file
from dld_tui.core.process import paths
from dld_tui.core.text import clip, visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace.checks import Checks
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.inference import TypeInference
from dld_tui.screens.workspace.state import Cursor
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import on_thread

if TYPE_CHECKING:
    from dld_tui.core.document.serialise import DataMode

_ASK_BYTES = 64 << 20
"""Data files of another folder that are smaller are copied without a question."""


def _edited(path: Path) -> Path:
    """Return the name that is offered for another version of a model."""
    return path.with_name(f"{path.stem.removesuffix('-edited')}-edited{path.suffix}")


@dataclass(eq=False)
class Saving(Controller):
    """Saves the model, and watches its file for changes."""

    COMMAND_TABLE = table(
        "workspace",
        ("model.save", "saving.save", "ctrl+s", "dirty", "save", "Save the model.", "write, store"),
        ("model.save_as", "saving.save_as", "ctrl+shift+s,S,f12", "", "save as",
         "Save the model under another name.", "another name, save a copy, export model"),
        common="document", footer="model.save",
    )  # fmt: skip

    inference: TypeInference
    checks: Checks
    _said_changed: bool = False
    _is_saving: bool = False
    _after_save: list[Callable[[], None]] = field(default_factory=list)

    def facts(self, cursor: Cursor) -> set[str]:
        # What another program changed may be written over; an edit on a thread is not there yet.
        differs = self.document.dirty or self._said_changed or self.work.is_running
        return {"dirty"} if differs else set()

    def unsaved(self) -> list[str]:
        """Return what closing would lose."""
        if not self.model.is_open or not self.document.dirty:
            return []
        edits = len(self.document.history.done)
        count = f"{edits} edits" if edits != 1 else "1 edit"
        return [f"{visible(self.document.title)}: {count if edits else 'never saved'}"]

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

    def _ask_path(self, done: Callable[[], None]) -> None:
        self.page.tasks.start(self._save_as(done), "dialog")

    async def _save_as(self, done: Callable[[], None]) -> None:
        from dld_tui.widgets.dialogs.dialogs import MODELS, OpenPathDialog
        from dld_tui.widgets.dialogs.overwrite import ask_file

        present = self.document.path
        start = "" if present is None else str(paths.unused(_edited(present)))
        about = self._about_errors()

        def dialog(start: str) -> OpenPathDialog:
            return OpenPathDialog(
                "Save as", start, "path of the model", about, endings=MODELS, is_new=True
            )

        chosen = await ask_file(self.page.tasks, dialog, start, ending=".onnx")
        if chosen is None:
            return
        path, replaced = chosen
        if present is not None and is_same_file(path, present):
            self._write(path, done)
        else:
            await self._ask_data(path, bool(replaced), done)

    def _about_errors(self) -> str:
        """Return a line on the errors that the model has, so that nobody saves them unknowingly."""
        errors = self.checks.error_count
        verb = "remains" if errors == 1 else "remain"
        return f"{fmt.plural(errors, 'error')} {verb}." if errors else ""

    async def _ask_data(self, path: Path, overwrite: bool, done: Callable[[], None]) -> None:
        """Ask whether large data files of another folder are copied or linked, and save."""
        from dld_tui.core.document.serialise import data_to_copy
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
            answer = await self.page.tasks.ask(dialog)
        if answer is not None:
            self._write(path, done, overwrite=overwrite, data=cast("DataMode", answer))

    def _write(
        self,
        path: Path | None,
        done: Callable[[], None],
        *,
        overwrite: bool = False,
        force: bool = False,
        data: DataMode = "copy",
    ) -> None:
        self._is_saving = True
        # An output without a type makes a model that onnx's checker refuses.
        self.inference.when_typed(
            lambda: self._write_now(path, done, overwrite=overwrite, force=force, data=data),
            always=False,
        )

    def _write_now(
        self,
        path: Path | None,
        done: Callable[[], None],
        *,
        overwrite: bool,
        force: bool,
        data: DataMode,
    ) -> None:
        from dld_tui.core.document.serialise import save

        if self.work.is_running:
            self._is_saving, self._after_save = False, []
            self.complain(DldError("wait for the running task to end"))
            return
        document = self.document
        target = path or document.path
        remarks: list[str] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
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

        self.work.run(f"Saving {clip(visible(str(target)), 60, keep='end')}", task, ended)

    def _saved(self, target: Path | None, remarks: list[str]) -> None:
        self.page.path = self.document.path
        self._said_changed = False
        self.page.tab_title = self.document.title
        self.page.tab_dirty = self.document.dirty
        self.page.tab_changed()
        self.page.facts_changed()
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
        self.page.tasks.start(self._look_at_disk(), "disk", replace=True)

    async def _look_at_disk(self) -> None:
        if await on_thread(self.document.changed_on_disk):
            self._found_changed()

    def _found_changed(self) -> None:
        if self._said_changed or self.app.screen is not self.page:
            return
        self._said_changed = True
        if self.document.dirty:
            self.say(
                "The file was changed by another program. Saving will ask what to do.",
                8,
                warning=True,
            )
            return

        self.ask_which(
            "Changed on disk",
            f"{visible(self.document.title)} was changed by another program.",
            [("k", "keep what is shown", None), ("r", "read it again", self.reload)],
            loses=True,
        )

    def _ask_changed(self, done: Callable[[], None]) -> None:
        self.ask_which(
            "Changed on disk",
            f"{visible(self.document.title)} was changed or removed by another program since "
            "it was opened.",
            [
                ("a", "save under another name", lambda: self._ask_path(done)),
                (
                    "o",
                    "overwrite it with this model",
                    lambda: self._write(None, done, force=True),
                ),
                ("r", "read it again and lose the edits here", self.reload),
            ],
            loses=True,
        )

    def reload(self) -> None:
        """Open the file again in place of this tab; its edits are lost."""
        path = self.document.path
        app = host(self.page)
        self.document.close()
        app.close_page(self.page)
        if path is not None:
            app.open_path(path)
