"""The canvas: a cursor that follows links, search, mouse, scrolling, and its map."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from textual.pilot import Pilot

from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.layout import Layout
from dld_tui.widgets.graph.canvas import CELLS, GraphCanvas, Minimap
from dld_tui.widgets.graph.drawing import Says, draw
from tests.support.graphs import graph_of_links, random_graph
from tests.support.tui import HostApp, rows_of

LONG = [(f"n{number}", f"n{number + 1}") for number in range(60)]
SAYS = Says(lambda at: "op-conv", lambda at: "", lambda at: ("", ""))


@dataclass
class Shown:
    """A canvas in an app."""

    app: HostApp
    pilot: Pilot[int]
    canvas: GraphCanvas
    graph: Graph

    @property
    def at(self) -> str:
        """The name of the vertex under the cursor."""
        return self.graph.names[self.canvas.cursor]

    async def press(self, *keys: str) -> str:
        """Press keys and return where the cursor is then."""
        await self.pilot.press(*keys)
        await self.pilot.pause()
        return self.at


@asynccontextmanager
async def canvas_of(links: list[tuple[str, str]], zoom: int = 1) -> AsyncIterator[Shown]:
    graph = graph_of_links(links)
    app = HostApp(lambda: GraphCanvas())
    async with app.run_test(size=(60, 20), message_hook=app.note) as pilot:
        canvas = app.query_one(GraphCanvas)
        canvas.set_drawing(draw(graph, zoom, SAYS), 0)
        canvas.focus()
        await pilot.pause()
        yield Shown(app, pilot, canvas, graph)


@pytest.mark.parametrize("zoom", range(3))
async def test_what_the_cursor_is_on_is_always_seen(zoom: int) -> None:
    async with canvas_of(LONG, zoom) as shown:
        for key in ("end", "pageup", "pageup", "home", *["down"] * 20):
            await shown.press(key)
            box = shown.canvas.drawing.box(shown.canvas.cursor)  # type: ignore[union-attr]
            top = shown.canvas.scroll_offset.y
            assert top <= box.y
            assert box.y + box.height <= top + shown.canvas.size.height
        assert shown.at == "n20"


async def test_a_box_that_is_clicked_at_the_edge_stays_where_it_is() -> None:
    async with canvas_of(LONG) as shown:
        assert shown.canvas.drawing is not None
        for button, vertex in ((1, 5), (3, 9), (1, 13)):
            box = shown.canvas.drawing.box(vertex)
            shown.canvas.scroll_to(y=box.y, animate=False, immediate=True)
            await shown.pilot.pause()
            border = rows_of(shown.app)[0]
            where = (len(border) - len(border.lstrip()), 0)
            await shown.pilot.click(GraphCanvas, offset=where, button=button)
            assert (shown.canvas.cursor, shown.canvas.scroll_offset.y) == (vertex, box.y)


@pytest.mark.parametrize("links", [LONG, [("a", f"b{number}") for number in range(12)]])
async def test_the_cursor_is_where_the_lower_left_corner_of_its_box_is(
    links: list[tuple[str, str]],
) -> None:
    async with canvas_of(links) as shown:
        for key in ("down", "right", "right", "right", "down", "end", "left", "up"):
            await shown.press(key)
            at = shown.canvas.cursor_offset
            assert rows_of(shown.app)[at.y][at.x] == "┗", key


async def test_nothing_to_draw_is_said() -> None:
    app = HostApp(lambda: GraphCanvas())
    async with app.run_test(size=(40, 6)) as pilot:
        canvas = app.query_one(GraphCanvas)
        canvas.set_drawing(draw(Graph(), 1, SAYS), 0)
        canvas.focus()
        keys = ("up", "down", "left", "right", "pageup", "pagedown", "home", "end", "enter")
        await pilot.press(*keys, "space", "n")
        assert "Nothing to draw" in rows_of(app)[0]


async def test_a_wide_view_of_a_long_graph_has_a_map_that_can_be_clicked() -> None:
    graph = graph_of_links(LONG)
    app = HostApp(lambda: GraphCanvas())
    async with app.run_test(size=(120, 20)) as pilot:
        canvas = app.query_one(GraphCanvas)
        canvas.set_drawing(draw(graph, 1, SAYS), 0)
        await pilot.pause()
        assert "◆" in rows_of(app)[0]
        await pilot.click(GraphCanvas, offset=(110, 19))
        assert int(graph.names[canvas.cursor][1:]) > 50
        await pilot.resize_terminal(90, 20)
        assert "◆" not in "".join(rows_of(app))


MAPPED = [(f"n{number}", f"n{number + 1}") for number in range(80)]


def layout_of(links: list[tuple[str, str]]) -> Layout:
    return draw(graph_of_links(links), 1, SAYS).layout


def texts(minimap: Minimap, view: tuple[int, int, int, int]) -> list[str]:
    return ["".join(t for t, _ in minimap.line(y, view, None)) for y in range(minimap.rows)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_rows_have_the_same_width_whatever_is_drawn(seed: int, rows: int) -> None:
    layout = draw(random_graph(seed), 1, SAYS).layout
    minimap = Minimap(layout, rows)
    assert {len(text) for text in texts(minimap, (0, 0, 20, 10))} == {CELLS}
    assert len(texts(minimap, (0, 0, 1, 1))[0]) == CELLS


def test_a_long_graph_fills_the_map_from_top_to_bottom() -> None:
    shown = texts(Minimap(layout_of(MAPPED), 20), (0, 0, 1, 1))
    assert all(text[1:].strip() for text in shown)


def test_the_cursor_is_on_the_map_and_a_click_leads_back_to_it() -> None:
    layout = layout_of(MAPPED)
    minimap = Minimap(layout, 20)
    box = layout.boxes[40]
    assert box is not None
    places = [
        (sum(len(t) for t, _ in pieces[:at]), y)
        for y in range(20)
        for pieces in [minimap.line(y, (0, 0, 9, 9), box)]
        for at, (text, _) in enumerate(pieces)
        if text == "◆"
    ]
    assert len(places) == 1
    x, y = minimap.target(*places[0])
    assert abs(layout.rank_at(y) - 40) <= 3
    assert box.x - 3 <= x <= box.x + box.width + 3
