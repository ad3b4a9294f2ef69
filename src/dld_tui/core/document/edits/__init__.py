"""Edits: named functions built of primitives. A new edit is one function in one file here.

An edit is plain data, a name and JSON arguments, so that the same line is the undo step, the
journal entry, the script line and what the palette runs. Scopes are named by their path (see
:attr:`Scope.path`), nodes by their ref (see :meth:`Scope.ref_of`).
"""

from __future__ import annotations

from dld_tui.core.document.edits import (
    attributes,
    batch,
    deletion,
    functions,
    initializers,
    links,
    metadata,
    nodes,
    operators,
    pasting,
    renaming,
    repairs,
    restore,
    sparse,
    subgraphs,
    tensors,
    terminals,
)
from dld_tui.core.document.edits import batch as casting
from dld_tui.core.document.edits import function_instances as inlining
from dld_tui.core.document.edits import function_instances as outlining
from dld_tui.core.document.edits import functions as function_attributes
from dld_tui.core.document.edits import links as rewiring
from dld_tui.core.document.edits import metadata as positions
from dld_tui.core.document.edits import metadata as tensorrt
from dld_tui.core.document.edits import model_swap as whole
from dld_tui.core.document.edits import repairs as fixes
from dld_tui.core.document.edits.registry import EDITS, EditFunction

__all__ = [
    "EDITS",
    "EditFunction",
    "attributes",
    "batch",
    "casting",
    "deletion",
    "fixes",
    "function_attributes",
    "functions",
    "initializers",
    "inlining",
    "links",
    "metadata",
    "nodes",
    "operators",
    "outlining",
    "pasting",
    "positions",
    "renaming",
    "repairs",
    "restore",
    "rewiring",
    "sparse",
    "subgraphs",
    "tensorrt",
    "tensors",
    "terminals",
    "whole",
]
