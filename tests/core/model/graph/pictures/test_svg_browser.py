"""A large picture in a real browser, where there is one."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.pictures import style
from dld_tui.core.model.graph.pictures.content import Content
from dld_tui.core.model.graph.pictures.drawing import svg_of
from dld_tui.core.model.graph.pictures.scene import make_scene
from tests.support.browser import browser, dom_of

_SEARCH = """<script>
const names = ["layer.0/MatMul", "layer.1999/MatMul", "there is none"];
document.documentElement.setAttribute("data-found", names.map((n) => window.find(n)).join(" "));
</script></svg>"""


def test_two_thousand_nodes_open_and_their_names_are_found(tmp_path: Path) -> None:
    browser()
    graph = Graph()
    for number in range(2_000):
        graph.add("MatMul", f"layer.{number}/MatMul")
        if number:
            graph.link(f"t{number}", number - 1, [number])
    document = svg_of(make_scene(Content(graph)), style.Look())
    target = tmp_path / "graph.svg"
    target.write_text(document.replace("</svg>", _SEARCH), encoding="utf-8")
    assert 'data-found="true true false"' in dom_of(target, tmp_path)
