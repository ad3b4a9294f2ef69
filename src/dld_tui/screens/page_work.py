"""Edits and long work on a page over a workspace: on a thread, with progress and Esc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.document import Document, Transaction
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.working import Working
from dld_tui.widgets.shell.progress import WorkLine

if TYPE_CHECKING:
    from dld_tui.screens.workspace.history import History


class PageWork(Working):
    """A mixin for pages that edit the document of a workspace. Set ``workspace``."""

    workspace: History

    @property
    def document(self) -> Document:
        """The document of the workspace."""
        return self.workspace.document

    # --- edits ----------------------------------------------------------------------------------

    def edit(self, name: str, /, **arguments: JSON) -> Transaction:
        """Make an edit.

        Raises:
            DldError: It does not fit the model, or something else runs.
        """
        if self.is_working:
            raise DldError("wait until the running work has ended")
        return self.workspace.edit(name, **arguments)

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
        self.run_work(title, task, done, WorkLine(title))
