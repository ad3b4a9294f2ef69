"""A layered drawing of vertices as boxes, one line of pieces at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import groupby

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.folding import Fold
from dld_tui.core.model.graph.graph import GLYPHS, Graph, Kind
from dld_tui.core.model.graph.layout import Box, Layout, Link, cells_of, lay_out
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets.graph.overlays import Overlay
from dld_tui.widgets.graph.state import GraphNotes, GraphView, ViewedGraph
from dld_tui.widgets.lists.styled import Piece
from dld_tui.widgets.shell import glyphs

ZOOMS = 3
"""Levels: labels only, boxes with a label, boxes with name, type and weight too."""
_LABEL_CELLS, _NAME_CELLS = 24, 28
GRID_COLUMNS, GRID_ROWS = 8, 4
"""Cells between the dots of the grid; moving a box twice takes it from one to the next."""
_SHORT_PORT = 3
"""Characters that are left of the name of an input that has no room."""
_THIN, _HEAVY = "┌─┐│└┘", "┏━┓┃┗┛"
_HEAVY_LINES = str.maketrans("╵╷│╴╯╮┤╶╰╭├─┴┬┼▼", "╹╻┃╸┛┓┫╺┗┏┣━┻┳╋■")
"""The line that the cursor is on."""

LINES = ("op-matmul", "op-act", "op-data", "op-control", "op-quant", "op-norm")
"""The styles that tell lines apart."""
_NEAR = 4
"""Cells between lines that are still looked at together."""
_MOST_COMPARED = 200
"""Lines of a gap that are compared with each other."""


@dataclass
class Drawing:
    """A graph with its places, and what each box says."""

    graph: Graph
    layout: Layout
    texts: list[list[list[Piece]]]
    """The rows of text in each box."""
    styles: list[str]
    """The style of each box."""
    boxed: bool
    """Whether boxes have a border."""
    lines: Mapping[int, str] = field(default_factory=dict)
    """The style of the lines of a net; those that go straight down have none."""
    marks: set[int] = field(default_factory=set)
    """Vertices that are marked."""
    port: Callable[[int, str], str] | None = None
    """What the operator of a vertex calls a tensor; None where boxes have no room to say it."""
    ports: Mapping[int, Sequence[tuple[int, str]]] = field(default_factory=dict)
    """By vertex, the columns in which tensors arrive, and what the operator calls each."""
    badges: dict[int, Piece] = field(default_factory=dict)
    """A glyph of one cell at the right of the first row of a vertex."""
    link: Link | None = None
    """The link that the cursor is on, instead of a box."""
    link_cells: frozenset[tuple[int, int]] = frozenset()

    def set_link(self, link: Link | None) -> None:
        """Put the cursor on a link, or take it away from there."""
        self.link = link
        self.link_cells = frozenset() if link is None else cells_of(self.layout, link)

    def name_ports(self) -> None:
        """Name the inputs of each box at which several lines arrive.

        That asks for the schemas of operators, which the first rows do not wait for.
        """
        if self.port is not None:
            self.ports = _named_ports(self.graph, self.layout, self.port)

    def box(self, vertex: int) -> Box:
        """Return where a vertex is."""
        box = self.layout.boxes[vertex]
        assert box is not None  # every vertex has a place
        return box


@dataclass(frozen=True)
class Says:
    """What boxes say of their vertices."""

    style: Callable[[int], str]
    """The style class."""
    type: Callable[[int], str]
    """The type of what it makes; empty when it is not known."""
    note: Callable[[int], Piece]
    """The text behind the label, if any."""
    work: Callable[[int], str] = lambda at: ""
    """Its main attribute, such as a window or an axis, if any."""
    weight: Callable[[int], str] = lambda at: ""
    """The type of its weight; empty without one."""
    port: Callable[[int, str], str] = lambda at, tensor: ""
    """What the operator calls a tensor that it takes; empty when that is not known."""


def draw(
    graph: Graph,
    zoom: int,
    says: Says,
    cuts: Sequence[tuple[int, int]] = (),
    moves: Mapping[int, tuple[int, int]] | None = None,
) -> Drawing:
    """Lay out a graph at a zoom level.

    Args:
        graph: What to draw.
        zoom: From 0, the smallest.
        says: What boxes say.
        cuts: How many links of each vertex are not drawn, above and below.
        moves: Cells to the right and rows down by which boxes were moved.
    """
    styles = [says.style(vertex) for vertex in range(len(graph))]
    texts: list[list[list[Piece]]] = [[] for _ in range(len(graph))]

    def size(vertex: int, stubs: Sequence[int]) -> tuple[int, int]:
        cut = cuts[vertex] if cuts else (0, 0)
        rows = _texts(graph, vertex, zoom, styles[vertex], says, cut)
        names = [visible(graph.nets[net].name) for net in stubs]
        if names and zoom:
            rows.append([(clip("◂ " + ", ".join(names), _NAME_CELLS, keep="middle"), "link")])
        elif names:
            rows[0].insert(0, ("◂", styles[vertex]))
        texts[vertex] = rows
        width = max(map(_cells, rows))
        return (width + 4, len(rows) + 2) if zoom else (width + 2, 1)

    layout = lay_out(graph, size, moves=moves)
    port = says.port if zoom == ZOOMS - 1 else None
    return Drawing(graph, layout, texts, styles, zoom > 0, line_styles(layout), port=port)


def _named_ports(
    graph: Graph, layout: Layout, port: Callable[[int, str], str]
) -> dict[int, list[tuple[int, str]]]:
    arrivals: dict[int, dict[int, int]] = {}
    for gap, boxes in zip(layout.gaps, layout.ranks[1:], strict=True):
        nets = {column: wire.net for wire in gap.wires for column in wire.arrows}
        for box in boxes:
            inside = range(box.x, box.x + box.width)
            arrivals[box.vertex] = {at: nets[at] for at in inside if at in nets}
    for line in layout.moved.lines:
        arrivals.setdefault(line.target, {})[line.end[0]] = line.net
    ports: dict[int, list[tuple[int, str]]] = {}
    for vertex, arriving in arrivals.items():
        if len(arriving) > 1:
            names = [(at, port(vertex, graph.nets[n].name)) for at, n in sorted(arriving.items())]
            ports[vertex] = [(at, visible(name)) for at, name in names if name]
    return ports


def line_styles(layout: Layout) -> dict[int, str]:
    """Return a style for each net whose lines turn or pass a rank, another one than those near it.

    Where there are more nets side by side than styles, some share one.
    """
    styles: dict[int, str] = {}
    passing = [[(column, column, net) for column, net in row] for row in layout.passing]
    for rank, gap in enumerate(layout.gaps):
        bent = [(wire.left, wire.right, wire.net) for wire in gap.wires if not wire.is_straight]
        spans = sorted({*bent, *passing[rank], *passing[rank + 1]})
        compared = spans if len(spans) <= _MOST_COMPARED else []
        for left, right, net in spans:
            if net in styles:
                continue
            nearby_styles = {
                styles[other]
                for first, last, other in compared
                if other in styles and first <= right + _NEAR and last >= left - _NEAR
            }
            free = [style for style in LINES if style not in nearby_styles] or LINES
            styles[net] = free[net % len(free)]
    styles |= {line.net: LINES[line.net % len(LINES)] for line in layout.moved.lines}
    return styles


def _texts(
    graph: Graph, vertex: int, zoom: int, style: str, says: Says, cut: tuple[int, int]
) -> list[list[Piece]]:
    kind, name = graph.kinds[vertex], visible(graph.names[vertex])
    label = visible(graph.labels[vertex])
    if kind != Kind.NODE:
        label = f"{GLYPHS[kind]} {label}"
    above = f"⋯{cut[0]}› " if cut[0] else ""
    below = f" ›{cut[1]}⋯" if cut[1] else ""
    note, note_style = says.note(vertex)
    room = _NAME_CELLS if kind == Kind.GROUP else _LABEL_CELLS
    first = [(above, "dim"), (clip(label, room, keep="middle"), style), (below, "dim")]
    work = says.work(vertex) if zoom else ""
    if work:
        first.append((f" {work}", "dim"))
    if note:
        first.append((f" {note}", note_style))
    rows: list[list[Piece]] = [[piece for piece in first if piece[0]]]
    if zoom and kind == Kind.GROUP:
        rows.append([(clip(name, _NAME_CELLS), "dim")])
    elif zoom > 1:
        if name and name != label and kind in (Kind.NODE, Kind.CONTROL_FLOW, Kind.CALL):
            rows.append([(clip(name, _NAME_CELLS, keep="end"), "")])
        shape = says.type(vertex)
        if shape:
            rows.append([(clip(shape, _NAME_CELLS), "dim")])
        weight = says.weight(vertex)
        if weight:
            rows.append([(clip(f"weight {weight}", _NAME_CELLS), "dim")])
    return rows


def _cells(row: Sequence[Piece]) -> int:
    return sum(cell_width(text) for text, _ in row)


def drawn_line(
    drawing: Drawing,
    y: int,
    left: int,
    width: int,
    cursor: int,
    lit: frozenset[int],
    *,
    grid: bool = False,
    ghost: Box | None = None,
) -> list[Piece]:
    """Return one row of a drawing as pieces of exactly `width` cells.

    Args:
        drawing: The drawing.
        y: The row, from 0.
        left: The first column that is seen.
        width: The columns that are seen.
        cursor: The vertex that stands out.
        lit: The nets that stand out.
        grid: Whether to show dots where there is neither a box nor a line.
        ghost: A box that is being moved, where it would be.
    """
    from dld_tui.core.model.graph.layout import boxes_in_row, line_row

    layout = drawing.layout
    cells = [(" ", "")] * width
    if grid and y % GRID_ROWS == 0:
        dots = range(-left % GRID_COLUMNS, width, GRID_COLUMNS)
        for at in dots:
            cells[at] = (glyphs.current().dot, "guide")
    if y >= layout.height:
        return joined(cells)
    row = line_row(layout, y, left, left + width - 1)
    for column in (*row.links, *row.arrows):
        if left <= column < left + width:
            net = row.nets[column]
            style = "accent" if net in lit else drawing.lines.get(net, "dim")
            glyph = row.glyph(column)
            if (column, y) in drawing.link_cells:
                assert drawing.link is not None  # they are its cells
                if net == drawing.link.net:
                    glyph, style = glyph.translate(_HEAVY_LINES), "accent strong"
            cells[column - left] = (glyph, style)
    owners: list[Box | None] = [None] * width
    """The box that is seen in each column."""
    boxes = boxes_in_row(layout, y, left, left + width - 1)
    if ghost is not None and ghost.y <= y < ghost.y + ghost.height:
        boxes.append(ghost)
    for box in boxes:
        seen = slice(max(0, box.x - left), max(0, min(width, box.x + box.width - left)))
        owners[seen] = [box] * len(owners[seen])
    pieces: list[Piece] = []
    at = 0
    for owner, run in groupby(owners, key=lambda owner: owner):
        end = at + len(list(run))
        if owner is None:
            pieces += joined(cells[at:end])
        else:
            is_cursor = owner.vertex == cursor and drawing.link is None
            part = _box_row(drawing, owner, y, is_cursor=is_cursor)
            pieces += _cropped(part, at + left - owner.x, end - at)
        at = end
    return pieces


def _box_row(drawing: Drawing, box: Box, y: int, *, is_cursor: bool) -> list[Piece]:
    """Return one row of a box."""
    style = "accent" if is_cursor else drawing.styles[box.vertex]
    rows = drawing.texts[box.vertex]
    mark = "•" if box.vertex in drawing.marks else " "
    badge, badge_style = drawing.badges.get(box.vertex, (" ", ""))
    if not drawing.boxed:
        text = [(part, f"{own} strong" if is_cursor else own) for part, own in rows[0]]
        left, right = ("▐", "▌") if is_cursor else (mark, badge)
        spare = box.width - 2 - _cells(rows[0])
        return [
            (left, "accent"), (" " * (spare // 2), ""), *text, (" " * (spare - spare // 2), ""),
            (right, "accent" if is_cursor else badge_style),
        ]  # fmt: skip
    border = _HEAVY if is_cursor else _THIN
    inside = box.width - 2
    if y == box.y:
        top = _port_row(box, border[1], drawing.ports.get(box.vertex, ()))
        return [(border[0] + top + border[2], style)]
    if y == box.y + box.height - 1:
        return [(border[4] + border[1] * inside + border[5], style)]
    is_first = y == box.y + 1
    row = rows[y - box.y - 1]
    room = inside - 2
    blank = (room - _cells(row)) // 2
    shown = [(part, f"{own} strong" if is_first else own) for part, own in row]
    ends: list[Piece] = [(" ", ""), (" ", "")]
    if is_first:
        ends = [(mark, "accent"), (badge, badge_style)]
    return [
        (border[3], style), ends[0], (" " * blank, ""), *shown,
        (" " * (room - blank - _cells(row)), ""), ends[1], (border[3], style),
    ]  # fmt: skip


def _port_row(box: Box, line: str, ports: Sequence[tuple[int, str]]) -> str:
    """Return a border between its corners, with names below the lines that arrive."""
    row = [line] * (box.width - 2)
    free = 0
    for number, (column, name) in enumerate(ports):
        last = ports[number + 1][0] - box.x - 2 if number + 1 < len(ports) else len(row)
        at = column - box.x - 1
        shown = name if len(name) <= last - free else name[: min(last - free, _SHORT_PORT)]
        start = min(max(free, at - (len(shown) - 1) // 2), last - len(shown))
        if not shown.isascii() or not free <= start <= at < last:
            continue
        row[start : start + len(shown)] = shown
        free = start + len(shown) + 1
    return "".join(row)


def joined(cells: Sequence[Piece]) -> list[Piece]:
    """Return neighbouring cells of one style as one piece."""
    pieces: list[Piece] = []
    for text, style in cells:
        if pieces and pieces[-1][1] == style:
            pieces[-1] = (pieces[-1][0] + text, style)
        else:
            pieces.append((text, style))
    return pieces


def _cropped(pieces: Sequence[Piece], start: int, width: int) -> list[Piece]:
    """Return `width` cells of pieces from the cell `start` on."""
    cropped: list[Piece] = []
    for text, style in pieces:
        cells = cell_width(text)
        if start >= cells:
            start -= cells
            continue
        if width <= 0:
            break
        part = _first(_without(text, start), min(width, cells - start))
        cropped.append((part, style))
        width -= cell_width(part)
        start = 0
    return cropped


def _first(text: str, cells: int) -> str:
    """Return exactly the first cells of text; a wide character that is cut leaves a blank."""
    if cell_width(text) <= cells:
        return text
    at = used = 0
    while at < len(text) and used + cell_width(text[at]) <= cells:
        used += cell_width(text[at])
        at += 1
    return text[:at] + " " * (cells - used)


def _without(text: str, cells: int) -> str:
    """Return text without its first cells; a wide character that is cut leaves a blank."""
    at = 0
    while cells > 0 and at < len(text):
        cells -= cell_width(text[at])
        at += 1
    return " " * -cells + text[at:]


class Boxes:
    """The boxes of one drawing.

    Args:
        model: The graph.
        notes: What is said of its nodes.
        overlay: What the colours say.
        boxes: The vertex of the graph, or the fold, that each box is.
    """

    def __init__(
        self, model: ViewedGraph, notes: GraphNotes, overlay: Overlay, boxes: Sequence[int | Fold]
    ) -> None:
        self.model = model
        self.notes = notes
        self.overlay = overlay
        self.boxes = boxes

    def drawing(self, graph: Graph, zoom: int, cuts: Sequence[tuple[int, int]]) -> Drawing:
        """Lay out and draw the boxes.

        Args:
            graph: The graph of the boxes.
            zoom: From 0, the smallest.
            cuts: How many links of each box are not drawn, above and below.
        """
        says = Says(self.style, self.type, self.note, self.work, self.weight, self.port)
        drawing = draw(graph, zoom, says, cuts, self.moves())
        if self.overlay.name != Overlay.name:  # colours say something else
            drawing.lines = {}
        return drawing

    def _vertex(self, at: int) -> int | None:
        """Return the vertex of the whole graph that a box is; None for a fold."""
        box = self.boxes[at]
        return box if isinstance(box, int) else None

    def style(self, at: int) -> str:
        """Return the style of a box: what the overlay says, else its kind of work."""
        tint = self.overlay.style(*self.model.span(self.boxes[at]))
        if tint is not None:
            return tint
        vertex = self._vertex(at)
        return "accent" if vertex is None else self.model.style(vertex)

    def type(self, at: int) -> str:
        """Return the type of what a box makes first; empty when it is not known."""
        vertex = self._vertex(at)
        return "" if vertex is None else self.model.type_of(vertex)

    def work(self, at: int) -> str:
        """Return what a box does; mostly empty."""
        vertex = self._vertex(at)
        return "" if vertex is None else self.model.work(vertex)

    def weight(self, at: int) -> str:
        """Return the type of a box's weight; empty without one."""
        vertex = self._vertex(at)
        return "" if vertex is None else self.model.weight(vertex)

    def port(self, at: int, tensor: str) -> str:
        """Return what the operator of a box calls a tensor that it takes."""
        vertex = self._vertex(at)
        return "" if vertex is None else self.model.port(vertex, tensor)

    def note(self, at: int) -> Piece:
        """Return the text behind the label: that of the overlay, else the precision that is set."""
        if self.overlay.has_text:
            return self.overlay.text(*self.model.span(self.boxes[at])), self.style(at)
        vertex = self._vertex(at)
        return ("", "") if vertex is None else self.model.badge(vertex)

    def moves(self) -> dict[int, tuple[int, int]]:
        """Return how far boxes were moved to the right and down, on the canvas."""
        if self.model.view is not GraphView.CANVAS:
            return {}
        moves = {}
        for at in range(len(self.boxes)):
            vertex = self._vertex(at)
            shift = (0, 0) if vertex is None else self.model.shift(vertex)
            if any(shift):
                moves[at] = shift
        return moves
