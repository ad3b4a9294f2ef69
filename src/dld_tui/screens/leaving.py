"""Questions before something is lost: closing a tab, leaving the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.app import App
from textual.screen import Screen

from dld_tui.widgets.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.page import Page


def ask_to_close(app: App[int], page: Page, close: Callable[[Page], None]) -> None:
    """Close a page, after asking when it has unsaved edits."""
    lost = page.unsaved()
    if not lost:
        return close(page)

    def answered(answer: str | None) -> None:
        if answer == "save":
            page.save_then(lambda: close(page))
        elif answer == "discard":
            close(page)

    choices = [
        Choice("s", "save and close", "save"),
        Choice("d", "close and lose the edits", "discard"),
        Choice("k", "keep it open", "keep"),
    ]
    app.push_screen(ChoiceDialog("Unsaved edits", "\n".join(lost), choices), answered)
    return None


def ask_to_quit(app: App[int], pages: Iterable[Page], screens: Iterable[Screen[object]]) -> None:
    """Leave the program, after asking when edits would be lost or jobs run."""
    screens = list(screens)
    lost = [line for page in pages for line in page.unsaved()]
    lost += [line for screen in screens if (line := str(getattr(screen, "at_work", "")))]
    going = [line for screen in screens if (line := str(getattr(screen, "goes_on", "")))]
    if not lost and not going:
        app.exit(0)
        return

    def answered(answer: str | None) -> None:
        if answer == "quit":
            app.exit(0)

    leave = "quit and lose this" if lost else "quit"
    choices = [Choice("s", "stay", "stay"), Choice("q", leave, "quit")]
    app.push_screen(ChoiceDialog("Quit?", "\n".join(lost + going), choices), answered)
