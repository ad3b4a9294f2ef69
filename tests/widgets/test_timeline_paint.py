from __future__ import annotations

from dld_tui.core.text import cell_width
from dld_tui.widgets.timeline.cells import (
    ASCII_SHADES,
    CURSOR,
    EMPTY,
    GAP,
    TEXT,
    UNICODE_SHADES,
    Cell,
    Label,
    Run,
    paint,
)
from dld_tui.widgets.timeline.model import TONES

BAR = Cell(0, 2, 2)


def test_whole_cells_are_paper_and_borders_are_eighths() -> None:
    assert paint([BAR, BAR, Cell(3, 2, 5), EMPTY], []) == [
        Run("  ", TEXT, 2),
        Run("▍", 2, 5),
        Run(" ", TEXT, GAP),
    ]


def test_a_label_lies_on_its_bar() -> None:
    assert paint([BAR] * 6, [Label(1, 4, "Conv")]) == [Run(" Conv ", TEXT, 2)]


def test_a_wide_label_takes_its_cells() -> None:
    (run,) = paint([BAR] * 6, [Label(1, 4, "畳込")])
    assert run.text == " 畳込 "
    assert cell_width(run.text) == 6


def test_without_colours_tones_cursor_and_borders_are_glyphs() -> None:
    cells = [
        Cell(0, 0, 0),
        Cell(0, 5, 5),
        Cell(0, CURSOR, CURSOR),
        Cell(4, GAP, 5),
        Cell(2, 5, GAP),
        Cell(7, 5, GAP),
        Cell(2, 0, 5),
        EMPTY,
    ]
    assert "".join(run.text for run in paint(cells, [], UNICODE_SHADES)) == "░█▚▐▌██ "
    ascii_text = "".join(run.text for run in paint(cells, [], ASCII_SHADES))
    assert ascii_text == ".#@|'## "
    assert ascii_text.isascii()


def test_every_tone_has_a_shade() -> None:
    assert len(UNICODE_SHADES.tones) == len(ASCII_SHADES.tones) == len(TONES)
