"""A graph that is arranged in a child process looks as one that is arranged here."""

from __future__ import annotations

import io
import json
from contextlib import closing
from typing import Any

import pytest

from dld_tui.core.errors import CancelledError
from dld_tui.core.model.graph import layout_exchange as child_main
from dld_tui.core.model.graph import layout_process as child
from dld_tui.core.model.graph.folding import Arrangement, Overview
from dld_tui.core.model.graph.graph import Graph, Kind
from dld_tui.core.model.graph.layout_exchange import (
    arranged_bytes,
    arranged_of,
    graph_bytes,
    graph_of,
)
from dld_tui.core.model.graph.layout_process import LayoutProcess
from tests.core.model.graph.test_folding import residual_network
from tests.support.graphs import random_graph


def hostile() -> Graph:
    """Return a graph whose texts and width are unusual, and which has a cycle."""
    graph = Graph()
    for at in range(200):
        graph.add(f"Op\n\x00\udcff{at % 3}", f"/\u202e{at // 20}/\n/n{at}", Kind.NODE, "other")
    graph.link("cycle", 5, (5, 0), "f32")
    for at in range(100):  # a rail each: more than a number of a machine has bits
        graph.link(f"far {at}", at, (at + 100,))
    return graph


def wide(count: int) -> Graph:
    """Return a graph with a rail for each tensor of one node that others read, too."""
    graph = Graph()
    join = graph.add("Join", "join")
    for at in range(count):
        source, end = graph.add("Op", f"n{at}"), graph.add("End", f"e{at}")
        graph.link(f"t{at}", source, (join, end))
    return graph


def as_json(arranged: Arrangement) -> Any:
    rails = [vars(one) | {"hubs": sorted(one.hubs)} for one in (arranged.rails, arranged.seen)]
    return json.loads(json.dumps([rails, arranged.folds, arranged.links], default=list))


@pytest.mark.parametrize(
    "graph",
    [
        *(random_graph(seed) for seed in range(8)),
        residual_network(30, "layer."),
        residual_network(30, ""),
        hostile(),
        *map(wide, (60, 61, 62)),
        Graph(),
    ],
)
def test_columns_hold_all_that_an_overview_needs(graph: Graph) -> None:
    here = Overview(graph)
    there = Overview(graph_of(graph_bytes(graph))).arranged()
    again = Overview(graph, arranged_of(arranged_bytes(there)))
    assert as_json(again.arranged()) == as_json(here.arranged())
    assert list(again.rows) == [row._replace(fold=own.fold) for row, own in zip(
        here.rows, again.rows, strict=True
    )]  # fmt: skip
    assert again.seen() == here.seen()
    for own, other in zip(again.folds, here.folds, strict=True):
        assert (own.title, own.count, own.operators) == (other.title, other.count, other.operators)
        again.set_open(own)
        here.set_open(other)
    assert [(row.start, row.end, row.depth) for row in again.rows] == [
        (row.start, row.end, row.depth) for row in here.rows
    ]


def test_a_graph_by_paths_keeps_them() -> None:
    graph = Graph()
    for at in range(6):
        graph.add("Conv", f"plain {at}")
        graph.paths.append(f"/stage.{at // 3}/conv")
    assert name_titles(Overview(graph_of(graph_bytes(graph)))) == name_titles(Overview(graph))


def name_titles(overview: Overview) -> list[str]:
    return [fold.title for fold in overview.folds]


def test_a_child_process_answers() -> None:
    graph = residual_network(40, "layer.")
    with closing(LayoutProcess()) as arranging:
        found = arranging.arrange(graph, lambda: False)
    assert found is not None
    assert as_json(found) == as_json(Overview(graph).arranged())


@pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "import sys; sys.stdin.read(9)"])
def test_a_child_that_fails_says_nothing(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_START", code)
    monkeypatch.setattr(child, "_CHUNK", 64)
    with closing(LayoutProcess()) as arranging:
        assert arranging.arrange(residual_network(30, "layer."), lambda: False) is None


def test_without_a_program_to_start_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with closing(LayoutProcess()) as arranging:
        assert arranging.arrange(Graph(), lambda: False) is None


def test_a_child_is_ended_when_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_START", "import time; time.sleep(600)")
    with closing(LayoutProcess()) as arranging:
        with pytest.raises(CancelledError):
            arranging.arrange(Graph(), lambda: True)
        process = arranging._process
    assert process is not None
    assert process.returncode is not None


def test_data_that_was_cut_off_is_refused() -> None:
    data = arranged_bytes(Overview(residual_network(3, "layer.")).arranged())
    with pytest.raises(ValueError, match="ends in"):
        arranged_of(data[:-5])


def test_the_program_of_the_child_reads_a_graph_and_writes_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = residual_network(6, "layer.")
    answer = io.BytesIO()
    monkeypatch.setattr("gc.disable", lambda: None)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(graph_bytes(graph))))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(answer))
    child_main.main()
    assert as_json(arranged_of(answer.getvalue())) == as_json(Overview(graph).arranged())
