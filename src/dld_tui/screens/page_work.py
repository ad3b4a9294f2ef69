"""Long work on a page over a workspace: on a thread, with progress and Esc; edits among it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from dld_tui.core.document import Change, Document, Transaction
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.styled import Rows

if TYPE_CHECKING:
    from dld_tui.screens.workspace_change import Changing
    from dld_tui.widgets.page import SubPage as _Base
else:
    _Base = object

_TELL_S = 0.1


class WorkLine(Rows):
    """One row above the keys: what runs and how far it is."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._fraction = 0.0

    def report(self, done: int, total: int) -> None:
        """Show how far it is; total 0 is unknown."""
        self._fraction = done / total if total else 0.0
        self.refresh()

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the row."""
        title = clip(visible(self._title), width // 2)
        percent = f"{self._fraction:.0%}  " if self._fraction else ""
        return [[(f" {title} …  ", "strong"), (f"{percent}Esc stops", "dim")]]


class PageWork(_Base):
    """A mixin for pages that edit the document of a workspace. Set ``workspace``."""

    workspace: Changing
    _stop: Event | None = None

    @property
    def document(self) -> Document:
        """The document of the workspace."""
        return self.workspace.document

    @property
    def is_working(self) -> bool:
        """Whether something runs."""
        return self._stop is not None

    def complain(self, error: DldError) -> None:
        """Say what could not be done."""
        self.notify(visible(str(error)), severity="warning", timeout=6, markup=False)

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
        made: list[Transaction] = []
        document = self.document
        listeners = list(document.on_change)

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            document.on_change.clear()
            try:
                for number, step in enumerate(steps):
                    if cancelled():
                        raise CancelledError
                    made.append(step())
                    progress(number + 1, len(steps))
            finally:
                document.on_change[:] = listeners

        def ended(error: DldError | None) -> None:
            for transaction in made:
                for listener in listeners:
                    listener(Change("edit", transaction))
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
        panel = WorkLine(title)
        self.mount(panel, before="KeyBar")
        self._stop = stop = Event()
        last = monotonic()

        def progress(finished: int, total: int) -> None:
            nonlocal last
            if monotonic() - last >= _TELL_S:
                last = monotonic()
                self.app.call_later(panel.report, finished, total)

        def run() -> None:
            try:
                task(progress, stop.is_set)
            except DldError as error:
                self.app.call_later(finish, error)
            except BaseException:
                self.app.call_later(finish, CancelledError())
                raise  # a fault of the program: the app shows it
            else:
                self.app.call_later(finish, None)

        def finish(failure: DldError | None) -> None:
            self._stop = None
            if panel.is_attached:
                panel.remove()
            done(failure)

        self.run_worker(run, thread=True, group="work", name=title)

    def stop_work(self) -> bool:
        """Ask the running work to stop; False when nothing runs."""
        if self._stop is None:
            return False
        self._stop.set()
        return True
