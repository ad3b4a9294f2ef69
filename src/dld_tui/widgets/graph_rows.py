"""The rows of the overview and the rail view: rails, glyph, operator, name, type."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from dld_tui.core import fmt
from dld_tui.core.document import Node
from dld_tui.core.graph.folds import Fold
from dld_tui.core.graph.graph import Kind
from dld_tui.core.graph.overview import Row
from dld_tui.core.graph.rails import rail_cells
from dld_tui.core.text import clip, fit, visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.graph_model import GraphModel
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.operator_style import operator_style

GLYPHS = {
    Kind.NODE: "●", Kind.INPUT: "◆", Kind.OUTPUT: "◆", Kind.HOLDER: "◉", Kind.CALL: "ƒ",
    Kind.GROUP: "⊞", Kind.OUTER: "◇", Kind.CUT: "⋯",
}  # fmt: skip
"""What stands for a vertex of each kind."""
_TYPE_FROM = 58
"""Rows of so many cells show the type of the first output."""
_NUMBER_FROM = 90
_LABEL_CELLS = 18
_RAIL_SHARE = 3
"""Rails take at most the third part of a row; the part around the vertex is shown."""


class GraphRows:
    """The line source of the list views."""

    def __init__(self, model: GraphModel) -> None:
        self.model = model
        self.rows = model.rows
        self.seen, self.rails = model.overview.seen()
        labels = {self.seen.labels[at] for at, row in enumerate(self.rows) if row.fold is None}
        self._label_cells = min(max((len(label) for label in labels), default=4), _LABEL_CELLS)

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> Hashable:
        """Return the vertex of a row, or its fold."""
        row = self.rows[index]
        return row.fold if row.fold is not None else self.model.overview.vertex(row)

    def index_of(self, key: Hashable) -> int | None:
        """Return the row of a key."""
        if isinstance(key, int) and key < len(self.model.overview.rails.rows):
            at = self.model.overview.place(key)
            return at if self.key(at) == key else None
        return next((at for at, row in enumerate(self.rows) if row.fold is key), None)

    def text(self, index: int) -> str:
        """Return what search and copy see."""
        row = self.rows[index]
        if row.fold is not None:
            return row.fold.title or fold_summary(row.fold)
        return f"{self.seen.labels[index]}  {self.seen.names[index]}"

    # --- drawing --------------------------------------------------------------------------------

    def line(self, index: int, width: int) -> Sequence[Piece]:
        """Return one row."""
        row = self.rows[index]
        pieces: list[Piece] = []
        if width >= _NUMBER_FROM:
            number = "" if row.fold is not None else str(row.start + 1)
            pieces.append((f"{number:>6} ", "faint"))
        pieces += self._rail_pieces(index, width)
        room = width - sum(len(text) for text, _ in pieces)
        if row.fold is not None:
            return [*pieces, *self._fold_pieces(row, row.fold, room)]
        return [*pieces, *self._vertex_pieces(index, row, room)]

    def _rail_pieces(self, index: int, width: int) -> list[Piece]:
        rails = self.rails
        most = max(3, width // _RAIL_SHARE // 2)
        shown = min(rails.width, most)
        own = rails.columns[index]
        first = max(0, own - shown + 1)
        cells = rail_cells(rails, index, first, shown)
        at = cells.index("o")
        before = "".join(cells[:at])
        after = "".join(cells[at + 1 :])
        if first:
            before = "…" + before[1:] if before else ""
        glyph, style = self._glyph(index)
        return [(before, "guide"), (glyph, style), (after, "guide"), (" ", "")]

    def _glyph(self, index: int) -> Piece:
        row = self.rows[index]
        if row.fold is not None:
            return ("▾" if row.is_open else GLYPHS[Kind.GROUP]), "accent"
        kind = self.seen.kinds[index]
        subject = self._subject(row)
        if isinstance(subject, Node):
            return GLYPHS[kind], operator_style(subject.op_type, subject.domain)
        return GLYPHS[kind], "io"

    def _subject(self, row: Row) -> Node | str:
        return self.model.subject(self.model.overview.rails.order[row.start])

    def _vertex_pieces(self, index: int, row: Row, room: int) -> list[Piece]:
        subject = self._subject(row)
        style = "io"
        label, name = "", visible(self.seen.names[index])
        if isinstance(subject, Node):
            style = operator_style(subject.op_type, subject.domain)
            label = visible(subject.op_type)
        else:
            label = {Kind.INPUT: "input", Kind.OUTPUT: "output"}.get(
                self.seen.kinds[index], "outer value"
            )
        pieces: list[Piece] = [(fit(label, self._label_cells) + " ", style)]
        room -= self._label_cells + 1
        type_text = self._type(subject) if room >= _TYPE_FROM - _LABEL_CELLS else ""
        hubs = self._hub_names(index)
        right = f" {clip(type_text, max(12, room // 3))}" if type_text else ""
        left = room - len(right)
        text = clip(name, left, keep="end")
        if hubs and len(text) + 4 < left:
            hubs = clip(f"  {glyphs.current().left}{hubs}", left - len(text))
        else:
            hubs = ""
        pieces += [(text, ""), (fit(hubs, left - len(text)), "link"), (right, "dim")]
        return pieces

    def _hub_names(self, index: int) -> str:
        names = [self.seen.nets[n].name for n in self.rails.named_inputs(self.seen, index)]
        return " ".join(visible(name) for name in names[:3])

    def _type(self, subject: Node | str) -> str:
        scope = self.model.scope
        if isinstance(subject, Node):
            names = [name for name in subject.outputs if name][:1]
        else:
            names = [subject]
        known = scope.value_type(names[0]) if names else None
        return visible(known.short) if known is not None else ""

    def _fold_pieces(self, row: Row, fold: Fold, room: int) -> list[Piece]:
        times = f"×{fold.count} " if fold.count > 1 else f"{row.time}. " if row.time else ""
        title = visible(fold.title) or "block"
        size = fmt.plural(sum(fold.operators.values()), "op")
        pieces: list[Piece] = [(times, "number"), (clip(title, room - len(times)), "strong")]
        used = len(times) + len(pieces[1][0])
        if row.is_open:
            return pieces
        rest = f"  {size}"
        if used + len(rest) < room:
            pieces.append((rest, "number"))
            used += len(rest)
        if room - used > 12:
            pieces.append((clip("  " + fold_summary(fold), room - used), "dim"))
        return pieces


def fold_summary(fold: Fold, most: int = 6) -> str:
    """Return the commonest operators of a fold, e.g. ``Conv×10, Relu×9``."""
    parts = []
    for name, count in fold.operators.most_common(most):
        parts.append(f"{visible(name)}×{count}" if count > 1 else visible(name))
    return ", ".join(parts)
