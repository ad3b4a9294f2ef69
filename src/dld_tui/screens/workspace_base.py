"""What the parts of the workspace screen share: the document, the panes, one way to edit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from dld_tui.core.document import Document, Node, Scope
from dld_tui.core.errors import DldError
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.working import Working
from dld_tui.screens.workspace_layout import Layout
from dld_tui.widgets.commands import bindings_for
from dld_tui.widgets.explorer import Explorer
from dld_tui.widgets.findings import Findings
from dld_tui.widgets.graph_pane import GraphPane
from dld_tui.widgets.page import Page
from dld_tui.widgets.parameters import Parameters
from dld_tui.widgets.work_panel import WorkPanel

if TYPE_CHECKING:
    from dld_tui.core.document import Transaction


class WorkspaceBase(Working, Page):
    """State of one workspace; the actions are in the classes that extend it."""

    SCOPE = "workspace"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("workspace")

    document: Document
    """Only there once ``is_open``."""
    explorer: Explorer
    graph: GraphPane
    parameters: Parameters
    findings: Findings
    plan: Layout

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__()
        self.path = Path(path) if path is not None else None
        self.is_open = False
        self.plan = Layout()
        self.is_arranging = False
        """Whether a large graph is made on a thread: other work had best wait."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to others while there is nothing to stop."""
        if action == "stop":
            return self._cancel is not None
        return super().check_action(action, parameters)

    @property
    def is_opening(self) -> bool:
        """Whether the model is still being read."""
        return not self.is_open

    # --- what the cursor is on ------------------------------------------------------------------

    @property
    def subject(self) -> Node | Scope | None:
        """What the parameters pane shows."""
        return self.parameters.subject if self.is_open else None

    @property
    def node(self) -> Node | None:
        """The node that commands act on."""
        if not self.is_open:
            return None
        if self.in_parameters:
            return self.subject if isinstance(self.subject, Node) else None
        return self.graph.node if self.graph.has_focus_within else self.explorer.node

    @property
    def in_parameters(self) -> bool:
        """Whether the parameters pane has the keys."""
        return self.is_open and self.parameters.list.has_focus

    # --- edits ----------------------------------------------------------------------------------

    def edit(self, name: str, /, **arguments: JSON) -> Transaction:
        """Make an edit.

        Raises:
            DldError: It does not fit the model, or the model is being saved.
        """
        if self._cancel is not None:
            raise DldError("wait until the file is saved")
        return self.document.apply(name, **arguments)

    # --- work on a thread -----------------------------------------------------------------------

    def work(
        self,
        title: str,
        task: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
        *,
        line: bool = True,
    ) -> None:
        """Run something long on a thread, with progress and a cancel key.

        Args:
            title: What it is: foreign text.
            task: Called on the thread.
            done: Called on the event loop afterwards, with the error when there was one; not when
                the workspace has been closed.
            line: Show one row above the keys; False: a panel in the middle.
        """

        def told(failure: DldError | None) -> None:
            if self.is_attached:
                done(failure)

        self.run_work(title, task, told, WorkPanel(title, classes="-line" if line else None))

    def when_typed(self, task: Callable[[], None], *, always: bool) -> None:
        """Do something when types are known, at once where nothing will tell them.

        Args:
            task: What is to be done.
            always: Wait even when no input or output that an edit made lacks its type.
        """
        task()


def is_alive(thing: Node | Scope) -> bool:
    """Return whether a node or scope is in the document now, and has not been deleted."""
    while True:
        if isinstance(thing, Node):
            if thing not in thing.scope.nodes:
                return False
            thing = thing.scope
        document, owner = thing.document, thing.owner
        if owner is None:
            return thing is document.main or thing in document.functions
        if thing not in owner.subgraphs():
            return False
        thing = owner
