"""A scene as PNG or JPEG. Needs Pillow, which the extra `pictures` installs."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.graph.graph import Kind
from dld_tui.core.graph.pictures import style
from dld_tui.core.graph.pictures.scene import SIZES, Card, Line, Point, Scene
from dld_tui.core.graph.pictures.svg import corner, flag

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont

    Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

MOST_SIDE, MOST_PIXELS = 32_000, 64_000_000
"""Of the largest picture: 192 MB while it is made."""
_SCALES = (2.0, 1.5)
_FINE = 3
"""Shapes are drawn so much larger, and made smaller, for smooth edges."""
_BAND_PIXELS = 16_000_000
"""Pixels that are drawn larger at a time."""
_WIDE_FONTS = (
    "NotoSansCJK-Regular.ttc", "NotoSans-Regular.ttf", "DejaVuSans.ttf", "Arial Unicode.ttf",
    "msyh.ttc", "LiberationSans-Regular.ttf",
)  # fmt: skip
"""Tried in turn for what the built-in font cannot write."""
_BUILT_IN = frozenset(map(chr, range(32, 127))) | frozenset("…·›")


def fitting_scale(scene: Scene) -> float:
    """Return the scale of a picture of which no one is asked for: sharp, unless it is large."""
    for scale in _SCALES:
        width, height = scene.width * scale, scene.height * scale
        if max(width, height) <= MOST_SIDE / 2 and width * height <= MOST_PIXELS / 2:
            return scale
    return 1.0


def raster_of(scene: Scene, look: style.Look, kind: str, scale: float = 1.0) -> bytes:
    """Return a picture as the bytes of a file.

    Args:
        scene: What to draw.
        look: Colours, background and grid. JPEG always has a background.
        kind: ``png`` or ``jpeg``.
        scale: Pixels of the picture for each of the scene.

    Raises:
        UnavailableError: Pillow is not installed.
        UsageError: The picture would be too large.
    """
    width, height = (max(1, math.ceil(side * scale)) for side in (scene.width, scene.height))
    if max(width, height) > MOST_SIDE or width * height > MOST_PIXELS:
        raise UsageError(
            f"a picture of {width:,} x {height:,} pixels is too large",
            hint="Use --scale, --folded or --node to make it smaller, or write SVG",
        )
    try:
        from PIL import Image
    except ImportError:
        raise UnavailableError(
            "PNG and JPEG need Pillow, which is not installed",
            hint="Run: pip install 'dld-tui[pictures]', or write SVG",
        ) from None
    paper = look.paper
    if paper is None and kind == "jpeg":
        paper = look.scheme.background
    picture = Image.new("RGB" if paper else "RGBA", (width, height), paper or "#00000000")
    rows = max(1, _BAND_PIXELS // (width * _FINE**2))
    for top in range(0, height, rows):
        band = _Band(scene, look, scale, (width, min(rows, height - top)), top, paper)
        picture.paste(band.drawn(), (0, top))
    data = io.BytesIO()
    if kind == "jpeg":
        picture.save(data, "JPEG", quality=92, subsampling=0)
    else:
        picture.save(data, "PNG", compress_level=6)
    return data.getvalue()


class _Band:
    """Some rows of the picture."""

    def __init__(
        self,
        scene: Scene,
        look: style.Look,
        scale: float,
        size: tuple[int, int],
        top: int,
        paper: str | None,
    ) -> None:
        from PIL import Image, ImageDraw

        self.scene, self.look, self.scale = scene, look, scale
        self.size, self.top = size, top
        self._first, self._last = top / scale, (top + size[1]) / scale
        """The rows of the scene that it shows."""
        # Transparent paper has the colour of the scheme, or edges of lines would be grey.
        clear = look.scheme.background + "00"
        mode, base = ("RGB", paper) if paper else ("RGBA", clear)
        self._image: Image.Image = Image.new(mode, (size[0] * _FINE, size[1] * _FINE), base)
        self._draw: ImageDraw.ImageDraw = ImageDraw.Draw(self._image)
        self._base = paper or look.scheme.background

    def drawn(self) -> Image.Image:
        """Return the rows: shapes, and texts on them."""
        from PIL import Image

        scheme, scene = self.look.scheme, self.scene
        if self.look.grid:
            self._grid()
        for key, line in scene.legend:
            box = (line.x - 18, line.y - 10, line.x - 6, line.y + 2)
            self._rounded(box, 3, scheme.fills[key], scheme.edges[key])
        for strand in scene.strands:
            for path in strand.paths:
                if self._sees(path[0][1], path[-1][1]):
                    self._stroke(list(_flattened(path)), scheme.line, 1.4)
        for x, y in scene.arrows:
            if self._sees(y - 8, y):
                self._polygon([(x, y), (x - 4, y - 7), (x + 4, y - 7)], scheme.line)
        cards = [card for card in scene.cards if self._sees(card.y, card.y + card.height + 7)]
        for card in cards:
            self._card(card)
        for line in (*scene.heading, *(line for _, line in scene.legend), *scene.links):
            self._write(line, self._ink(line.role))
        for card in cards:
            for line in card.lines:
                is_label = line.role == "label"
                self._write(line, scheme.edges[card.colour] if is_label else self._ink(line.role))
        return self._image.resize(self.size, Image.Resampling.BOX)

    def _ink(self, role: str) -> str:
        scheme = self.look.scheme
        return scheme.ink if role in ("name", "title") else scheme.quiet

    def _sees(self, first: float, last: float) -> bool:
        return last >= self._first - 20 and first <= self._last + 20

    # --- shapes ---------------------------------------------------------------------------------

    def _at(self, x: float, y: float) -> tuple[int, int]:
        """Return the nearest pixel: bands that round differently would not fit together."""
        factor = self.scale * _FINE
        return math.floor(x * factor + 0.5), math.floor(y * factor + 0.5) - self.top * _FINE

    def _width(self, pixels: float) -> int:
        return max(1, round(pixels * self.scale * _FINE))

    def _stroke(self, points: Sequence[tuple[float, float]], colour: str, pixels: float) -> None:
        places = [self._at(*point) for point in points]
        self._draw.line(places, fill=colour, width=self._width(pixels), joint="curve")

    def _polygon(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        self._draw.polygon([self._at(*point) for point in points], fill=colour)

    def _rounded(
        self,
        box: tuple[float, float, float, float],
        radius: float,
        fill: str,
        edge: str,
        border: float = 1.3,
    ) -> None:
        places = (*self._at(box[0] - 0.65, box[1] - 0.65), *self._at(box[2] + 0.65, box[3] + 0.65))
        self._draw.rounded_rectangle(
            places, radius * self.scale * _FINE, fill=fill, outline=edge, width=self._width(border)
        )

    def _grid(self) -> None:
        colour, step = self.look.scheme.grid, style.GRID
        for x in range(0, self.scene.width, step):
            self._stroke([(x, self._first), (x, self._last)], colour, 1)
        first = math.floor(self._first / step) * step
        for y in range(first, math.ceil(self._last) + step, step):
            self._stroke([(0, y), (self.scene.width, y)], colour, 1)

    def _card(self, card: Card) -> None:
        scheme = self.look.scheme
        fill, edge = scheme.fills[card.colour], scheme.edges[card.colour]
        x, y, right, bottom = card.x, card.y, card.x + card.width, card.y + card.height
        for away in (*card.sheets, 0):
            box = (x + away, y + away, right + away, bottom + away)
            self._rounded(box, card.corner, fill, edge, 3 if card.stands_out else 1.3)
        if card.kind == Kind.CALL:
            for side in (x + 6, right - 6):
                self._stroke([(side, y), (side, bottom)], edge, 1.3)
        elif card.kind == Kind.HOLDER:
            self._rounded((x + 3, y + 3, right - 3, bottom - 3), 4, fill, edge)
        for line in card.lines:
            if line.role == "stub":
                self._polygon(flag(line), style.mixed(scheme.edges["io"], self._base, 0.2))

    # --- text -----------------------------------------------------------------------------------

    def _write(self, line: Line, colour: str) -> None:
        if not self._sees(line.y - 20, line.y + 6):
            return
        size = SIZES[line.role] * self.scale * _FINE
        if size < _FINE:
            return  # nobody could read it
        font = font_for(size, line.text)
        long, room = font.getlength(line.text), line.room * self.scale * _FINE
        if room and long > room:
            size *= room / long
            font = font_for(max(1.0, size), line.text)
        bold = round(0.03 * size) if line.role in ("label", "title") else 0
        self._draw.text(
            self._at(line.x, line.y), line.text, colour, font,
            anchor="ls" if line.starts else "ms", stroke_width=bold,
        )  # fmt: skip


def font_for(size: float, text: str) -> ImageFont.FreeTypeFont:
    """Return a font of so many pixels that can write a text; Pillow must be there."""
    return _font(size, _BUILT_IN.issuperset(text))


@lru_cache(maxsize=64)
def _font(size: float, plain: bool) -> ImageFont.FreeTypeFont:
    """Return the built-in font, which is the same everywhere, or one that can write more."""
    from PIL import ImageFont

    for name in () if plain else _WIDE_FONTS:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)  # as it is for any size
    return font


def _flattened(points: Sequence[Point]) -> Iterator[tuple[float, float]]:
    """Yield a line with its corners as short straight pieces."""
    yield points[0]
    radius = corner(points) if len(points) > 2 else 0
    if len(points) > 2:
        x, last_x, across = points[0][0], points[-1][0], points[1][1]
        side = radius if last_x > x else -radius
        for step in range(7):
            angle = step / 6 * math.pi / 2
            yield (
                x + side * (1 - math.cos(angle)),
                across - radius + radius * math.sin(angle),
            )
        for step in range(7):
            angle = step / 6 * math.pi / 2
            yield (
                last_x - side * (1 - math.sin(angle)),
                across + radius * (1 - math.cos(angle)),
            )
    yield points[-1]
