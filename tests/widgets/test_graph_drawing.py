"""Drawn lines: exact widths at every zoom, crop and text, no box torn apart."""

from __future__ import annotations

import itertools

import pytest

from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.layout import boxes_in_row, line_row
from dld_tui.core.text import cell_width
from dld_tui.widgets.graph.drawing import (
    GRID_COLUMNS,
    GRID_ROWS,
    LINES,
    ZOOMS,
    Drawing,
    Says,
    draw,
    drawn_line,
)
from tests.support.graphs import graph_of_links, random_graph

DIAMOND = [("a", "left"), ("a", "right"), ("left", "join"), ("right", "join")]
SAYS = Says(lambda at: "op-conv", lambda at: "f32[1,2]", lambda at: ("", ""))


def line(drawing: Drawing, y: int, left: int, width: int, cursor: int = -1) -> str:
    pieces = drawn_line(drawing, y, left, width, cursor, frozenset())
    return "".join(text for text, _ in pieces)


def whole(drawing: Drawing, cursor: int = -1) -> str:
    width = drawing.layout.width
    lines = (line(drawing, y, 0, width, cursor) for y in range(drawing.layout.height))
    return "\n".join(text.rstrip() for text in lines)


def named(graph: Graph, name: str) -> int:
    return graph.names.index(name)


@pytest.mark.parametrize("zoom", range(ZOOMS))
@pytest.mark.parametrize("seed", range(5))
def test_every_line_is_as_wide_as_what_is_seen(seed: int, zoom: int) -> None:
    graph = random_graph(seed, most=20)
    graph.names[0], graph.labels[-1] = "/層/算子", "e\u0301\u200b層"
    drawing = draw(graph, zoom, SAYS)
    layout = drawing.layout
    for y in range(layout.height + 2):
        for left, width in ((0, 20), (3, 17), (layout.width - 4, 9), (-5, 30), (7, 1)):
            assert cell_width(line(drawing, y, left, width)) == width


@pytest.mark.parametrize("zoom", range(ZOOMS))
def test_what_is_cropped_is_a_part_of_the_whole(zoom: int) -> None:
    drawing = draw(graph_of_links(DIAMOND), zoom, SAYS)
    for y in range(drawing.layout.height):
        full = line(drawing, y, 0, drawing.layout.width)
        assert line(drawing, y, 4, 9) == full[4:13].ljust(9)


@pytest.mark.parametrize("zoom", range(ZOOMS))
@pytest.mark.parametrize("seed", range(3))
def test_the_grid_is_in_blank_cells_and_stays_where_it_is_when_scrolled(
    seed: int, zoom: int
) -> None:
    drawing = draw(random_graph(seed, most=20), zoom, SAYS)
    width = drawing.layout.width + 40
    dots = 0
    for y in range(drawing.layout.height + 5):
        plain = line(drawing, y, -4, width)
        pieces = drawn_line(drawing, y, -4, width, -1, frozenset(), grid=True)
        ruled = "".join(text for text, _ in pieces)
        for at, (before, after) in enumerate(zip(plain, ruled, strict=True)):
            on_grid = y % GRID_ROWS == 0 and (at - 4) % GRID_COLUMNS == 0
            assert after == before or (on_grid and before == " " and after == "·")
            dots += after != before
        scrolled = drawn_line(drawing, y, 3, 20, -1, frozenset(), grid=True)
        assert "".join(text for text, _ in scrolled) == ruled[7:27].ljust(20)
    assert dots > 0


def test_zooms_say_more_and_more() -> None:
    graph = graph_of_links(DIAMOND)
    texts = [whole(draw(graph, zoom, SAYS)) for zoom in range(ZOOMS)]
    assert "┌" not in texts[0]
    assert "┌" in texts[1]
    assert "f32[1,2]" not in texts[1]
    assert "f32[1,2]" in texts[2]


def test_the_cursor_has_a_heavy_border_and_a_mark_is_inside() -> None:
    graph = graph_of_links(DIAMOND)
    drawing = draw(graph, 1, SAYS)
    assert "┏" not in whole(drawing)
    assert "┏" in whole(drawing, cursor=0)
    drawing.marks = {named(graph, "left")}
    drawing.badges = {named(graph, "right"): ("✖", "bad")}
    assert "│•left" in whole(drawing)
    assert "right✖│" in whole(drawing)


def test_links_of_the_cursor_are_lit() -> None:
    graph = graph_of_links(DIAMOND)
    drawing = draw(graph, 1, SAYS)
    net = next(n for n, net in enumerate(graph.nets) if net.source == named(graph, "left"))
    styles = [
        style
        for y in range(drawing.layout.height)
        for text, style in drawn_line(drawing, y, 0, 60, -1, frozenset({net}))
        if "▼" in text
    ]
    assert "accent" in styles
    assert set(styles) - {"accent"} <= {"dim", *LINES}


def test_cut_links_are_counted_at_the_label() -> None:
    graph = graph_of_links([("a", "b")])
    assert "⋯3› b" in whole(draw(graph, 1, SAYS, [(0, 0), (3, 0)]))
    assert "a ›2⋯" in whole(draw(graph, 1, SAYS, [(0, 2), (0, 0)]))


def test_a_note_is_behind_the_label_in_its_own_style() -> None:
    says = Says(SAYS.style, SAYS.type, lambda at: ("fp16", "prec-fp16"))
    drawing = draw(graph_of_links([("a", "b")]), 1, says)
    pieces = drawn_line(drawing, 1, 0, 40, -1, frozenset())
    assert any(text.strip() == "fp16" and "prec-fp16" in style for text, style in pieces)
    assert "a fp16" in whole(drawing)


@pytest.mark.parametrize("seed", range(12))
def test_each_line_has_the_colour_of_its_tensor_alone(seed: int) -> None:
    """Lines that go straight need none."""
    drawing = draw(random_graph(seed), 1, SAYS)
    layout = drawing.layout
    bent = [wire for gap in layout.gaps for wire in gap.wires if not wire.is_straight]
    turning = {wire.net for wire in bent}
    turning |= {net for row in layout.passing for _, net in row}
    assert set(drawing.lines) == turning
    for y in range(layout.height):
        row = line_row(layout, y, 0, layout.width)
        styles = [style for text, style in drawn_line(drawing, y, 0, layout.width, -1, frozenset())
                  for _ in text]  # fmt: skip
        covered = {x for box in boxes_in_row(layout, y, 0, layout.width)
                   for x in range(box.x, box.x + box.width)}  # fmt: skip
        for column in set(row.links) - covered:
            assert styles[column] == drawing.lines.get(row.nets[column], "dim")


@pytest.mark.broad
def test_lines_side_by_side_have_different_colours() -> None:
    same = compared = 0
    for seed in range(12):
        drawing = draw(random_graph(seed), 1, SAYS)
        layout = drawing.layout
        for y in range(layout.height):
            row = line_row(layout, y, 0, layout.width)
            lines = [row.nets[column] for column in sorted(row.links)]
            for one, other in itertools.pairwise(lines):
                if one != other and one in drawing.lines and other in drawing.lines:
                    compared += 1
                    same += drawing.lines[one] == drawing.lines[other]
    assert compared > 150
    assert same < 0.15 * compared


def test_inputs_have_their_names_below_their_lines_in_a_large_box() -> None:
    graph = graph_of_links([("left", "gather"), ("right", "gather")])
    names = {"left:0": "data", "right:0": "indices"}
    says = Says(SAYS.style, SAYS.type, SAYS.note, port=lambda at, tensor: names[tensor])
    drawing = draw(graph, 2, says)
    assert "data" not in whole(drawing)  # until the schemas are known
    drawing.name_ports()
    rows = whole(drawing).splitlines()
    arrows = next(row for row in reversed(rows) if "▼" in row)
    below = rows[rows.index(arrows) + 1]
    columns = [at for at, cell in enumerate(arrows) if cell == "▼"]
    for at, name in zip(columns, names.values(), strict=True):
        start = below.index(name[:3])
        assert start <= at < start + len(name)
    assert "data" not in whole(draw(graph, 1, says))
    assert len(below.rstrip()) == len(rows[rows.index(arrows) + 2].rstrip())
