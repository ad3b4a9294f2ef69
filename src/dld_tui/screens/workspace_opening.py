"""Opening a model: everything that takes time, on a thread; and journals of crashed sessions."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dld_tui.core.checks import Finding
from dld_tui.core.document import Document
from dld_tui.core.document.journal import LeftJournal, left_journals
from dld_tui.core.document.summary import ModelSummary, summarise
from dld_tui.core.document.texts import NodeTexts
from dld_tui.core.errors import CancelledError
from dld_tui.core.files.leftovers import sweep
from dld_tui.core.new_model import NewModel, new_document
from dld_tui.core.operators.registry import known_domains
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.explorer_model import ExplorerModel

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
    left: list[LeftJournal] = field(default_factory=list)
    """Journals of sessions that were killed."""
    findings: list[Finding] = field(default_factory=list)

    def finish(self) -> None:
        """Work out what can wait until the first picture of a large model is on the screen."""
        known_domains()  # the check asks for it
        self.explorer.prepare()


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
    with _no_collections():
        if path is None:
            document = new_document(new or NewModel())
        else:
            document = Document.open(path, progress=progress, cancelled=cancelled)
        try:
            return _indexed(document, path, cancelled, arrange)
        except BaseException:
            document.close(keep_journal=True)
            raise


def _indexed(
    document: Document,
    path: Path | None,
    cancelled: CancelCheck,
    arrange: Callable[[ExplorerModel], None],
) -> OpenedModel:
    """Work out what would stall the screen if it were asked for on the event loop."""
    texts = []
    for scope in document.scopes():
        texts.append((scope, NodeTexts(scope.nodes)))  # once, for all that follows
        scope.index(texts[-1][1])
        if cancelled():
            raise CancelledError
    explorer = ExplorerModel(document)
    explorer.index(texts)
    arrange(explorer)
    explorer.rows()
    if cancelled():
        raise CancelledError
    if len(document.main.nodes) <= AT_ONCE:
        known_domains()  # the check asks for it
    op_types = Counter(op_type for _, read in texts for _, op_type in read.kinds)
    left = left_journals(path) if path is not None else []
    if path is not None:
        sweep(Path(os.path.realpath(path)).parent)
    return OpenedModel(document, explorer, summarise(document, op_types), texts[0][1], left)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Make objects that will live long without walking them again and again.

    A collection holds the interpreter for 50 ms where a document has 50,000 nodes, and would find
    nothing. Frozen objects are left out of all later ones, until :func:`gc.unfreeze`.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
