"""Opening a model: everything that takes time, on a thread; and journals of crashed sessions."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dld_tui.core.checks import Finding
from dld_tui.core.document import Document, Scope
from dld_tui.core.document.journal import LeftJournal, left_journals
from dld_tui.core.document.summary import ModelSummary, summarise
from dld_tui.core.errors import CancelledError
from dld_tui.core.new_model import NewModel, new_document
from dld_tui.core.operators.registry import known_domains
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.explorer_model import ExplorerModel

_NAMED_LISTS = ("input", "output", "initializer", "sparse_initializer", "value_info")


@dataclass
class OpenedModel:
    """A document and what is worked out once for it."""

    document: Document
    explorer: ExplorerModel
    summary: ModelSummary
    left: list[LeftJournal] = field(default_factory=list)
    """Journals of sessions that were killed."""
    findings: list[Finding] = field(default_factory=list)


def open_model(
    path: Path | None,
    progress: ProgressCallback,
    cancelled: CancelCheck,
    new: NewModel | None = None,
) -> OpenedModel:
    """Open a model, or make a new one where there is no path, and index it.

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
            return _indexed(document, path, cancelled)
        except BaseException:
            document.close(keep_journal=True)
            raise


def _indexed(document: Document, path: Path | None, cancelled: CancelCheck) -> OpenedModel:
    """Work out what would stall the screen if it were asked for on the event loop."""
    explorer = ExplorerModel(document)
    explorer.index(cancelled)
    known_domains()  # the check asks for it
    for scope in document.scopes():
        _build_indexes(scope)
        if cancelled():
            raise CancelledError
    left = left_journals(path) if path is not None else []
    return OpenedModel(document, explorer, summarise(document), left)


def _build_indexes(scope: Scope) -> None:
    """Ask for each index once: they are built when they are first needed."""
    scope.producer("")
    scope.find("")
    for list_name in _NAMED_LISTS:
        scope.named(list_name)


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
