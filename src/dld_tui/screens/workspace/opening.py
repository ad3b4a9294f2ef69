"""Opening a model: everything that takes time, on a thread; and journals of crashed sessions."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.collector import collector_paused, freeze
from dld_tui.core.document.journal import LeftJournal, left_journals, sweep_journals
from dld_tui.core.document.node import NodeTexts
from dld_tui.core.document.summary import ModelSummary, summarise
from dld_tui.core.errors import CancelledError
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.explorer.model import ExplorerModel

if TYPE_CHECKING:
    from dld_tui.core.checks import Finding
    from dld_tui.core.document import Document
    from dld_tui.core.document.new_model import NewModel
    from dld_tui.screens.workspace.graph_building import EarlyGraph


AT_ONCE = 1_000
"""Nodes of the largest scope whose graph is made between two key presses."""


@dataclass
class OpenedModel:
    """A document and what is worked out once for it."""

    document: Document
    explorer: ExplorerModel
    summary: ModelSummary
    texts: NodeTexts
    """What the nodes of the main graph were called and linked to when it was opened."""
    early: EarlyGraph | None = None
    """The graph of a large model, which is being made meanwhile."""
    left: list[LeftJournal] = field(default_factory=list)
    """Journals of sessions that were killed."""
    findings: list[Finding] = field(default_factory=list)

    def finish(self) -> None:
        """Work out what can wait until the first picture of a large model is on the screen."""
        self.explorer.prepare()

    def clean_up(self) -> None:
        """Remove, on a thread, what killed programs have left beside the model, and elsewhere."""
        from dld_tui.core.files.writer import sweep

        sweep_journals()
        sweep(Path(tempfile.gettempdir()))
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
        CancelledError: `cancelled` said so.
    """
    from dld_tui.core.document import Document

    with collector_paused():
        if path is None:
            from dld_tui.core.document.new_model import NewModel, new_document

            document = new_document(new or NewModel())
            document.journaled = True
        else:
            document = Document.open(path, progress=progress, cancelled=cancelled, journaled=True)
        try:
            opened = _indexed(document, path, cancelled, arrange)
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
    from dld_tui.core.graph.child import FROM as CHILD_FROM
    from dld_tui.screens.workspace.graph_building import EarlyGraph

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
    left = left_journals(path) if path is not None else []
    return OpenedModel(document, explorer, summarise(document, op_types), main, early, left)
