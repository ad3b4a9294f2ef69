"""A report as a card: a few lines for a chat, or a picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dld_tui.core import fmt
from dld_tui.core.errors import UnavailableError
from dld_tui.core.process.installation import install_command
from dld_tui.core.reading.first_lines import first_lines, title
from dld_tui.core.reading.story import types_of
from dld_tui.core.report.generation import generation_of
from dld_tui.core.text import clip, visible

if TYPE_CHECKING:
    from dld_tui.core.report.report import Report

_TYPES = 4
_ACCENTS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7")
"""Colours that are distinct for people with red-green colour blindness (Okabe and Ito)."""
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
    width = max((len(visible(kind.key)) for kind in types), default=0)
    return [
        *_answer(report),
        *(
            f"{visible(kind.key):<{width}}  {kind.percent:5.1f} %  {'█' * round(kind.percent / 5)}"
            for kind in types
        ),
    ]


def _answer(report: Report) -> list[str]:
    """Return what it took, on what, and what speaks against these figures."""
    return [line.text for line in first_lines(report) if line.label in ("", "!") and line.text]


def _content(report: Report) -> tuple[list[_Line], list[_Bar]]:
    name, latency = title(report), report.latency
    took, *others = _answer(report)
    decoders = generation_of(report)
    ms = decoders[0].first_token_ms if decoders else latency.median if latency else None
    figure = f"{fmt.three_digits(ms)} ms"
    texts = [took.removeprefix(name).strip().removeprefix(figure).strip(), *others]
    lines = [
        _Line(32, 54, 24, "#ffffff", clip(name, 44), is_bold=True),
        _Line(32, 124, 56, _ACCENTS[0], figure, is_bold=True),
    ]
    bars = []
    for row, text in enumerate(texts[:3]):
        lines.append(_Line(32, 160 + 22 * row, 15, "#d0d0d0", clip(text, 72)))
    for row, group in enumerate(types_of(report)[:_TYPES]):
        y = 236 + 24 * row
        width = max(round(3.2 * group.percent), 2)
        lines.append(_Line(32, y + 13, 14, "#d0d0d0", clip(visible(group.key), 18)))
        bars.append(_Bar(190, y, width, 16, _ACCENTS[row]))
        lines.append(_Line(200 + width, y + 13, 14, "#ffffff", f"{fmt.percent(group.percent)} %"))
    return lines, bars


def card_svg(report: Report) -> str:
    """Return a report as a picture of 640 by 360 pixels."""
    lines, bars = _content(report)
    parts = [
        f'<rect x="{bar.x}" y="{bar.y}" width="{bar.width}" height="{bar.height}" rx="3"'
        f' fill="{bar.colour}"/>'
        for bar in bars
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
            hint=f"Run: {install_command('pictures')}, or write SVG",
        ) from None
    from dld_tui.core.model.graph.pictures.drawing import font_for

    lines, bars = _content(report)
    image = Image.new("RGBA", (_WIDTH * _FINE, _HEIGHT * _FINE), "#00000000")
    draw = ImageDraw.Draw(image)
    edges = (0, 0, _WIDTH * _FINE - 1, _HEIGHT * _FINE - 1)
    draw.rounded_rectangle(edges, _ROUND * _FINE, _PAPER)
    for bar in bars:
        corners = (bar.x, bar.y, bar.x + bar.width, bar.y + bar.height)
        draw.rounded_rectangle([side * _FINE for side in corners], 3 * _FINE, bar.colour)
    for line in lines:
        font = font_for(float(line.size * _FINE), line.text)
        bold = max(1, line.size // 24) if line.is_bold else 0
        place = (line.x * _FINE, line.y * _FINE)
        draw.text(place, line.text, line.colour, font, anchor="ls", stroke_width=bold)
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def write_card(report: Report, path: Path, overwrite: bool) -> Sequence[str]:
    """Write a card: a picture if the name ends in .svg or .png, else text.

    Returns:
        Notes for the user.

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
