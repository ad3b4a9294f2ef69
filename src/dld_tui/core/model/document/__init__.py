"""Models as documents: skeletons with payloads left in their files, edits, history and journal."""

from __future__ import annotations

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Attribute, Node
from dld_tui.core.model.document.scope import Definition, Scope, Use
from dld_tui.core.model.document.transactions import DocumentChange, Edit, Transaction

__all__ = [
    "Attribute",
    "Definition",
    "Document",
    "DocumentChange",
    "Edit",
    "Node",
    "Scope",
    "Transaction",
    "Use",
]
