"""The state of an open model that a job saw: what a result is about, after further edits."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.document.history import Transaction
from dld_tui.widgets.shell.host import host

if TYPE_CHECKING:
    from dld_tui.core.document import Document
    from dld_tui.widgets.shell.page import Page


@dataclass(frozen=True)
class ModelState:
    """A model in a tab, as it was when a job began."""

    page: Page
    title: str
    """What results call it, such as ``model.onnx as edited``. Foreign text."""
    document: weakref.ref[Document]
    last: Transaction | None
    """The last edit that is in it; None when there is none."""

    @classmethod
    def edited(cls, page: Page, document: Document) -> ModelState:
        """Return the state that a tab shows now."""
        done = document.history.done
        return cls(page, f"{model_name(document)} as edited", weakref.ref(document),
                   done[-1] if done else None)  # fmt: skip

    @classmethod
    def saved(cls, page: Page, document: Document) -> ModelState:
        """Return the state that the file of a tab has."""
        return cls(page, model_name(document), weakref.ref(document), document.history.saved_at)

    @property
    def is_open(self) -> bool:
        """Whether the tab still shows the model."""
        document = self.document()
        is_shown = document is not None and self.page.edited_document is document
        return is_shown and self.page in host(self.page).pages

    @property
    def is_current(self) -> bool:
        """Whether the model is as it was."""
        document = self.document()
        if document is None or not self.is_open:
            return False
        done = document.history.done
        return (done[-1] if done else None) is self.last

    def reveal(self, scope: Sequence[str], node_ref: str) -> bool:
        """Show a node in the tab; False when that is closed."""
        if not self.is_open:
            return False
        host(self.page).show_page(self.page)
        self.page.reveal(scope, node_ref)
        return True


def model_name(document: Document) -> str:
    """Return the file name of a model. Foreign text."""
    path = document.path
    return path.name if path is not None else "new.onnx"
