"""A large picture in a real browser, where there is one."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.model.graph.folding import Overview
from dld_tui.core.model.graph.graph import Graph, Kind
from dld_tui.core.model.graph.pictures import drawing, style
from dld_tui.core.model.graph.pictures.content import Content
from dld_tui.core.model.graph.pictures.drawing import (
    ascii_of,
    box_id,
    canvas_text,
    fitting_scale,
    html_of,
    kind_of,
    picture_of,
    raster_of,
    rows_text,
    svg_of,
    text_picture,
)
from dld_tui.core.model.graph.pictures.scene import Scene, make_scene
from dld_tui.core.text import cell_width
from tests.support.browser import browser, dom_of
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
    monkeypatch.setattr(drawing, "MOST_CELLS", 10)
    with pytest.raises(UsageError, match="--folded"):
        canvas(graph_of_links([("A", "B")]))


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


@pytest.mark.broad
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
    kinds = (Kind.NODE, Kind.INPUT, Kind.CONTROL_FLOW, Kind.CALL, Kind.GROUP, Kind.OUTER)
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


LIGHT = style.Look()


def scene(graph: Graph) -> Scene:
    return make_scene(Content(graph, "title"))


def image(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def test_sizes_formats_and_backgrounds() -> None:
    found = scene(graph_of_links([("Conv1", "Relu2")]))
    png = image(raster_of(found, LIGHT, "png", 0.5))
    assert (png.format, png.mode) == ("PNG", "RGB")
    assert abs(png.width - found.width / 2) <= 1
    assert png.getpixel((0, 0)) == (255, 255, 255)
    clear = image(raster_of(found, style.Look(background="none"), "png"))
    assert clear.mode == "RGBA"
    corner = clear.getpixel((0, 0))
    assert isinstance(corner, tuple)
    assert corner[3] == 0
    jpeg = image(raster_of(found, style.Look(style.SCHEMES["dark"], "none"), "jpeg"))
    assert jpeg.format == "JPEG"


def test_cards_lines_and_text_are_there() -> None:
    graph = Graph()
    graph.add("Conv", "name", category="layer")
    found = scene(graph)
    picture = image(raster_of(found, LIGHT, "png"))
    card = found.cards[0]
    fill = style.SCHEMES["light"].fills["conv"]
    assert "#{:02x}{:02x}{:02x}".format(*picture.getpixel((card.x + 4, card.y + 4))) == fill  # type: ignore[misc]
    inside = picture.crop((card.x + 4, card.y + 4, card.x + card.width - 4, card.y + 22))
    assert len(inside.getcolors() or []) > 10  # smooth letters


@pytest.mark.broad
def test_bands_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scene(random_graph(3))
    whole = raster_of(found, style.Look(grid=True), "png")
    monkeypatch.setattr(drawing, "_BAND_PIXELS", found.width * 9 * 16)
    assert raster_of(found, style.Look(grid=True), "png") == whole


@pytest.mark.parametrize(
    "kind", [Kind.NODE, Kind.INPUT, Kind.CONTROL_FLOW, Kind.CALL, Kind.GROUP, Kind.OUTER]
)
def test_hostile_names_of_each_kind(kind: str) -> None:
    graph = Graph()
    a = graph.add("漢字\u202e\x00", "e\u0301" * 50, kind)
    graph.link("W" * 300, a, [a])
    assert raster_of(scene(graph), LIGHT, "png") == raster_of(scene(graph), LIGHT, "png")


def test_a_picture_that_is_too_large_is_refused() -> None:
    found = Scene(width=1_000, height=70_000)
    with pytest.raises(UsageError, match="--scale"):
        raster_of(found, LIGHT, "png")
    assert fitting_scale(found) == 1.0
    assert fitting_scale(Scene(width=1_000, height=1_000)) == 2.0


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UnavailableError, match=r"pillow"):
        raster_of(scene(Graph()), LIGHT, "png")


def test_pictures_by_kind() -> None:
    content = Content(graph_of_links([("A", "B")]), "title")
    assert picture_of(content, "svg", LIGHT, scale=2).data.startswith(b"<svg")
    png = picture_of(content, "png", LIGHT)
    assert image(png.data).size == (png.width, png.height)
    text = picture_of(content, "text", LIGHT, in_ascii=True)
    assert text.data.isascii()
    assert (text.boxes, text.crossings) == (2, 0)
    assert text_picture(["漢"], False, 1).width == 2


def test_the_format_of_a_name() -> None:
    assert [kind_of(Path(f"a{end}")) for end in (".svg", ".PNG", ".jpg", ".jpeg", ".txt")] == [
        "svg", "png", "jpeg", "jpeg", "text",
    ]  # fmt: skip
    for name in ("a.bmp", "a"):
        with pytest.raises(UsageError, match=r"\.svg"):
            kind_of(Path(name))


def test_a_text_of_other_scripts_takes_the_first_font_that_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    found = drawing.font_for(8, "plain")

    def truetype(name: str, size: float) -> object:
        asked.append(name)
        if len(asked) < 3:
            raise OSError(name)
        return found

    monkeypatch.setattr("PIL.ImageFont.truetype", truetype)
    drawing._font.cache_clear()
    assert drawing.font_for(9, "Ж") is found
    assert len(set(asked)) == len(asked) == 3
    drawing._font.cache_clear()


def test_a_page_says_its_title_as_text_and_offers_times_where_there_are_some() -> None:
    page = html_of("<svg/>", "<b>&", {3: 0.5})
    assert "<title>&lt;b&gt;&amp;</title>" in page
    assert f'const HEATS={{"{box_id(3)}": 0.5}};' in page
    assert 'id="heat"' in page
    assert 'id="heat"' not in html_of("<svg/>", "x", {})


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
