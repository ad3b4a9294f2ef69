from __future__ import annotations

from itertools import pairwise

import pytest

from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.pictures.content import Content
from dld_tui.core.model.graph.pictures.scene import Scene, make_scene
from tests.support.graphs import random_graph


def scene(graph: Graph) -> Scene:
    return make_scene(Content(graph, "title"))


@pytest.mark.parametrize("seed", range(12))
def test_cards_do_not_touch_and_all_is_inside(seed: int) -> None:
    found = scene(random_graph(seed))
    cards = found.cards
    for at, one in enumerate(cards):
        assert 0 <= one.x <= found.width - one.width
        assert 0 <= one.y <= found.height - one.height
        for other in cards[at + 1 :]:
            apart = one.x + one.width <= other.x or other.x + other.width <= one.x
            assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y


@pytest.mark.parametrize("seed", range(12))
def test_no_line_runs_through_a_card(seed: int) -> None:
    found = scene(random_graph(seed, cycles=False))
    for lines in found.tensor_lines:
        for path in lines.paths:
            for (x, y), (last_x, last_y) in pairwise(path):
                for card in found.cards:
                    inside_x = max(x, last_x) > card.x and min(x, last_x) < card.x + card.width
                    inside_y = max(y, last_y) > card.y and min(y, last_y) < card.y + card.height
                    assert not (inside_x and inside_y)
