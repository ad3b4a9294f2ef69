"""The base class of the controllers of a workspace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from textual.message import Message

from dld_tui.commands import Command
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.screens.workspace.state import Cursor, WorkspaceModel
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.shell.progress import Work
from dld_tui.widgets.tasks import Tasks, task

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from dld_tui.core.model.document import Document

Answer = TypeVar("Answer")
Option: TypeAlias = "tuple[str, str, Callable[[], None] | None]"
"""An answer to a question: its letter, its text, and what it does, if anything."""


Method = TypeVar("Method", bound=Callable[..., None])


def hears(*kinds: type[Message]) -> Callable[[Method], Method]:
    """Let the page call a method of a controller with each message of some kinds.

    Messages are told nobody else, and nobody before the model is open.
    """

    def mark(method: Method) -> Method:
        vars(method)["hears"] = kinds
        return method

    return mark


def listeners(
    kinds: Sequence[type[Controller]],
) -> Mapping[type[Message], Sequence[tuple[type[Controller], str]]]:
    """Return the methods that hear each kind of message: their controller and their name."""
    heard: dict[type[Message], list[tuple[type[Controller], str]]] = {}
    for kind in kinds:
        for name, method in vars(kind).items():
            for message in getattr(method, "hears", ()):
                heard.setdefault(message, []).append((kind, name))
    return heard


@dataclass(eq=False)
class Controller:
    """One concern of a workspace: its state and its commands.

    What it needs of the others is given to it; nothing is looked up through the page.
    """

    COMMAND_TABLE: ClassVar[tuple[Command, ...]] = ()

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

    def conditions(self, cursor: Cursor) -> set[str]:
        """Return the :data:`~dld_tui.commands.command.CONDITIONS` of the open model.

        Args:
            cursor: What the cursor is on.
        """
        return set()

    def close(self) -> None:
        """Stop what runs: the page is being closed."""

    @property
    def tasks(self) -> Tasks:
        """The tasks of the page: dialogs are awaited in them."""
        return self.page.tasks

    def push(self, page: Screen[Answer]) -> None:
        """Show a page or a dialog that needs no answer."""
        self.app.push_screen(page)

    async def ask(self, dialog: Screen[Answer]) -> Answer | None:
        """Show a dialog or a page, and return what it was left with."""
        return await self.tasks.ask(dialog)

    async def pick(
        self,
        title: str,
        message: str,
        options: Sequence[tuple[str, str, Answer]],
        *,
        loses: bool = False,
    ) -> Answer | None:
        """Ask for one of several answers.

        Args:
            title: The question.
            message: More about it.
            options: The letter, the text and the value of each answer.
            loses: Whether something may be lost for good; the first answer must not lose it.
        """
        from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, QuestionDialog

        choices = [Choice(key, text, str(at)) for at, (key, text, _) in enumerate(options)]
        dialog = QuestionDialog if loses else ChoiceDialog
        answer = await self.ask(dialog(title, message, choices))
        return options[int(answer)][2] if answer is not None else None

    @task()
    async def ask_which(
        self, title: str, message: str, options: Sequence[Option], *, loses: bool = False
    ) -> None:
        """Ask which of several things to do, and do it; see :meth:`pick`."""
        action = await self.pick(title, message, options, loses=loses)
        if action is not None:
            action()

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
