"""Work on a thread, one thing at a time, with progress and Esc; edits of pages over a workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.document import Document, Transaction
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.shell.progress import WorkLine, WorkPanel

if TYPE_CHECKING:
    from dld_tui.screens.workspace.history import History


class Work:
    """What runs on a thread for a page.

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


_LONG_S = 0.5
"""Saving that takes longer is told."""


class PageEdits:
    """Edits the document of a workspace from a page over it, and saves it as that does.

    Args:
        page: The page.
        workspace: The history of the document.
        complain: Says what could not be done; a notice by default.
    """

    def __init__(
        self,
        page: Page,
        workspace: History,
        complain: Callable[[DldError], None] | None = None,
    ) -> None:
        self.page, self.workspace, self.tasks = page, workspace, page.tasks
        self.complain = complain or self._notify

    @property
    def document(self) -> Document:
        """The document of the workspace."""
        return self.workspace.document

    @property
    def is_working(self) -> bool:
        """Whether something runs here or in the workspace, such as saving."""
        return self.tasks.is_working or self.workspace.work.is_running

    # --- edits ----------------------------------------------------------------------------------

    def edit(self, name: str, /, **arguments: JSON) -> Transaction:
        """Make an edit.

        Raises:
            DldError: It does not fit the model, or something else runs.
        """
        if self.is_working:
            raise DldError("wait until the running work has ended")
        return self.workspace.edit(name, **arguments)

    def try_edit(self, name: str, /, **arguments: JSON) -> bool:
        """Make an edit; says why when it cannot be made."""
        try:
            self.edit(name, **arguments)
        except DldError as error:
            self.complain(error)
            return False
        return True

    def _notify(self, error: DldError) -> None:
        """Say what could not be done."""
        self.page.notify(visible(str(error)), severity="warning", timeout=6, markup=False)

    def edit_on_thread(
        self,
        title: str,
        steps: Sequence[Callable[[], Transaction]],
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """Make edits that may take long: listeners hear of them afterwards, on the event loop.

        Args:
            title: What is shown meanwhile.
            steps: Each makes one transaction.
            done: Called when all of them are made.
        """
        document = self.document
        document.hold_changes()

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            for number, step in enumerate(steps):
                if cancelled():
                    raise CancelledError
                step()
                progress(number + 1, len(steps))

        def ended(error: DldError | None) -> None:
            document.tell_changes()
            if error is None:
                done()
            elif not isinstance(error, CancelledError):
                self.complain(error)

        self.work(title, task, ended)

    # --- threads --------------------------------------------------------------------------------

    def work(
        self,
        title: str,
        task: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
    ) -> None:
        """Run something long on a thread, with a line of progress; Esc stops it.

        Args:
            title: What it is: foreign text.
            task: Called on the thread.
            done: Called on the event loop afterwards, with the error when there was one.
        """
        if self.is_working:
            self.complain(DldError("wait until the running work has ended"))
            return
        Work(self.page).run(title, task, done, panel=WorkLine(title), after_close=True)

    def cancel_work(self) -> bool:
        """Ask the running work to stop; False when nothing runs."""
        return self.tasks.cancel_work()

    # --- the workspace's commands ---------------------------------------------------------------

    def save(self) -> None:
        """Save the model; its panel is not seen from here, so long saving is told."""
        if self.is_working:
            self.complain(DldError("wait until the running work has ended"))
            return
        self.workspace.page.save_then(lambda: None)
        self.page.set_timer(_LONG_S, self._say_saving)

    def _say_saving(self) -> None:
        if self.workspace.work.is_running and self.page.app.screen is self.page:
            self.page.notify("Saving the model", timeout=3)

    def undo(self) -> None:
        """Take back the last edit."""
        if self.tasks.is_working:
            self.complain(DldError("wait until the running work has ended"))
        else:
            self.workspace.undo()

    def redo(self) -> None:
        """Make the edit again that was taken back."""
        if self.tasks.is_working:
            self.complain(DldError("wait until the running work has ended"))
        else:
            self.workspace.redo()
