"""Which screen shows which kind of file: strings, so nothing is imported before it is needed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.errors import UnavailableError

if TYPE_CHECKING:
    from dld_tui.core.document.new_model import NewModel
    from dld_tui.widgets.shell.page import Page

_WORKSPACE = "dld_tui.screens.workspace.page:WorkspaceScreen"
_REPORT = "dld_tui.screens.results.report:ReportScreen"
_PLAN = "dld_tui.screens.results.plan:PlanScreen"

OPENERS: dict[str, str] = {
    "ONNX": _WORKSPACE,
    "ONNX_TEXT": _WORKSPACE,
    "REPORT": _REPORT,
    "ORT_PROFILE": _REPORT,
    "ENGINE_PROFILE": _REPORT,
    "ENGINE_TIMES": _REPORT,
    "TRACE": _REPORT,
    "NSIGHT_SYSTEMS": _REPORT,
    "OTHER_PROFILE": _REPORT,
    "ENGINE_LAYERS": _PLAN,
    "ENGINE_ARCHIVE": _PLAN,
    "ENGINE_METADATA": _PLAN,
    "TUNING": "dld_tui.screens.results.tuning:TuneScreen",
    "TRTEXEC_LOG": "dld_tui.screens.results.trtexec_log:LogScreen",
}
"""Name of a ``FileKind`` to the page that is made with the path."""


def make_page(kind: str, path: Path | None) -> Page:
    """Return a page that shows a file; None is a new one.

    Raises:
        UnavailableError: No screen shows files of this kind.
    """
    opener = OPENERS.get(kind)
    if opener is None:
        name = kind.replace("_", " ").lower()
        raise UnavailableError(
            f"no screen shows this kind of file ({name})",
            where=None if path is None else str(path),
            hint="Open a model (.onnx), a report (.dldprof) or another program's profile (.json)",
        )
    module, _, name = opener.partition(":")
    page: Page = getattr(importlib.import_module(module), name)(path)
    return page


def make_new(request: NewModel) -> Page:
    """Return a page with a new model, which has no file until it is saved."""
    module, _, name = _WORKSPACE.partition(":")
    page: Page = getattr(importlib.import_module(module), name)(None, new=request)
    return page


def prepare(kind: str) -> None:
    """Import the page for a kind of file: half a second that a thread should spend."""
    if kind in OPENERS:
        importlib.import_module(OPENERS[kind].partition(":")[0])
