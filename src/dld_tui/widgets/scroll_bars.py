"""Scrollbars without block characters, for the ASCII glyph set."""

from __future__ import annotations

from typing import ClassVar

from textual.scrollbar import ScrollBar, ScrollBarRender


class PlainScrollBar(ScrollBarRender):
    """Draws whole cells only."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def use(glyphs: str) -> None:
    """Draw scrollbars for a glyph set, ``unicode`` or ``ascii``."""
    ScrollBar.renderer = PlainScrollBar if glyphs == "ascii" else ScrollBarRender
