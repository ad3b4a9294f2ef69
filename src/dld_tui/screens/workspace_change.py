"""What a change of the model does to the screen; undo, redo, and changes that take long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from dld_tui.core.collector import collector_paused
from dld_tui.core.document import Change, Node, Transaction
from dld_tui.core.document.summary import summarise
from dld_tui.core.document.texts import NodeTexts
from dld_tui.core.errors import DldError
from dld_tui.core.text import clip, visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace_base import is_alive
from dld_tui.screens.workspace_go import Going
from dld_tui.widgets.explorer_again import model_anew
from dld_tui.widgets.explorer_model import ExplorerModel

MANY = 300
"""Nodes, or primitive changes, of the largest edit that is made between two key presses."""


class Changing(Going):
    """The part of the workspace that makes changes and shows them."""

    _anew: ExplorerModel | None = None
    """The explorer's rows of a model that has just taken the place of the document's."""

    # --- what an edit does to the screen --------------------------------------------------------

    def document_changed(self, change: Change) -> None:
        """Show what an edit, undo or redo did."""
        before = self.explorer.node
        if not is_alive(self.explorer.model.root):
            self.explorer.model.set_root(self.document.main)
        self.explorer.apply_change(change, self._anew if change.is_everything else None)
        if change.is_everything:
            self._all_changed(before)
        subject = self.parameters.subject
        if subject is not None and not is_alive(subject):
            self.show_subject(self.explorer.node or self.explorer.model.root)
        else:
            self.parameters.rebuild()
        self.show_dirty()
        self.facts_changed()
        self.check_later()

    def _all_changed(self, before: Node | None) -> None:
        """Leave nothing on the screen that is of the former model but the place in it."""
        self._anew = None
        self.explorer.list.set_marks(set())
        model = self.explorer.model
        if not (model.filtering or model.unfolded):
            self.explorer.show_root(model.root)  # unfolds what there is room for
        if before is not None and before.scope is self.document.main and not is_alive(before):
            same = before.scope.nodes_named(before.name)
            if len(same) == 1:
                self.explorer.reveal(same[0])

    def read_anew(self) -> None:
        """Read what a change of everything needs; may run on a thread, before the change is told.

        Large models would hold the event loop up.
        """
        with collector_paused():
            anew = model_anew(self.explorer.model)
            if not is_alive(anew.root):
                anew.set_root(self.document.main)
            texts = [(scope, NodeTexts(scope.nodes)) for scope in self.document.scopes()]
            for scope, read in texts:
                scope.index(read)
            anew.index(texts)
            self._anew = anew
            op_types = Counter(op_type for _, read in texts for _, op_type in read.kinds)
            self.parameters.summary = summarise(self.document, op_types)

    def show_dirty(self) -> None:
        """Mark the tab while there is something to save."""
        if self.tab_dirty != self.document.dirty:
            self.tab_dirty = self.document.dirty
            self.tab_changed()

    def check_later(self) -> None:
        """Look for findings again, some time after the last edit."""

    # --- undo -----------------------------------------------------------------------------------

    def action_undo(self) -> None:
        """Take back the last edit and show where it was."""
        self._travel_in_time(self.document.history.done, self.document.undo, "Undone")

    def action_redo(self) -> None:
        """Make the edit again that was taken back."""
        self._travel_in_time(self.document.history.undone, self.document.redo, "Done again")

    def _travel_in_time(
        self, history: Sequence[Transaction], step: Callable[[], Transaction | None], word: str
    ) -> None:
        if not history:
            return
        transaction = history[-1]
        title = clip(visible(transaction.title), 90, keep="middle")

        def ended() -> None:
            self.notify(f"{word}: {title}", timeout=3, markup=False)
            touched = [node for node in transaction.nodes if is_alive(node)]
            if len(touched) == 1 and touched[0] is not self.node:
                self.go_to(touched[0])
            if history is self.document.history.undone:
                self.done_again(transaction)

        # An exchange of everything may have to be written to the journal, and all is read anew.
        large = len(transaction.primitives) > MANY or transaction.is_whole
        self.change(word, [step], large=large, done=ended)

    def done_again(self, transaction: Transaction) -> None:
        """Show more of an edit that was made again, where there is more."""

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
        if self._cancel is not None:
            self.complain(DldError("wait until the running work has ended"))
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
        made: list[Transaction] = []
        self.document.hold_changes()

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            for step in steps:
                transaction = step()
                if transaction is not None:
                    made.append(transaction)
            if any(transaction.is_whole for transaction in made):
                self.read_anew()

        def ended(error: DldError | None) -> None:
            self.document.tell_changes()
            if error is not None:
                self.complain(error)
            else:
                done()

        self.work(title, task, ended)
