"""Drawn lines: exact widths at every zoom, crop and text, no box torn apart."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.graph.layout import Link, boxes_in_row, line_row
from dld_tui.core.text import cell_width
from dld_tui.core.types import JSON
from dld_tui.widgets.graph import overlays
from dld_tui.widgets.graph.canvas import Minimap
from dld_tui.widgets.graph.drawing import (
    ZOOMS,
    Boxes,
    Drawing,
    Says,
    draw,
    drawn_line,
    line_styles,
)
from dld_tui.widgets.graph.state import GraphModel, GraphNotes, GraphView
from tests.support import models
from tests.support.graph_panes import RICH, painted
from tests.support.graphs import graph_of_links, random_graph
from tests.support.recorded import Recorded

DIAMOND = [("a", "left"), ("a", "right"), ("left", "join"), ("right", "join")]
SAYS = Says(lambda at: "op-conv", lambda at: "f32[1,2]", lambda at: ("", ""))


def line(drawing: Drawing, y: int, left: int, width: int, cursor: int = -1) -> str:
    pieces = drawn_line(drawing, y, left, width, cursor, frozenset())
    return "".join(text for text, _ in pieces)


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


def test_drawings_of_a_graph(tmp_path: Path, recorded: Recorded) -> None:
    document = Document.open(models.write(tmp_path, RICH))
    main = document.main
    document.apply("set_precision", nodes=[[[], "/stem"]], precision="fp16")
    model, plain = GraphModel(main), overlays.Overlay()
    model.weigh()
    notes = GraphNotes(model)
    named = {node.name: node for node in main.nodes}
    stem, last = (model.drawn.vertex(named[name]) or 0 for name in ("/stem", "last"))
    errors = overlays.error_overlay(model, {named["/stem"]: 0.5, named["last"]: 0.001}, "run")
    assert errors is not None
    texts = {}

    def paint(title: str, drawing: Drawing, cursor: int = -1, **more: Any) -> None:
        width, height = drawing.layout.width + 3, drawing.layout.height + 2
        texts[title] = painted(
            drawn_line(drawing, y, -2, width, cursor, frozenset({1, 3}), **more)
            for y in range(height)
        )

    model.set_view(GraphView.CANVAS)
    for name in ("folded", "unfolded"):
        part, boxes = model.canvas_part()
        for zoom in range(ZOOMS):
            cuts = [(at % 3, at % 4) for at in range(len(boxes))] if zoom != 1 else ()
            drawing = Boxes(model, notes, plain, boxes).drawing(part.graph, zoom, cuts)
            drawing.name_ports()
            drawing.marks = {1, 2}
            drawing.badges = {2: ("✖", "bad"), 4: ("▲", "warn")}
            paint(f"{name}, zoom {zoom}", drawing, cursor=2, grid=zoom == 1)
        model.overview.reveal(model.drawn.vertex(named["/layers.3/gate"]) or 0)
    places: dict[str, JSON] = {named["/stem"].ref: [9, 0], named["last"].ref: [-6, 3]}
    document.apply("set_positions", scope=[], positions=places)
    part, boxes = model.canvas_part()
    drawing = Boxes(model, notes, errors, boxes).drawing(part.graph, 1, ())
    moved = {one.net for one in drawing.layout.moved.lines}
    texts["lines that are moved"] = f"{moved} {line_styles(drawing.layout)}"
    box = drawing.box(1)
    paint("errors, moved", drawing, ghost=replace(box, x=box.x + 4, y=box.y + 1))
    drawing.set_link(Link(0, drawing.graph.nets[0].source, drawing.graph.nets[0].targets[0]))
    paint("a link", drawing, cursor=1)
    minimap = Minimap(drawing.layout, 9)
    views = [(0, 0, 20, 9), (30, 20, 60, 40), (0, 0, 999, 999)]
    texts["map"] = (
        painted(
            minimap.line(y, view, cursor)
            for view, cursor in zip(
                views,
                (None, drawing.box(boxes.index(stem)), drawing.box(boxes.index(last))),
                strict=True,
            )
            for y in range(11)
        )
        + f"\n{[minimap.target(x, y) for x in (0, 3, 9) for y in (0, 4, 8)]}"
    )
    recorded("drawings_of_graphs", texts)
