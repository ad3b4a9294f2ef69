from __future__ import annotations

from itertools import pairwise

import pytest

from dld_tui.core.model.graph.graph import Graph, Kind
from dld_tui.core.model.graph.pictures.content import Content
from dld_tui.core.model.graph.pictures.scene import Scene, make_scene, text_pixels
from tests.support.graphs import graph_of_links, random_graph


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


def test_an_arrow_ends_at_each_card() -> None:
    found = scene(graph_of_links([("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")]))
    tops = {card.y for card in found.cards}
    assert len(found.arrows) == 4
    assert all(y in tops for _, y in found.arrows)


def test_types_stand_beside_lines_or_in_the_box_but_not_in_both() -> None:
    graph = Graph()
    source = graph.add("Split", "s")
    ends = [graph.add("Relu", f"r{at}") for at in range(3)]
    graph.link("untyped", source, [ends[0]])
    graph.link("a", source, [ends[1]], "f32[1,2]")
    graph.link("b", source, [ends[2]], "f32[1,2,3,4,5,6,7,8,9]")
    found = scene(graph)
    beside = [line.text for line in found.links]
    inside = [line.text for card in found.cards for line in card.lines if line.role == "type"]
    assert "f32[1,2,3,4,5,6,7,8,9]" in beside
    assert (beside + inside).count("f32[1,2]") == 1


def test_texts_fit_their_cards_and_unknown_dimensions_are_short() -> None:
    graph = Graph()
    graph.add("Conv" * 30, "name" * 90)
    given = graph.add("x", "x", Kind.INPUT)
    graph.link("x", given, [0], "f32[unk__12,3,unk__4]")
    found = scene(graph)
    lines = [line for card in found.cards for line in card.lines]
    assert all(text_pixels(line.text, line.role) <= line.room for line in lines)
    assert "f32[?,3,?]" in [line.text for line in lines]


def test_counters_where_links_are_cut() -> None:
    content = Content(graph_of_links([("A", "B")]), cuts=[(2, 0), (0, 7)], centre=1)
    found = make_scene(content)
    assert [card.lines[-1].text for card in found.cards] == ["2 more in", "7 more out"]
    assert [card.stands_out for card in found.cards] == [False, True]


def test_the_legend_has_what_is_used() -> None:
    graph = Graph()
    graph.add("Conv", category="layer")
    graph.add("y", kind=Kind.OUTPUT)
    assert [key for key, _ in scene(graph).legend] == ["conv", "io"]
    assert make_scene(Content(graph), legend=False).legend == []
