"""Types and shapes of values, from onnx's shape inference in a child process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dld_tui.core.checks import Finding
from dld_tui.core.document.values import ValueType
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.text import visible
from dld_tui.screens.workspace_background import infer_types
from dld_tui.screens.workspace_findings import Checking


class Typing(Checking):
    """The part of the workspace that asks for types and shapes."""

    INFER = True
    """Ask onnx for types and shapes when a model has been opened."""

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(path)
        self._gone = False

    def on_unmount(self) -> None:
        """Stop asking."""
        self._gone = True

    def infer(self) -> None:
        """Ask onnx for types and shapes, in a child process."""
        path = self.document.path
        if not self.INFER or path is None or not self.document.main.nodes:
            return

        def task() -> None:
            try:
                found = infer_types(path, lambda: self._gone)
            except CancelledError:
                return
            except DldError as error:
                self.call_later(self._not_inferred, error)
            else:
                self.call_later(self._inferred, found)

        self.run_worker(task, thread=True, group="infer", name="infer shapes")

    def _inferred(self, found: Mapping[tuple[str, ...], dict[str, ValueType]]) -> None:
        if not self.is_attached:
            return
        for scope in self.document.scopes():
            types = found.get(scope.path)
            if types is not None:
                scope.inferred = types
        self.explorer.list.invalidate()
        self.parameters.rebuild()

    def _not_inferred(self, error: DldError) -> None:
        if self.is_attached:
            message = visible(error.message)
            self.notices.append(Finding("info", "shapes", f"shapes are not known: {message}"))
            self.show_findings([*self.notices, *self.findings.findings], "")
