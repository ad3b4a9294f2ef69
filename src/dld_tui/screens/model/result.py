"""Pages about the results of a model: their nodes are those of the tab that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dld_tui.core.types import JSON
from dld_tui.screens.model.state import ModelState
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import Page

if TYPE_CHECKING:
    from dld_tui.core.document import Document


class ModelResult(Page):
    """Base of the pages of results; set :attr:`model`."""

    ACTIVITY: ClassVar[str] = ""
    """What gives such results."""
    model: Path
    """The file in which nodes are shown."""
    state: ModelState | None = None
    """The state of a tab that was run; None when a file was."""

    @classmethod
    def of_job(cls, result: Any, values: Mapping[str, JSON]) -> ModelResult:
        """Return the page of what a job found; `values` are those of its form."""
        make: Callable[[Any, Path], ModelResult] = cls
        return make(result, Path(str(values.get("model"))))

    def is_of(self, document: Document) -> bool:
        """Return whether it is about an open document."""
        if self.state is not None and self.state.is_open:
            return self.state.document() is document
        return document.path is not None and document.path.absolute() == self.model.absolute()

    @property
    def is_outdated(self) -> bool:
        """Whether the model was edited since."""
        return self.state is not None and self.state.is_open and not self.state.is_current

    def action_again(self) -> None:
        """Show the form again."""
        if self.state is not None and self.state.is_open:
            page: Page = self.state.page
            host(self).show_page(page)
            page.show_activity(self.ACTIVITY)
        else:
            host(self).start_activity(self.ACTIVITY, {"model": str(self.model)})

    def show_node(self, scope: Sequence[str], node_ref: str) -> None:
        """Show a node in the tab of the model, which is opened first when it is not."""
        if self.state is None or not self.state.reveal(scope, node_ref):
            host(self).reveal(self.model, scope, node_ref)
