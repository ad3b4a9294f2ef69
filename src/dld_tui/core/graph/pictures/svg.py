"""A scene as SVG: text that can be searched, and nothing that has to be loaded from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from dld_tui.core.graph.graph import Kind
from dld_tui.core.graph.pictures import style
from dld_tui.core.graph.pictures.scene import SIZES, Card, Line, Point, Scene, text_pixels

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
        title: Of the page. Foreign text.
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
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_number(width * scale)}" '
        f'height="{_number(height * scale)}" viewBox="0 0 {width} {height}">'
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
    for strand in scene.strands:
        shape = "".join(map(_path, strand.paths))
        yield f'<path d="{shape}"><title>{_text(strand.title)}</title></path>'
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
        rules.append(f".{role}{{font-size:{_number(size)}px{heavy}{starts};fill:{fill}}}")
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
    elif card.kind == Kind.HOLDER:
        parts.append(
            f'<rect x="{x + 3}" y="{y + 3}" width="{width - 6}" height="{height - 6}" rx="4"/>'
        )
    for line in card.lines:
        if line.role == "stub":
            shape = "".join(f"{'L' if at else 'M'}{a} {b}" for at, (a, b) in enumerate(flag(line)))
            parts.append(f'<path class="f" d="{shape}z"/>')
        parts.append(_line(line))
    return "".join(parts) + "</g>"


def flag(line: Line) -> list[Point]:
    """Return the corners of the flag behind the name of a tensor that comes without a line."""
    half = min(round(text_pixels(line.text, line.role)), line.room) // 2 + 5
    left, right, top, bottom = line.x - half, line.x + half, line.y - 10, line.y + 4
    tip = (right + 6, (top + bottom) // 2)
    return [(left, top), (right, top), tip, (right, bottom), (left, bottom)]


def fits(line: Line) -> bool:
    """Return whether text surely fits its room in any common font: capitals are wide."""
    if not line.room:
        return True
    size = SIZES[line.role]
    extra = len(_WIDE.findall(line.text)) * 0.28 + line.text.count("W") * 0.2
    heavy = 1.06 if line.role == "label" else 1.0
    return (text_pixels(line.text, line.role) + extra * size) * heavy <= line.room + 8


def _line(line: Line) -> str:
    squeezed = "" if fits(line) else f' textLength="{line.room}" lengthAdjust="spacingAndGlyphs"'
    return (
        f'<text class="{line.role}" x="{line.x}" y="{line.y}"{squeezed}>{_text(line.text)}</text>'
    )


def _path(points: Sequence[Point]) -> str:
    (x, y), (last_x, last_y) = points[0], points[-1]
    if len(points) == 2:
        return f"M{x} {y}V{last_y}"
    across = points[1][1]
    radius = corner(points)
    side = radius if last_x > x else -radius
    return (
        f"M{x} {y}V{across - radius}q0 {radius} {side} {radius}"
        f"H{last_x - side}q{side} 0 {side} {radius}V{last_y}"
    )


def corner(points: Sequence[Point]) -> int:
    """Return the radius of the corners of a line: less where there is little room."""
    (x, y), (last_x, last_y) = points[0], points[-1]
    across = points[1][1]
    room = min(abs(last_x - x) // 2, across - y, last_y - across, style.RADIUS)
    return max(0, room)


def _arrow(tip: Point) -> str:
    return f"M{tip[0]} {tip[1]}l-4-7h8z"


def _text(text: str) -> str:
    return escape(_NO_XML.sub("?", text))


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
