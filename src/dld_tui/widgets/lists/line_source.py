"""What a :class:`~dld_tui.widgets.lists.line_view.LineView` shows and searches: rows on demand.

What a :class:`~dld_tui.widgets.lists.line_view.LineView` shows: rows made on demand.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TypeAlias

Piece: TypeAlias = "tuple[str, str]"
"""(text, style class): one or more of the names in STYLES, by spaces, or ``""``."""

STYLES: tuple[str, ...] = (
    "dim", "faint", "strong", "accent", "key", "link", "good", "warn", "bad", "info",
    "type", "number", "io", "guide", "badge", "bar", "rest",
    "op-conv", "op-matmul", "op-norm", "op-act", "op-elem",
    "op-shape", "op-data", "op-control", "op-quant", "op-other",
    "prec-fp32", "prec-fp16", "prec-bf16", "prec-int8", "prec-fp8", "prec-int4", "prec-other",
    "heat-0", "heat-1", "heat-2", "heat-3", "heat-4", "heat-5",
)  # fmt: skip
"""What a piece can be: quiet text, state, operator class, precision, heat (0 cold to 5 hot)."""


class LineSource(Protocol):
    """Rows by index. Only visible rows are asked for, so making one may cost microseconds."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def line(self, index: int, width: int) -> Sequence[Piece]:
        """Return one row for `width` cells; longer ones are cut, shorter ones padded."""

    def key(self, index: int) -> Hashable:
        """Return what identifies the row when rows are added, removed or sorted."""

    def text(self, index: int) -> str:
        """Return the row's text, for search and copy."""


class ListSource:
    """Rows that are already there: short lists, and logs that grow."""

    def __init__(
        self, rows: Sequence[Sequence[Piece]] = (), keys: Sequence[Hashable] | None = None
    ) -> None:
        self.rows = rows
        self.keys = keys

    def __len__(self) -> int:
        return len(self.rows)

    def line(self, index: int, width: int) -> Sequence[Piece]:
        """Return the row as it was given."""
        return self.rows[index]

    def key(self, index: int) -> Hashable:
        """Return the row's key, or its index when none were given."""
        return index if self.keys is None else self.keys[index]

    def text(self, index: int) -> str:
        """Return all the row's text."""
        return "".join(text for text, _ in self.rows[index])


class LogSource(ListSource):
    """Rows of which the first ones are given up now and then: keys count these, too.

    Args:
        rows: The rows that are kept; more may be added, and none is taken away.
        gone: How many there were before them.
    """

    def __init__(self, rows: Sequence[Sequence[Piece]], gone: int) -> None:
        super().__init__(rows)
        self.gone = gone

    def key(self, index: int) -> int:
        """Return the number of the row, from the first that there ever was."""
        return self.gone + index

    def index_of(self, key: int) -> int | None:
        """Return where the row with a number is, or None."""
        return key - self.gone if 0 <= key - self.gone < len(self.rows) else None


if TYPE_CHECKING:
    from textual.scroll_view import ScrollView

    from dld_tui.widgets.tasks import Tasks

    _Base = ScrollView
else:
    _Base = object

_SLICE_S = 0.02
"""How long a search may keep the event loop before it lets others run."""


@lru_cache(maxsize=16)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return what a row that has `pattern` matches."""
    # As in less and vim: capitals in the pattern make the case count.
    return re.compile(re.escape(pattern), 0 if pattern != pattern.lower() else re.IGNORECASE)


def matches(text: str, pattern: str) -> Iterator[tuple[str, bool]]:
    """Cut text into (part, is a match) parts."""
    if not pattern:
        yield text, False
        return
    end = 0
    for match in compiled(pattern).finditer(text):
        if match.start() > end:
            yield text[end : match.start()], False
        yield match.group(), True
        end = match.end()
    if end < len(text) or not text:
        yield text[end:], False


class LineSearch(_Base):
    """A mixin with `/`, `n` and `N` for a view that has ``lines`` and ``cursor``."""

    lines: LineSource
    cursor: int
    tasks: Tasks

    search_pattern: str = ""

    @property
    def is_searched(self) -> bool:
        """Whether the keys go to the line that asks what to search for in it."""
        focused = self.screen.focused
        return focused is not None and getattr(focused.parent, "view", None) is self

    def invalidate(self) -> None:
        """Draw all rows again."""
        self.refresh()

    def search(self, pattern: str, backwards: bool = False, *, start: int | None = None) -> None:
        """Move to the next row whose text has `pattern`, from `start` or after the cursor.

        A pattern in lower case ignores case. A long list is searched in slices between events;
        :meth:`search_ended` is told the result.
        """
        if pattern != self.search_pattern:
            self.search_pattern = pattern
            self.refresh()
        if not pattern:
            return
        steps = self._search_steps(pattern, backwards, start)
        self.tasks.start(self._search_on(steps), "search", replace=True)

    async def _search_on(self, steps: Iterator[int | None]) -> None:
        deadline = monotonic() + _SLICE_S
        for found in steps:
            if found is not None:
                return self.search_ended(found)
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        return self.search_ended(None)

    def _search_steps(
        self, pattern: str, backwards: bool, start: int | None
    ) -> Iterator[int | None]:
        """Yield None every few hundred rows, and the index once found."""
        is_match = compiled(pattern).search
        count = len(self.lines)
        step = -1 if backwards else 1
        first = self.cursor + step if start is None else start
        for done in range(count):
            index = (first + done * step) % count
            if index >= len(self.lines):  # the list got shorter meanwhile
                return
            if is_match(self.lines.text(index)):
                yield index
                return
            if done % 256 == 255:
                yield None

    def search_ended(self, found: int | None) -> None:
        """Move to the row that was found, or say that there is none."""
        if found is not None:
            self.cursor = found
        else:
            self.notify(f"Not found: {self.search_pattern[:60]}", timeout=3, markup=False)

    def action_search(self) -> None:
        """Ask what to search for."""
        self.begin_search()

    def begin_search(self) -> None:
        """Ask what to search for, in a line below the view."""
        from dld_tui.widgets.lists.search_bar import SearchBar

        self.screen.mount(SearchBar(self))

    def action_search_next(self) -> None:
        """Go to the next match."""
        self.search_again(backwards=False)

    def action_search_previous(self) -> None:
        """Go to the previous match."""
        self.search_again(backwards=True)

    def search_again(self, backwards: bool) -> None:
        """Go to the next or the previous match."""
        self.search(self.search_pattern, backwards)
