"""The question for a file of some kinds: what lies beside comes first, then what is known."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.files.folder import FolderScan, in_order
from dld_tui.core.process.paths import distinct_names, relative_to_cwd
from dld_tui.core.reading.preview import age_text
from dld_tui.core.text import visible
from dld_tui.screens.home.tabs import OPENERS
from dld_tui.widgets.dialogs.dialogs import OpenPathDialog
from dld_tui.widgets.dialogs.search import PickDialog, PickItem
from dld_tui.widgets.lists.styled import Piece
from dld_tui.widgets.shell.page import AppServices
from dld_tui.widgets.tasks import on_loose_thread

_OTHER = ""
"""The key of the row that asks for a path."""
_LIMIT_S = 0.5
Top = Callable[[Sequence[str]], Iterable[str]]
"""Returns those of some files that come first. Called on a thread."""


@dataclass(frozen=True)
class Wanted:
    """What is asked for."""

    kinds: Collection[str]
    """Names of ``FileKind``."""
    noun: str
    """What one is called."""
    about: str
    """Shown in the field for any path."""


REPORTS = Wanted(
    [kind for kind in OPENERS if OPENERS[kind] in (OPENERS["REPORT"], OPENERS["ENGINE_LAYERS"])],
    "report",
    "path of a report or of layer information",
)
SWEEPS = Wanted(["SWEEP"], "sweep", "path of a result of dld sweep")
COMPARED = Wanted([*REPORTS.kinds, *SWEEPS.kinds], "report", REPORTS.about)
MODELS = Wanted(("ONNX", "ONNX_TEXT"), "model", "path of a model")


async def ask_nearby(
    services: AppServices,
    title: str,
    wanted: Wanted,
    but: Sequence[Path] = (),
    *,
    top: Top = lambda _: (),
    why: str = "",
) -> Path | None:
    """Ask for a file: one that lies beside, is open or was, or any by its path.

    Args:
        services: Know what is open, and ask.
        title: The question.
        wanted: What is asked for.
        but: Files that are not offered; those beside the first of them are, else those here.
        top: Chooses those that come first.
        why: What is said of these.
    """
    folder = os.path.dirname(os.path.abspath(but[0])) if but else os.path.abspath(".")
    opened, recent = _opened(services, wanted), _recent(services, wanted)
    left_out = {os.path.abspath(path) for path in but}

    def look() -> list[tuple[str, str]]:
        beside = sorted(_beside(folder, wanted), key=lambda path: path not in opened)
        offered = [*dict.fromkeys((*beside, *opened, *recent))]
        offered = [path for path in offered if path not in left_out and os.path.lexists(path)]
        first = [*top(offered)]
        offered = [*first, *(path for path in offered if path not in first)]
        return [(path, _about(path, folder, why if path in first else "")) for path in offered]

    files = await on_loose_thread(look)
    if files:
        paths = [path for path, _ in files]
        names = distinct_names([os.path.basename(path) for path in paths], paths)
        items = [_item(path, name, about) for (path, about), name in zip(files, names, strict=True)]
        other = PickItem(_OTHER, [("another file …", "key")], "")
        pick = PickDialog(
            title, lambda: items, placeholder=f"name of a {wanted.noun}", last=[other]
        )
        key = await services.tasks.ask(pick)
        if key != _OTHER:
            return None if key is None else Path(str(key))
    return await services.tasks.ask(OpenPathDialog(title, placeholder=wanted.about))


def _beside(folder: str, wanted: Wanted) -> list[str]:
    """Return the files of a folder, the newest first."""
    scan = FolderScan(folder, _LIMIT_S)
    next(scan.steps(), None)
    return [file.path for file in in_order(scan.files) if file.kind in wanted.kinds]


def _opened(host: AppServices, wanted: Wanted) -> list[str]:
    openers = {OPENERS[kind] for kind in wanted.kinds}
    return [
        os.path.abspath(page.path)
        for page in host.pages
        if f"{type(page).__module__}:{type(page).__name__}" in openers and page.path is not None
    ]


def _recent(host: AppServices, wanted: Wanted) -> list[str]:
    return [file.path for file in host.state.recent() if file.kind in wanted.kinds]


def _about(path: str, folder: str, why: str) -> str:
    """Return when a file beside was written, or in which folder another one is."""
    own = os.path.dirname(path)
    if own != folder:
        return relative_to_cwd(own)
    try:
        age = age_text(time.time() - os.path.getmtime(path))
    except OSError:
        age = ""
    return "  ".join(filter(None, (age, why)))


def _item(path: str, name: str, about: str) -> PickItem:
    pieces: list[Piece] = [(visible(name), "strong"), (f"  {visible(about)}", "dim")]
    return PickItem(path, pieces, path)
