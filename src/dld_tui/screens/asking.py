"""Questions from threads, asked by dialogs over whatever page is seen."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, TypeVar

from dld_tui.core.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App

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
        """Answer nothing any more; who waits is told that nobody answers."""
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
