"""Asking for a path."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from textual.widget import Widget

from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.forms.path_input import PathInput


class OpenPathDialog(Dialog[Path]):
    """Gives a path, or None. Also used for saving, with another title."""

    KEYS = "Tab complete  Enter accept  Esc close"

    def __init__(self, title: str = "Open", value: str = "", placeholder: str = "") -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self.value = value
        self.placeholder = placeholder

    def body(self) -> Iterable[Widget]:
        yield PathInput(self.value, self.placeholder or "path of a model or a report", rows=10)

    def on_path_input_chosen(self, event: PathInput.Chosen) -> None:
        """Give the path."""
        event.stop()
        self.dismiss(event.path)
