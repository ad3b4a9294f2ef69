"""A large picture in a real browser, where there is one."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import dataclass
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
    canvas_text,
    fitting_scale,
    html_of,
    kind_of,
    picture_of,
    raster_of,
    rows_text,
    svg_of,
)
from dld_tui.core.model.graph.pictures.scene import Scene, make_scene
from dld_tui.core.text import cell_width
from tests.support.browser import browser, dom_of
from tests.support.graphs import graph_of_links, random_graph, tangled
from tests.support.recorded import Recorded


def canvas(graph: Graph) -> list[str]:
    return canvas_text(Content(graph))[0]


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


def rich() -> Content:
    """Return a picture that has everything: each kind of box, notes, flags, cuts and colours."""
    graph = Graph(paths=[])
    given = graph.add("x", "x", Kind.INPUT)
    outer = graph.add("out\u202eer", "outer", Kind.OUTER)
    conv = graph.add("Conv", "/layer/with/a/long/name/of/its/own/conv", category="layer")
    wide = graph.add("WWWWWWWW@@%", "relu", category="activation")
    call = graph.add("Block", "block", Kind.CALL, "custom")
    branch = graph.add("If", "", Kind.CONTROL_FLOW, "control")
    fold = graph.add("layers", "layers", Kind.GROUP)
    last = graph.add("漢字 e\u0301\U000f0000漢", "漢字", category="tensor")
    result = graph.add("y", "y", Kind.OUTPUT)
    cut = graph.add("", "", Kind.CUT)
    graph.link("x", given, [conv, wide], "f32[unk__1,3]")
    graph.link("o", outer, [branch])
    graph.link("c", conv, [wide, call, last], "f32[batch_size,64,56,56]")
    graph.link("c2", conv, [branch], "i64[2]")
    graph.link("w", wide, [branch], "")
    graph.link("b", call, [fold], "f32[1]")
    graph.link("i", branch, [fold, last], "f32[1,2,3,4,5,6,7,8,9,10,11]")
    graph.link("f", fold, [last])
    graph.link("l", last, [result], "f32[2]")
    graph.link("l2", last, [result, cut, conv])
    return Content(
        graph, "model <1>.onnx", 8, lambda name: {"w": "f16[batch_size]"}.get(name, ""),
        {"batch_size": "B"}, [(at % 3, at % 2 * 4) for at in range(len(graph))],
        {fold: ["4 times 9 nodes", "9 Conv, 8 Add"], branch: ["a note"]}, conv,
        {result: (9, 3), call: (-12, 0)}, {wide: "int8"}, {3: "a label & more"},
        {conv: ["12 ms", "tip"]}, {conv: 1.0, wide: 0.12345},
    )  # fmt: skip


def flags() -> Content:
    """Return a chain with a tensor that comes to many boxes without a line."""
    links = [(f"n{at}", f"n{at + 1}") for at in range(22)]
    graph = graph_of_links([*links, *(("mask", f"n{at}") for at in (1, 3, 17, 21))])
    return Content(graph, "flags", 23, cuts=[(0, 0)] * len(graph))


def folded() -> Overview:
    """Return a network whose layers are folded, one of them open."""
    links = [("In", "m/stem/Pad"), ("m/stem/Pad", "m/layers.0/Conv0")]
    for layer in range(5):
        chain = [f"m/layers.{layer}/{name}" for name in ("Conv0", "Relu0", "Add0", "Mul0")]
        links += list(zip(chain, [*chain[1:], f"m/layers.{layer + 1}/Conv0"], strict=True))
    graph = graph_of_links(links)
    graph.kinds[0] = Kind.INPUT
    overview = Overview(graph)
    overview.set_open(next(row.fold for row in overview.rows if row.fold))
    return overview


LOOKS = {
    "light": style.Look(),
    "dark with a grid": style.Look(style.SCHEMES["dark"], grid=True),
    "bare": style.Look(style.SCHEMES["light"], "none"),
    "own background": style.Look(background="#123456"),
}


def test_whole_pictures(recorded: Recorded) -> None:
    made = {}
    for title, content in (("rich", rich()), ("flags", flags())):
        lines, crossings = canvas_text(content)
        made[f"{title} as text, {crossings} crossings"] = "\n".join(lines)
        made[f"{title} in ASCII"] = "\n".join(ascii_of(lines))
        found = make_scene(content)
        made[f"{title} as SVG"] = svg_of(found, LOOKS["light"])
        for name, look in LOOKS.items():
            drawn = svg_of(found, look, 1.5, numbered=True)
            assert drawn.count("\n") > len(content.graph)
            lines = drawn.split("</style>")[1].split("<text", 1)[0].splitlines()
            made[f"{title}, {name}"] = "\n".join([drawn.split("</style>")[0], *lines])
    late = [("b", "out1"), ("b", "c"), ("c", "d"), ("late", "d"), ("x", "short"), ("short", "add")]
    late += [("x", "l1"), ("l1", "l2"), ("l2", "add")]
    beside = [("x", "tall"), ("x", "low"), ("x", "end"), ("tall", "end"), ("low", "end")]
    for graph in (tangled(), graph_of_links(late), graph_of_links(beside)):
        notes = {1: ["three", "more", "lines"]} if graph.names[1] == "tall" else {}
        found = make_scene(Content(graph, "w" * 140, notes=notes))
        made[f"{graph.names[0]} as SVG"] = svg_of(found, LOOKS["light"])
    overview = folded()
    for title in ("first", "all"):
        rows = rows_text(overview, lambda name: "f32[2]" if name < "m" else "")
        made[f"rows, {title}"] = "\n".join(rows)
        overview.open_all()
    links = [(f"a{at}", f"b{at * 17 % 60}") for at in range(60)]
    made["many rails"] = "\n".join(rows_text(Overview(graph_of_links(links)), lambda name: ""))
    page = html_of("<svg/>", "<b>&", {3: 0.5, 4: 1 / 3})
    made["page"] = page
    assert 'id="heat"' not in html_of("<svg/>", "x", {})
    for kind in ("svg", "html", "text", "png", "jpeg"):
        told = picture_of(rich(), kind, LOOKS["light"], scale=2 if kind < "k" else None)
        ((mime, data),) = told._repr_mimebundle_().items()
        assert data == (told.data if kind in ("png", "jpeg") else told.data.decode())
        sizes = f"{told.width} x {told.height}, {told.boxes} boxes, {told.crossings}"
        start = data[: 12 if kind in ("png", "jpeg") else 90]
        made[f"as {kind}"] = f"{told.kind} {mime} {sizes} {told.is_oversized}\n{start!r}"
    for scheme in style.SCHEMES.values():
        lines = [f"{key}: {scheme.edges[key]} on {scheme.fills[key]}" for key in style.LEGEND]
        made[f"{scheme.name}, coloured {scheme.is_coloured}"] = "\n".join(lines)
    made["precisions"] = " ".join(map(style.precision_class, ("fp16", "tf32", "")))
    made["backgrounds"] = " ".join(map(style.read_background, (" none ", "#12aBcd")))
    recorded("drawn", made)


class Pen:
    """What is drawn with Pillow, as lines: its pixels differ with its version."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, places: object, **how: object) -> None:
        self.lines.append(f"line {places} {how}")

    def polygon(self, places: object, **how: object) -> None:
        self.lines.append(f"polygon {places} {how}")

    def rounded_rectangle(self, places: object, radius: float, **how: object) -> None:
        self.lines.append(f"box {places} {radius:.4f} {how}")

    def text(self, at: object, text: str, colour: str, font: Font, **how: object) -> None:
        self.lines.append(f"text {at} {text!r} {colour} {font.size:.4f} {how}")


@dataclass
class Font:
    """A font of letters so wide that some texts are wider than their cards."""

    size: float
    text: str

    def getlength(self, text: str) -> float:
        return self.size * len(text) * 0.8


@pytest.mark.parametrize(("name", "scale"), [("dark with a grid", 1.5), ("bare", 0.1)])
def test_what_is_drawn_of_bands(
    name: str, scale: float, monkeypatch: pytest.MonkeyPatch, recorded: Recorded
) -> None:
    pens: list[Pen] = []

    def pen(image: Image.Image) -> Pen:
        pens.append(Pen())
        pens[-1].lines.append(f"band of {image.size} {image.mode} {image.getpixel((0, 0))}")
        return pens[-1]

    found = make_scene(rich())
    width = math.ceil(found.width * scale)
    monkeypatch.setattr("PIL.ImageDraw.Draw", pen)
    monkeypatch.setattr(drawing, "font_for", Font)
    monkeypatch.setattr(drawing, "_BAND_PIXELS", width * 9 * 300)
    for kind in ("png", "jpeg")[: 1 + (name == "bare")]:
        raster_of(found, LOOKS[name], kind, scale)
    bands = {str(at): "\n".join(one.lines) for at, one in enumerate(pens)}
    recorded(f"bands_{name.split()[0]}", bands)


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


def test_an_empty_graph_a_self_loop_and_a_cycle() -> None:
    ElementTree.fromstring(svg(Graph()))
    assert "Lonely" in svg(graph_of_links([("Lonely", "Lonely")]))
    assert {"A", "B", "C"} <= set(texts(svg(graph_of_links([("A", "B"), ("B", "C"), ("C", "A")]))))


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
    for scene in (found, Scene(width=1, height=32_001), Scene(width=8_000, height=8_001)):
        with pytest.raises(UsageError, match="--scale"):
            raster_of(scene, LIGHT, "png")
    assert fitting_scale(found) == 1.0
    assert fitting_scale(Scene(width=1_000, height=1_000)) == 2.0


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UnavailableError, match=r"pillow"):
        raster_of(scene(Graph()), LIGHT, "png")


def test_the_format_of_a_name() -> None:
    assert [kind_of(Path(f"a{end}")) for end in (".svg", ".PNG", ".jpg", ".jpeg", ".txt")] == [
        "svg", "png", "jpeg", "jpeg", "text",
    ]  # fmt: skip
    for name in ("a.bmp", "a"):
        with pytest.raises(UsageError, match=r"\.svg"):
            kind_of(Path(name))


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


@pytest.mark.parametrize(
    "name", ["漢字の演算", "e\u0301te\u0301", "\U000f0000x", "a\u202eb\x00", "\u0e01\u0e31\u0e19"]
)
def test_boxes_are_straight_whatever_is_in_them(name: str) -> None:
    graph = Graph()
    graph.add(name)
    top, middle, bottom = canvas(graph)
    assert cell_width(top) == cell_width(middle) == cell_width(bottom)
    assert (middle.strip()[0], middle[-1]) == ("│", "│")
