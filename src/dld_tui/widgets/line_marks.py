"""Marked rows of a line view: for commands on several things at once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual.message import Message

if TYPE_CHECKING:
    from textual.scroll_view import ScrollView

    from dld_tui.widgets.line_source import LineSource

    class _Base(ScrollView):
        lines: LineSource
        cursor: int

        def key_at_cursor(self) -> Hashable | None: ...
        def find_key(self, key: Hashable, near: int = 0) -> int | None: ...
        def refresh_row(self, index: int) -> None: ...
else:
    _Base = object


@dataclass
class MarksChanged(Message, namespace="line_view"):
    """Rows were marked or unmarked."""

    view: Any
    """The line view."""
    marks: set[Hashable]

    @property
    def control(self) -> Any:
        """Return the view, for ``@on`` selectors."""
        return self.view


class LineMarks(_Base):
    """A mixin with `space` and `M` for a view that has ``lines`` and ``cursor``."""

    MarksChanged = MarksChanged
    marks: set[Hashable]
    _last_mark: Hashable | None = None

    def action_mark(self) -> None:
        """Mark or unmark the cursor's row and move down."""
        key = self.key_at_cursor()
        if key is None:
            return
        self.marks ^= {key}
        self._last_mark = key
        self.refresh_row(self.cursor)
        self.post_message(self.MarksChanged(self, set(self.marks)))
        self.cursor += 1

    def action_mark_range(self) -> None:
        """Mark the rows between the last mark and the cursor."""
        start = None if self._last_mark is None else self.find_key(self._last_mark)
        if not len(self.lines):
            return
        low, high = sorted((self.cursor if start is None else start, self.cursor))
        self.set_marks(self.marks | {self.lines.key(index) for index in range(low, high + 1)})

    def set_marks(self, marks: set[Hashable]) -> None:
        """Replace the marks; an empty set clears them."""
        if marks != self.marks:
            self.marks = set(marks)
            self.refresh()
            self.post_message(self.MarksChanged(self, set(marks)))
