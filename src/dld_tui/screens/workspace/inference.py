"""Types of the values: onnx is asked for them after each edit, and ONNX Runtime for the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, ClassVar

from textual.timer import Timer

from dld_tui.core.checks.findings import (
    INFERENCE,
    LOAD,
    Finding,
    RuntimeAnswer,
    ToolFinding,
    findings_of,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.files.temporary import discard, hold_folder
from dld_tui.core.model.document import DocumentChange
from dld_tui.core.model.document.locations import scope_at
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.workspace.checks import Checks
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.jobs import SLICE_S, Jobs, Watch, model_view
from dld_tui.screens.workspace.panes import Panes
from dld_tui.widgets.tasks import on_thread

if TYPE_CHECKING:
    from dld_tui.core.events import Event
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.shapes.staleness import Staleness


_LARGE = 5_000
"""Nodes from which on inference waits longer after an edit."""
_MOST_S = 10.0
"""So long a command waits for the types."""
_POLL_S = 0.05
_RUNTIME_LIMIT_S = 30.0
"""Time limit of ONNX Runtime in seconds."""


@dataclass(eq=False)
class Inference(Controller):
    """Asks onnx for types, and ONNX Runtime whether it loads the model, in child processes."""

    panes: Panes
    jobs: Jobs
    checks: Checks

    INFER: ClassVar[bool] = True
    """Ask onnx for types and shapes, when a model has been opened and after each edit."""
    INFER_AFTER_S: ClassVar[tuple[float, float]] = (0.3, 1.0)
    """How long to wait after the last edit: in small models, and in large ones."""
    _infer_timer: Timer | None = None
    _staleness: Staleness | None = None
    _declared: set[tuple[str, str]] = field(default_factory=set)
    """Terminals that got their types from inference: scope and name."""

    def invalidate(self, change: DocumentChange) -> None:
        """Mark the types that may be wrong now, and ask for them again a little later."""
        if self.INFER:
            self.model.has_fresh_types = False
            self._stale_marks.changed(change)
            self._spread_marks(self.model.version)
            self._infer_later()

    @property
    def _stale_marks(self) -> Staleness:
        from dld_tui.core.model.shapes.staleness import Staleness

        if self._staleness is None:
            self._staleness = Staleness(self.document)
        return self._staleness

    def _spread_marks(self, version: int, *, later: bool = False) -> None:
        if self.model.is_closed or version != self.model.version or self.model.has_fresh_types:
            return
        began = perf_counter()
        done = False
        while not done and perf_counter() - began < SLICE_S:
            done = self._stale_marks.advance(100)
        if not done:
            self.page.set_timer(0.001, lambda: self._spread_marks(version, later=True))
        elif later:
            self._show_types()

    def _infer_later(self) -> None:
        if self._infer_timer is not None:
            self._infer_timer.stop()
        quick, slow = self.INFER_AFTER_S
        large = len(self.document.main.nodes) > _LARGE
        self._infer_timer = self.page.set_timer(slow if large else quick, self.infer)

    async def typed(self, *, always: bool) -> None:
        """Wait until inference knows the types of the current model, or a model's file needs none.

        It is asked at once, and not waited for longer than a person would.

        Args:
            always: Wait, too, when no input or output lacks its type.
        """
        from dld_tui.core.model.edits.late_types import untyped_terminals

        def is_ready() -> bool:
            if not self.INFER or self.model.has_fresh_types or self.model.is_closed:
                return True
            return not always and not untyped_terminals(self.document)

        until = perf_counter() + _MOST_S
        while not is_ready() and perf_counter() < until:
            await asyncio.sleep(_POLL_S)
            if self.model.is_closed:
                raise asyncio.CancelledError

    def when_answered(self, task: Callable[[], None]) -> None:
        """Run a task once checks and ONNX Runtime have looked at the current model.

        It is not run if an edit comes first, and not waited for without end.
        """
        version = self.model.version

        def is_answered() -> bool:
            return self.checks.is_checked and (self.checks.is_answered or not self.INFER)

        async def wait() -> None:
            until = perf_counter() + _RUNTIME_LIMIT_S
            while self._is_current(version) and not is_answered() and perf_counter() < until:
                await asyncio.sleep(_POLL_S)
            if self._is_current(version):
                task()

        self.page.tasks.start(wait(), "await answer")

    def infer(self) -> None:
        """Ask onnx for types and shapes, in a child process."""
        if not self.INFER or self.model.is_closed:
            return
        if self.work.is_running:
            self._infer_later()  # a thread may be editing or saving the model
            return
        snapshot = self._take_snapshot(self.model.version)
        self.page.tasks.start(snapshot, "snapshot", replace=True)

    async def _take_snapshot(self, version: int) -> None:
        folder = hold_folder("types")
        try:
            path = folder / "snapshot.onnx"
            while (self.model.is_arranging or self.model.is_checking) and not self.model.is_closed:
                await asyncio.sleep(_POLL_S)  # what a person waits for goes first
            if await self.jobs.write_snapshot(path):
                if version == self.model.version:
                    self.page.tasks.start(self._use_snapshot(path, version), "infer")
                    return
            elif self.work.is_running:
                self._infer_later()  # a thread may be editing the model
        except OSError as error:
            self._not_inferred(version, DldError(f"no snapshot can be written: {error}"))
        discard(folder)

    async def _use_snapshot(self, path: Path, version: int) -> None:
        try:
            await self._infer_types(path, version)
            if self._is_current(version):
                await self._ask_runtime(path, version)
        finally:
            discard(path.parent)

    def _is_current(self, version: int) -> bool:
        return not self.model.is_closed and version == self.model.version

    async def _ask_runtime(self, path: Path, version: int) -> None:
        """Ask ONNX Runtime whether it loads the model."""
        try:
            answer, of_tools = await on_thread(
                ask_runtime, self.document, path, lambda: not self._is_current(version)
            )
        except CancelledError:
            return
        except DldError as error:
            answer, of_tools = RuntimeAnswer(False, reason=visible(error.message)), []
        if self.page.is_attached and self._is_current(version):
            findings = findings_of(self.document, of_tools)
            if answer.reason:
                text = f"ONNX Runtime was not asked, or gave no answer: {answer.reason}"
                findings.append(Finding("info", LOAD, text))
            self.checks.add_verdict(answer, findings)

    async def _infer_types(self, path: Path, version: int) -> None:
        try:
            types = await on_thread(
                infer_types, path, self.document.path, lambda: not self._is_current(version)
            )
        except CancelledError:
            return
        except DldError as error:
            self._not_inferred(version, error)
        else:
            self._inferred(version, types)

    def _inferred(self, version: int, inferred: InferredTypes) -> None:
        if not self.page.is_attached or version != self.model.version:
            return
        document = self.document
        had = {scope: scope.inferred for scope in document.scopes()}
        document.forget_types()
        for (place, variant), types in inferred.scopes.items():
            scope_found = scope_at(document, json.loads(place))
            if scope_found is not None:
                document.call_types.note(scope_found, variant, types.values, types.called)
        has_news = any(scope.inferred != types for scope, types in had.items())
        has_news |= self._stale_marks.clear()  # what is drawn has the marks in it
        self.model.has_fresh_types = True
        if has_news:
            self.checks.check()
        self._declare_late()
        self.checks.add_external(findings_of(document, inferred.errors), INFERENCE)
        self._show_types()
        if has_news:
            self.panes.graph.colours.types_changed()

    def _declare_late(self) -> None:
        """Give inputs and outputs that edits made without a type the one that is known by now."""
        if not self.document.history.done:
            return  # else a look at a model would load all edits
        from dld_tui.core.model.edits.late_types import late_types

        for edit in late_types(self.document):
            key = (str(edit.arguments["scope"]), str(edit.arguments["value"]))
            if key not in self._declared:  # once: an undo of it is not taken back
                self._declared.add(key)
                self.document.apply(edit)

    def _not_inferred(self, version: int, error: DldError) -> None:
        if self.page.is_attached and version == self.model.version:
            self.model.has_fresh_types = True
            message = f"shapes are unknown: {visible(error.message)}"
            self.checks.add_external([Finding("info", INFERENCE, message)], INFERENCE)

    def _show_types(self) -> None:
        self.document.shown_types.clear()
        self.panes.explorer.types_changed()
        self.panes.graph.list.invalidate()
        self.panes.parameters.rebuild()


@dataclass
class ScopeTypes:
    """Inferred types of a scope: see :class:`~dld_tui.core.model.document.scope.CallTypes`."""

    values: dict[str, ValueType] = field(default_factory=dict)
    called: dict[str, int] = field(default_factory=dict)


@dataclass
class InferredTypes:
    """Inferred types of a model."""

    scopes: dict[tuple[str, int | None], ScopeTypes] = field(default_factory=dict)
    """By the place of a scope (``core/model/document/locations.py``) as JSON, and the variant."""
    errors: list[ToolFinding] = field(default_factory=list)
    """Parts that every runtime will reject."""


def infer_types(snapshot: Path, home: Path | None, cancelled: CancelCheck) -> InferredTypes:
    """Return the inferred types of a model's values.

    Blocks until the child process has ended: call it on a thread.

    Args:
        snapshot: What :func:`dld_tui.core.model.document.serialise.snapshot` gave, as a file.
        home: The model's own file, where it has one.
        cancelled: Asked now and then.

    Raises:
        ActivityError: Inference refuses the model.
        CancelledError: `cancelled` returned True.
    """
    from dld_tui.activities.infer_shapes import Result
    from dld_tui.targets import registry

    inferred = InferredTypes()
    types = _Types(inferred)
    request: dict[str, JSON] = {
        "model": str(snapshot), "snapshot": True, "home": str(home) if home else None
    }  # fmt: skip
    with registry.get().start("infer_shapes", request) as job, Watch(job.close, cancelled):
        inferred.errors = job.result(types.take, kind=Result).errors
    return inferred


def ask_runtime(
    document: Document, snapshot: Path, cancelled: CancelCheck
) -> tuple[RuntimeAnswer, list[ToolFinding]]:
    """Return what ONNX Runtime says of a snapshot of a document.

    Blocks until the child process has ended: call it on a thread.

    Raises:
        CancelledError: `cancelled` returned True.
        DldError: The child process failed.
    """
    from dld_tui.activities.check.full import Result
    from dld_tui.targets import registry

    with model_view(document, snapshot, cancelled, values=False, loadable=True) as view:
        request: dict[str, JSON] = {
            "model": str(view), "view": True, "onnx": False, "runtime": True,
            "time_limit": _RUNTIME_LIMIT_S,
        }  # fmt: skip
        with registry.get().start("check_full", request) as job, Watch(job.close, cancelled):
            result = job.result(kind=Result)
    return result.runtime or RuntimeAnswer(False), result.findings


class _Types:
    """Puts the parts together; equal types are one object."""

    def __init__(self, inferred: InferredTypes) -> None:
        self._inferred = inferred
        self._known: dict[ValueType, ValueType] = {}

    def take(self, event: Event) -> None:
        """Take in a part, and let the event loop go on."""
        from dld_tui.activities.infer_shapes import InferredPart
        from dld_tui.core.codec import decode
        from dld_tui.core.events import Part

        if not isinstance(event, Part):
            return
        part = decode(InferredPart, event.data)
        kinds = [self._known.setdefault(kind, kind) for kind in part.kinds]
        key = json.dumps(part.place), part.variant
        types = self._inferred.scopes.setdefault(key, ScopeTypes())
        types.values.update((name, kinds[number]) for name, number in part.types.items())
        types.called.update(part.called)
        sleep(0.001)  # this thread holds the interpreter otherwise
