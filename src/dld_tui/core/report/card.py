"""A report as a card to share: a few lines for a chat, a picture (SVG or PNG) for a post."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dld_tui.core import fmt
from dld_tui.core.errors import UnavailableError
from dld_tui.core.report.story import opening, types_of
from dld_tui.core.text import clip, visible

if TYPE_CHECKING:
    from dld_tui.core.report.model import Report

_TYPES = 4
_ACCENTS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7")
"""Colours that people who confuse red and green tell apart (Okabe and Ito)."""
_PAPER, _WIDTH, _HEIGHT, _ROUND = "#15181d", 640, 360, 16
_FINE = 2
"""Pixels of a PNG for each of the card."""


class _Line(NamedTuple):
    x: int
    y: int
    """Of its base line."""
    size: int
    colour: str
    text: str
    is_bold: bool = False


class _Bar(NamedTuple):
    x: int
    y: int
    width: int
    height: int
    colour: str


def card_lines(report: Report) -> list[str]:
    """Return a report in a few lines for a chat. Fit for a terminal."""
    types = types_of(report)[:_TYPES]
    name = visible(report.network) or report.path.stem
    width = max((len(visible(one.key)) for one in types), default=0)
    lines = [name, opening(report)]
    lines += [
        f"{visible(one.key):<{width}}  {one.percent:5.1f} %  {'█' * round(one.percent / 5)}"
        for one in types
    ]
    return [*lines, *filter(None, [_where(report)])]


def _where(report: Report) -> str:
    return " · ".join(filter(None, map(visible, (report.backend, report.device))))


def _content(report: Report) -> tuple[list[_Line], list[_Bar]]:
    name, said, *_ = card_lines(report)
    latency = report.latency
    figure = fmt.milliseconds(latency.median) if latency else fmt.UNKNOWN
    lines = [
        _Line(32, 54, 24, "#ffffff", clip(name, 44), is_bold=True),
        _Line(32, 124, 56, _ACCENTS[0], f"{figure} ms", is_bold=True),
    ]
    bars = []
    for row, text in enumerate(_sentences(said)[:3]):
        lines.append(_Line(32, 160 + 22 * row, 15, "#d0d0d0", clip(text, 76)))
    for row, one in enumerate(types_of(report)[:_TYPES]):
        y = 236 + 24 * row
        width = max(round(3.2 * one.percent), 2)
        lines.append(_Line(32, y + 13, 14, "#d0d0d0", clip(visible(one.key), 18)))
        bars.append(_Bar(190, y, width, 16, _ACCENTS[row]))
        lines.append(_Line(200 + width, y + 13, 14, "#ffffff", f"{one.percent:.1f} %"))
    lines.append(_Line(32, 346, 12, "#909090", clip(_where(report), 90)))
    return lines, bars


def _sentences(text: str) -> list[str]:
    return [part if part.endswith(".") else f"{part}." for part in text.split(". ") if part]


def card_svg(report: Report) -> str:
    """Return a report as a picture of 640 by 360 pixels."""
    lines, bars = _content(report)
    parts = [
        f'<rect x="{one.x}" y="{one.y}" width="{one.width}" height="{one.height}" rx="3"'
        f' fill="{one.colour}"/>'
        for one in bars
    ]
    for line in lines:
        weight = "bold" if line.is_bold else "normal"
        about = f'x="{line.x}" y="{line.y}" font-size="{line.size}" font-weight="{weight}"'
        parts.append(f'<text {about} fill="{line.colour}">{escape(line.text)}</text>')
    size = f'width="{_WIDTH}" height="{_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        f' font-family="sans-serif">\n<rect {size} rx="{_ROUND}" fill="{_PAPER}"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def card_png(report: Report) -> bytes:
    """Return the same picture as the bytes of a PNG file, twice as large.

    Raises:
        UnavailableError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise UnavailableError(
            "PNG needs Pillow, which is not installed",
            hint="Run: pip install 'dld-tui[pictures]', or write SVG",
        ) from None
    from dld_tui.core.graph.pictures.raster import font_for

    lines, bars = _content(report)
    image = Image.new("RGBA", (_WIDTH * _FINE, _HEIGHT * _FINE), "#00000000")
    draw = ImageDraw.Draw(image)
    edges = (0, 0, _WIDTH * _FINE - 1, _HEIGHT * _FINE - 1)
    draw.rounded_rectangle(edges, _ROUND * _FINE, _PAPER)
    for one in bars:
        corners = (one.x, one.y, one.x + one.width, one.y + one.height)
        draw.rounded_rectangle([side * _FINE for side in corners], 3 * _FINE, one.colour)
    for line in lines:
        font = font_for(float(line.size * _FINE), line.text)
        bold = max(1, line.size // 24) if line.is_bold else 0
        place = (line.x * _FINE, line.y * _FINE)
        draw.text(place, line.text, line.colour, font, anchor="ls", stroke_width=bold)
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def write_card(report: Report, path: Path, overwrite: bool) -> Sequence[str]:
    """Write a card, a picture where the name ends in .svg or .png, else text.

    Returns:
        What is to be said of it.

    Raises:
        SaveError: It cannot be written.
        UnavailableError: Pillow, which PNG needs, is not installed.
    """
    from dld_tui.core.files.writer import write_bytes, write_text

    kind = path.suffix.lower()
    if kind == ".png":
        return write_bytes(path, card_png(report), overwrite=overwrite)
    text = card_svg(report) if kind == ".svg" else "\n".join(card_lines(report)) + "\n"
    return write_text(path, text, overwrite=overwrite)
