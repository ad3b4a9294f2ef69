"""The accuracy of the model: of its edits, of other ways to run it, of a lower precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dld_tui.core.document import Node
from dld_tui.core.files.view import discard_view, external_view
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.workspace_jobs import Jobs
from dld_tui.widgets.host import host


class Accuracy(Jobs):
    """The part of the workspace that compares results."""

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

    def _show_run_form(self, activity: str) -> None:
        if self.is_open and self.document.dirty and self.path is not None:
            self.notify("This runs the saved file, without the edits since then", timeout=6)
        values: dict[str, JSON] = {} if self.path is None else {"model": str(self.path)}
        host(self).start_activity(activity, values)

    def action_accuracy_edits(self) -> None:
        """Compare the file with the model as it is."""
        document, path = self.document, self.document.path
        if path is None:
            return

        @contextmanager
        def view(snapshot: Path, cancelled: CancelCheck) -> Iterator[dict[str, JSON]]:
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

        def done(result: dict[str, JSON], is_current: bool) -> None:
            from dld_tui.screens.accuracy import AccuracyScreen  # lazy: few sessions need it

            other = result["other"]
            if isinstance(other, dict):
                other["model"] = f"{path.name} with the edits"
            host(self).add_page(AccuracyScreen(result, path))
            if not is_current:
                self.app.notify("The model was edited meanwhile: this is of before", timeout=5)

        self.run_beside("Comparing with the file", "accuracy", view, done)

    def tensor_errors(self) -> tuple[dict[Node, float], str]:
        """Return the errors of nodes in the comparison of this model that was opened last."""
        from dld_tui.screens.accuracy import AccuracyScreen

        if self.path is None:
            return {}, ""
        main = self.document.main
        for page in reversed(host(self).pages):
            if isinstance(page, AccuracyScreen) and page.model.absolute() == self.path.absolute():
                found = ((main.find(ref), error) for ref, error in page.node_errors().items())
                return {node: error for node, error in found if node is not None}, page.tab_title
        return {}, ""
