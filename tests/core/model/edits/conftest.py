"""What holds for every edit that a test of this folder makes, whatever it is about."""

from __future__ import annotations

from typing import Any

import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.transactions import Transaction
from tests.support.sessions import bytes_of


@pytest.fixture(autouse=True)
def edits_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a refused edit changed something, or undo and redo do not give the same bytes.

    Where somebody listens to the document, edits are only made.
    """
    apply = Document.apply

    def checked(document: Document, *edit: Any, **arguments: Any) -> Transaction:
        if document.on_change:
            return apply(document, *edit, **arguments)
        before = bytes_of(document)
        try:
            done = apply(document, *edit, **arguments)
        except DldError:
            assert bytes_of(document) == before, "a refused edit leaves a trace"
            raise
        if done.primitives:
            after = bytes_of(document)
            document.undo()
            assert bytes_of(document) == before, "undo gives other bytes"
            document.redo()
            assert bytes_of(document) == after, "redo gives other bytes"
        return done

    monkeypatch.setattr(Document, "apply", checked)
