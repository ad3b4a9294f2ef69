"""The frame of a page: one file, no request to anywhere, and no script or style but our own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dld_tui.core.report.html.assets import SCRIPT, STYLE
from dld_tui.core.report.html.markup import text

_LEVELS = ("warning", "inner")


@dataclass(frozen=True)
class Section:
    """A part of a page with its heading."""

    anchor: str
    """A word of our own."""
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
        title: Foreign text.
        subtitle: Lines under the title; foreign text.
        top: HTML above the sections.
        sections: Those without a body are left out.
        style: Rules of our own for something in a section; nothing of it may be foreign.
    """
    shown = [section for section in sections if section.body]
    links = " ".join(f'<a href="#{one.anchor}">{text(one.title)}</a>' for one in shown)
    lines = "".join(f'<p class="soft">{text(line)}</p>' for line in subtitle if line)
    bodies = "".join(
        f'<section id="{one.anchor}"><h2>{text(one.title)}</h2>{one.body}</section>\n'
        for one in shown
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
    styles = " ".join(f"'{digest(one)}'" for one in (STYLE, style) if one)
    return (
        f"default-src 'none'; style-src {styles}; script-src '{digest(SCRIPT)}';"
        " base-uri 'none'; form-action 'none'"
    )


def digest(content: str) -> str:
    """Return the hash of a script or style, as a policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def tiles(found: Sequence[Tile]) -> str:
    """Return figures side by side."""
    boxes = "".join(
        f'<div class="tile"><b>{text(tile.value)}</b><span>{text(tile.title)}</span></div>'
        for tile in found
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


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and values, not sorted; empty text without rows."""
    made = "".join(
        f'<tr><th scope="row">{text(name)}</th><td>{text(value)}</td></tr>' for name, value in rows
    )
    return f'<div class="wide"><table>{made}</table></div>' if made else ""
