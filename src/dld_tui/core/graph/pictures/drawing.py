"""Drawing to bytes: one call for every format that a picture can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.errors import UsageError
from dld_tui.core.graph.pictures import style
from dld_tui.core.graph.pictures.content import Content
from dld_tui.core.graph.pictures.raster import fitting_scale, raster_of
from dld_tui.core.graph.pictures.scene import make_scene
from dld_tui.core.graph.pictures.svg import html_of, svg_of
from dld_tui.core.graph.pictures.text import ascii_of, canvas_text
from dld_tui.core.text import cell_width

KINDS = {
    ".svg": "svg",
    ".html": "html",
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".txt": "text",
}
"""The format by the end of a file's name."""
MOST_VIEWED = 32_767
"""Pixels of a side up to which browsers and cairo, and so most viewers, draw a picture."""


@dataclass(frozen=True)
class Picture:
    """The bytes of a file, and what is in it."""

    kind: str
    data: bytes
    width: int
    """In pixels; of text in cells."""
    height: int
    boxes: int = 0
    crossings: int | None = None
    """Pairs of lines that cross; None where no lines are drawn."""

    @property
    def is_oversized(self) -> bool:
        """Whether most viewers cannot show it."""
        return self.kind != "text" and max(self.width, self.height) > MOST_VIEWED


def kind_of(path: Path) -> str:
    """Return the format that a file's name asks for.

    Raises:
        UsageError: Its end is none of :data:`KINDS`.
    """
    found = KINDS.get(path.suffix.lower())
    if found is None:
        raise UsageError(
            f"a picture cannot be a {path.suffix} file" if path.suffix else "which format?",
            where=str(path),
            hint="End its name in .svg, .html, .png, .jpg or .txt",
        )
    return found


def picture_of(
    content: Content,
    kind: str,
    look: style.Look,
    *,
    scale: float | None = None,
    in_ascii: bool = False,
) -> Picture:
    """Draw boxes and lines.

    Args:
        content: What to draw.
        kind: ``svg``, ``html``, ``png``, ``jpeg`` or ``text``.
        look: Colours, background and grid; text has none.
        scale: How much larger than usual; None for what is sharp and not too large.
        in_ascii: Draw text with ASCII characters only.

    Raises:
        UsageError: It would be too large.
        UnavailableError: The library for PNG and JPEG is missing.
    """
    if kind == "text":
        lines, crossings = canvas_text(content)
        return text_picture(lines, in_ascii, len(content.graph), crossings)
    scene = make_scene(content, legend=look.scheme.is_coloured)
    if kind in ("svg", "html"):
        scale = scale or 1.0
        drawn = svg_of(scene, look, scale, numbered=kind == "html")
        data = (html_of(drawn, content.title, content.heats) if kind == "html" else drawn).encode()
    else:
        scale = scale or fitting_scale(scene)
        data = raster_of(scene, look, kind, scale)
    width, height = round(scene.width * scale), round(scene.height * scale)
    return Picture(kind, data, width, height, len(content.graph), scene.crossings)


def text_picture(
    lines: Sequence[str], in_ascii: bool, boxes: int, crossings: int | None = None
) -> Picture:
    """Return lines of text as a picture."""
    lines = ascii_of(lines) if in_ascii else lines
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    width = max(map(cell_width, lines), default=0)
    return Picture("text", data, width, len(lines), boxes, crossings)
