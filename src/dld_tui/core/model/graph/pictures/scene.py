"""A picture in pixels: cards, lines and texts with their places, for any kind of output."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.graph import Kind
from dld_tui.core.model.graph.layout import Box, Layout, lay_out
from dld_tui.core.model.graph.moving import corners
from dld_tui.core.model.graph.pictures import style
from dld_tui.core.model.graph.pictures.content import LONGEST_TOOLTIP, Content
from dld_tui.core.text import cell_width, clip, shortened, visible

_LABEL_CELLS, _NAME_CELLS = 30, 30
_PAD = 7
_ROUND = (Kind.INPUT, Kind.OUTPUT, Kind.OUTER, Kind.CUT)
_ROW = {"label": 17, "name": 14, "type": 13, "stub": 17}
"""Pixels of each kind of text row."""
SIZES = {
    "label": style.LABEL, "name": style.NAME, "type": style.SMALL, "stub": style.SMALL,
    "link": style.SMALL, "title": style.TITLE, "legend": style.NAME,
}  # fmt: skip
"""The size of the text of each role, in pixels."""

Point = tuple[int, int]


@dataclass(slots=True)
class SceneLine:
    """A line of text, centred at a point of its base line unless it starts there."""

    text: str
    role: str
    x: int
    y: int
    room: int = 0
    """The most pixels that it may take; 0 for any."""
    starts: bool = False
    """Whether `x` is where it starts."""


@dataclass(slots=True)
class Card:
    """What stands for a vertex."""

    vertex: int
    kind: str
    colour: str
    x: int
    y: int
    width: int
    height: int
    lines: list[SceneLine] = field(default_factory=list)
    tooltip: str = ""
    stands_out: bool = False

    @property
    def sheets(self) -> tuple[int, ...]:
        """How far away the sheets behind it are, to the right and down: a fold is a stack."""
        return (6, 3) if self.kind == Kind.GROUP else ()

    @property
    def bottom(self) -> int:
        """Where its last sheet ends."""
        return self.y + self.height + max(self.sheets, default=0)

    @property
    def corner(self) -> int:
        """The radius of its corners."""
        return min(self.height // 2, 14) if self.kind in _ROUND else 6


@dataclass(slots=True)
class TensorLines:
    """The lines of a tensor."""

    title: str
    paths: list[tuple[Point, ...]] = field(default_factory=list)
    """Each is straight pieces that go down, up and sideways in turn."""


@dataclass
class Scene:
    """All of a picture; sizes in pixels from the top left."""

    width: int = 0
    height: int = 0
    crossings: int = 0
    cards: list[Card] = field(default_factory=list)
    tensor_lines: list[TensorLines] = field(default_factory=list)
    arrows: list[Point] = field(default_factory=list)
    """The tips."""
    links: list[SceneLine] = field(default_factory=list)
    """Types of tensors beside their lines."""
    heading: list[SceneLine] = field(default_factory=list)
    legend: list[tuple[str, SceneLine]] = field(default_factory=list)
    """Classes; a swatch stands before each text."""


def text_pixels(text: str, role: str) -> float:
    """Return about how wide text is, in pixels."""
    return cell_width(text) * SIZES[role] * style.EM


def make_scene(content: Content, *, legend: bool = True) -> Scene:
    """Arrange a graph, with a legend of the colours or without. Deterministic."""
    return _Builder(content, legend).scene


class _Builder:
    def __init__(self, content: Content, legend: bool) -> None:
        self.content = content
        self.legend = legend
        self.scene = Scene()
        graph = content.graph
        self._rows: list[list[tuple[str, str]]] = [[] for _ in range(len(graph))]
        """(text, role) of each vertex."""
        self.layout: Layout = lay_out(graph, self._size, moves=content.moves)
        self.scene.crossings = self.layout.crossings
        top = self._add_heading()
        self._links = self._placed_links()
        """For each net whose type stands beside its line: column, room in pixels, text."""
        self._add_types_to_boxes()
        self._add_cards(top)
        self._tensor_lines: dict[int, TensorLines] = {}
        self._add_lines()
        self._finish()

    def _size(self, vertex: int, stubs: Sequence[int]) -> tuple[int, int]:
        """Record the text of a box, and return its size for the layout."""
        content, graph = self.content, self.content.graph
        label = clip(visible(graph.labels[vertex]), _LABEL_CELLS, keep="middle")
        rows = [(label or "no name", "label")]
        keep = "start" if vertex in content.notes else "end"  # names differ at their end
        rows += [(clip(line, _NAME_CELLS, keep=keep), "name") for line in content.lines(vertex)]
        if graph.kinds[vertex] in _ROUND:
            rows += [(text, "type") for text in self._types(vertex)[:1]]
        if stubs:
            names = ", ".join(visible(graph.nets[net].name) for net in stubs[:8])
            rows.append((clip(names, _NAME_CELLS, keep="middle"), "stub"))
        if content.cuts and any(content.cuts[vertex]):
            above, below = content.cuts[vertex]
            parts = [f"{above} more in"] * bool(above) + [f"{below} more out"] * bool(below)
            rows.append((" · ".join(parts), "type"))
        self._rows[vertex] = rows
        pixels = max(text_pixels(text, role) for text, role in rows)
        pad = 4 if graph.kinds[vertex] == Kind.CALL else 3
        cells = max(5, math.ceil(pixels / style.CELL) + pad)
        return cells | 1, 1  # odd, so that the middle is a column

    def _types(self, vertex: int) -> list[str]:
        """Return the types of the tensors that a vertex gives, or takes when it gives none."""
        graph = self.content.graph
        nets = graph.outputs[vertex] or graph.inputs[vertex]
        types = (clip(self.content.type_of(net), _NAME_CELLS) for net in nets)
        return [text for text in types if text]

    def _add_types_to_boxes(self) -> None:
        """Write the type of a node's first tensor into its box when its line has no room."""
        graph = self.content.graph
        for vertex, rows in enumerate(self._rows):
            nets = graph.outputs[vertex]
            if graph.kinds[vertex] in _ROUND or not nets or nets[0] in self._links:
                continue
            box = self.layout.boxes[vertex]
            cells = int(((box.width if box else 0) - 1) * style.CELL / style.SMALL / style.EM)
            rows += [(clip(text, cells), "type") for text in self._types(vertex)[:1]]

    def _add_cards(self, top: int) -> None:
        scene = self.scene
        heights = [sum(_ROW[role] for _, role in rows) + 2 * _PAD for rows in self._rows]
        self.tops: list[int] = []
        self.bottoms: list[int] = []
        self.cards: list[Card | None] = [None] * len(heights)
        y = top
        for rank, boxes in enumerate(self.layout.ranks):
            cards = [self._card(box, heights[box.vertex]) for box in boxes]
            tall = max((card.bottom for card in cards), default=style.TRACK)
            self.tops.append(y)
            self.bottoms.append(y + tall)
            for card in cards:
                card.y = y + (tall - card.bottom) // 2
                self._write(card)
                self.cards[card.vertex] = card
            scene.cards += cards
            y += tall
            if rank < len(self.layout.gaps):
                gap = self.layout.gaps[rank]
                y += style.HEAD + style.TAIL + style.TRACK * gap.tracks
        self._add_moved(top, heights)
        scene.height = max([y, *(card.y + card.height for card in scene.cards)]) + style.MARGIN

    def _add_moved(self, top: int, heights: Sequence[int]) -> None:
        for box in self.layout.moved.boxes:
            card = self._card(box, heights[box.vertex])
            rank, down = self.layout.moved.origins[box.vertex]
            middle = (self.tops[rank] + self.bottoms[rank]) // 2
            card.y = max(top, middle - card.height // 2 + down * style.ROW)
            self._write(card)
            self.cards[card.vertex] = card
            self.scene.cards.append(card)

    def _card(self, box: Box, height: int) -> Card:
        content = self.content
        return Card(
            box.vertex,
            content.graph.kinds[box.vertex],
            content.colour(box.vertex),
            style.MARGIN + box.x * style.CELL,
            0,
            box.width * style.CELL,
            height,
            tooltip=content.tooltip(box.vertex),
            stands_out=box.vertex == content.centre,
        )

    def _write(self, card: Card) -> None:
        y = card.y + _PAD
        for text, role in self._rows[card.vertex]:
            y += _ROW[role]
            middle = card.x + card.width // 2
            card.lines.append(SceneLine(text, role, middle, y - 4, card.width - 2 * _PAD))

    def _placed_links(self) -> dict[int, tuple[int, int, str]]:
        """Return the nets whose type has room right of where they leave: (rank, column, text)."""
        graph, layout = self.content.graph, self.layout
        links: dict[int, tuple[int, int, str]] = {}
        for rank, gap in enumerate(layout.gaps):
            wires = [wire for wire in gap.wires if wire.parent_track < 0]
            columns = sorted({wire.top for wire in wires})
            after = dict(zip(columns, [*columns[1:], 1 << 30], strict=False))
            for wire in wires:
                net, at = wire.net, wire.top
                source = graph.nets[net].source
                box = layout.boxes[source]
                text = clip(self.content.type_of(net), _NAME_CELLS)
                if box is None or not text or net in links or graph.kinds[source] in _ROUND:
                    continue
                room = (after[at] - at) * style.CELL - 9
                if box.x <= at < box.x + box.width and text_pixels(text, "link") <= room:
                    links[net] = (rank, at, text)
        return links

    def _card_at(self, rank: int, column: int) -> Card | None:
        boxes = self.layout.ranks[rank]
        low, high = 0, len(boxes)
        while low < high:
            middle = (low + high) // 2
            if boxes[middle].x <= column:
                low = middle + 1
            else:
                high = middle
        if low and column < boxes[low - 1].x + boxes[low - 1].width:
            return self.cards[boxes[low - 1].vertex]
        return None

    def _lines_of(self, net: int) -> TensorLines:
        lines = self._tensor_lines.get(net)
        if lines is None:
            content = self.content
            title = f"{visible(content.graph.nets[net].name)}  {content.type_of(net)}".rstrip()
            lines = self._tensor_lines[net] = TensorLines(
                clip(title, LONGEST_TOOLTIP, keep="middle")
            )
            self.scene.tensor_lines.append(lines)
        return lines

    def _add_lines(self) -> None:
        layout = self.layout
        for rank, gap in enumerate(layout.gaps):
            for column, net in layout.passing[rank]:
                x = self._x(column)
                path = ((x, self.tops[rank]), (x, self.bottoms[rank]))
                self._lines_of(net).paths.append(path)
            tips: dict[Point, None] = {}
            for wire in gap.wires:
                paths = self._lines_of(wire.net).paths
                head = self.bottoms[rank] + style.HEAD
                across = head + wire.track * style.TRACK
                arrows = set(wire.arrows)
                start = (self._x(wire.top), self._start(rank, wire.top))
                if wire.parent_track >= 0:
                    start = (start[0], head + wire.parent_track * style.TRACK)
                paths += [_bent(start, across, (self._x(column), across)) for column in wire.reach]
                for column in wire.bottoms:
                    end = (self._x(column), self.tops[rank + 1])
                    if column in arrows:
                        card = self._card_at(rank + 1, column)
                        end = (end[0], card.y if card is not None else end[1])
                        tips[end] = None
                        end = (end[0], end[1] - 4)
                    paths.append(_bent(start, across, end))
            self.scene.arrows += tips
        for line in layout.moved.lines:
            source, target = self.cards[line.source], self.cards[line.target]
            if source is not None and target is not None:
                start = (self._x(line.start[0]), source.bottom)
                end = (self._x(line.end[0]), target.y)
                leads = (style.HEAD + line.down * style.TRACK, style.HEAD + line.up * style.TRACK)
                bent = corners(start, (end[0], end[1] - 4), self._x(line.lane), *leads)
                self._lines_of(line.net).paths.append(tuple(bent))
                self.scene.arrows.append(end)
        for rank, column, text in self._links.values():
            x, y = self._x(column) + 6, self.bottoms[rank] + 11
            self.scene.links.append(SceneLine(text, "link", x, y, starts=True))

    def _start(self, rank: int, column: int) -> int:
        card = self._card_at(rank, column)
        return card.bottom if card is not None else self.bottoms[rank]

    @staticmethod
    def _x(column: int) -> int:
        return style.MARGIN + column * style.CELL + style.CELL // 2

    def _add_heading(self) -> int:
        """Write the title and the legend; returns where the graph begins."""
        content, scene = self.content, self.scene
        x, y, width = style.MARGIN, style.MARGIN, max(480, self.layout.width * style.CELL)
        if content.title:
            y += 8
            title = shortened(content.title)
            scene.heading.append(SceneLine(title, "title", x, y, starts=True))
            y += 19
            nodes = fmt.plural(content.nodes, content.noun)
            named = "".join(f" · {alias} = {name}" for name, alias in content.aliases.items())
            heading = nodes + visible(clip(named, 140))
            scene.heading.append(SceneLine(heading, "legend", x, y, starts=True))
        used = {content.colour(vertex) for vertex in range(len(content.graph)) if self.legend}
        at, right = x, x + min(width, 1_000)
        y += 24 if used else 0
        for key in (key for key in style.LEGEND if key in used):
            text = style.LEGEND[key]
            pixels = 32 + round(text_pixels(text, "legend") * 0.88)  # small letters are narrow
            if at > x and at + pixels > right:
                at, y = x, y + 20
            scene.legend.append((key, SceneLine(text, "legend", at + 18, y, starts=True)))
            at += pixels
            scene.width = max(scene.width, at)
        return y + 30

    def _finish(self) -> None:
        scene = self.scene
        ends: Iterable[float] = (
            line.x + text_pixels(line.text, line.role) for line in (*scene.links, *scene.heading)
        )
        graph = style.MARGIN + self.layout.width * style.CELL
        scene.width = max(graph, scene.width, *(math.ceil(end) for end in ends)) + style.MARGIN


def _bent(start: Point, across: int, end: Point) -> tuple[Point, ...]:
    if start[0] == end[0]:
        return (start, end)
    return (start, (start[0], across), (end[0], across), end)
