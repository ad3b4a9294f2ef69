"""The frame of an HTML page, and all that turns untrusted text and numbers into HTML.

A page is one file: it makes no request, and has no script or style but our own, which are small and
named by their hash in its policy.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.fmt import number
from dld_tui.core.statistics import percentile
from dld_tui.core.text import visible
from dld_tui.core.text.names import cut_names


def text(value: object) -> str:
    """Return text for a page, or for an attribute in double quotes: never markup."""
    return html.escape(visible(str(value)), quote=True)


def short(value: str, most: int) -> str:
    """Return text of at most `most` characters; names differ at their end, so the start goes."""
    shown = visible(value)
    return shown if len(shown) <= most else "…" + shown[-(most - 1) :]


def attributes(**values: object) -> str:
    """Return ``' name="value"'`` for each value that is not None; ``_`` in a name is ``-``."""
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(value)}"'
        for name, value in values.items()
        if value is not None
    )


STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --panel: #f5f6f8; --line: #d9dce1; --ink: #1c2024; --soft: #5f6772;
  --s0: #2a6fb5; --s1: #c8641b; --s2: #3a8a55; --s3: #8a5fb0; --warn: #9a5b00;
  --s4: #b03a5b; --s5: #1d8f9a; --s6: #8c7a1f; --s7: #6b4a2f;
  --h0: #cfe0f2; --h1: #9cc2e6; --h2: #5f9bd3; --h3: #2a6fb5; --h4: #123f70; --quiet: #9aa1ab;
  --on: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181c; --panel: #1d2126; --line: #343a42; --ink: #e6e8eb; --soft: #9aa3ae;
    --s0: #6aa9e9; --s1: #f0a15a; --s2: #74c08e; --s3: #bd9be0; --warn: #f0b35a;
    --s4: #f08aa8; --s5: #62d0da; --s6: #d9c766; --s7: #c9a27f;
    --h0: #22374d; --h1: #2d5379; --h2: #3b78b3; --h3: #6aa9e9; --h4: #b9d9fa; --quiet: #6b737e;
    --on: #15181c;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 24px; background: var(--paper);
  color: var(--ink); font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 32px 0 8px; }
p, ul { margin: 6px 0; }
a { color: var(--s0); }
nav a { margin-right: 14px; }
.soft { color: var(--soft); }
.warning { color: var(--warn); }
.inner { margin-left: 24px; list-style: circle; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; margin: 16px 0; }
.tile { background: var(--panel); border-radius: 6px; padding: 10px 16px; min-width: 120px; }
.tile b { display: block; font-size: 20px; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 12px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: 3px 10px 3px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; min-width: 3em; }
thead th { position: sticky; top: 0; background: var(--paper); white-space: nowrap; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.name { min-width: 16em; }
.b { white-space: nowrap; }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid var(--s0); }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
input { font: inherit; padding: 4px 8px; width: 320px; max-width: 100%; margin-bottom: 8px;
  color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: 4px; }
svg { display: block; width: 100%; height: auto; font: 11px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg .axis { stroke: var(--line); }
svg .tick, svg .soft { fill: var(--soft); }
svg .mark { stroke: var(--s1); stroke-dasharray: 4 3; }
svg .on { fill: var(--on); }
.s0 { fill: var(--s0); } .s1 { fill: var(--s1); } .s2 { fill: var(--s2); } .s3 { fill: var(--s3); }
.s4 { fill: var(--s4); } .s5 { fill: var(--s5); } .s6 { fill: var(--s6); } .s7 { fill: var(--s7); }
.h0 { fill: var(--h0); } .h1 { fill: var(--h1); } .h2 { fill: var(--h2); } .h3 { fill: var(--h3); }
.h4 { fill: var(--h4); } .quiet { fill: var(--quiet); }
.area { fill: var(--s0); fill-opacity: 0.25; stroke: var(--s0); }
@media print { nav, input { display: none; } thead th { position: static; } }
"""

SCRIPT = """
"use strict";
(() => {
  const key = (row, column) => {
    const cell = row.cells[column];
    return "v" in cell.dataset ? cell.dataset.v : cell.textContent;
  };
  const words = new Intl.Collator("en", { numeric: true });
  const compare = (numeric) => (a, b) =>
    numeric ? parseFloat(a.key) - parseFloat(b.key) : words.compare(a.key, b.key);
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const numeric = head.classList.contains("n");
        const now = head.getAttribute("aria-sort");
        const down = now === null ? numeric : now === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const all = [...body.rows].map((row) => ({ row, key: key(row, column) }));
        const known = all.filter((one) => one.key !== "" && one.key !== "–");
        const unknown = all.filter((one) => one.key === "" || one.key === "–");
        known.sort(compare(numeric));
        if (down) known.reverse();
        body.append(...[...known, ...unknown].map((one) => one.row));
      });
    });
  }
  for (const input of document.querySelectorAll("input[data-table]")) {
    const body = document.getElementById(input.dataset.table).tBodies[0];
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
      for (const row of body.rows) {
        const shown = row.textContent.toLowerCase();
        row.hidden = !wanted.every((word) => shown.includes(word));
      }
    });
  }
})();
"""


_LEVELS = ("warning", "inner")


@dataclass(frozen=True)
class Section:
    """A part of a page with its heading."""

    anchor: str
    """A fixed word."""
    title: str
    body: str
    """HTML."""


@dataclass(frozen=True)
class Tile:
    """One figure that people came for."""

    title: str
    value: str


def page(
    title: str, subtitle: Sequence[str], top: str, sections: Sequence[Section], style: str = ""
) -> str:
    """Return a page. The same arguments give the same bytes.

    Args:
        title: Untrusted text.
        subtitle: Lines under the title; untrusted text.
        top: HTML above the sections.
        sections: Those without a body are left out.
        style: Rules of our own for something in a section; nothing of it may be foreign.
    """
    shown = [section for section in sections if section.body]
    links = " ".join(f'<a href="#{section.anchor}">{text(section.title)}</a>' for section in shown)
    lines = "".join(f'<p class="soft">{text(line)}</p>' for line in subtitle if line)
    bodies = "".join(
        f'<section id="{section.anchor}"><h2>{text(section.title)}</h2>{section.body}</section>\n'
        for section in shown
    )
    more = f"<style>{style}</style>\n" if style else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n{more}</head>\n<body>\n"
        f"<header><h1>{text(title)}</h1>{lines}<nav>{links}</nav></header>\n"
        f"<main>\n{top}\n{bodies}</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def policy(style: str = "") -> str:
    """Return the content security policy: nothing is loaded, only what the page holds runs."""
    styles = " ".join(f"'{digest(sheet)}'" for sheet in (STYLE, style) if sheet)
    return (
        f"default-src 'none'; style-src {styles}; script-src '{digest(SCRIPT)}';"
        " base-uri 'none'; form-action 'none'"
    )


def digest(content: str) -> str:
    """Return the hash of a script or style, as a policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def tiles(figures: Sequence[Tile]) -> str:
    """Return figures side by side."""
    boxes = "".join(
        f'<div class="tile"><b>{text(tile.value)}</b><span>{text(tile.title)}</span></div>'
        for tile in figures
    )
    return f'<div class="tiles">{boxes}</div>'


def paragraphs(lines: Sequence[tuple[str, str]]) -> str:
    """Return (text, level) lines as a list.

    Those of level ``warning`` stand out, those of level ``inner`` belong to the one before.
    """
    items = "".join(
        f'<li class="{level}">{text(line)}</li>' if level in _LEVELS else f"<li>{text(line)}</li>"
        for line, level in lines
    )
    return f"<ul>{items}</ul>" if items else ""


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and values, not sorted; empty text without rows."""
    body = "".join(
        f'<tr><th scope="row">{text(name)}</th><td>{text(value)}</td></tr>' for name, value in rows
    )
    return f'<div class="wide"><table>{body}</table></div>' if body else ""


WIDTH = 1180
"""Of the drawing; the page scales it."""
_SERIES = 8
"""Classes for series: s0 to s7. More series have colours between them."""
_GOLDEN_ANGLE = 137.508
_LEGEND_ROW, _LETTER = 18, 7


@dataclass(frozen=True)
class Bar:
    """A row of bars, one a series."""

    label: str
    """Untrusted text."""
    values: tuple[float | None, ...]
    shown: tuple[str, ...]
    """The values as people read them."""


def bars(rows: Sequence[Bar], series: Sequence[str] = ()) -> str:
    """Return horizontal bars on one scale from 0, with a legend for several series."""
    rows = [row for row in rows if any(value is not None for value in row.values)]
    if not rows:
        return ""
    most = max((value or 0.0 for row in rows for value in row.values), default=0.0) or 1.0
    left, right, thick = 330, 130, 15
    room = WIDTH - left - right
    parts, top = [], 2
    if len(series) > 1:
        names, top = legend(series, left)
        parts.append(names)
    for row, label in zip(rows, cut_names([visible(row.label) for row in rows], 50), strict=True):
        middle = top + thick * len(row.values) / 2 + 4
        parts.append(
            f'<text x="{left - 8}" y="{number(middle)}" text-anchor="end">'
            f"<title>{text(row.label)}</title>{text(label)}</text>"
        )
        for place, (value, shown) in enumerate(zip(row.values, row.shown, strict=True)):
            length = room * (value or 0.0) / most
            parts.append(
                f'<rect {fill(place)} x="{left}" y="{number(top)}"'
                f' width="{number(max(length, 0.5 if value else 0.0))}" height="{thick - 3}">'
                f"<title>{text(row.label)}: {text(shown)}</title></rect>"
                f'<text class="soft" x="{number(left + length + 6)}" y="{number(top + 10)}">'
                f"{text(shown)}</text>"
            )
            top += thick
        top += 4
    return svg(top, parts, "bars")


def time_bars(rows: Iterable[tuple[str, float | None, float | None]]) -> str:
    """Return a bar for each (untrusted name, milliseconds, per cent)."""
    return bars([
        Bar(name, (ms,), (f"{fmt.milliseconds(ms)} ms, {fmt.percent(percent)} %",))
        for name, ms, percent in rows
    ])  # fmt: skip


def histogram(values: Sequence[float], marks: Sequence[tuple[str, float]], unit: str = "ms") -> str:
    """Return the distribution of measured values, with the figures of them that are told."""
    ordered = sorted(value for value in values if math.isfinite(value))
    if len(ordered) < 2:
        return ""
    low, high = ordered[0], ordered[-1]
    end = percentile(ordered, 99.5) if len(ordered) >= 200 else high
    if high <= low + 3 * (end - low):
        end = high
    if end <= low:
        low, end = low - (abs(low) or 1.0) / 2, low + (abs(low) or 1.0) / 2
    counts, step = _binned(ordered, low, end)
    beyond = len(ordered) - bisect_right(ordered, end)
    axis = _Scale(low, end, 50, WIDTH - 30)
    height, base = 220, 180
    parts = [axis_marks(axis, base, unit)]
    most = max(counts)
    for place, count in enumerate(counts):
        begin, until = low + place * step, low + (place + 1) * step
        tall = 150 * count / most
        parts.append(
            f'<rect class="s0" x="{number(axis.at(begin))}" y="{number(base - tall)}"'
            f' width="{number(max(0.5, axis.at(until) - axis.at(begin) - 1))}"'
            f' height="{number(tall)}"><title>{begin:.4g} to {until:.4g} {text(unit)}:'
            f" {count:,}</title></rect>"
        )
    parts.append(f'<text class="tick" x="44" y="38" text-anchor="end">{most:,}</text>')
    for y, (title, value) in zip(range(12, base, 14), marks, strict=False):
        x = number(axis.at(value))
        anchor = "end" if axis.at(value) > WIDTH / 2 else "start"
        parts.append(
            f'<line class="mark" x1="{x}" x2="{x}" y1="{y}" y2="{base}"/>'
            f'<text x="{x}" y="{y}" dx="{-4 if anchor == "end" else 4}" text-anchor="{anchor}">'
            f"{title} {value:.4g} {text(unit)}</text>"
        )
    note = f"{beyond:,} more above {end:.4g} {unit}, up to {high:.4g}" if beyond else ""
    if note:
        parts.append(f'<text class="soft" x="50" y="{height - 4}">{text(note)}</text>')
    return svg(height, parts, "distribution")


def svg(height: float, parts: Sequence[str], label: str) -> str:
    """Return a drawing of the page's width."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {number(height)}" role="img" aria-label="{text(label)}">'
        + "\n".join(parts)
        + "</svg>"
    )


def axis_marks(axis: _Scale, y: float, unit: str) -> str:
    """Return a horizontal axis with ticks below it."""
    parts = [f'<line class="axis" x1="{axis.left}" x2="{axis.right}" y1="{y}" y2="{y}"/>']
    for value in ticks(axis.low, axis.high):
        x = number(axis.at(value))
        parts.append(
            f'<line class="axis" x1="{x}" x2="{x}" y1="{y}" y2="{y + 4}"/>'
            f'<text class="tick" x="{x}" y="{y + 16}" text-anchor="middle">{value:.6g}</text>'
        )
    parts.append(
        f'<text class="tick" x="{axis.right}" y="{y + 30}" text-anchor="end">{text(unit)}</text>'
    )
    return "".join(parts)


def ticks(low: float, high: float, most: int = 10) -> list[float]:
    """Return round values within a range: steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if not (span > 0 and math.isfinite(span)):
        return []
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * n for n in (1, 2, 5, 10, 20) if span / (power * n) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def scale(low: float, high: float, left: float, right: float) -> _Scale:
    """Return a scale from values to places in the drawing."""
    return _Scale(low, high if high > low else low + 1.0, left, right)


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    left: float
    right: float

    def at(self, value: float) -> float:
        """Return the place of a value, within the drawing."""
        share = (value - self.low) / (self.high - self.low)
        return self.left + (self.right - self.left) * min(1.0, max(0.0, share))


def _binned(ordered: Sequence[float], low: float, end: float) -> tuple[list[int], float]:
    """Count values in bins of equal width: Freedman and Diaconis' rule, within bounds."""
    spread = percentile(ordered, 75) - percentile(ordered, 25)
    width = 2 * spread / len(ordered) ** (1 / 3)
    wanted = math.ceil((end - low) / width) if width > 0 else 1
    bins = max(10, min(80, wanted))
    step = (end - low) / bins
    counts = [0] * bins
    for value in ordered:
        if value <= end:
            counts[min(bins - 1, int((value - low) / step))] += 1
    return counts, step


def legend(series: Sequence[str], left: float) -> tuple[str, int]:
    """Return the legend, broken into rows where it is long, and where the drawing below begins."""
    parts: list[str] = []
    x, y = left, 4
    names = cut_names([*map(visible, series)], int((WIDTH - left - 20) / _LETTER))
    for place, (title, shown) in enumerate(zip(series, names, strict=True)):
        width = 30 + _LETTER * len(shown)
        if x > left and x + width > WIDTH:
            x, y = left, y + _LEGEND_ROW
        parts += [
            f'<rect {fill(place)} x="{number(x)}" y="{y}" width="10" height="10"/>',
            f'<text x="{number(x + 14)}" y="{y + 9}"><title>{text(title)}</title>',
            f"{text(shown)}</text>",
        ]
        x += width
    return "".join(parts), y + 20


def fill(place: int) -> str:
    """Return the attribute that gives a series its colour; no two have the same."""
    if place < _SERIES:
        return f'class="s{place}"'
    # An attribute: the page's policy allows no style besides its own.
    return f'fill="hsl({place * _GOLDEN_ANGLE % 360:.1f}, 60%, {45 + place % 3 * 10}%)"'
