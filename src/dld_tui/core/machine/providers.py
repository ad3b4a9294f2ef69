"""The execution providers of the local ONNX Runtime, for forms: before a run, not when it fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence

from dld_tui.core.process.child import ask
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_SUFFIX = "ExecutionProvider"
_CODE = "import onnxruntime as m; print(*m.get_available_providers(), sep='\\n')"
_TIMEOUT_S = 60.0
_ELSEWHERE = ("Azure",)
"""Providers that run nothing on this machine."""


class InstalledProviders:
    """The providers of this machine; None until :func:`find_installed` has returned."""

    names: Sequence[str] | None = None


def find_installed() -> None:
    """Ask ONNX Runtime, once, in another process: here it would take 60 MB and half a second."""
    if InstalledProviders.names is not None:
        return
    try:
        done = ask([sys.executable, "-c", _CODE], _TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return  # what the run says then is better than a guess
    names = (line.removesuffix(_SUFFIX) for line in done.output.split("\n") if _SUFFIX in line)
    InstalledProviders.names = [name for name in names if name not in _ELSEWHERE]


def provider_note(value: JSON, values: Mapping[str, JSON], here: bool) -> str:
    """Return the effect of naming providers; see :attr:`~dld_tui.core.params.Param.means`."""
    known = InstalledProviders.names
    if not here or known is None or not isinstance(value, str):
        return ""
    if not known:
        return "ONNX Runtime is not installed here"
    wanted = [name.strip().removesuffix(_SUFFIX) for name in value.split(",")]
    there = {name.casefold() for name in known}
    missing = [name for name in wanted if name and name.casefold() not in there]
    others = [name for name in known if name not in wanted]
    if missing:
        return visible(f"no {', '.join(missing)} here, but {', '.join(known)}")
    return f"here also {', '.join(others)}" if others else ""
