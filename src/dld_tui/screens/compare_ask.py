"""Asking which reports to compare: those that are open, those of before, or a path."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dld_tui.core.paths import apart, near
from dld_tui.core.text import visible
from dld_tui.screens.open_path import OpenPathDialog
from dld_tui.screens.openers import OPENERS
from dld_tui.widgets.host import Host
from dld_tui.widgets.pick_dialog import PickDialog, PickItem

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.app import App

_SCOPES = ("report", "plan")
"""Pages whose files can be compared."""
_OTHER = ""
"""The key of the row that asks for a path."""


def ask_reports(app: App[int], first: Path | None) -> None:
    """Ask for two reports, or for one to compare `first` with, and compare them."""
    from dld_tui.screens.compare import CompareScreen

    def compare(one: Path, other: Path) -> None:
        cast("Host", app).add_page(CompareScreen([one, other]))

    def second(one: Path) -> None:
        ask_report(
            app, f"Compare {visible(one.name)} with", [one], lambda other: compare(one, other)
        )

    if first is not None:
        second(first)
    else:
        ask_report(app, "Compare: the first report", [], second)


def ask_report(
    app: App[int], title: str, but: Collection[Path], chosen: Callable[[Path], None]
) -> None:
    """Ask for a report: one that is open or was, or any by its path.

    Args:
        app: The app.
        title: The question.
        but: Reports that are not offered.
        chosen: Called with the path.
    """
    known = {os.path.abspath(path) for path in but}
    offered = [path for path in dict.fromkeys(_known(cast("Host", app))) if path not in known]

    def typed(path: Path | None) -> None:
        if path is not None:
            chosen(path)

    def ask_path() -> None:
        app.push_screen(
            OpenPathDialog(title, placeholder="path of a report or of layer information"), typed
        )

    def picked(key: Hashable | None) -> None:
        if key == _OTHER:
            ask_path()
        elif key is not None:
            chosen(Path(str(key)))

    if not offered:
        ask_path()
        return
    names = apart([os.path.basename(path) for path in offered], offered)
    items = [_item(path, name) for path, name in zip(offered, names, strict=True)]
    other = PickItem(_OTHER, [("another file …", "key")], "")
    app.push_screen(
        PickDialog(title, lambda: items, placeholder="name of a report", last=[other]), picked
    )


def _known(host: Host) -> Iterator[str]:
    openers = (OPENERS["REPORT"], OPENERS["ENGINE_LAYERS"])
    for page in host.pages:
        if page.SCOPE in _SCOPES and page.path is not None:
            yield os.path.abspath(page.path)
    for file in host.state.recent():
        if OPENERS.get(file.kind) in openers and os.path.lexists(file.path):
            yield file.path


def _item(path: str, name: str) -> PickItem:
    folder = near(os.path.dirname(path))
    return PickItem(path, [(visible(name), "strong"), (f"  {visible(folder)}", "dim")], path)
