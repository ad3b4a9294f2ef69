"""One row of the parameters pane, how it looks at a width, and how types are shown."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope
    from dld_tui.core.document.tensor import Tensor

_LABEL_CELLS = 22
_LEAST_LABEL = 9
_RIGHT_SHARE = 0.45
"""The type at the right takes at most this share of a row."""


@dataclass(slots=True)
class ParameterRow:
    """What one row says, and what the keys do there. All texts are visible text."""

    key: Hashable
    label: str = ""
    value: str = ""
    right: str = ""
    glyph: str = ""
    """One cell before the value: where it comes from or goes to."""
    label_style: str = "dim"
    value_style: str = ""
    right_style: str = "dim"
    extra: str = ""
    """More about the value, shown dim behind it where there is room."""
    indent: int = 0
    unfolded: bool | None = None
    """Whether the rows below are shown; None when there are none."""
    fold_key: Hashable = None
    """What folding the row folds."""
    keep: str = "end"
    """The part of a long value that stays."""
    node: Node | None = None
    """Enter goes to this node."""
    scope: Scope | None = None
    """Enter opens this scope."""
    attribute: str = ""
    """`e` edits this attribute, and reverting removes it."""
    name_of: str = ""
    """What `r` renames: ``node`` or ``value``."""
    copied: str = ""
    """What `y` copies: the name in full. Foreign text."""
    tensor: Tensor | None = None

    def text(self) -> str:
        return " ".join(filter(None, (self.label, self.value, self.extra, self.right)))


def row_pieces(row: ParameterRow, width: int, label_cells: int) -> Sequence[Piece]:
    """Return the pieces of a row for `width` cells."""
    lead = "  " * row.indent
    if row.unfolded is not None:
        shown = glyphs.current()
        lead += (shown.unfolded if row.unfolded else shown.folded) + " "
    elif (row.value or row.glyph or row.right) and row.fold_key is None:
        lead += "  "
    pieces = [(clip(lead, width), "dim")]
    room = width - cell_width(lead)
    right = clip(row.right, int(width * _RIGHT_SHARE), keep="middle")
    room -= cell_width(right) + bool(right)
    if row.label:
        alone = not (row.value or row.glyph)
        label = clip(row.label, room) if alone else fit(row.label, min(label_cells, room))
        pieces.append((label, row.label_style))
        room -= cell_width(label)
    if room > 1 and (row.value or row.glyph):
        gap = " " if row.label else ""
        glyph = f"{row.glyph} " if row.glyph else ""
        pieces.append((gap + glyph, "dim"))
        room -= cell_width(gap + glyph)
        value = clip(row.value, room, keep=row.keep)
        pieces.append((value, row.value_style))
        room -= cell_width(value)
        if row.extra and room > 12:
            extra = "  " + clip(row.extra, room - 2, keep="end")
            pieces.append((extra, "faint"))
            room -= cell_width(extra)
    if right:
        pieces.append((" " * (max(0, room) + 1) + right, row.right_style))
    return pieces


class ParameterLines:
    """The line source of the parameters pane."""

    def __init__(self, rows: Sequence[ParameterRow]) -> None:
        self.rows = rows
        labelled = (row for row in rows if row.value and row.label_style != "strong")
        self._longest = max((cell_width(row.label) for row in labelled), default=0)

    def __len__(self) -> int:
        return len(self.rows)

    def line(self, index: int, width: int) -> Sequence[Piece]:
        label_cells = min(self._longest, _LABEL_CELLS, max(_LEAST_LABEL, width // 4))
        return row_pieces(self.rows[index], width, label_cells)

    def key(self, index: int) -> Hashable:
        return self.rows[index].key

    def text(self, index: int) -> str:
        return self.rows[index].text()


def section(title: str, count: int | None = None, *, unfolded: bool | None = None) -> ParameterRow:
    """Return a heading; it folds when `unfolded` is given."""
    return ParameterRow(
        ("section", title),
        title,
        right="" if count is None else f"{count:,}",
        label_style="strong",
        unfolded=unfolded,
        fold_key=("section", title),
    )


def wrapped(key: Hashable, lines: Sequence[str], indent: int = 1) -> list[ParameterRow]:
    """Return rows of running text."""
    return [
        ParameterRow((key, at), label=visible(line), label_style="", indent=indent)
        for at, line in enumerate(lines)
    ]


def shown_type(scope: Scope, name: str, unknown: str = "") -> str:
    """Return for example ``f32[N,3,224,224]``, or ``~f32[N,3]`` for a type that may be wrong.

    Args:
        scope: Where the value is seen.
        name: The value.
        unknown: The text when nothing is known of it.
    """
    value_type, is_stale = scope.document.shown_types.of(scope, name)
    if value_type is None:
        return unknown
    return stale_mark(is_stale) + visible(value_type.short)


def stale_mark(is_stale: bool) -> str:
    """Return the glyph before a type that may be wrong since an edit; else nothing."""
    return glyphs.current().stale if is_stale else ""
