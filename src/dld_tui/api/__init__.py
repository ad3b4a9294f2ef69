"""The library for scripts, notebooks and tests.

Only the names here are stable across versions; the rest of the package may change.
docs/reference/library.md has examples. A model is a :class:`Document`; each command that runs a job
is one function with the settings of the command as arguments (``help(convert_fp16)``); results are
dataclasses, which :func:`records` makes into flat rows for pandas.

Errors are :class:`DldError`, with ``message``, ``where`` and ``hint``.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dld_tui.api.commands import (
        accuracy,
        append,
        build,
        convert_bf16,
        convert_clean,
        convert_dequantize,
        convert_external,
        convert_fold,
        convert_fp16,
        convert_inline,
        convert_io,
        convert_opset,
        convert_precisions,
        convert_quantize,
        convert_restore,
        convert_sanitize,
        convert_shape,
        convert_strip,
        convert_tensors,
        doctor,
        load,
        memory,
        merge,
        path,
        placement,
        prepend,
        profile,
        profile_llm,
        profile_tensorrt,
        providers,
        reduce,
        refit,
        routes,
        score,
        search_precision,
        selftest,
        startup,
        sweep,
        tactics,
        tune,
    )
    from dld_tui.api.models import Document, check, diff, edits, new_model, open_model
    from dld_tui.api.plans import Plan
    from dld_tui.api.reports import Report
    from dld_tui.api.rows import operators, records
    from dld_tui.api.runs import compare, gate, same_results
    from dld_tui.core.errors import DldError

__all__ = [
    "DldError", "Document", "Plan", "Report", "accuracy", "append", "build", "check", "compare",
    "convert_bf16", "convert_clean", "convert_dequantize", "convert_external", "convert_fold",
    "convert_fp16", "convert_inline", "convert_io", "convert_opset", "convert_precisions",
    "convert_quantize", "convert_restore", "convert_sanitize", "convert_shape", "convert_strip",
    "convert_tensors", "diff", "doctor", "edits", "gate", "load", "memory", "merge", "new_model",
    "open_model", "operators", "path", "placement", "prepend", "profile", "profile_llm",
    "profile_tensorrt", "providers", "records", "reduce", "refit", "routes", "same_results",
    "score", "search_precision", "selftest", "startup", "sweep", "tactics", "tune",
]  # fmt: skip

_HOMES = {
    "dld_tui.api.models": ("Document", "check", "diff", "edits", "new_model", "open_model"),
    "dld_tui.api.plans": ("Plan",),
    "dld_tui.api.rows": ("operators", "records"),
    "dld_tui.api.reports": ("Report",),
    "dld_tui.api.runs": ("compare", "gate", "same_results"),
    "dld_tui.core.errors": ("DldError",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    """Import a name on first use: a plan needs neither onnx nor a runtime.

    Commands that packages add are there, too.
    """
    if not name.startswith("_"):
        home = importlib.import_module(_HOME_OF.get(name, "dld_tui.api.commands"))
        with contextlib.suppress(AttributeError):
            return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
