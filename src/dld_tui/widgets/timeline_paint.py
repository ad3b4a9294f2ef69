"""From cells to characters: in colours, in glyphs without colours, or in ASCII."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from dld_tui.core.text import cell_width
from dld_tui.widgets.bars import EIGHTHS
from dld_tui.widgets.timeline_cells import CURSOR, GAP, Cell, Label
from dld_tui.widgets.timeline_model import TONES

TEXT = -2
"""The ink of a label: text on a bar."""


class Run(NamedTuple):
    """Characters of one look. `ink` and `paper` are tones, GAP is the background."""

    text: str
    ink: int
    paper: int


@dataclass(frozen=True)
class Shades:
    """Glyphs that tell tones apart where colours do not."""

    tones: str
    """One a tone, in the order of ``TONES``."""
    cursor: str
    begin: str
    """Nothing at the left, something at the right."""
    end: str
    """Something at the left, nothing at the right."""


UNICODE_SHADES = Shades("░░▒▒▓█≡=~:", "▚", "▐", "▌")
ASCII_SHADES = Shades(".-=+*#cm~:", "@", "|", "'")
TEXTURES = MappingProxyType(
    {
        TONES.index("gpu-copy"): "▒",
        TONES.index("gpu-memset"): "░",
        TONES.index("gpu-overhead"): "┈",
        TONES.index("gpu-sync"): "·",
    }
)
"""What no kernel is fills its cells with a glyph of its own, so that colour is not all there is."""


def paint(cells: Sequence[Cell], texts: Iterable[Label], shades: Shades | None = None) -> list[Run]:
    """Return a lane as runs of characters, with its labels in it.

    Args:
        cells: From the left edge of the window.
        texts: Labels that fit into the bars.
        shades: For terminals without colours; None when the ink and the paper tell tones apart.
    """
    drawn = [_coloured(cell) if shades is None else _shaded(cell, shades) for cell in cells]
    for label in texts:
        at = label.cell
        for char in label.text:
            drawn[at] = Run(char, TEXT, cells[at].right)
            for extra in range(1, cell_width(char)):
                drawn[at + extra] = Run("", TEXT, cells[at].right)
            at += cell_width(char)
    return merge(drawn)


def merge(runs: Iterable[Run]) -> list[Run]:
    """Return runs with neighbours of one look joined."""
    merged: list[Run] = []
    for run in runs:
        if merged and merged[-1][1:] == run[1:]:
            merged[-1] = Run(merged[-1].text + run.text, run.ink, run.paper)
        else:
            merged.append(run)
    return merged


def _coloured(cell: Cell) -> Run:
    if cell.whole:
        texture = TEXTURES.get(cell.left)
        return Run(" ", TEXT, cell.left) if texture is None else Run(texture, cell.left, GAP)
    return Run(EIGHTHS[cell.eighths], cell.left, cell.right)


def _shaded(cell: Cell, shades: Shades) -> Run:
    if cell.whole:
        return Run(_shade(cell.left, shades), cell.left, GAP)
    if cell.left == GAP:
        return Run(shades.begin, cell.right, GAP)
    if cell.right == GAP:
        # A short rest of a bar, or a bar with a short gap behind it.
        return Run(shades.end if cell.eighths < 6 else _shade(cell.left, shades), cell.left, GAP)
    tone = cell.left if cell.eighths >= 4 else cell.right
    return Run(_shade(tone, shades), tone, GAP)


def _shade(tone: int, shades: Shades) -> str:
    if tone == GAP:
        return " "
    return shades.cursor if tone == CURSOR else shades.tones[tone]
