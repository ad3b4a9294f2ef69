from __future__ import annotations

from xml.etree import ElementTree

import pytest

from dld_tui.core.graph.graph import Graph, Kind
from dld_tui.core.graph.pictures import style
from dld_tui.core.graph.pictures.content import Content
from dld_tui.core.graph.pictures.scene import make_scene
from dld_tui.core.graph.pictures.svg import svg_of
from tests.support.graphs import graph_of_links, random_graph

NAMESPACE = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "</text><script>alert(1)</script>",
    "a\"b'c&d<e>",
    "one\x00two\x1b[31m\x7f\x9b",
    "right\u202eleft\u200b",
    "long" * 5_000,
    "漢字" * 40,
    "e\u0301\u0301\u0301",
    "\ufffe\uffff\udc80",
    "]]>",
    "",
    " ",
    "\U0001f600\U000e0041",
]


def svg(graph: Graph, look: style.Look | None = None, **content: object) -> str:
    made = Content(graph, **content)  # type: ignore[arg-type]
    return svg_of(make_scene(made), look or style.Look())


def texts(document: str) -> list[str]:
    root = ElementTree.fromstring(document)
    return [element.text or "" for element in root.iter(f"{NAMESPACE}text")]


def test_the_text_can_be_searched() -> None:
    graph = Graph()
    a, b = graph.add("Conv", "/layer/conv", category="layer"), graph.add("Relu", "/layer/relu")
    graph.link("t", a, [b], "f32[1,64]")
    found = texts(svg(graph, title="model.onnx", nodes=2))
    assert found[:2] == ["model.onnx", "2 nodes"]
    assert set(found) >= {"Conv", "Relu", "/layer/conv", "/layer/relu", "f32[1,64]"}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    graph = Graph()
    a = graph.add(text, text)
    b = graph.add("Conv", text)
    graph.link(text, a, [b], text)
    document = svg(graph, title=text)
    root = ElementTree.fromstring(document)  # well-formed
    known = {"svg", "style", "title", "rect", "g", "path", "text"}
    assert {element.tag.removeprefix(NAMESPACE) for element in root.iter()} <= known
    assert not {char for char in document if ord(char) < 32} - {"\n"}
    assert not any(char in document for char in "\u202e\u200b\x7f\x9b\ufffe")
    assert len(document) < 12_000


def test_nothing_is_loaded_from_elsewhere() -> None:
    graph = graph_of_links([("http://a/x1", "url(http://b)")])
    document = svg(graph, style.Look(grid=True), title="http://c")
    root = ElementTree.fromstring(document)
    for element in root.iter():
        values = [*element.attrib.values()]
        if element.tag == f"{NAMESPACE}style":
            values.append(element.text or "")
        assert not any("http" in value or "import" in value for value in values)
        assert all("url(" not in value or value == "url(#grid)" for value in values)


@pytest.mark.parametrize("seed", range(12))
def test_any_graph_draws_the_same_each_time(seed: int) -> None:
    graph = random_graph(seed)
    document = svg(graph)
    ElementTree.fromstring(document)
    assert document == svg(random_graph(seed))


def test_an_empty_graph_a_self_loop_and_a_cycle() -> None:
    ElementTree.fromstring(svg(Graph()))
    assert "Lonely" in svg(graph_of_links([("Lonely", "Lonely")]))
    assert {"A", "B", "C"} <= set(texts(svg(graph_of_links([("A", "B"), ("B", "C"), ("C", "A")]))))


def test_two_thousand_inputs() -> None:
    graph = Graph()
    sources = [graph.add(f"input{number}", kind=Kind.INPUT) for number in range(2_000)]
    node = graph.add("Concat", "all")
    for number, source in enumerate(sources):
        graph.link(f"t{number}", source, [node])
    document = svg(graph)
    assert len(texts(document)) > 2_000
    assert len(document) < 1_500_000


def test_each_kind_has_its_own_shape() -> None:
    shapes = set()
    kinds = (Kind.NODE, Kind.INPUT, Kind.HOLDER, Kind.CALL, Kind.GROUP, Kind.OUTER)
    for kind in kinds:
        graph = Graph()
        graph.add("X", "", kind, "layer")
        root = ElementTree.fromstring(svg(graph))
        card = root.findall(f"{NAMESPACE}g")[-1]
        shape = [(child.tag, child.get("rx")) for child in card]
        shapes.add((*shape, "outer" in (card.get("class") or "")))
    assert len(shapes) == len(kinds)


@pytest.mark.parametrize("scheme", style.SCHEMES)
def test_schemes_and_backgrounds(scheme: str) -> None:
    graph = graph_of_links([("Conv1", "Relu2")])
    chosen = style.SCHEMES[scheme]
    assert f'fill="{chosen.background}"' in svg(graph, style.Look(chosen))
    assert 'fill="#123456"' in svg(graph, style.Look(chosen, "#123456"))
    bare = ElementTree.fromstring(svg(graph, style.Look(chosen, "none")))
    assert bare.find(f"{NAMESPACE}rect") is None


def test_a_tensor_without_a_line_is_a_flag() -> None:
    links = [(f"n{at}", f"n{at + 1}") for at in range(40)]
    links += [("mask", f"n{at}") for at in range(10, 41, 5)]
    found = texts(svg(graph_of_links(links)))
    assert "mask:0" in found


def test_capitals_are_squeezed_into_their_box() -> None:
    graph = Graph()
    graph.add("W" * 20)
    graph.add("relu")
    assert svg(graph).count("textLength") == 1
