"""The rows of the overview and the rail view: rails, glyph, operator, name, type."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from dld_tui.core import fmt
from dld_tui.core.model.graph.folding import Fold, OverviewRow
from dld_tui.core.model.graph.graph import GLYPHS, Kind
from dld_tui.core.model.graph.rails import rail_cells
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import ListedNames
from dld_tui.widgets.charts.bars import bar, bar_ramp
from dld_tui.widgets.graph.drawing import LINES, joined
from dld_tui.widgets.graph.overlays import Overlay
from dld_tui.widgets.graph.state import GraphNotes, ViewedGraph, fold_summary, fold_title
from dld_tui.widgets.lists.styled import Piece
from dld_tui.widgets.shell import glyphs

UNFOLDED = "▾"
"""That of an open fold; none of them looks like a rail, in ASCII neither."""
_TYPE_FROM = 48
"""Rows of so many cells show the type of the first output."""
_NUMBER_FROM = 90
_LABEL_CELLS = 18
_NAME_STEP = 8
_NAME_CELLS = 6
"""The least room for a name: columns at the right give way."""
_WEIGHT_FROM = 60
"""Rows of so many cells say how large the weights are."""
_LEAST_SAID = 4
"""Cells behind a name that are worth to be written into."""
_WEIGHT_LEFT = 10
"""Cells behind that in which the type of a weight may have room."""
_BAR_FROM, _BAR_CELLS = 66, 8
"""Rows of so many cells have a bar before what the overlay says."""
_WEIGHT_CELLS, _SHARE_CELLS, _PRECISION_CELLS, _OVERLAY_CELLS = 8, 6, 5, 10
_UPRIGHT = frozenset("│╵╷├┤╭╮╯╰")
"""Cells of a rail itself."""
_RAIL_SHARE = 3
"""Rails take at most the third part of a row; the part around the vertex is shown."""


class GraphRows:
    """The line source of the list views."""

    def __init__(self, model: ViewedGraph, notes: GraphNotes, overlay: Overlay) -> None:
        self.model = model
        self.notes = notes
        self.overlay = overlay
        self.rows = model.rows
        self.seen, self.rails = model.overview.seen()
        labels = set(self.model.graph.labels)
        longest = max((cell_width(visible(label)) for label in labels), default=4)
        self._label_cells = min(longest, _LABEL_CELLS)
        closed = (row for row in self.rows if not row.is_open)
        self._most = (
            max((overlay.value(row.start, row.end) for row in closed), default=0.0)
            if overlay.has_bar
            else 0.0
        )
        """What fills a bar."""
        self._names = ListedNames(
            (
                self._name(index) if row.fold is None else fold_title(row.fold)
                for index, row in enumerate(self.rows)
            ),
            _NAME_STEP,
        )

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> Hashable:
        """Return the node of a row, the vertex of one that has none, or the fold."""
        row = self.rows[index]
        if row.fold is not None:
            return row.fold
        vertex = self.model.overview.rails.order[row.start]
        node = self.model.node_at(vertex)
        return vertex if node is None else node

    def index_of(self, key: Hashable) -> int | None:
        if isinstance(key, Fold):
            return next((at for at, row in enumerate(self.rows) if row.fold is key), None)
        vertex = key if isinstance(key, int) else self.model.vertex(key)
        if vertex is not None:
            if vertex >= len(self.model.overview.rails.rows):
                return None
            at = self.model.overview.place(vertex)
            return at if self.key(at) == key else None
        return None

    def text(self, index: int) -> str:
        row = self.rows[index]
        if row.fold is not None:
            return f"{fold_title(row.fold)}  {fold_summary(row.fold)}"
        vertex = self._vertex(index)
        return f"{self.seen.labels[vertex]}  {self.seen.names[vertex]}"

    def _name(self, index: int) -> str:
        """Return the name of a vertex without what all names share."""
        return visible(self.model.name_ends.without(self.seen.names[self._vertex(index)]))

    def _vertex(self, index: int) -> int:
        """Return the vertex of the graph that is seen."""
        return self.rails.order[index]

    def line(self, index: int, width: int) -> Sequence[Piece]:
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
        if first and at:
            cells[0] = "…"
        plain = self.overlay.name != Overlay.name  # other colours say something then
        styles = [
            "dim" if plain else _rail_style(first + place // 2, cell)
            for place, cell in enumerate(cells)
        ]
        rail_parts = list(zip(cells, styles, strict=True))
        glyph, style = self._glyph(index)
        return [
            *joined(rail_parts[:at]),
            (glyph, style),
            *joined(rail_parts[at + 1 :]),
            (" ", ""),
        ]

    def _glyph(self, index: int) -> Piece:
        row = self.rows[index]
        if row.fold is not None:
            glyph = UNFOLDED if row.is_open else GLYPHS[Kind.GROUP]
            return glyph, self.overlay.style(row.start, row.end) or "accent"
        glyph = GLYPHS[self.seen.kinds[self._vertex(index)]]
        return glyph, self._style(row)

    def _style(self, row: OverviewRow) -> str:
        """Return the style of a vertex: what the overlay says, else its kind of work."""
        tint = self.overlay.style(row.start, row.end)
        return tint if tint is not None else self.model.style(self._subject_vertex(row))

    def _subject_vertex(self, row: OverviewRow) -> int:
        """Return the vertex of the whole graph."""
        return self.model.overview.rails.order[row.start]

    def _vertex_pieces(self, index: int, row: OverviewRow, room: int) -> list[Piece]:
        if self.model.node_at(self._subject_vertex(row)) is not None:
            label = visible(self.seen.labels[self._vertex(index)])
        else:
            known = {Kind.INPUT: "input", Kind.OUTPUT: "output"}
            label = known.get(self.seen.kinds[self._vertex(index)], "outer value")
        cells = min(self._label_cells, max(0, room // 2))
        pieces: list[Piece] = [(fit(label, cells) + " ", self._style(row))]
        room -= cells + 1
        name = self._name(index)
        work = self.model.work(self._subject_vertex(row))
        needed = cell_width(name) + (cell_width(work) + 2 if work else 0)
        right = _fitting(self._right(row, room, needed), room - _NAME_CELLS)
        left = room - sum(cell_width(text) for text, _ in right)
        text = self._names.cut(name, left)
        left -= cell_width(text)
        more = []
        hubs = self._hub_names(index)
        for said, style in (
            (work, "dim"),
            (f"{glyphs.current().left}{hubs}" if hubs else "", "link"),
        ):
            if said and left > _LEAST_SAID:
                more.append((clip(f"  {said}", left), style))
                left -= cell_width(more[-1][0])
        weight = self.model.weight(self._subject_vertex(row)) if left > _WEIGHT_LEFT else ""
        if weight and cell_width(weight) + 2 <= left:
            more.append((f"  {weight}", "number"))
            left -= cell_width(weight) + 2
        return [*pieces, (text, ""), *more, (" " * left, ""), *right]

    def _right(self, row: OverviewRow, room: int, needed: int) -> list[Piece]:
        """Return the columns at the right of a node: finding, type, precision, weights.

        A type is cut to a third of the room, unless the text at the left needs less than the rest.
        """
        pieces: list[Piece] = []
        vertex = self._subject_vertex(row)
        figures = self._figures(row, room)
        if self.notes.has_findings:
            glyph, style = self.notes.finding_badge(row.start, row.end)
            pieces.append((f" {glyph}", style))
        if room >= _TYPE_FROM - _LABEL_CELLS:
            others = sum(cell_width(text) for text, _ in (*pieces, *figures))
            others += _PRECISION_CELLS if self.notes.has_precisions else 0
            spare = room - needed - others - 2
            kind = clip(self.model.type_of(vertex), max(12, room // 3, spare))
            pieces.append((f" {kind}" if kind else "", "dim"))
        if self.notes.has_precisions:
            badge, style = self.model.badge(vertex)
            pieces.append((fit(f" {badge}", _PRECISION_CELLS), style))
        return [*pieces, *figures]

    def _figures(self, row: OverviewRow, room: int) -> list[Piece]:
        """Return what the overlay says of a row, else how large its weights are."""
        if self.overlay.has_text:
            text = self.overlay.text(row.start, row.end)
            style = self.overlay.style(row.start, row.end) or ""
            figures: list[Piece] = [(f" {text:>{_OVERLAY_CELLS - 1}}", style)]
            if self._most and room >= _BAR_FROM - _LABEL_CELLS:
                part = self.overlay.value(row.start, row.end) / self._most
                figures.append((f" {bar(part, _BAR_CELLS, bar_ramp())}", style))
            return figures
        if not self._has_weights(room):
            return []
        size, share = self.notes.weight(row.start, row.end)
        weight = (f" {size:>{_WEIGHT_CELLS}}", "number")
        return [(f"{share:>{_SHARE_CELLS}}", "dim"), weight] if row.fold is not None else [weight]

    def _has_weights(self, room: int) -> bool:
        weights = self.model.weights
        return room >= _WEIGHT_FROM - _LABEL_CELLS and weights is not None and weights.total > 0

    def _hub_names(self, index: int) -> str:
        names = [self.seen.nets[n].name for n in self.rails.named_inputs(self.seen, index)]
        return " ".join(visible(name) for name in names[:3])

    def _fold_pieces(self, row: OverviewRow, fold: Fold, room: int) -> list[Piece]:
        right = _fitting(self._fold_right(row, room), room - _NAME_CELLS)
        room -= sum(cell_width(text) for text, _ in right)
        times = f"×{fold.count:,} " if fold.count > 1 else f"{row.time}. " if row.time else ""
        title = self._names.cut(fold_title(fold), room - len(times), keep="start")
        pieces: list[Piece] = [(times, "number"), (title, "strong")]
        used = len(times) + cell_width(title)
        if not row.is_open:
            for text, style in (
                (f"  {fmt.plural(sum(fold.operators.values()), 'node')}", "number"),
                (f"  {fold_summary(fold)}", "dim"),
            ):
                shown = clip(text, room - used) if room - used >= min(12, len(text)) else ""
                pieces.append((shown, style))
                used += cell_width(shown)
        return [*pieces, (" " * (room - used), ""), *right]

    def _fold_right(self, row: OverviewRow, room: int) -> list[Piece]:
        """Return the columns at the right of a fold: marks, findings, weights."""
        pieces: list[Piece] = []
        marked = self.notes.marked(row.start, row.end)
        if marked:
            pieces.append((f" {glyphs.current().mark}{marked}", "accent"))
        if self.notes.level(row.start, row.end):
            glyph, style = self.notes.finding_badge(row.start, row.end)
            pieces.append((f" {glyph}", style))
        return [*pieces, *self._figures(row, room)]


def _rail_style(column: int, cell: str) -> str:
    """Return the colour of a rail; what goes sideways to a node has none."""
    return LINES[column % len(LINES)] if cell in _UPRIGHT else "dim"


def _fitting(pieces: Sequence[Piece], room: int) -> list[Piece]:
    """Return the pieces that there is room for, the first ones first."""
    fitting: list[Piece] = []
    for text, style in pieces:
        room -= cell_width(text)
        if room < 0:
            break
        fitting.append((text, style))
    return fitting
