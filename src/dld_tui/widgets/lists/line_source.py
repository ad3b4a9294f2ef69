"""What a :class:`~dld_tui.widgets.lists.line_view.LineView` shows: rows made on demand."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

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
