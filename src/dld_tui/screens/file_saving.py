"""Asking where to write a file, and writing it in a thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.text import visible
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog

if TYPE_CHECKING:
    from textual.screen import Screen

Write: TypeAlias = Callable[[Path, bool], "Sequence[str]"]
"""Writes a file, replacing one when the second argument says so, and returns remarks."""


def ask_where(screen: Screen[None], title: str, about: str, name: str, write: Write) -> None:
    """Ask for a path, and for permission to replace a file, and write.

    Args:
        screen: What asks.
        title: The question.
        about: What will be written.
        name: The path that is offered.
        write: Writes it; what it raises is shown by the app.
    """

    def chosen(answer: str | None) -> None:
        if not answer:
            return
        path = Path(os.path.expanduser(answer))
        if os.path.lexists(path):
            _ask_to_replace(screen, path, title, about, write)
        else:
            _start(screen, path, write, False)

    screen.app.push_screen(PromptDialog(title, about, name), chosen)


def _ask_to_replace(screen: Screen[None], path: Path, title: str, about: str, write: Write) -> None:
    def answered(answer: str | None) -> None:
        if answer == "replace":
            _start(screen, path, write, True)
        elif answer == "another":
            ask_where(screen, title, about, str(path), write)

    choices = [Choice("r", "replace it", "replace"), Choice("a", "another name", "another")]
    question = f"{visible(str(path))} exists."
    screen.app.push_screen(ChoiceDialog("Replace the file?", question, choices), answered)


def _start(screen: Screen[None], path: Path, write: Write, overwrite: bool) -> None:
    def work() -> None:
        remarks = write(path, overwrite)
        for text in (f"Wrote {path}", *remarks):
            screen.app.call_from_thread(screen.notify, visible(text), timeout=4, markup=False)

    screen.run_worker(work, thread=True, group="save", name="write a file")
