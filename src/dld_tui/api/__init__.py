"""The library for scripts, notebooks and tests.

Only the names here are stable across versions; the rest of the package may change.
docs/library.md has examples of each.

=================  ==============================================================================
``open_model``     open an ONNX model as a :class:`Document`
``Document``       a model that can be inspected, edited and saved
``edits``          the names of all edits, with descriptions
``check``          errors and oddities of a model
``diff``           the differences of two models
``convert``        a conversion of a whole model: fp16, quantize, shape, …
``profile``        measure a model, here or on a target; gives a :class:`Report`
``Report``         a profile report; ``Report.open`` takes a file
``compare``        reports, or engine plans, side by side
``gate``           whether a new version is slower than a base, by runs in alternation
``same_results``   whether two models compute the same
``Plan``           a TensorRT engine, from the files that describe it
=================  ==============================================================================

All errors are :class:`dld_tui.core.errors.DldError`, with ``message``, ``where`` and ``hint``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dld_tui.api.models import Document, check, diff, edits, open_model
    from dld_tui.api.plans import Plan
    from dld_tui.api.runs import Report, compare, convert, gate, profile, same_results

__all__ = [
    "Document", "Plan", "Report", "check", "compare", "convert", "diff", "edits", "gate",
    "open_model", "profile", "same_results",
]  # fmt: skip

_HOMES = {
    "models": ("Document", "check", "diff", "edits", "open_model"),
    "plans": ("Plan",),
    "runs": ("Report", "compare", "convert", "gate", "profile", "same_results"),
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: a plan needs neither onnx nor a runtime."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"dld_tui.api.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
