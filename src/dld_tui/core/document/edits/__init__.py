"""Edits: named functions built of primitives. A new edit is one function in one file here.

An edit is plain data, a name and JSON arguments, so that the same line is the undo step, the
journal entry, the script line and what the palette runs. Scopes are named by their path (see
:attr:`Scope.path`), nodes by their ref (see :meth:`Scope.ref_of`).
"""

from __future__ import annotations

from dld_tui.core.document.edits import (
    attributes,
    cleaning,
    dimensions,
    folding,
    functions,
    initializers,
    inputs_outputs,
    links,
    merging,
    metadata,
    model_swap,
    nodes,
    pasting,
    pattern_renaming,
    processing,
    renaming,
    repairs,
    replacing,
    restore,
    rewriting,
    subgraphs,
    tensors,
    terminals,
)
from dld_tui.core.document.edits.registry import EDITS, EditFunction

__all__ = [
    "EDITS",
    "EditFunction",
    "attributes",
    "cleaning",
    "dimensions",
    "folding",
    "functions",
    "initializers",
    "inputs_outputs",
    "links",
    "merging",
    "metadata",
    "model_swap",
    "nodes",
    "pasting",
    "pattern_renaming",
    "processing",
    "renaming",
    "repairs",
    "replacing",
    "restore",
    "rewriting",
    "subgraphs",
    "tensors",
    "terminals",
]
