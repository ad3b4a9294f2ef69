"""The declarations of tolerances, for the requests of all activities that compare results.

Use them as ``atol: float = param(1e-2, **about_atol())``. Arguments replace parts of a declaration,
or add to it.
"""

from __future__ import annotations

from typing import Any


def about_tolerance(**other: Any) -> dict[str, Any]:
    """Return the declaration of ``tuple[str, ...]``, rules for all tensors or for single ones."""
    return {
        "label": "Tolerances",
        "help": "What may be off: atol=1e-3,rtol=1e-2 or cosine=0.999 or snr=30 for all tensors,"
        " NAME:atol=… for one.",
        "spellings": ("--tolerance",),
        "metavar": "SPEC",
    } | other


def about_atol(**other: Any) -> dict[str, Any]:
    """Return the declaration of ``float`` or ``float | None``, how far elements may be off."""
    return {
        "label": "Absolute",
        "help": "Absolute tolerance.",
        "spellings": ("--atol",),
        "minimum": 0,
    } | other


def about_rtol(**other: Any) -> dict[str, Any]:
    """Return the same for how far they may be off relative to the reference."""
    return {
        "label": "Relative",
        "help": "Relative tolerance.",
        "spellings": ("--rtol",),
        "minimum": 0,
    } | other
