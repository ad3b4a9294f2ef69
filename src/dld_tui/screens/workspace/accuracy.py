"""The accuracy of the model: of its edits, of other ways to run it, of a lower precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.document import Change, Node
from dld_tui.core.errors import DldError
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.jobs import Jobs
from dld_tui.screens.workspace.model import Cursor
from dld_tui.screens.workspace.panes import Panes
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import NodeErrors

if TYPE_CHECKING:
    from dld_tui.core.accuracy.result import AccuracyReport
    from dld_tui.core.document import Change, Node
    from dld_tui.screens.model.result import ModelState


@dataclass(eq=False)
class Accuracy(Controller):
    """Compares results."""

    panes: Panes
    jobs: Jobs
    _errors: NodeErrors | None = None
    """The errors that the graph can show: of the comparison that was opened last."""

    def facts(self, cursor: Cursor) -> set[str]:
        return {"file"} if self.document.path is not None else set()

    def compare(self) -> None:
        """Show the form of a comparison."""
        self._show_run_form("accuracy")

    def search_precision(self) -> None:
        """Show the form of a search."""
        self._show_run_form("search_precision")

    def isolate_tactic(self) -> None:
        """Show the form of a search for wrong tactics."""
        self._show_run_form("isolate_tactic")

    def show_activity(self, activity: str) -> bool:
        """Show the form of an activity whose results are about the model's nodes."""
        from dld_tui.activities import registry

        if not registry.find(activity).of_open_model or not self.model.is_open:
            return False
        self._show_run_form(activity)
        return True

    def _show_run_form(self, activity: str) -> None:
        from dld_tui.screens.activity.model_form import ModelForm  # lazy: few sessions need it

        try:
            self.ask(ModelForm(activity, self.page, self.jobs))
        except DldError as error:
            self.complain(error)

    def compare_edits(self) -> None:
        """Compare the file with the model as it is."""
        from dld_tui.core.files.view import discard_view, external_view
        from dld_tui.screens.model.result import ModelState

        document, path = self.document, self.document.path
        if path is None:
            return

        @contextmanager
        def view(snapshot: Path, cancelled: CancelCheck) -> Iterator[dict[str, JSON]]:
            states.append(ModelState.edited(self.page, document))
            made = external_view(
                snapshot.read_bytes(),
                document.blobs,
                path.parent,
                external=document.external,
                values=True,
                cancelled=cancelled,
            )
            try:
                yield {"model": str(path), "against": str(made), "tensors": True}
            finally:
                discard_view(made)

        states: list[ModelState] = []

        def done(result: AccuracyReport, is_current: bool) -> None:
            from dld_tui.screens.accuracy.page import AccuracyScreen  # lazy: few sessions need it

            state = ModelState.edited(self.page, document) if is_current else states[0]
            other = replace(result.other, model=state.title)
            page = AccuracyScreen(replace(result, other=other), path)
            page.subject.state = state
            host(self.page).add_page(page)

        self.jobs.run_beside("Comparing with the file", "accuracy", view, done)

    def tensor_errors(self) -> tuple[Mapping[Node, float], str]:
        """Return the errors of nodes in the comparison of this model that was opened last."""
        found = self._node_errors()
        if found is None:
            return {}, ""
        return (
            found.values(),
            f"{found.title}{', before the last edits' if found.is_outdated else ''}",
        )

    def _node_errors(self) -> NodeErrors | None:
        """Return what the comparison of this model that was opened last says."""
        figures = (page.node_errors(self.document) for page in reversed(host(self.page).pages))
        return next(filter(None, figures), None)

    def show_change(self, change: Change) -> None:
        """Say in the graph that the errors shown there are of before the edit."""
        self.follow_errors()

    def follow_errors(self) -> None:
        """Show the errors of a comparison that was opened meanwhile, or that they are old."""
        errors = self._node_errors()
        if errors != self._errors:
            self._errors = errors
            if self.panes.graph.model is not None:
                self.page.call_later(self.panes.graph.colours.weighed)
