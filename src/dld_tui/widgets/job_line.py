"""A job beside the work, in one row above the keys: what runs, how far it is, how to stop it."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from dld_tui.core import fmt
from dld_tui.core.events import Progress
from dld_tui.core.text import clip, visible
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.styled import Rows


class JobLine(Rows):
    """The row."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._stage = ""
        self._begun = monotonic()
        self._stopping = False

    def on_mount(self) -> None:
        """Count the seconds."""
        self.set_interval(1.0, self.refresh)

    def show_progress(self, event: Progress) -> None:
        """Show what the job does now."""
        self._stage = visible(event.stage)
        self.refresh()

    def stopping(self) -> None:
        """Show that it was asked to stop."""
        self._stopping = True
        self.refresh()

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the row."""
        title = clip(visible(self._title), width // 2)
        passed = fmt.duration(monotonic() - self._begun)
        said = "stopping …" if self._stopping else "  ".join(filter(None, (self._stage, passed)))
        tail = "" if self._stopping else "  Esc stops"
        return [[(f" {title}", "strong"), (f"  {said}{tail}", "dim")]]
