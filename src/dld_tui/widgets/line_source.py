"""What a :class:`~dld_tui.widgets.line_view.LineView` shows: rows made on demand."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
