"""A graph as plain text: boxes and lines, or a row a node with rails."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from dld_tui.core.errors import UsageError
from dld_tui.core.graph.cells import text_of
from dld_tui.core.graph.graph import Graph, Kind
from dld_tui.core.graph.lanes import rail_cells
from dld_tui.core.graph.layout import lay_out
from dld_tui.core.graph.overview import Overview
from dld_tui.core.graph.pictures.content import Content, TypeOf, fold_label, fold_notes, short_type
from dld_tui.core.text import cell_width, clip, fit, visible

MOST_CELLS = 40_000_000
"""Of the largest drawing with boxes."""
GLYPHS = {
    Kind.NODE: "●", Kind.INPUT: "◆", Kind.OUTPUT: "◆", Kind.HOLDER: "◉", Kind.CALL: "ƒ",
    Kind.GROUP: "⊞", Kind.OUTER: "◇", Kind.CUT: "⋯",
}  # fmt: skip
"""What stands for a vertex of each kind."""

_LABEL_CELLS, _NAME_CELLS, _STUB_CELLS = 24, 40, 24
_MOST_RAILS = 40
_FIRST_STAND_IN, _FILLER = 0xF0000, "\U0010fffd"
_TO_ASCII = str.maketrans({
    **dict.fromkeys("─╴╶", "-"), **dict.fromkeys("│╵╷", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰┿⊞", "+"), **dict.fromkeys("●◆◉", "*"),
    "▼": "v", "◂": "<", "▸": ">", "▾": "v", "ƒ": "f", "◇": "o", "⋯": "~", "…": "~", "·": ".",
    "×": "x", "→": ">",
})  # fmt: skip


def ascii_of(lines: Sequence[str]) -> list[str]:
    """Return lines in ASCII: line drawing as ``+-|``, and ``?`` for letters that have none."""
    return [line.translate(_TO_ASCII).encode("ascii", "replace").decode("ascii") for line in lines]


def canvas_text(content: Content) -> tuple[list[str], int]:
    """Return a drawing of boxes and lines, and how many pairs of lines cross.

    Raises:
        UsageError: It would be too large.
    """
    graph = content.graph
    cells = _Cells()
    labels = [""] * len(graph)

    def size(vertex: int, stubs: Sequence[int]) -> tuple[int, int]:
        text = clip(visible(graph.labels[vertex]), _LABEL_CELLS, keep="middle")
        if graph.kinds[vertex] != Kind.NODE:
            text = f"{GLYPHS[graph.kinds[vertex]]} {text}"
        notes = content.notes.get(vertex, ())
        text += f" · {notes[0]}" if notes else ""
        if stubs:
            names = ", ".join(visible(graph.nets[net].name) for net in stubs[:8])
            text += f" ◂ {clip(names, _STUB_CELLS, keep='middle')}"
        if content.cuts:
            above, below = content.cuts[vertex]
            text = f"{f'⋯{above} ' if above else ''}{text}{f' {below}⋯' if below else ''}"
        labels[vertex] = cells.encoded(text)
        return len(labels[vertex]) + 4, 3

    layout = lay_out(graph, size, shifts=content.shifts)
    if layout.width * layout.height > MOST_CELLS:
        raise UsageError(
            f"a text of {layout.width:,} x {layout.height:,} cells is too large",
            hint="Use --view rail or overview, --folded, or --node",
        )
    return [cells.decoded(line) for line in text_of(layout, labels)], layout.crossings


class _Cells:
    """Text in which each character is one cell: others have stand-ins while lines are put together.

    A wide character is followed by a filler; one without width goes with the character before it.
    """

    def __init__(self) -> None:
        self._stand_ins: dict[str, str] = {}
        self._meant: dict[int, str] = {ord(_FILLER): ""}

    def encoded(self, text: str) -> str:
        """Return text with as many characters as it has cells."""
        if text.isascii():
            return text
        clusters: list[str] = []
        for char in text:
            if clusters and (unicodedata.combining(char) or not cell_width(char)):
                clusters[-1] += char
            else:
                clusters.append(char)
        return "".join(map(self._stand_in, clusters))

    def _stand_in(self, cluster: str) -> str:
        if len(cluster) == 1 and cell_width(cluster) == 1 and ord(cluster) < _FIRST_STAND_IN:
            return cluster
        found = self._stand_ins.get(cluster)
        if found is None:
            found = chr(_FIRST_STAND_IN + len(self._stand_ins))
            self._stand_ins[cluster] = found
            self._meant[ord(found)] = cluster
        return found + _FILLER * (cell_width(cluster) - 1)

    def decoded(self, line: str) -> str:
        """Return the line with what the stand-ins stand for."""
        return line if line.isascii() else line.translate(self._meant)


def rows_text(overview: Overview, types: TypeOf) -> list[str]:
    """Return what is seen of a folded graph, one row each: rails, operator, name, type."""
    graph, rails = overview.seen()
    rows = overview.rows
    labels = [
        fold_label(row) if row.fold is not None else graph.labels[at] for at, row in enumerate(rows)
    ]
    plain = [label for label, row in zip(labels, rows, strict=True) if row.fold is None]
    room = min(max((cell_width(visible(label)) for label in plain), default=4), _LABEL_CELLS)
    columns = min(rails.width, _MOST_RAILS)
    lines = []
    for at, row in enumerate(rows):
        first = max(0, rails.columns[at] - _MOST_RAILS + 1)
        cells = rail_cells(rails, at, first, columns)
        glyph = ("▾" if row.is_open else "▸") if row.fold is not None else GLYPHS[graph.kinds[at]]
        drawing = "".join(glyph if cell == "o" else cell for cell in cells)
        if row.fold is not None:
            text = "  ".join([visible(labels[at]), *fold_notes(row.fold)])
        else:
            text = _row_text(graph, at, room, rails.named_inputs(graph, at), types)
        lines.append(f"{drawing}  {'  ' * row.depth}{text}".rstrip())
    return lines


def _row_text(graph: Graph, at: int, room: int, stubs: Sequence[int], types: TypeOf) -> str:
    name = visible(graph.names[at]) if graph.kinds[at] not in (Kind.INPUT, Kind.OUTPUT) else ""
    known = graph.outputs[at] or graph.inputs[at]
    kind = clip(short_type(types(graph.nets[known[0]].name)), _NAME_CELLS) if known else ""
    label = clip(visible(graph.labels[at]), _LABEL_CELLS, keep="middle")
    parts = [fit(label, max(room, cell_width(label))), clip(name, _NAME_CELLS, keep="end"), kind]
    if stubs:
        names = ", ".join(visible(graph.nets[net].name) for net in stubs[:8])
        parts.append("◂ " + clip(names, _STUB_CELLS, keep="middle"))
    return "  ".join(part for part in parts if part)
