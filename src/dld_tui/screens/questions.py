"""Questions: those of threads, and those before something is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, TypeVar

from textual.app import App
from textual.screen import Screen

from dld_tui.core.text import visible
from dld_tui.widgets.shell.page import Page

if TYPE_CHECKING:
    from dld_tui.screens.home.tabs import Tabs
    from dld_tui.widgets.dialogs.dialogs import Dialog

T = TypeVar("T")


class DialogAsker:
    """Asks with dialogs; call it from a thread that may wait.

    Args:
        app: The app; without it running, nobody is asked.
    """

    def __init__(self, app: App[int]) -> None:
        self._app = app
        self._waiting: set[Future[object]] = set()
        self._is_over = False

    def secret(self, question: str) -> str | None:
        """Return what was typed; None when the dialog was closed."""
        from dld_tui.widgets.dialogs.dialogs import SecretDialog

        return self._ask(lambda: SecretDialog(question))

    def confirm(self, question: str, detail: str) -> bool:
        """Return whether yes was chosen."""
        from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog

        lines = [visible(line) for line in detail.split("\n")]
        answers = [Choice("n", "no", "no"), Choice("y", "yes", "yes")]
        title = visible(question)
        return self._ask(lambda: ChoiceDialog(title, "\n".join(lines), answers)) == "yes"

    def stop(self) -> None:
        """Answer no more questions; those that wait get None."""
        self._is_over = True
        for future in list(self._waiting):
            future.cancel()

    def _ask(self, make: Callable[[], Dialog[T]]) -> T | None:
        answer: Future[T | None] = Future()

        def show() -> None:
            self._app.push_screen(make(), lambda value: _give(answer, value))

        if self._is_over or not self._app.is_running:
            return None
        self._waiting.add(answer)  # type: ignore[arg-type]
        try:
            self._app.call_from_thread(show)
            return answer.result()
        except (RuntimeError, CancelledError):  # the app has ended meanwhile
            return None
        finally:
            self._waiting.discard(answer)


def _give(future: Future[T | None], value: T | None) -> None:
    if not future.done():
        future.set_result(value)


def ask_to_close(app: App[int], page: Page, close: Callable[[Page], None]) -> None:
    """Close a page, after asking when it has unsaved edits."""
    from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog

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


def ask_to_quit(app: Tabs, screens: Iterable[Screen[object]]) -> None:
    """Leave the program, after asking when edits would be lost or jobs run."""
    from dld_tui.widgets.dialogs.dialogs import Choice, QuitDialog

    if isinstance(app.screen, QuitDialog):
        return
    screens = list(screens)
    unsaved = [page for page in app.pages if page.unsaved()]
    lost = [line for page in unsaved for line in page.unsaved()]
    lost += [line for screen in screens if (line := str(getattr(screen, "at_work", "")))]
    going = [line for screen in screens if (line := str(getattr(screen, "goes_on", "")))]
    if not lost and not going:
        app.exit(0)
        return

    def answered(answer: str | None) -> None:
        if answer == "discard":
            app.exit(0)
        elif answer in ("save", "all"):
            shown = [page for page in unsaved if page is app.page] or unsaved[:1]
            # Jobs, and what is not saved yet, are asked about again.
            _save(app, unsaved if answer == "all" else shown, lambda: ask_to_quit(app, screens))

    choices = []
    if len(unsaved) == 1:
        choices.append(Choice("s", "save and quit", "save"))
    elif unsaved:
        choices.append(Choice("a", f"save all {len(unsaved)} and quit", "all"))
        choices.append(Choice("s", "save only the shown one, and ask again", "save"))
    choices.append(Choice("d", "quit and lose this" if lost else "quit", "discard"))
    choices.append(Choice("k", "stay", "keep"))
    app.push_screen(QuitDialog("Quit?", "\n".join(lost + going), choices), answered)


def _save(app: Tabs, pages: Sequence[Page], done: Callable[[], None]) -> None:
    """Save pages, one after the other; what cannot be saved ends it, with its page in front."""
    if not pages:
        return done()
    app.show_page(pages[0])
    pages[0].save_then(lambda: _save(app, pages[1:], done))
    return None
