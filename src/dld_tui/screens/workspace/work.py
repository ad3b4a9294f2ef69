"""Work on a thread: one thing at a time, with progress, and Esc stops it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from time import monotonic

from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.shell.progress import WorkPanel

_TELL_S = 0.1
"""Progress goes through the event loop at most so often."""


class Work:
    """What runs on a thread for a page.

    Args:
        page: It shows how far the work is.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._cancel: Event | None = None

    @property
    def is_running(self) -> bool:
        """Whether a thread may be editing, reading or writing the model."""
        return self._cancel is not None

    def run(
        self,
        title: str,
        task: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
        *,
        line: bool = True,
    ) -> None:
        """Run something long on a thread.

        Args:
            title: What it is: foreign text.
            task: Called on the thread.
            done: Called on the event loop afterwards, with the error when there was one; not when
                the page has been closed.
            line: Show one row above the keys; False: a panel in the middle.
        """
        page = self._page
        panel = WorkPanel(title, classes="-line" if line else None)
        page.mount(panel, before="KeyBar")
        self._cancel = cancel = Event()
        later = page.app.call_later  # the page itself may be gone before the thread is
        last = monotonic()

        def progress(finished: int, total: int) -> None:
            nonlocal last
            if monotonic() - last >= _TELL_S:
                last = monotonic()
                later(panel.report, finished, total)

        def run() -> None:
            try:
                task(progress, cancel.is_set)
            except DldError as error:
                later(finish, error)
            except BaseException:
                later(finish, CancelledError())
                raise  # a fault of the program: the app shows it
            else:
                later(finish, None)

        def finish(failure: DldError | None) -> None:
            self._cancel = None
            if panel.is_attached:
                panel.remove()
            if page.is_attached:
                done(failure)

        page.run_worker(run, thread=True, group="work", name=title)

    def cancel(self) -> bool:
        """Ask the running work to stop; False when nothing runs."""
        if self._cancel is None:
            return False
        self._cancel.set()
        return True
