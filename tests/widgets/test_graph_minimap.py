"""The map: every box is on it, what is seen is inverted, and a click says where it was."""

from __future__ import annotations

import pytest

from dld_tui.core.model.graph.layout import Layout
from dld_tui.widgets.graph.canvas import CELLS, Minimap
from dld_tui.widgets.graph.drawing import Says, draw
from tests.support.graphs import graph_of_links, random_graph

SAYS = Says(lambda at: "", lambda at: "", lambda at: ("", ""))
LONG = [(f"n{number}", f"n{number + 1}") for number in range(80)]


def layout_of(links: list[tuple[str, str]]) -> Layout:
    return draw(graph_of_links(links), 1, SAYS).layout


def texts(minimap: Minimap, view: tuple[int, int, int, int]) -> list[str]:
    return ["".join(t for t, _ in minimap.line(y, view, None)) for y in range(minimap.rows)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_rows_have_the_same_width_whatever_is_drawn(seed: int, rows: int) -> None:
    layout = draw(random_graph(seed), 1, SAYS).layout
    minimap = Minimap(layout, rows)
    assert {len(text) for text in texts(minimap, (0, 0, 20, 10))} == {CELLS}
    assert len(texts(minimap, (0, 0, 1, 1))[0]) == CELLS


def test_a_long_graph_fills_the_map_from_top_to_bottom() -> None:
    shown = texts(Minimap(layout_of(LONG), 20), (0, 0, 1, 1))
    assert all(text[1:].strip() for text in shown)


def test_what_is_seen_is_marked_in_proportion() -> None:
    layout = layout_of(LONG)
    minimap = Minimap(layout, 20)
    view = (0, layout.height // 2, 80, layout.height // 2 + layout.height // 10)
    seen = [y for y in range(20) if any("viewport" in s for _, s in minimap.line(y, view, None))]
    assert set(seen) >= {10}
    assert len(seen) <= 3


def test_the_cursor_is_on_the_map_and_a_click_leads_back_to_it() -> None:
    layout = layout_of(LONG)
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
