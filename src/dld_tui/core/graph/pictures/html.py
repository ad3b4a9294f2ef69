"""A picture as one HTML page to send: it moves, zooms, is searched, and shows times as colours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape

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
