"""The checks of others on the model as it is: onnx's full checker and Polygraphy's lint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.checks import Finding
from dld_tui.core.checks.remarks import findings_of
from dld_tui.core.document import Change
from dld_tui.core.files.view import discard_view, external_view
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.workspace_jobs import Jobs

_ACTIVITY = "check_full"
_BEFORE = " (before the last edit)"


class FullChecking(Jobs):
    """The part of the workspace that runs the checks of others."""

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(path)
        self._fully: dict[str, list[Finding]] = {}
        """What each check found of the model as it is."""

    def document_changed(self, change: Change) -> None:
        """Show what an edit did, and that these checks saw the model before it."""
        if self._fully:
            for source, findings in self._fully.items():
                old = [replace(found, message=found.message + _BEFORE) for found in findings]
                self.add_external(old, source)
            self._fully.clear()
        super().document_changed(change)

    def action_check_full(self) -> None:
        """Run onnx's full checker."""
        self._check_fully("onnx full check", "onnx", values=False)

    def action_check_polygraphy(self) -> None:
        """Run Polygraphy's lint."""
        self._check_fully("Polygraphy lint", "polygraphy", values=True)

    def _check_fully(self, title: str, source: str, *, values: bool) -> None:
        document = self.document

        @contextmanager
        def view(snapshot: Path, cancelled: CancelCheck) -> Iterator[dict[str, JSON]]:
            made = external_view(
                snapshot.read_bytes(),
                document.blobs,
                document.path.parent if document.path is not None else None,
                external=document.external,
                values=values,
                cancelled=cancelled,
            )
            try:
                yield {
                    "model": str(made), "view": True, "onnx": not values, "polygraphy": values
                }  # fmt: skip
            finally:
                discard_view(made)

        def done(result: dict[str, JSON], is_current: bool) -> None:
            others = [found for name, told in self._external.items() if name != source
                      for found in told]  # fmt: skip
            findings = [
                found for found in findings_of(document, result["findings"]) if found not in others
            ]
            if is_current:
                self._fully[source] = findings
            else:  # places are by position: they may lead elsewhere now
                findings = [
                    replace(found, message=found.message + _BEFORE, scope=None, node=None)
                    for found in findings
                ]
            self.add_external(findings, source)
            said = fmt.plural(len(findings), "finding") if findings else "nothing found"
            self.notify(f"{title}: {said}", timeout=4, markup=False)

        self.run_beside(title, _ACTIVITY, view, done)
