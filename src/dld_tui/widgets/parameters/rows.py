"""The rows of the parameters pane: terminals by name, how a row looks at a width, types."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.document.node import Node
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.parameters.model import formal_name
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


@dataclass(frozen=True)
class Terminal:
    """One input or output of a node, or of a graph or function (`node` is None)."""

    scope: Scope
    side: str
    """``input`` or ``output``."""
    value: str
    """What is connected; ``""`` when nothing is. Foreign text."""
    node: Node | None = None
    index: int = 0
    user: Node | None = None
    """The row is about this one user of the output."""

    @property
    def label(self) -> str:
        """Return what people call it, e.g. ``input W``: visible text."""
        node = self.node
        if node is None:
            return f"{self.side} {visible(self.value)}"
        return f"{self.side} {terminal_name(node, self.side, self.index)}"

    @property
    def is_required(self) -> bool:
        """Whether the operator needs it."""
        from dld_tui.core.operators.matching import is_required

        node = self.node
        return node is not None and self.side == "input" and is_required(node, self.index)


def terminal_name(node: Node, side: str, index: int) -> str:
    """Return what the operator calls one of its inputs or outputs."""
    from dld_tui.core.operators.matching import schema_of

    schema = schema_of(node)
    formal = None
    if schema is not None:
        formal = schema.input(index) if side == "input" else schema.output(index)
    return formal_name(formal, index)


def terminal_at(subject: Node | Scope | None, row: ParameterRow | None) -> Terminal | None:
    """Return the terminal that a row of the parameters pane is about, or None."""
    key = row.key if row is not None else None
    if row is None or subject is None or not isinstance(key, tuple) or len(key) < 2:
        return None
    if not isinstance(subject, Node):
        side = {"Inputs": "input", "Inputs with a default": "input", "Outputs": "output"}.get(
            str(key[0])
        )
        return Terminal(subject, side, row.copied) if side is not None else None
    side, index = key[0], key[1]
    if side not in ("input", "output") or not isinstance(index, int):
        return None
    names = subject.inputs if side == "input" else subject.outputs
    value = names[index] if index < len(names) else ""
    user = key[2] if len(key) > 2 and isinstance(key[2], Node) else None
    return Terminal(subject.scope, side, value, subject, index, user)


def takes_more(node: Node) -> bool:
    """Return whether one more input can be connected behind those that a node has."""
    from dld_tui.core.operators.matching import schema_of

    schema = schema_of(node)
    return schema is None or schema.max_inputs is None or len(node.inputs) < schema.max_inputs


def terminals_of(node: Node) -> Iterator[Terminal]:
    """Yield the inputs of a node, those left out and one more too where it takes more; outputs."""
    from dld_tui.core.operators.matching import schema_of

    schema = schema_of(node)
    formals = schema.inputs if schema is not None else ()
    singles = sum(formal.option != "variadic" for formal in formals)
    count = max(len(node.inputs), singles)
    if takes_more(node) and count == len(node.inputs):
        count += 1
    for index in range(count):
        value = node.inputs[index] if index < len(node.inputs) else ""
        yield Terminal(node.scope, "input", value, node, index)
    for index, value in enumerate(node.outputs):
        if value:
            yield Terminal(node.scope, "output", value, node, index)
