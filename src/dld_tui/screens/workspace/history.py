"""Edits of the open document, also from pages over it: made, taken back; large ones on a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Generic, TypeVar

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.model.document import Document, DocumentChange, Edit, Transaction
from dld_tui.core.text import clip, visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.navigation import Bookmark, Navigation
from dld_tui.screens.workspace.node_list import NodeList
from dld_tui.screens.workspace.state import Cursor, is_alive
from dld_tui.widgets.explorer.pane import Explorer
from dld_tui.widgets.graph.pane import GraphPane
from dld_tui.widgets.shell.command_dispatch import hint, holding
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.shell.progress import Work, WorkLine

MANY = 300
"""Nodes, or primitive changes, of the largest edit that is made between two key presses."""


Place = TypeVar("Place")


class Places(Generic[Place]):
    """Where the cursor was around each edit of a document, as one page knows it."""

    def __init__(self) -> None:
        self._known: dict[int, _Places[Place]] = {}
        """By the id of a transaction, which it holds."""

    def knows(self, transaction: Transaction) -> bool:
        """Return whether the edit was made while the page was open."""
        return id(transaction) in self._known

    def through(
        self, document: Document, change: DocumentChange, here: Callable[[], Place]
    ) -> Place | None:
        """Take note of a change; return where the cursor is to go then, if that is known.

        That is after an undo where it was before the edit, and after a redo where it was when the
        edit was taken back.

        Args:
            document: The document.
            change: What listeners are told.
            here: Returns where the cursor is; called while the page shows the model before it.
        """
        transaction = change.transaction
        if transaction is None:
            self._known.clear()
            return None
        if change.kind == "edit":
            history = document.history
            kept = {id(one) for one in (*history.done, *history.undone)}
            self._known = {key: places for key, places in self._known.items() if key in kept}
            self._known[id(transaction)] = _Places(transaction, here())
            return None
        places = self._known.get(id(transaction))
        if places is None:
            return None
        if change.kind == "undo":
            places.after = here()
            return places.before
        return places.after


@dataclass
class _Places(Generic[Place]):
    transaction: Transaction
    before: Place
    after: Place | None = None
    """When the edit was taken back."""


@dataclass(eq=False)
class EditHistory(Controller):
    """Makes, undoes and redoes all edits."""

    COMMAND_TABLE = table(
        "workspace",
        ("edit.undo", "history.undo", "u,ctrl+z", "can_undo", "undo", "Undo the last edit.",
         "revert last, back out"),
        ("edit.redo", "history.redo", "ctrl+y,ctrl+r", "can_redo", "redo",
         "Redo the last undone edit.", "again"),
        common="document", footer="edit.undo",
    )  # fmt: skip

    navigation: Navigation
    node_list: NodeList

    _places: Places[Bookmark] = field(default_factory=Places, init=False)

    def conditions(self, cursor: Cursor) -> set[str]:
        history = self.document.history
        return holding(
            can_undo=bool(history.done),
            can_redo=bool(history.undone),
        )

    def edit(self, edit: Edit) -> Transaction:
        """Make an edit.

        Raises:
            DldError: It does not fit the model, or the model is being saved.
        """
        if self.work.is_running:
            raise DldError("wait until the file is saved")
        return self.document.apply(edit)

    def try_edit(self, edit: Edit) -> bool:
        """Make an edit; shows the error if it cannot be made."""
        try:
            self.edit(edit)
        except DldError as error:
            self.complain(error)
            return False
        return True

    def say_edit(self, change: DocumentChange) -> None:
        """Say what an edit did, and what takes it back; a conversion has a page for that."""
        transaction = change.transaction
        if change.kind == "edit" and transaction is not None and not transaction.is_whole:
            title = clip(visible(transaction.title), 90, keep="middle")
            self.app.clear_notifications()  # of the edit before
            self.say(f"{title[:1].upper()}{title[1:]}: {hint('{edit.undo} undoes it')}")

    def undo(self) -> None:
        """Take back the last edit and show where it was."""
        self._travel_in_time(self.document.history.done, self.document.undo, "Undone")

    def redo(self) -> None:
        """Make the edit again that was taken back."""
        self._travel_in_time(self.document.history.undone, self.document.redo, "Done again")

    @contextmanager
    def returning(self, change: DocumentChange) -> Iterator[None]:
        """Let the cursor of the workspace return while the panes show an undo or redo."""
        place = self._places.through(self.document, change, self.navigation.bookmark)
        if place is None:
            yield
            return
        # The cursor that a change moves is not followed: what it is on then is told here.
        with self.page.prevent(Explorer.Selected, GraphPane.Selected):
            yield
            self.navigation.return_to(place)

    def _travel_in_time(
        self, history: Sequence[Transaction], step: Callable[[], Transaction | None], word: str
    ) -> None:
        if not history:
            return
        transaction = history[-1]
        title = clip(visible(transaction.title), 90, keep="middle")

        def ended() -> None:
            self.say(f"{word}: {title}")
            touched = [node for node in transaction.nodes if is_alive(node)]
            is_known = self._places.knows(transaction)
            if not is_known and len(touched) == 1 and touched[0] is not self.cursor.node:
                self.navigation.go_to(touched[0])
            if history is self.document.history.undone:
                self.model.redone.send(transaction)

        # Replacing the whole model may write to the journal, and everything is read again.
        large = len(transaction.primitives) > MANY or transaction.is_whole
        self.change(word, [step], large=large, done=ended)

    def change(
        self,
        title: str,
        steps: Sequence[Callable[[], Transaction | None]],
        *,
        large: bool,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """Make edits one after the other: large ones on a thread, so that keys are answered.

        Args:
            title: What is shown meanwhile.
            steps: Each makes one transaction.
            large: Whether it may take long.
            done: Called when all of them are made.
        """
        if self.work.is_running:
            self.complain(DldError("wait for the running task to end"))
            return
        if not large:
            try:
                for step in steps:
                    step()
            except DldError as error:
                self.complain(error)
                return
            done()
            return
        transactions: list[Transaction] = []
        self.document.hold_changes()

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            for step in steps:
                transaction = step()
                if transaction is not None:
                    transactions.append(transaction)
            if any(transaction.is_whole for transaction in transactions):
                self.node_list.reindex()

        def ended(error: DldError | None) -> None:
            self.document.tell_changes()
            if error is not None:
                self.complain(error)
            else:
                done()

        self.work.run(title, task, ended)


_LONG_S = 0.5
"""Saving that takes longer shows a message."""


class PageEdits:
    """Edits the document of a workspace from a page over it, and saves it as that does.

    Args:
        page: The page.
        workspace: The history of the document.
        complain: Says what could not be done; a notice by default.
    """

    COMMAND_TABLE = table(
        "model_page",
        ("model_page.save", "edits.save", "ctrl+s", "", "save", "Save the model."),
    )  # fmt: skip

    def __init__(
        self,
        page: Page,
        workspace: EditHistory,
        complain: Callable[[DldError], None] | None = None,
    ) -> None:
        self.page, self.workspace, self.tasks = page, workspace, page.tasks
        self.complain = complain or self._notify
        self._places: Places[Any] = Places()

    def returning(self, change: DocumentChange, here: Callable[[], Place]) -> Place | None:
        """Return where the cursor of the page goes with an undo or redo; see :class:`Places`."""
        return self._places.through(self.document, change, here)

    @property
    def document(self) -> Document:
        """The document of the workspace."""
        return self.workspace.document

    @property
    def is_working(self) -> bool:
        """Whether something runs here or in the workspace, such as saving."""
        return self.tasks.is_working or self.workspace.work.is_running

    def edit(self, edit: Edit) -> Transaction:
        """Make an edit.

        Raises:
            DldError: It does not fit the model, or something else runs.
        """
        if self.is_working:
            raise DldError("wait for the running task to end")
        return self.workspace.edit(edit)

    def try_edit(self, edit: Edit) -> bool:
        """Make an edit; shows the error if it cannot be made."""
        try:
            self.edit(edit)
        except DldError as error:
            self.complain(error)
            return False
        return True

    def _notify(self, error: DldError) -> None:
        """Show an error."""
        self.page.notify(visible(str(error)), severity="warning", timeout=6, markup=False)

    def edit_on_thread(
        self,
        title: str,
        steps: Sequence[Callable[[], Transaction]],
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """Make edits that may take long; listeners are called afterwards, on the event loop.

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

    def work(
        self,
        title: str,
        task: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
    ) -> None:
        """Run something long on a thread, with a line of progress; Esc stops it.

        Args:
            title: What it is: untrusted text.
            task: Called on the thread.
            done: Called on the event loop afterwards, with the error when there was one.
        """
        if self.is_working:
            self.complain(DldError("wait for the running task to end"))
            return
        Work(self.page).run(title, task, done, panel=WorkLine(title), after_close=True)

    def cancel_work(self) -> bool:
        """Ask the running work to stop; False when nothing runs."""
        return self.tasks.cancel_work()

    def save(self) -> None:
        """Save the model; the progress panel is hidden here, so long saving shows a message."""
        if self.is_working:
            self.complain(DldError("wait for the running task to end"))
            return
        self.workspace.page.save_then(lambda: None)
        self.page.set_timer(_LONG_S, self._say_saving)

    def _say_saving(self) -> None:
        if self.workspace.work.is_running and self.page.app.screen is self.page:
            self.page.notify("Saving the model", timeout=3)

    def undo(self) -> None:
        """Take back the last edit."""
        if self.tasks.is_working:
            self.complain(DldError("wait for the running task to end"))
        else:
            self.workspace.undo()

    def redo(self) -> None:
        """Make the edit again that was taken back."""
        if self.tasks.is_working:
            self.complain(DldError("wait for the running task to end"))
        else:
            self.workspace.redo()
