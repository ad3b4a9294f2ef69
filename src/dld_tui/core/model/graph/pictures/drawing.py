"""A picture in each format: text, SVG, PNG and JPEG; and one call for all of them."""

from __future__ import annotations

import io
import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.fmt import number
from dld_tui.core.model.graph.folding import Overview
from dld_tui.core.model.graph.graph import GLYPHS, Graph, Kind
from dld_tui.core.model.graph.layout import lay_out, text_of
from dld_tui.core.model.graph.pictures import style
from dld_tui.core.model.graph.pictures.content import (
    Content,
    TypeOf,
    fold_label,
    fold_notes,
    short_type,
)
from dld_tui.core.model.graph.pictures.scene import (
    SIZES,
    Card,
    Point,
    Scene,
    SceneLine,
    make_scene,
    text_pixels,
)
from dld_tui.core.model.graph.rails import rail_cells
from dld_tui.core.process.installation import install_command
from dld_tui.core.text import cell_width, clip, fit, visible

MOST_CELLS = 40_000_000
"""Of the largest drawing with boxes."""

_LABEL_CELLS, _NAME_CELLS, _STUB_CELLS = 24, 40, 24
_MOST_RAILS = 40
_FIRST_STAND_IN, _FILLER = 0xF0000, "\U0010fffd"
_TO_ASCII = str.maketrans({
    **dict.fromkeys("─╴╶", "-"), **dict.fromkeys("│╵╷", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰┿⊞", "+"), **dict.fromkeys("●◆◉", "*"),
    "▼": "v", "◂": "<", "▸": ">", "▾": "v", "ƒ": "f", "◇": "o", "⋯": "~", "…": "~", "·": ".",
    "×": "x", "→": ">",
})  # fmt: skip


def ascii_of(lines: Sequence[str]) -> list[str]:
    """Return lines in ASCII: line drawing as ``+-|``, and ``?`` for other characters."""
    return [line.translate(_TO_ASCII).encode("ascii", "replace").decode("ascii") for line in lines]


def canvas_text(content: Content) -> tuple[list[str], int]:
    """Return a drawing of boxes and lines, and how many pairs of lines cross.

    Raises:
        UsageError: It would be too large.
    """
    graph = content.graph
    cells = _Cells()
    labels = [""] * len(graph)

    def size(vertex: int, stubs: Sequence[int]) -> tuple[int, int]:
        text = clip(visible(graph.labels[vertex]), _LABEL_CELLS, keep="middle")
        if graph.kinds[vertex] != Kind.NODE:
            text = f"{GLYPHS[graph.kinds[vertex]]} {text}"
        notes = content.notes.get(vertex, ())
        text += f" · {notes[0]}" if notes else ""
        if stubs:
            names = ", ".join(visible(graph.nets[net].name) for net in stubs[:8])
            text += f" ◂ {clip(names, _STUB_CELLS, keep='middle')}"
        if content.cuts:
            above, below = content.cuts[vertex]
            text = f"{f'⋯{above} ' if above else ''}{text}{f' {below}⋯' if below else ''}"
        labels[vertex] = cells.encoded(text)
        return len(labels[vertex]) + 4, 3

    layout = lay_out(graph, size, moves=content.moves)
    if layout.width * layout.height > MOST_CELLS:
        raise UsageError(
            f"a text of {layout.width:,} x {layout.height:,} cells is too large",
            hint="Use --view rail or overview, --folded, or --node",
        )
    return [cells.decoded(line) for line in text_of(layout, labels)], layout.crossings


class _Cells:
    """Text in which each character is one cell: others have stand-ins while lines are put together.

    A wide character is followed by a filler; one without width goes with the character before it.
    """

    def __init__(self) -> None:
        self._stand_ins: dict[str, str] = {}
        self._meant: dict[int, str] = {ord(_FILLER): ""}

    def encoded(self, text: str) -> str:
        """Return text with as many characters as it has cells."""
        if text.isascii():
            return text
        clusters: list[str] = []
        for char in text:
            if clusters and (unicodedata.combining(char) or not cell_width(char)):
                clusters[-1] += char
            else:
                clusters.append(char)
        return "".join(map(self._stand_in, clusters))

    def _stand_in(self, cluster: str) -> str:
        if len(cluster) == 1 and cell_width(cluster) == 1 and ord(cluster) < _FIRST_STAND_IN:
            return cluster
        stand_in = self._stand_ins.get(cluster)
        if stand_in is None:
            stand_in = chr(_FIRST_STAND_IN + len(self._stand_ins))
            self._stand_ins[cluster] = stand_in
            self._meant[ord(stand_in)] = cluster
        return stand_in + _FILLER * (cell_width(cluster) - 1)

    def decoded(self, line: str) -> str:
        """Return the line with the clusters that the stand-ins replace."""
        return line if line.isascii() else line.translate(self._meant)


def rows_text(overview: Overview, types: TypeOf) -> list[str]:
    """Return the rows of a folded graph as text: rails, operator, name, type."""
    graph, rails = overview.seen()
    rows = overview.rows
    labels = [
        fold_label(row) if row.fold is not None else graph.labels[at] for at, row in enumerate(rows)
    ]
    plain = [label for label, row in zip(labels, rows, strict=True) if row.fold is None]
    room = min(max((cell_width(visible(label)) for label in plain), default=4), _LABEL_CELLS)
    columns = min(rails.width, _MOST_RAILS)
    lines = []
    for at, row in enumerate(rows):
        first = max(0, rails.columns[at] - _MOST_RAILS + 1)
        cells = rail_cells(rails, at, first, columns)
        glyph = ("▾" if row.is_open else "▸") if row.fold is not None else GLYPHS[graph.kinds[at]]
        drawing = "".join(glyph if cell == "o" else cell for cell in cells)
        if row.fold is not None:
            text = "  ".join([visible(labels[at]), *fold_notes(row.fold)])
        else:
            text = _row_text(graph, at, room, rails.named_inputs(graph, at), types)
        lines.append(f"{drawing}  {'  ' * row.depth}{text}".rstrip())
    return lines


def _row_text(graph: Graph, at: int, room: int, stubs: Sequence[int], types: TypeOf) -> str:
    name = visible(graph.names[at]) if graph.kinds[at] not in (Kind.INPUT, Kind.OUTPUT) else ""
    known = graph.outputs[at] or graph.inputs[at]
    kind = clip(short_type(types(graph.nets[known[0]].name)), _NAME_CELLS) if known else ""
    label = clip(visible(graph.labels[at]), _LABEL_CELLS, keep="middle")
    parts = [fit(label, max(room, cell_width(label))), clip(name, _NAME_CELLS, keep="end"), kind]
    if stubs:
        names = ", ".join(visible(graph.nets[net].name) for net in stubs[:8])
        parts.append("◂ " + clip(names, _STUB_CELLS, keep="middle"))
    return "  ".join(part for part in parts if part)


_STYLE = """
html,body{margin:0;height:100%;overflow:hidden;font-family:system-ui,sans-serif}
#bar{position:fixed;top:0;left:0;right:0;padding:6px 10px;background:#20242bee;color:#fff;z-index:1;
display:flex;gap:12px;align-items:center;font-size:14px}
#bar input{flex:0 1 18em;padding:3px 6px;border:0;border-radius:4px}
#bar b{font-weight:600}#all{width:100%;height:100%;cursor:grab;touch-action:none}
#all svg{transform-origin:0 0}.off{opacity:.15}
.hot rect,.hot .s{fill:var(--heat)!important}
"""
_SCRIPT = """
const svg=document.querySelector('#all svg'),all=document.getElementById('all');
let x=0,y=44,k=1,held=null;
const show=()=>svg.style.transform=`translate(${x}px,${y}px) scale(${k})`;
const fit=()=>{k=Math.min(1,all.clientWidth/svg.width.baseVal.value);show()};
all.onwheel=e=>{e.preventDefault();const f=Math.exp(-e.deltaY/500),n=Math.min(8,Math.max(.02,k*f));
x=e.clientX-(e.clientX-x)*n/k;y=e.clientY-(e.clientY-y)*n/k;k=n;show()};
all.onpointerdown=e=>held=[e.clientX-x,e.clientY-y];
window.onpointermove=e=>{if(held){x=e.clientX-held[0];y=e.clientY-held[1];show()}};
window.onpointerup=()=>held=null;
const boxes=[...svg.querySelectorAll('g[id]')];
const find=document.getElementById('find'),count=document.getElementById('count');
find.oninput=()=>{const t=find.value.toLowerCase();let n=0;
for(const b of boxes){const hit=!t||b.querySelector('title').textContent.toLowerCase().includes(t);
b.classList.toggle('off',!hit);n+=hit}count.textContent=t?n+' found':''};
const heat=document.getElementById('heat');
if(heat)heat.onchange=()=>{for(const b of boxes){const h=HEATS[b.id];
b.classList.toggle('hot',heat.checked&&h!==undefined);
if(h!==undefined)b.style.setProperty('--heat',`hsl(28 95% ${96-46*h}%)`)}};
if(heat)heat.onchange();fit();
"""


def html_of(svg: str, title: str, heats: Mapping[int, float]) -> str:
    """Return a page around a picture; nothing is loaded from elsewhere.

    Args:
        svg: The picture, its boxes numbered.
        title: Of the page. Untrusted text.
        heats: The share that a box has of the largest value, by its number.
    """
    switch = (
        '<label><input type="checkbox" id="heat" checked> time as colour</label>' if heats else ""
    )
    values = json.dumps({box_id(box): round(share, 4) for box, share in heats.items()})
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f"</title><style>{_STYLE}</style></head><body>"
        f'<div id="bar"><b>{escape(title)}</b><input id="find" placeholder="find a node">'
        f'<span id="count"></span>{switch}</div><div id="all">{svg}</div>'
        f"<script>const HEATS={values};{_SCRIPT}</script></body></html>\n"
    )


def box_id(vertex: int) -> str:
    """Return the id that the box of a vertex has."""
    return f"b{vertex}"


_FONTS = "'Inter','Segoe UI','Helvetica Neue',Arial,'DejaVu Sans',sans-serif"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold, however they are written."""
_WIDE = re.compile("[A-Z@%_]")


def svg_of(scene: Scene, look: style.Look, scale: float = 1.0, numbered: bool = False) -> str:
    """Return a picture as one SVG document; the same for the same scene.

    Args:
        scene: What to draw.
        look: Colours, background and grid.
        scale: How large it is shown; text stays sharp at any scale.
        numbered: Give each box an id, for a script.
    """
    return "\n".join(_lines(scene, look, scale, numbered)) + "\n"


def _lines(scene: Scene, look: style.Look, scale: float, numbered: bool) -> Iterator[str]:
    width, height = scene.width, scene.height
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width * scale)}" '
        f'height="{number(height * scale)}" viewBox="0 0 {width} {height}">'
    )
    if scene.heading:
        yield f"<title>{_text(scene.heading[0].text)}</title>"
    yield f"<style>{_css(scene, look)}</style>"
    if look.grid:
        step = style.GRID
        yield (
            f'<defs><pattern id="grid" width="{step}" height="{step}" '
            f'patternUnits="userSpaceOnUse"><path d="M{step} 0H0V{step}" fill="none" '
            f'stroke="{look.scheme.grid}"/></pattern></defs>'
        )
    if look.paper is not None:
        yield f'<rect width="{width}" height="{height}" fill="{look.paper}"/>'
    if look.grid:
        yield f'<rect width="{width}" height="{height}" fill="url(#grid)"/>'
    yield from map(_line, scene.heading)
    for key, line in scene.legend:
        swatch = f'<rect x="{line.x - 18}" y="{line.y - 10}" width="12" height="12" rx="3"/>'
        yield f'<g class="{key}">{swatch}</g>{_line(line)}'
    yield '<g class="w">'
    for lines in scene.tensor_lines:
        shape = "".join(map(_path, lines.paths))
        yield f'<path d="{shape}"><title>{_text(lines.title)}</title></path>'
    yield "</g>"
    if scene.arrows:
        yield f'<path class="a" d="{"".join(map(_arrow, scene.arrows))}"/>'
    yield from map(_line, scene.links)
    yield from (_card(card, numbered) for card in scene.cards)
    yield "</svg>"


def _css(scene: Scene, look: style.Look) -> str:
    scheme = look.scheme
    rules = [
        f"text{{font-family:{_FONTS};text-anchor:middle;fill:{scheme.ink}}}",
        f".w path{{fill:none;stroke-width:1.4;stroke:{scheme.line}}}",
        f".a{{fill:{scheme.line}}}",
        "rect,.s{stroke-width:1.3}",
        ".outer rect{stroke-dasharray:4 3}",
        ".centre rect{stroke-width:3}",
    ]
    for role, size in SIZES.items():
        fill = scheme.ink if role in ("name", "title") else scheme.quiet
        heavy = ";font-weight:600" if role in ("label", "title") else ""
        starts = ";text-anchor:start" if role in ("link", "title", "legend") else ""
        rules.append(f".{role}{{font-size:{number(size)}px{heavy}{starts};fill:{fill}}}")
    used = {card.colour for card in scene.cards} | {key for key, _ in scene.legend}
    for key in (key for key in style.LEGEND if key in used):
        edge, fill = scheme.edges[key], scheme.fills[key]
        rules.append(f".{key} rect,.{key} .s{{fill:{fill};stroke:{edge}}}")
        rules.append(f".{key} .label{{fill:{edge}}}")
    rules.append(f"g .f{{fill:{scheme.edges['io']};fill-opacity:.16;stroke:none}}")
    return "".join(rules)


def _card(card: Card, numbered: bool) -> str:
    x, y, width, height = card.x, card.y, card.width, card.height
    rounded = f'rx="{card.corner}"'
    more = " outer" * (card.kind == Kind.OUTER) + " centre" * card.stands_out
    number = f' id="{box_id(card.vertex)}"' if numbered else ""
    parts = [f'<g class="{card.colour}{more}"{number}>']
    parts.append(f"<title>{_text(card.tooltip)}</title>")
    for away in card.sheets:
        parts.append(
            f'<rect x="{x + away}" y="{y + away}" width="{width}" height="{height}" {rounded}/>'
        )
    parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" {rounded}/>')
    if card.kind == Kind.CALL:
        sides = f"M{x + 6} {y}v{height}M{x + width - 6} {y}v{height}"
        parts.append(f'<path class="s" d="{sides}"/>')
    elif card.kind == Kind.CONTROL_FLOW:
        parts.append(
            f'<rect x="{x + 3}" y="{y + 3}" width="{width - 6}" height="{height - 6}" rx="4"/>'
        )
    for line in card.lines:
        if line.role == "stub":
            shape = "".join(f"{'L' if at else 'M'}{a} {b}" for at, (a, b) in enumerate(flag(line)))
            parts.append(f'<path class="f" d="{shape}z"/>')
        parts.append(_line(line))
    return "".join(parts) + "</g>"


def flag(line: SceneLine) -> list[Point]:
    """Return the corners of the flag behind the name of a tensor that comes without a line."""
    half = min(round(text_pixels(line.text, line.role)), line.room) // 2 + 5
    left, right, top, bottom = line.x - half, line.x + half, line.y - 10, line.y + 4
    tip = (right + 6, (top + bottom) // 2)
    return [(left, top), (right, top), tip, (right, bottom), (left, bottom)]


def fits(line: SceneLine) -> bool:
    """Return whether text surely fits its room in any common font: capitals are wide."""
    if not line.room:
        return True
    size = SIZES[line.role]
    extra = len(_WIDE.findall(line.text)) * 0.28 + line.text.count("W") * 0.2
    heavy = 1.06 if line.role == "label" else 1.0
    return (text_pixels(line.text, line.role) + extra * size) * heavy <= line.room + 8


def _line(line: SceneLine) -> str:
    squeezed = "" if fits(line) else f' textLength="{line.room}" lengthAdjust="spacingAndGlyphs"'
    return (
        f'<text class="{line.role}" x="{line.x}" y="{line.y}"{squeezed}>{_text(line.text)}</text>'
    )


def _path(points: Sequence[Point]) -> str:
    x, y = points[0]
    path = f"M{x} {y}"
    for (corner_x, corner_y), (in_x, in_y), (out_x, out_y), radius in bends(points):
        x, y = corner_x - in_x * radius, corner_y - in_y * radius
        path += f"V{y}" if in_y else f"H{x}"
        path += f"q{in_x * radius} {in_y * radius} {(in_x + out_x) * radius}"
        path += f" {(in_y + out_y) * radius}"
    (before_x, _), (x, y) = points[-2:]
    return path + (f"V{y}" if x == before_x else f"H{x}")


def bends(points: Sequence[Point]) -> Iterator[tuple[Point, Point, Point, int]]:
    """Yield the corners of a line: where, the way in, the way out, and the radius.

    The radius is less where there is little room.
    """
    last = len(points) - 2
    for at in range(1, last + 1):
        (x0, y0), (x, y), (x1, y1) = points[at - 1 : at + 2]
        before, after = abs(x - x0) + abs(y - y0), abs(x1 - x) + abs(y1 - y)
        room = (before if at == 1 else before // 2, after if at == last else after // 2)
        yield (
            (x, y),
            ((x > x0) - (x < x0), (y > y0) - (y < y0)),
            ((x1 > x) - (x1 < x), (y1 > y) - (y1 < y)),
            min(*room, style.RADIUS),
        )


def _arrow(tip: Point) -> str:
    return f"M{tip[0]} {tip[1]}l-4-7h8z"


def _text(text: str) -> str:
    return escape(_NO_XML.sub("?", text))


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
"""Fonts to try in turn for texts that the built-in font lacks glyphs for."""
_BUILT_IN = frozenset(map(chr, range(32, 127))) | frozenset("…·›")


def fitting_scale(scene: Scene) -> float:
    """Return the default scale of a picture: sharp, unless it is large."""
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
            hint=f"Run: {install_command('pictures')}, or write SVG",
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
        for lines in scene.tensor_lines:
            for path in lines.paths:
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
        elif card.kind == Kind.CONTROL_FLOW:
            self._rounded((x + 3, y + 3, right - 3, bottom - 3), 4, fill, edge)
        for line in card.lines:
            if line.role == "stub":
                self._polygon(flag(line), style.mixed(scheme.edges["io"], self._base, 0.2))

    def _write(self, line: SceneLine, colour: str) -> None:
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
    for (x, y), (in_x, in_y), (out_x, out_y), radius in bends(points):
        for step in range(7):
            angle = step / 6 * math.pi / 2
            back, on = radius * (1 - math.sin(angle)), radius * (1 - math.cos(angle))
            yield x - in_x * back + out_x * on, y - in_y * back + out_y * on
    yield points[-1]


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


_MIME = {
    "svg": "image/svg+xml", "html": "text/html", "png": "image/png", "jpeg": "image/jpeg",
    "text": "text/plain",
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """The bytes of a file, and the number of boxes in it."""

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

    def _repr_mimebundle_(self, **_: object) -> dict[str, str | bytes]:
        """Return the picture for a notebook."""
        mime = _MIME[self.kind]
        return {mime: self.data if self.kind in ("png", "jpeg") else self.data.decode()}


def kind_of(path: Path) -> str:
    """Return the format for a file's name.

    Raises:
        UsageError: Its end is none of :data:`KINDS`.
    """
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise UsageError(
            f"a picture cannot be a {path.suffix} file" if path.suffix else "which format?",
            where=str(path),
            hint="End its name in .svg, .html, .png, .jpg or .txt",
        )
    return kind


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
        scale: Magnification; None for a sharp picture that is not too large.
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
