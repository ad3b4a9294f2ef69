"""The base class of the controllers of a workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.screens.workspace.state import Cursor, WorkspaceModel
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.shell.progress import Work

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from dld_tui.core.document import Document

Answer = TypeVar("Answer")
Option: TypeAlias = "tuple[str, str, Callable[[], None] | None]"
"""An answer to a question: its letter, its text, and what it does, if anything."""


@dataclass(eq=False)
class Controller:
    """One concern of a workspace: its state and its commands.

    What it needs of the others is given to it; nothing is looked up through the page.
    """

    page: Page
    model: WorkspaceModel
    work: Work

    @property
    def app(self) -> App[Any]:
        """The app of the page."""
        return self.page.app

    @property
    def document(self) -> Document:
        """The open document."""
        return self.model.document

    @property
    def cursor(self) -> Cursor:
        """What the cursor is on."""
        return self.model.cursor

    def facts(self, cursor: Cursor) -> set[str]:
        """Return what holds for commands while the model is open: keys of ``commands.FACTS``.

        Args:
            cursor: What the cursor is on.
        """
        return set()

    def close(self) -> None:
        """Stop what runs: the page is being closed."""

    def ask(
        self, dialog: Screen[Answer], answered: Callable[[Answer | None], None] | None = None
    ) -> None:
        """Show a dialog, and call `answered` with its result."""
        self.app.push_screen(dialog, answered)

    def ask_which(
        self, title: str, message: str, options: Sequence[Option], *, loses: bool = False
    ) -> None:
        """Ask which of several things to do, and do it.

        Args:
            title: The question.
            message: More about it.
            options: The answers.
            loses: Whether something may be lost for good; the first answer must not lose it.
        """
        from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, QuestionDialog

        def answered(answer: str | None) -> None:
            action = options[int(answer)][2] if answer is not None else None
            if action is not None:
                action()

        choices = [Choice(key, text, str(at)) for at, (key, text, _) in enumerate(options)]
        dialog = QuestionDialog if loses else ChoiceDialog
        self.ask(dialog(title, message, choices), answered)

    def say(self, text: str, seconds: float = 3, *, warning: bool = False) -> None:
        """Show a message for some time. The text must be fit for a terminal; it is no markup."""
        self.page.notify(
            text,
            severity="warning" if warning else "information",
            timeout=seconds,
            markup=False,
        )

    def complain(self, error: DldError) -> None:
        """Show an error."""
        self.say(visible(str(error)), 6, warning=True)

    def perform(
        self, title: str, task: Callable[[], None], done: Callable[[], None], *, large: bool
    ) -> None:
        """Run a task now, or on a thread if it may take long; shows the error if it fails."""

        def ended(error: DldError | None) -> None:
            if error is not None:
                self.complain(error)
            else:
                done()

        if large:
            self.work.run(title, lambda progress, cancelled: task(), ended)
            return
        try:
            task()
        except DldError as error:
            self.complain(error)
            return
        done()
