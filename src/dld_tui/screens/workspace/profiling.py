"""Measuring and building what is open; edits that are not saved are saved or copied before."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.settings import paths
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.inference import TypeInference
from dld_tui.screens.workspace.saving import Saving
from dld_tui.widgets.shell.host import host


@dataclass(eq=False)
class Profiling(Controller):
    """Shows the forms of activities that need the model as a file."""

    saving: Saving
    inference: TypeInference
    _copies: list[Path] = field(default_factory=list)
    """Folders of copies that were made to profile unsaved edits."""

    def close(self) -> None:
        """Remove the copies that were made to profile unsaved edits."""
        for folder in self._copies:
            shutil.rmtree(folder, ignore_errors=True)

    def profile(self) -> None:
        """Show the form for measuring this model; asks first when there are unsaved edits."""
        self._start_form("profile_onnxruntime", "profile")

    def tune(self) -> None:
        """Show the form for finding the fastest way to run this model."""
        self._start_form("tune", "tune")

    def start_up(self) -> None:
        """Show the form for measuring what making a session takes."""
        self._start_form("start_up", "measure")

    def profile_tensorrt(self) -> None:
        """Show the form for measuring this model with TensorRT."""
        self._start_form("profile_tensorrt", "profile")

    def build(self) -> None:
        """Show the form for building a TensorRT engine of this model."""
        self._start_form("build_tensorrt", "build")

    def memory(self) -> None:
        """Show the form for counting what memory a run needs."""
        self._start_form("memory", "count")

    def _start_form(self, activity: str, verb: str) -> None:
        """Show the form of an activity; asks first which model when there are unsaved edits."""
        from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog

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
                self.saving.save(lambda: self._show_form(activity, self.document.path))
            elif answer == "copy":
                self._copy_for(activity)
            elif answer == "file":
                self._show_form(activity, document.path)

        title = visible(document.title)
        self.ask(ChoiceDialog(verb.capitalize(), f"{title} has unsaved edits.", choices), answered)

    def _show_form(self, activity: str, path: Path | None) -> None:
        if path is not None:
            host(self.page).start_activity(activity, {"model": str(path)})

    def _copy_for(self, activity: str) -> None:
        from dld_tui.core.files.model_set import plan_model

        document = self.document
        name = document.path.name if document.path is not None else "new.onnx"
        folder = paths.cache_dir() / "unsaved" / f"{os.getpid()}-{time.time_ns():x}"
        target = folder / name
        self._copies.append(folder)

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            paths.ensure(folder)
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
                host(self.page).show_error(error)

        self.work.run("Writing a copy with the edits", task, ended)
