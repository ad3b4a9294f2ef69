"""Opening a model on a thread: reading it, its first graph, and journals of crashed sessions."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError
from dld_tui.core.model.document import Node, Scope
from dld_tui.core.model.document.node import NodeTexts
from dld_tui.core.model.document.scripting.journal import (
    CrashJournal,
    crash_journals,
    sweep_journals,
)
from dld_tui.core.model.document.summary import ModelSummary, summarise
from dld_tui.core.model.graph.build import ScopeGraph, graph_of
from dld_tui.core.model.graph.folding import Arrangement
from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.process.interpreter import collector_paused, freeze
from dld_tui.core.process.paths import unsaved_folder
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.explorer.state import ExplorerModel
from dld_tui.widgets.graph.state import GraphModel
from dld_tui.widgets.tasks import begin_thread

if TYPE_CHECKING:
    from dld_tui.core.checks import Finding
    from dld_tui.core.model.document import Document
    from dld_tui.core.model.document.new_model import NewModel
    from dld_tui.core.model.graph.layout_process import LayoutProcess


AT_ONCE = 1_000
"""Nodes of the largest scope whose graph is made between two key presses."""
CHILD_FROM = 5_000
"""Nodes from which on a graph is arranged in a child process."""


@dataclass
class OpenedModel:
    """A document and what is worked out once for it."""

    document: Document
    explorer: ExplorerModel
    summary: ModelSummary
    texts: NodeTexts
    """Names and links of the nodes of the main graph when it was opened."""
    early: EarlyGraph | None = None
    """The graph of a large model, which is being made meanwhile."""
    left: list[CrashJournal] = field(default_factory=list)
    """Journals of sessions that were killed."""
    findings: list[Finding] = field(default_factory=list)

    def finish(self) -> None:
        """Work out what can wait until the first picture of a large model is on the screen."""
        self.explorer.prepare()

    def clean_up(self) -> None:
        """Remove, on a thread, what killed programs have left beside the model, and elsewhere."""
        from dld_tui.core.files.blobs import spill_folder
        from dld_tui.core.files.temporary import sweep

        sweep_journals()
        for folder in (Path(tempfile.gettempdir()), spill_folder(), unsaved_folder()):
            sweep(folder)
        if self.document.path is not None:
            sweep(Path(os.path.realpath(self.document.path)).parent)


def open_model(
    path: Path | None,
    progress: ProgressCallback,
    cancelled: CancelCheck,
    new: NewModel | None = None,
    arrange: Callable[[ExplorerModel], None] = lambda explorer: None,
) -> OpenedModel:
    """Open a model, or make a new one where there is no path, and index it.

    Args:
        path: The file.
        progress: Called with bytes read and bytes in all.
        cancelled: Asked now and then.
        new: What a new model begins with.
        arrange: Says how the explorer lists its rows, before these are made.

    Raises:
        InputError: It cannot be opened.
        CancelledError: `cancelled` returned True.
    """
    from dld_tui.core.llm.folder import open_document

    with collector_paused():
        if path is None:
            from dld_tui.core.model.document.new_model import NewModel
            from dld_tui.core.model.edits.new_document import new_document

            new = new or NewModel()
            document = new_document(new)
            document.journal_as_new(new)
        else:
            document = open_document(path, progress=progress, cancelled=cancelled, journaled=True)
        try:
            opened = _indexed(document, path, cancelled, arrange)
            opened.left = _left(path, new)
        except BaseException:
            document.close(keep_journal=True)
            raise
        freeze()
    return opened


def _indexed(
    document: Document,
    path: Path | None,
    cancelled: CancelCheck,
    arrange: Callable[[ExplorerModel], None],
) -> OpenedModel:
    """Work out what would stall the screen if it were asked for on the event loop."""
    explorer = ExplorerModel(document)
    arrange(explorer)
    main = document.main.texts()  # once, for all that follows
    early = None
    if len(main) >= CHILD_FROM:
        early = EarlyGraph(document.main, explorer.show_constants, main, cancelled)
    try:
        return _with_rows(document, path, cancelled, explorer, main, early)
    except BaseException:
        if early is not None:
            early.drop()
        raise


def _with_rows(
    document: Document,
    path: Path | None,
    cancelled: CancelCheck,
    explorer: ExplorerModel,
    main: NodeTexts,
    early: EarlyGraph | None,
) -> OpenedModel:
    texts = []
    for scope in document.scopes():
        read = main if scope is document.main else scope.texts()
        texts.append((scope, read))
        scope.index(read)
        if cancelled():
            raise CancelledError
    explorer.index(texts)
    explorer.rows()
    if cancelled():
        raise CancelledError
    op_types = Counter(op_type for _, read in texts for _, op_type in read.kinds)
    return OpenedModel(
        document, explorer, summarise(document, op_types, constants=False), main, early
    )


def _left(path: Path | None, new: NewModel | None) -> list[CrashJournal]:
    """Return journals of sessions that were killed; of new models those that began as this one."""
    return [one for one in crash_journals(path) if path is not None or one.new == new]


_LOOK_S = 0.1


def make_graph(
    scope: Scope,
    constants: bool,
    exceptions: frozenset[Node],
    texts: NodeTexts | None,
    cancelled: CancelCheck,
) -> GraphModel:
    """Return the graph of a scope, ready to be shown.

    Args:
        scope: What to draw.
        constants: Whether constants are drawn, too.
        exceptions: Constants that are drawn where the others are not, or the other way round.
        texts: The texts of its nodes, where somebody has read them already.
        cancelled: Asked now and then.

    Raises:
        CancelledError: `cancelled` returned True.
    """
    if len(scope.nodes) < CHILD_FROM:
        drawn = graph_of(scope, constants=constants, exceptions=exceptions, texts=texts)
        return _made(scope, constants, exceptions, drawn, lambda graph: None)
    from dld_tui.core.model.graph.layout_process import LayoutProcess

    with closing(LayoutProcess()) as child:  # it starts while the model is read
        drawn = graph_of(scope, constants=constants, exceptions=exceptions, texts=texts)
        return _made(
            scope, constants, exceptions, drawn, lambda graph: child.arrange(graph, cancelled)
        )


def _made(
    scope: Scope,
    constants: bool,
    exceptions: frozenset[Node],
    drawn: ScopeGraph,
    arrange: Callable[[Graph], Arrangement | None],
) -> GraphModel:
    model = GraphModel(
        scope, constants=constants, exceptions=exceptions, drawn=drawn, arrange=arrange
    )
    model.prepare()
    return model


class EarlyGraph:
    """The graph of a large model, begun while the rest of it is still being opened.

    It is read at once; the rest is up to a child process, and to a thread that waits for it.

    Args:
        scope: What to draw.
        constants: Whether constants are drawn, too.
        texts: The texts of its nodes.
        cancelled: Asked now and then.
    """

    def __init__(
        self, scope: Scope, constants: bool, texts: NodeTexts, cancelled: CancelCheck
    ) -> None:
        self._cancelled = cancelled
        self._dropped = False
        self._model: GraphModel | None = None
        self._done = Event()
        from dld_tui.core.model.graph.layout_process import LayoutProcess

        child = LayoutProcess()
        try:
            drawn = graph_of(scope, constants=constants, texts=texts)
            arguments = (scope, constants, drawn, child)
            begin_thread(self._make, *arguments)
        except BaseException:
            child.close()
            raise

    def _make(self, scope: Scope, constants: bool, drawn: ScopeGraph, child: LayoutProcess) -> None:
        try:
            with closing(child):
                self._model = _made(
                    scope,
                    constants,
                    frozenset(),
                    drawn,
                    lambda graph: child.arrange(graph, self._is_cancelled),
                )
        except CancelledError:
            pass
        finally:
            self._done.set()

    def _is_cancelled(self) -> bool:
        return self._dropped or self._cancelled()

    def result(self, cancelled: CancelCheck) -> GraphModel | None:
        """Wait for the graph, on a thread; None when it could not be made.

        Raises:
            CancelledError: `cancelled` returned True.
        """
        while not self._done.wait(_LOOK_S):
            if cancelled():
                self.drop()
                raise CancelledError
        return self._model

    def drop(self) -> None:
        """Stop it: the graph is no longer needed."""
        self._dropped = True
