from __future__ import annotations

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.graph.graph import Graph, Kind
from dld_tui.core.graph.overview import Overview
from dld_tui.core.graph.pictures import text
from dld_tui.core.graph.pictures.content import Content
from dld_tui.core.graph.pictures.text import ascii_of, canvas_text, rows_text
from dld_tui.core.text import cell_width
from tests.support.graphs import graph_of_links, random_graph


def canvas(graph: Graph) -> list[str]:
    return canvas_text(Content(graph))[0]


def test_boxes_and_lines() -> None:
    lines = canvas(graph_of_links([("A", "B"), ("A", "C")]))
    assert lines[1].strip() == "│ A │"
    assert lines[3].strip()[0] == "╭"
    assert lines[4].split() == ["▼", "▼"]
    assert lines[6].split("  ")[-1].strip() == "│ C │"


@pytest.mark.parametrize("name", ["漢字の演算", "e\u0301te\u0301", "\U000f0000x", "a\u202eb\x00"])
def test_boxes_are_straight_whatever_is_in_them(name: str) -> None:
    graph = Graph()
    graph.add(name)
    top, middle, bottom = canvas(graph)
    assert cell_width(top) == cell_width(middle) == cell_width(bottom)
    assert (middle.strip()[0], middle[-1]) == ("│", "│")


def test_marks_notes_and_counters() -> None:
    graph = Graph()
    graph.add("layers", "", Kind.GROUP)
    found = canvas_text(Content(graph, cuts=[(2, 3)], notes={0: ["4 times 9 nodes", "x"]}))[0]
    assert found[1].strip() == "│ ⋯2 ⊞ layers · 4 times 9 nodes 3⋯ │"


def test_rows_with_rails() -> None:
    graph = graph_of_links([("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")])
    rows = rows_text(Overview(graph), lambda name: "f32[2]" if name == "A:0" else "")
    assert [row.split() for row in rows] == [
        ["●", "A", "A", "f32[2]"], ["├─●", "B", "B"], ["●", "│", "C", "C"], ["●─╯", "D", "D"],
    ]  # fmt: skip


def test_rows_of_folds() -> None:
    links = [(f"s/b{at}/Op0", f"s/b{at + 1}/Op0") for at in range(90)]
    rows = rows_text(Overview(graph_of_links(links)), lambda name: "")
    assert any("▸" in row or "▾" in row for row in rows)
    assert rows_text(Overview(Graph()), lambda name: "") == []


@pytest.mark.parametrize("seed", range(8))
def test_ascii_is_ascii(seed: int) -> None:
    lines = [*canvas(random_graph(seed)), "▸▾◂ƒ…·漢"]
    found = ascii_of(lines)
    assert all(line.isascii() for line in found)
    assert [len(line) for line in found] == [len(line) for line in lines]
    assert found[-1] == ">v<f~.?"


def test_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_CELLS", 10)
    with pytest.raises(UsageError, match="--folded"):
        canvas(graph_of_links([("A", "B")]))
