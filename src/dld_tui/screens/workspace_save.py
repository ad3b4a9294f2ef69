"""Saving, what to do when the file changed on disk, and starting a profile."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from dld_tui.core import paths as folders
from dld_tui.core.document.saving import save
from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.errors import CancelledError, DldError, FileChangedError
from dld_tui.core.files.model_set import plan_model
from dld_tui.core.text import clip, visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.open_path import OpenPathDialog
from dld_tui.screens.workspace_edit import Editing
from dld_tui.widgets.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.host import host

PROFILE = "profile_onnxruntime"


class Saving(Editing):
    """The part of the workspace that writes files."""

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(path)
        self._said_changed = False
        self._copies: list[Path] = []
        """Folders of copies that were made to profile unsaved edits."""

    def on_unmount(self) -> None:
        """Remove the copies that were made to profile unsaved edits."""
        for folder in self._copies:
            shutil.rmtree(folder, ignore_errors=True)

    def unsaved(self) -> list[str]:
        """Return what closing would lose."""
        if not self.is_open or not self.document.dirty:
            return []
        edits = len(self.document.history.done)
        what = f"{edits} edits" if edits != 1 else "1 edit"
        return [f"{visible(self.document.title)}: {what if edits else 'never saved'}"]

    def save_then(self, done: Callable[[], None]) -> None:
        """Save, and call `done` when it is saved."""
        self.save(done)

    # --- save -----------------------------------------------------------------------------------

    def action_save(self) -> None:
        """Save to the file that it came from; asks for one when there is none."""
        self.save()

    def action_save_as(self) -> None:
        """Save under another name."""
        self._ask_path(lambda: None)

    def save(self, done: Callable[[], None] = lambda: None) -> None:
        """Save to the model's own file, after asking when another program has changed it."""
        if self.document.path is None:
            self._ask_path(done)
        else:
            self._write(None, done)

    def _ask_path(self, done: Callable[[], None]) -> None:
        present = self.document.path

        def chosen(path: Path | None) -> None:
            if path is None:
                return
            if not path.suffix:
                path = path.with_suffix(".onnx")
            if path.exists() and path != present:
                self._ask_overwrite(path, done)
            else:
                self._write(path, done)

        start = str(present) if present is not None else ""
        self.app.push_screen(OpenPathDialog("Save as", start, "path of the model"), chosen)

    def _ask_overwrite(self, path: Path, done: Callable[[], None]) -> None:
        def answered(answer: str | None) -> None:
            if answer == "overwrite":
                self._write(path, done)
            elif answer == "other":
                self._ask_path(done)

        self.app.push_screen(
            ChoiceDialog(
                "Overwrite?",
                f"{visible(str(path))} is there already.",
                [
                    Choice("o", "overwrite it", "overwrite"),
                    Choice("a", "save under another name", "other"),
                ],
            ),
            answered,
        )

    def _write(self, path: Path | None, done: Callable[[], None], *, force: bool = False) -> None:
        # An output without a type makes a model that onnx's checker refuses.
        self.when_typed(lambda: self._write_now(path, done, force=force), always=False)

    def _write_now(
        self, path: Path | None, done: Callable[[], None], *, force: bool = False
    ) -> None:
        if self._cancel is not None:
            self.complain(DldError("wait until the running work has ended"))
            return
        document = self.document
        target = path or document.path
        remarks: list[str] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            remarks.extend(
                save(document, path, force=force, progress=progress, cancelled=cancelled)
            )

        def ended(error: DldError | None) -> None:
            if isinstance(error, CancelledError):
                self.notify("Not saved: stopped", timeout=3)
            elif isinstance(error, FileChangedError) and not force:
                self._ask_changed(done)
            elif error is not None:
                host(self).show_error(error, "Not saved")
            else:
                self._saved(target, remarks)
                done()

        self.work(f"Saving {clip(visible(str(target)), 60, keep='end')}", task, ended)

    def _saved(self, target: Path | None, remarks: list[str]) -> None:
        self.path = self.document.path
        self._said_changed = False
        self.tab_title = self.document.title
        self.tab_dirty = self.document.dirty
        self.tab_changed()
        self.facts_changed()
        self.notify(f"Saved {visible(folders.short(str(target)))}", timeout=3, markup=False)
        for remark in remarks:
            self.notify(visible(remark), severity="warning", timeout=8, markup=False)

    # --- changed on disk ------------------------------------------------------------------------

    def look_at_disk(self) -> None:
        """Say so, once, when another program has changed the file. The look runs on a thread."""
        if not self.is_open or self._said_changed or self._cancel is not None:
            return
        document = self.document

        def look() -> None:
            if document.changed_on_disk():
                self.call_later(self._found_changed)

        self.run_worker(look, thread=True, group="disk", exclusive=True, name="look at the file")

    def _found_changed(self) -> None:
        if self._said_changed or self.app.screen is not self:
            return
        self._said_changed = True
        if self.document.dirty:
            self.notify(
                "The file was changed by another program. Saving will ask what to do.",
                severity="warning",
                timeout=8,
            )
            return

        def answered(answer: str | None) -> None:
            if answer == "reload":
                self.reload()

        self.app.push_screen(
            ChoiceDialog(
                "Changed on disk",
                f"{visible(self.document.title)} was changed by another program.",
                [Choice("r", "read it again", "reload"), Choice("k", "keep what is shown", "")],
            ),
            answered,
        )

    def _ask_changed(self, done: Callable[[], None]) -> None:
        def answered(answer: str | None) -> None:
            if answer == "overwrite":
                self._write(None, done, force=True)
            elif answer == "other":
                self._ask_path(done)
            elif answer == "reload":
                self.reload()

        self.app.push_screen(
            ChoiceDialog(
                "Changed on disk",
                f"{visible(self.document.title)} was changed or removed by another program since "
                "it was opened.",
                [
                    Choice("o", "overwrite it with what is here", "overwrite"),
                    Choice("a", "save under another name", "other"),
                    Choice("r", "read it again and lose the edits here", "reload"),
                ],
            ),
            answered,
        )

    def reload(self) -> None:
        """Open the file again in place of this tab; its edits are lost."""
        path = self.document.path
        app = host(self)
        self.document.close()
        app.close_page(self)
        if path is not None:
            app.open_path(path)

    # --- measure and build ----------------------------------------------------------------------

    def action_profile(self) -> None:
        """Show the form for measuring this model; asks first when there are unsaved edits."""
        self._start_form(PROFILE, "profile")

    def action_profile_tensorrt(self) -> None:
        """Show the form for measuring this model with TensorRT."""
        self._start_form("profile_tensorrt", "profile")

    def action_build(self) -> None:
        """Show the form for building a TensorRT engine of this model."""
        self._start_form("build_tensorrt", "build")

    def _start_form(self, activity: str, verb: str) -> None:
        """Show the form of an activity; asks first which model when there are unsaved edits."""
        document = self.document
        if document.path is not None and not document.dirty:
            self._show_form(activity, document.path)
            return
        choices = [
            Choice("s", f"save, then {verb}", "save"),
            Choice("c", f"{verb} a copy with the edits", "copy"),
        ]
        if document.path is not None:
            choices.append(Choice("f", f"{verb} the file as it is on disk", "file"))

        def answered(answer: str | None) -> None:
            if answer == "save":
                self.save(lambda: self._show_form(activity, self.document.path))
            elif answer == "copy":
                self._copy_for(activity)
            elif answer == "file":
                self._show_form(activity, document.path)

        title = visible(document.title)
        self.app.push_screen(
            ChoiceDialog(verb.capitalize(), f"{title} has unsaved edits.", choices), answered
        )

    def _show_form(self, activity: str, path: Path | None) -> None:
        if path is not None:
            host(self).start_activity(activity, {"model": str(path)})

    def _copy_for(self, activity: str) -> None:
        document = self.document
        name = document.path.name if document.path is not None else "new.onnx"
        folder = folders.cache_dir() / "unsaved" / f"{os.getpid()}-{time.time_ns():x}"
        target = folder / name
        self._copies.append(folder)

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            folders.ensure(folder)
            plan = plan_model(
                skeleton_bytes(document),
                document.blobs,
                target,
                external=document.external,
                spill=document.spill,
            )
            plan.write(progress=progress, cancelled=cancelled)

        def ended(error: DldError | None) -> None:
            if error is None:
                self._show_form(activity, target)
            elif not isinstance(error, CancelledError):
                host(self).show_error(error)

        self.work("Writing a copy with the edits", task, ended)
