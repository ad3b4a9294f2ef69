from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from networkx import DiGraph, descendants

from dld_tui.core.reach import reached

_THINGS = st.integers(0, 9)


@given(st.lists(st.tuples(_THINGS, _THINGS)), st.sets(_THINGS))
def test_what_is_reached_is_what_networkx_reaches(
    links: list[tuple[int, int]], starts: set[int]
) -> None:
    graph = DiGraph(links)
    graph.add_nodes_from(starts)
    expected = starts.union(*(descendants(graph, start) for start in starts))
    assert reached(starts, lambda thing: graph[thing]) == expected
