"""What a page reads and writes: on a thread, after it was asked where."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.tasks import on_thread, with_progress

if TYPE_CHECKING:
    from dld_tui.widgets.shell.front import Front
    from dld_tui.widgets.shell.page import Page

T = TypeVar("T")


async def read_or_close(
    page: Page,
    read: Callable[[ProgressCallback, CancelCheck], T],
    report: ProgressCallback = lambda done, total: None,
) -> T:
    """Return what is read on a thread; a page that has nothing to show closes its tab.

    Args:
        page: Its file cannot be shown when this fails or is stopped; the app shows why.
        read: Called on the thread with what tells its progress, and whether to stop.
        report: Told the progress, on the event loop.
    """
    try:
        return await with_progress(read, report)
    except (Exception, asyncio.CancelledError):
        host(page).close_page(page)
        raise


Write: TypeAlias = Callable[[Path, bool], "Sequence[str]"]
"""Writes a file, replacing one when the second argument says so, and returns remarks."""


def ask_where(screen: Front, title: str, about: str, name: str, write: Write) -> None:
    """Ask for a path, and for permission to replace a file, and write.

    Args:
        screen: What asks.
        title: The question.
        about: What will be written.
        name: The path that is offered.
        write: Writes it, on a thread; what it raises is shown by the app.
    """
    screen.tasks.start(_ask_where(screen, title, about, name, write), "dialog")


async def _ask_where(screen: Front, title: str, about: str, name: str, write: Write) -> None:
    while True:
        answer = await screen.tasks.ask(PromptDialog(title, about, name))
        if not answer:
            return
        path = Path(os.path.expanduser(answer))
        overwrite = os.path.lexists(path)
        if not overwrite:
            break
        choices = [Choice("r", "replace it", "replace"), Choice("a", "another name", "another")]
        question = f"{visible(str(path))} exists."
        decision = await screen.tasks.ask(ChoiceDialog("Replace the file?", question, choices))
        if decision == "replace":
            break
        if decision is None:
            return
        name = str(path)
    screen.tasks.start(_write(screen, path, write, overwrite), "save")


async def _write(screen: Front, path: Path, write: Write, overwrite: bool) -> None:
    for text in (f"Wrote {path}", *await on_thread(write, path, overwrite)):
        screen.notify(visible(text), timeout=4, markup=False)
