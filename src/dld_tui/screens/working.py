"""What pages with edits and long work share: edits that may fail, threads that Esc stops."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.document import Transaction
    from dld_tui.widgets.shell.page import Page as _Base
    from dld_tui.widgets.shell.progress import WorkPanel
else:
    _Base = object

_TELL_S = 0.1
"""Progress goes through the event loop at most so often."""


class Working(_Base):
    """A mixin for pages; override :meth:`edit`."""

    _cancel: Event | None = None

    def edit(self, name: str, /, **arguments: JSON) -> Transaction:
        """Make an edit.

        Raises:
            DldError: It does not fit the model, or something else runs.
        """
        raise NotImplementedError

    def try_edit(self, name: str, /, **arguments: JSON) -> bool:
        """Make an edit; says why when it cannot be made."""
        try:
            self.edit(name, **arguments)
        except DldError as error:
            self.complain(error)
            return False
        return True

    def complain(self, error: DldError) -> None:
        """Say what could not be done."""
        self.notify(visible(str(error)), severity="warning", timeout=6, markup=False)

    # --- work on a thread -----------------------------------------------------------------------

    def run_work(
        self,
        title: str,
        task: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
        panel: WorkPanel,
    ) -> None:
        """Run something long on a thread.

        Args:
            title: What it is: foreign text.
            task: Called on the thread.
            done: Called on the event loop afterwards, with the error when there was one; also when
                the page has been closed meanwhile.
            panel: Shown above the keys until then; it is told how far it is.
        """
        self.mount(panel, before="KeyBar")
        self._cancel = cancel = Event()
        later = self.app.call_later  # the page itself may be gone before the thread is
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
            done(failure)

        self.run_worker(run, thread=True, group="work", name=title)

    def cancel_work(self) -> bool:
        """Ask the running work to stop; False when nothing runs."""
        if self._cancel is None:
            return False
        self._cancel.set()
        return True
