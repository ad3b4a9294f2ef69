from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from PIL import Image

from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.graph.graph import Graph, Kind
from dld_tui.core.graph.pictures import raster, style
from dld_tui.core.graph.pictures.content import Content
from dld_tui.core.graph.pictures.drawing import kind_of, picture_of, text_picture
from dld_tui.core.graph.pictures.raster import fitting_scale, raster_of
from dld_tui.core.graph.pictures.scene import Scene, make_scene
from tests.support.graphs import graph_of_links, random_graph

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


def test_bands_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scene(random_graph(3))
    whole = raster_of(found, style.Look(grid=True), "png")
    monkeypatch.setattr(raster, "_BAND_PIXELS", found.width * 9 * 16)
    assert raster_of(found, style.Look(grid=True), "png") == whole


@pytest.mark.parametrize(
    "kind", [Kind.NODE, Kind.INPUT, Kind.HOLDER, Kind.CALL, Kind.GROUP, Kind.OUTER]
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
    with pytest.raises(UnavailableError, match=r"dld-tui\[pictures\]"):
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
