"""The accuracy of the model: of its edits, of other ways to run it, of a lower precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.activities import registry
from dld_tui.core.document import Node
from dld_tui.core.errors import DldError
from dld_tui.core.files.view import discard_view, external_view
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.model_state import ModelState
from dld_tui.screens.workspace_jobs import Jobs
from dld_tui.widgets.graph_pane import GraphPane
from dld_tui.widgets.host import host

if TYPE_CHECKING:
    from dld_tui.core.document.history import Change
    from dld_tui.screens.accuracy import AccuracyScreen


class Accuracy(Jobs):
    """The part of the workspace that compares results."""

    _errors: tuple[AccuracyScreen | None, bool] = (None, False)
    """The comparison whose errors the graph can show, and whether it is of before an edit."""

    def facts(self) -> set[str]:
        """Return whether the model has a file."""
        return super().facts() | ({"file"} if self.path is not None else set())

    def action_accuracy(self) -> None:
        """Show the form of a comparison."""
        self._show_run_form("accuracy")

    def action_search_precision(self) -> None:
        """Show the form of a search."""
        self._show_run_form("search_precision")

    def action_isolate_tactic(self) -> None:
        """Show the form of a search for wrong tactics."""
        self._show_run_form("isolate_tactic")

    def show_activity(self, activity: str) -> bool:
        """Show the form of an activity whose results are about the model's nodes."""
        if not registry.find(activity).of_open_model or not self.is_open:
            return False
        self._show_run_form(activity)
        return True

    def _show_run_form(self, activity: str) -> None:
        from dld_tui.screens.model_form import ModelForm  # lazy: few sessions need it

        try:
            self.app.push_screen(ModelForm(activity, self))
        except DldError as error:
            self.complain(error)

    def action_accuracy_edits(self) -> None:
        """Compare the file with the model as it is."""
        document, path = self.document, self.document.path
        if path is None:
            return

        @contextmanager
        def view(snapshot: Path, cancelled: CancelCheck) -> Iterator[dict[str, JSON]]:
            states.append(ModelState.edited(self))
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

        def done(result: dict[str, JSON], is_current: bool) -> None:
            from dld_tui.screens.accuracy import AccuracyScreen  # lazy: few sessions need it

            state = ModelState.edited(self) if is_current else states[0]
            other = result["other"]
            if isinstance(other, dict):
                other["model"] = state.title
            page = AccuracyScreen(result, path)
            page.state = state
            host(self).add_page(page)

        self.run_beside("Comparing with the file", "accuracy", view, done)

    def tensor_errors(self) -> tuple[dict[Node, float], str]:
        """Return the errors of nodes in the comparison of this model that was opened last."""
        page = self._comparison()
        if page is None:
            return {}, ""
        main = self.document.main
        found = ((main.find(ref), error) for ref, error in page.node_errors().items())
        since = ", before the last edits" if page.is_outdated else ""
        title = f"{page.tab_title}{since}"
        return {node: error for node, error in found if node is not None}, title

    def _comparison(self) -> AccuracyScreen | None:
        """Return the comparison of this model that was opened last."""
        if not any(page.SCOPE == "accuracy" for page in host(self).pages):
            return None  # few sessions need what is imported next
        from dld_tui.screens.accuracy import AccuracyScreen

        found = (page for page in reversed(host(self).pages) if isinstance(page, AccuracyScreen))
        return next((page for page in found if page.is_of(self)), None)

    def document_changed(self, change: Change) -> None:
        """Say in the graph that the errors shown there are of before the edit."""
        super().document_changed(change)
        self._follow_errors()

    def on_screen_resume(self, event: object) -> None:
        """Show the errors of a comparison that was opened meanwhile."""
        self._follow_errors()

    def _follow_errors(self) -> None:
        page = self._comparison()
        errors = page, page is not None and page.is_outdated
        if errors != self._errors:
            self._errors = errors
            for pane in self.query(GraphPane):
                if pane.model is not None:
                    self.call_later(pane.weighed)
