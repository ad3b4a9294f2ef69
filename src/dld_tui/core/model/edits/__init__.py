"""Edits: named functions built of primitives. A new edit is one function in one file here.

An edit is plain data, a name and JSON arguments, so that the same line is the undo step, the
journal entry, the script line and what the palette runs. Scopes are named by their path (see
:attr:`..document.scope.Scope.path`), nodes by their ref (see
:meth:`..document.scope.Scope.ref_of`). The table of all edits is
:func:`..document.edit_registry.known_edits`.

A module is loaded when it is first asked for: ``edits.nodes``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dld_tui.core.model.edits import (
        attributes,
        cleaning,
        folding,
        functions,
        initializers,
        inputs_outputs,
        links,
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

__all__ = [
    "attributes",
    "cleaning",
    "folding",
    "functions",
    "initializers",
    "inputs_outputs",
    "links",
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


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
