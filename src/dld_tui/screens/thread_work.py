"""Work on a thread: one thing at a time, with progress, and Esc stops it."""

from __future__ import annotations

from collections.abc import Callable

from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.shell.progress import WorkPanel


class Work:
    """Runs work on a thread for a page.

    Args:
        page: It shows how far the work is.
    """

    def __init__(self, page: Page) -> None:
        self._page = page

    @property
    def is_running(self) -> bool:
        """Whether a thread may be editing, reading or writing the model."""
        return self._page.tasks.is_working

    def run(
        self,
        title: str,
        task: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
        *,
        panel: WorkPanel | None = None,
        after_close: bool = False,
    ) -> None:
        """Run something long on a thread.

        Args:
            title: What it is: foreign text.
            task: Called on the thread.
            done: Called on the event loop afterwards, with the error when there was one.
            panel: Shows how far it is; by default one row above the keys.
            after_close: Call `done` also when the page has been closed meanwhile.
        """
        panel = panel or WorkPanel(title, classes="-line")
        # Of the app: the page itself may be gone before the thread is.
        work = self._run(task, done, panel, after_close)
        host(self._page).tasks.start(work, "work", name=title)

    async def _run(
        self,
        task: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
        panel: WorkPanel,
        after_close: bool,
    ) -> None:
        page = self._page
        page.mount(panel, before="KeyBar")
        failure: DldError | None = CancelledError()
        try:
            await page.tasks.work(task, panel.report)
            failure = None
        except DldError as error:
            failure = error
        finally:
            if panel.is_attached:
                panel.remove()
            if after_close or page.is_attached:
                done(failure)

    def cancel(self) -> bool:
        """Ask the running work to stop; False when nothing runs."""
        return self._page.tasks.cancel_work()
