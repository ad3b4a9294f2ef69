"""Types and shapes of values, from onnx's shape inference in a child process after each edit."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import ClassVar

from textual.timer import Timer
from textual.worker import Worker

from dld_tui.core.checks import Finding
from dld_tui.core.checks.remarks import predicted_findings
from dld_tui.core.document import Change
from dld_tui.core.document.late_types import late_types, untyped_terminals
from dld_tui.core.document.places import scope_at
from dld_tui.core.document.staleness import Staleness
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.files.leftovers import SNAPSHOTS, hold_folder, let_go
from dld_tui.core.text import visible
from dld_tui.screens.workspace_background import InferredTypes, infer_types
from dld_tui.screens.workspace_jobs import SLICE_S
from dld_tui.screens.workspace_modify import Modifying

RULE = "onnx:shape-inference"
_WAIT_S = 0.05
_MOST_S = 10.0
"""What needs types goes on without them after so long."""
_LARGE = 5_000
"""Nodes from which on inference waits longer for the next edit."""


class Typing(Modifying):
    """The part of the workspace that asks for types and shapes."""

    INFER = True
    """Ask onnx for types and shapes, when a model has been opened and after each edit."""
    INFER_AFTER_S: ClassVar[tuple[float, float]] = (0.3, 1.0)
    """How long to wait after the last edit: in small models, and in large ones."""

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(path)
        self._gone = False
        self._infer_timer: Timer | None = None
        self._staleness: Staleness | None = None
        self._declared: set[tuple[str, str]] = set()
        """Terminals that got their types when inference told them: scope and name."""
        self.types_are_fresh = False
        """Whether inference has told the types of the model as it is."""

    def on_unmount(self) -> None:
        """Stop asking."""
        self._gone = True

    # --- when the model changes -----------------------------------------------------------------

    def document_changed(self, change: Change) -> None:
        """Mark the types that may be wrong now, and ask for them again a little later."""
        self.changes += 1
        if self.INFER:
            self.types_are_fresh = False
            self._stale_marks.changed(change)
            self._spread_marks(self.changes)
            self._infer_later()
        super().document_changed(change)

    @property
    def _stale_marks(self) -> Staleness:
        if self._staleness is None:
            self._staleness = Staleness(self.document)
        return self._staleness

    def _spread_marks(self, version: int, *, later: bool = False) -> None:
        if self._gone or version != self.changes or self.types_are_fresh:
            return
        began = perf_counter()
        done = False
        while not done and perf_counter() - began < SLICE_S:
            done = self._stale_marks.advance(100)
        if not done:
            self.set_timer(0.001, lambda: self._spread_marks(version, later=True))
        elif later:
            self._show_types()

    def _infer_later(self) -> None:
        if self._infer_timer is not None:
            self._infer_timer.stop()
        quick, slow = self.INFER_AFTER_S
        large = len(self.document.main.nodes) > _LARGE
        self._infer_timer = self.set_timer(slow if large else quick, self.infer)

    def when_typed(self, task: Callable[[], None], *, always: bool) -> None:
        """Do something when inference has told the types of the model as it is.

        It is asked at once, and not waited for longer than a person would.
        """

        def is_ready() -> bool:
            if not self.INFER or self.types_are_fresh or self._gone:
                return True
            return not always and not untyped_terminals(self.document)

        async def wait() -> None:
            until = perf_counter() + _MOST_S
            while not is_ready() and perf_counter() < until:
                await asyncio.sleep(_WAIT_S)
            if not self._gone:
                task()

        if is_ready():
            task()
        else:
            self.run_worker(wait(), group="await types", name="wait for types")

    # --- asking ---------------------------------------------------------------------------------

    def infer(self) -> None:
        """Ask onnx for types and shapes, in a child process."""
        if not self.INFER or self._gone:
            return
        if self._cancel is not None:
            self._infer_later()  # a thread may be editing or saving the model
            return
        _: Worker[None] = self.run_worker(
            self._take_snapshot(self.changes), group="snapshot", exclusive=True, name="snapshot"
        )

    async def _take_snapshot(self, version: int) -> None:
        folder = hold_folder(Path(tempfile.gettempdir()), SNAPSHOTS)
        try:
            path = folder / "snapshot.onnx"
            while self.is_arranging and not self._gone:
                await asyncio.sleep(_WAIT_S)  # what a person waits for goes first
            if await self.write_snapshot(path):
                if version == self.changes:
                    self._start_inference(path, version)
                    return
            elif self._cancel is not None:
                self._infer_later()  # a thread may be editing the model
        except OSError as error:
            self._not_inferred(version, DldError(f"no snapshot can be written: {error}"))
        _remove(folder)

    def _start_inference(self, path: Path, version: int) -> None:
        home = self.document.path

        def task() -> None:
            try:
                found = infer_types(path, home, lambda: self._gone or version != self.changes)
            except CancelledError:
                return
            except DldError as error:
                self.call_later(self._not_inferred, version, error)
            else:
                self.call_later(self._inferred, version, found)
            finally:
                _remove(path.parent)

        self.run_worker(task, thread=True, group="infer", name="infer shapes")

    # --- showing --------------------------------------------------------------------------------

    def _inferred(self, version: int, found: InferredTypes) -> None:
        if not self.is_attached or version != self.changes:
            return
        document = self.document
        for scope in document.scopes():
            scope.inferred = {}
        for place, types in found.scopes:
            scope_found = scope_at(document, place)
            if scope_found is not None:
                scope_found.inferred = types
        self._stale_marks.clear()
        self.types_are_fresh = True
        self.types_changed()
        self._declare_late()
        self.add_external(predicted_findings(document, found.errors), RULE)
        self._show_types()

    def _declare_late(self) -> None:
        """Give inputs and outputs that edits made without a type the one that is known by now."""
        for arguments in late_types(self.document):
            key = (str(arguments["scope"]), str(arguments["value"]))
            if key not in self._declared:  # once: an undo of it is not taken back
                self._declared.add(key)
                self.document.apply("set_value_type", **arguments)

    def _not_inferred(self, version: int, error: DldError) -> None:
        if self.is_attached and version == self.changes:
            self.types_are_fresh = True
            message = f"shapes are not known: {visible(error.message)}"
            self.add_external([Finding("info", RULE, message)], RULE)

    def _show_types(self) -> None:
        self.explorer.list.invalidate()
        self.parameters.rebuild()


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    let_go(folder)
