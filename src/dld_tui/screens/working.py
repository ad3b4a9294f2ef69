"""What pages with edits and long work share: edits that may fail, threads that Esc stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.widgets.shell.host import host

if TYPE_CHECKING:
    from dld_tui.core.document import Transaction
    from dld_tui.widgets.shell.page import Page as _Base
    from dld_tui.widgets.shell.progress import WorkPanel
else:
    _Base = object


class Working(_Base):
    """A mixin for pages; override :meth:`edit`."""

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

    def run_work(
        self,
        title: str,
        function: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
        panel: WorkPanel,
    ) -> None:
        """Run something long on a thread.

        Args:
            title: What it is: foreign text.
            function: Called on the thread.
            done: Called on the event loop afterwards, with the error when there was one; also when
                the page has been closed meanwhile.
            panel: Shown above the keys until then; it is told how far it is.
        """
        # Of the app: the page itself may be gone before the thread is.
        work = self._run_work(function, done, panel)
        host(self).tasks.start(work, "work", name=title)

    async def _run_work(
        self,
        function: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
        panel: WorkPanel,
    ) -> None:
        self.mount(panel, before="KeyBar")
        failure: DldError | None = CancelledError()
        try:
            await self.tasks.work(function, panel.report)
            failure = None
        except DldError as error:
            failure = error
        finally:
            if panel.is_attached:
                panel.remove()
            done(failure)

    def cancel_work(self) -> bool:
        """Ask the running work to stop; False when nothing runs."""
        return self.tasks.cancel_work()

    @property
    def is_working(self) -> bool:
        """Whether something runs."""
        return self.tasks.is_working
