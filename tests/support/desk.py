"""Controllers of a workspace without an app: what they are given, what they say and ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document, Node
from dld_tui.screens.workspace.history import EditHistory
from dld_tui.screens.workspace.state import Cursor, WorkspaceModel
from dld_tui.widgets.explorer.state import ExplorerModel
from dld_tui.widgets.parameters.descriptions import NodeRows, ScopeRows


def run_to_end(coroutine: Any, group: str, **options: Any) -> None:
    """Run a task, also from within another one."""
    with ThreadPoolExecutor() as threads:
        threads.submit(asyncio.run, coroutine).result()


@dataclass
class Desk:
    """What controllers are given, with what they said and asked."""

    document: Document
    model: WorkspaceModel = field(default_factory=WorkspaceModel)
    said: list[str] = field(default_factory=list)
    dialogs: list[Any] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    """What the next dialogs are left with; None where there is none."""
    gone_to: list[Node] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    is_running: bool = False

    def __post_init__(self) -> None:
        self.model.document = self.document
        self.look(Cursor())
        self.model.is_open = True
        self.document.on_change.append(self.model.tell_change)
        self.navigation = cast("Any", SimpleNamespace(go_to=self.gone_to.append))
        self.page = cast("Any", SimpleNamespace(
            notify=lambda text, **options: self.said.append(text),
            app=SimpleNamespace(push_screen=self.dialogs.append),
            tasks=SimpleNamespace(ask=self.ask, start=run_to_end),
        ))  # fmt: skip
        work = SimpleNamespace(run=self.run, is_running=False)
        self.base = (self.page, self.model, cast("Any", work))
        self.work = work
        node_list = cast("Any", SimpleNamespace())
        self.history = EditHistory(*self.base, self.navigation, node_list)

    async def ask(self, dialog: Any) -> Any:
        """Show a dialog."""
        self.dialogs.append(dialog)
        return self.answers.pop(0) if self.answers else None

    def look(self, cursor: Cursor) -> None:
        """Put the cursor on something."""
        listing = ExplorerModel(self.document)
        self.model.view = cast("Any", SimpleNamespace(cursor=cursor, listing=listing))

    def run(self, title: str, task: Any, done: Callable[[DldError | None], None]) -> None:
        """Run something long at once."""
        self.started.append(title)
        task(lambda done, total: None, lambda: False)
        done(None)

    def node(self, name: str) -> Node:
        """Return a node by its name."""
        return next(node for node in self.document.main.nodes if node.name == name)

    def cursor_on(self, name: str, label: str) -> Cursor:
        """Return the cursor on a row of a node's parameters."""
        node = self.node(name)
        rows = NodeRows(node, {}, lambda key, tensor: [], 80).rows()
        row = next(row for row in rows if label in (row.copied, row.name_of))
        return Cursor(subject=node, node=node, in_parameters=True, row=row)

    def cursor_on_scope(self, label: str) -> Cursor:
        """Return the cursor on a row of the main graph's parameters."""
        rows = ScopeRows(self.document.main, None, {}, lambda key, tensor: [], 80).rows()
        row = next(row for row in rows if row.name_of == "value" and row.copied == label)
        return Cursor(subject=self.document.main, in_parameters=True, row=row)
