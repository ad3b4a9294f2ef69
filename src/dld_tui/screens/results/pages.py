"""What pages of results share: reading, saving, and the model that they are of."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.process import paths
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.widgets.dialogs.dialogs import PromptDialog
from dld_tui.widgets.dialogs.overwrite import ask_file
from dld_tui.widgets.shell.page import Page, host
from dld_tui.widgets.tasks import on_thread

if TYPE_CHECKING:
    from dld_tui.core.model.document import Document
    from dld_tui.widgets.shell.page import CommandScreen, Page


Write: TypeAlias = Callable[[Path, bool], "Sequence[str]"]
"""Writes a file, replacing one if the second argument is True, and returns remarks."""


def ask_where(screen: CommandScreen, title: str, about: str, name: str, write: Write) -> None:
    """Ask for a path, and for permission to replace a file, and write.

    Args:
        screen: What asks.
        title: The question.
        about: What will be written.
        name: The path that is offered.
        write: Writes it, on a thread; what it raises is shown by the app.
    """
    screen.tasks.start(_ask_where(screen, title, about, name, write), "dialog")


def in_folder(about: str = "") -> str:
    """Return what will be written, with the folder that relative paths begin in."""
    return f"{about} Relative to {paths.short(os.getcwd())}.".lstrip()


async def _ask_where(
    screen: CommandScreen, title: str, about: str, name: str, write: Write
) -> None:
    chosen = await ask_file(screen.tasks, lambda start: PromptDialog(title, about, start), name)
    if chosen is not None:
        path, replaced = chosen
        screen.tasks.start(_write(screen, path, bool(replaced), write), "save")


async def _write(screen: CommandScreen, path: Path, overwrite: bool, write: Write) -> None:
    for text in (f"Wrote {path}", *await on_thread(write, path, overwrite)):
        screen.notify(visible(text), timeout=4, markup=False)


@dataclass(frozen=True)
class ModelState:
    """A model in a tab, as it was when a job began."""

    page: Page
    title: str
    """Its name in results, such as ``model.onnx as edited``. Untrusted text."""
    document: weakref.ref[Document]
    last: Transaction | None
    """The last edit that is in it; None when there is none."""

    @classmethod
    def edited(cls, page: Page, document: Document) -> ModelState:
        """Return the state that a tab shows now."""
        done = document.history.done
        return cls(page, f"{model_name(document)} as edited", weakref.ref(document),
                   done[-1] if done else None)  # fmt: skip

    @classmethod
    def saved(cls, page: Page, document: Document) -> ModelState:
        """Return the state that the file of a tab has."""
        return cls(page, model_name(document), weakref.ref(document), document.history.saved_at)

    @property
    def is_open(self) -> bool:
        """Whether the tab still shows the model."""
        document = self.document()
        is_shown = document is not None and self.page.edited_document is document
        return is_shown and self.page in host(self.page).pages

    @property
    def is_current(self) -> bool:
        """Whether the model is as it was."""
        document = self.document()
        if document is None or not self.is_open:
            return False
        done = document.history.done
        return (done[-1] if done else None) is self.last

    def reveal(self, scope: Sequence[str], node_ref: str) -> bool:
        """Show a node in the tab; False when that is closed."""
        if not self.is_open:
            return False
        host(self.page).show_page(self.page)
        self.page.reveal(scope, node_ref)
        return True


def model_name(document: Document) -> str:
    """Return the file name of a model. Untrusted text."""
    path = document.path
    return path.name if path is not None else "new.onnx"


class ResultModel:
    """The model that a page of results is about.

    Args:
        page: The page.
        activity: What gives such results.
        path: The file in which nodes are shown.
    """

    def __init__(self, page: Page, activity: str, path: Path) -> None:
        self.page, self.activity, self.path = page, activity, path
        self.state: ModelState | None = None
        """The state of a tab that was run; None when a file was."""

    def is_of(self, document: Document) -> bool:
        """Return whether it is about an open document."""
        if self.state is not None and self.state.is_open:
            return self.state.document() is document
        return document.path is not None and document.path.absolute() == self.path.absolute()

    @property
    def is_outdated(self) -> bool:
        """Whether the model was edited since."""
        return self.state is not None and self.state.is_open and not self.state.is_current

    def again(self) -> None:
        """Show the form again."""
        if self.state is not None and self.state.is_open:
            page: Page = self.state.page
            host(self.page).show_page(page)
            page.show_activity(self.activity)
        else:
            host(self.page).start_activity(self.activity, {"model": str(self.path)})

    def show_node(self, scope: Sequence[str], node_ref: str) -> None:
        """Show a node in the tab of the model, which is opened first when it is not."""
        if self.state is None or not self.state.reveal(scope, node_ref):
            host(self.page).reveal(self.path, scope, node_ref)


def model_of(values: Mapping[str, JSON]) -> Path:
    """Return the model in the settings of a job."""
    return Path(str(values.get("model")))
