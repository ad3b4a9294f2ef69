from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import pytest

from dld_tui.core.model.graph.graph import GLYPHS, Kind
from dld_tui.core.text import cell_width
from dld_tui.widgets.forms.text_field import TextField
from dld_tui.widgets.graph.rows import UNFOLDED
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.glyphs import ASCII, UNICODE, Glyphs


@pytest.fixture(autouse=True)
def back() -> Iterator[None]:
    yield
    glyphs.use("unicode")


def values(chosen: Glyphs) -> dict[str, str]:
    return {field.name: getattr(chosen, field.name) for field in fields(chosen)}


def test_both_sets_have_the_same_widths() -> None:
    first, second = values(UNICODE), values(ASCII)
    del first["name"], second["name"]
    assert {name: cell_width(text) for name, text in first.items()} == {
        name: cell_width(text) for name, text in second.items()
    }
    assert all(text.isascii() for text in second.values())


@pytest.mark.parametrize(
    ("fraction", "drawn"),
    [(0, "    "), (0.5, "██  "), (1, "████"), (2, "████"), (-1, "    "), (0.28, "█▏  ")],
)
def test_bars_have_eighths(fraction: float, drawn: str) -> None:
    assert glyphs.bar(fraction, 4) == drawn


def test_ascii_bars() -> None:
    glyphs.use("ascii")
    assert glyphs.bar(0.5, 4) == "##  "
    assert glyphs.bar(0.28, 4) == "#   "


def test_drawn_symbols_become_ascii_and_letters_stay() -> None:
    text = "┌─ Layers · 3 × ▸ … 漢字 é"
    assert glyphs.shown(text) == text
    glyphs.use("ascii")
    assert glyphs.shown(text) == "+- Layers . 3 x > ~ 漢字 é"
    assert cell_width(glyphs.shown(text)) == cell_width(text)


def test_no_vertex_looks_like_a_rail_in_ascii() -> None:
    glyphs.use("ascii")
    vertices = {kind: glyphs.shown(glyph) for kind, glyph in GLYPHS.items()}
    rails = set(map(glyphs.shown, "─│├┤┬┴╭╮╰╯┿╵╷"))
    said = {*vertices.values(), glyphs.shown(UNFOLDED)}
    assert all(glyph.isascii() for glyph in said | rails)
    assert rails.isdisjoint(said)
    different = (Kind.NODE, Kind.INPUT, Kind.GROUP, Kind.CONTROL_FLOW, Kind.CALL)
    assert len({vertices[kind] for kind in different}) == len(different)


def test_what_a_field_says_while_it_is_empty_is_ascii_too() -> None:
    said = "search  ↓↑ next"
    assert TextField(placeholder=said).placeholder == said
    glyphs.use("ascii")
    assert TextField(placeholder=said).placeholder == "search  v^ next"
