"""The glyphs drawn by widgets: Unicode, or ASCII for terminals and fonts without them."""

from __future__ import annotations

from dld_tui.core.dataclass import dataclass


@dataclass(frozen=True)
class Glyphs:
    """One glyph set. Every glyph is one cell wide unless said."""

    name: str
    cursor: str
    mark: str
    cursor_mark: str
    folded: str
    unfolded: str
    up: str
    down: str
    left: str
    right: str
    error: str
    warning: str
    info: str
    good: str
    dirty: str
    separator: str
    ellipsis: str
    dot: str
    crumb: str
    more_left: str
    more_right: str
    """At the edge of a table that has more columns."""
    on: str
    off: str
    chosen: str
    unchosen: str
    missing: str
    stale: str
    """Before what may be out of date."""
    bar: str
    """From one eighth to a full block, 8 characters."""
    rest: str
    """The part of a bar that is not filled."""


UNICODE = Glyphs(
    name="unicode", cursor="▌", mark="•", cursor_mark="▪", folded="▸", unfolded="▾",
    up="▲", down="▼", left="◂", right="▸", error="✖", warning="▲", info="·", good="✔",
    dirty="●", separator="│", ellipsis="…", dot="·", crumb="›", more_left="‹", more_right="›",
    on="[✔]", off="[ ]", chosen="(•)", unchosen="( )", missing="–", stale="~", bar="▏▎▍▌▋▊▉█",
    rest="░",
)  # fmt: skip
ASCII = Glyphs(
    name="ascii", cursor=">", mark="*", cursor_mark="#", folded="+", unfolded="-",
    up="^", down="v", left="<", right=">", error="x", warning="!", info=".", good="v",
    dirty="*", separator="|", ellipsis="~", dot="-", crumb=">", more_left="<", more_right=">",
    on="[x]", off="[ ]", chosen="(*)", unchosen="( )", missing="-", stale="~", bar="       #",
    rest=".",
)  # fmt: skip

_in_use = [UNICODE]


def current() -> Glyphs:
    """Return the glyph set in use."""
    return _in_use[0]


def use(name: str) -> None:
    """Switch to ``unicode`` or ``ascii``; widgets show it when they are drawn next."""
    _in_use[0] = ASCII if name == "ascii" else UNICODE


_TO_ASCII = str.maketrans({
    **dict.fromkeys("─━┄┅┈┉╌╍═╴╶", "-"),
    **dict.fromkeys("│┃┆┇┊┋║╵╷", "|"),
    **dict.fromkeys("┌┐└┘┏┓┗┛├┤┬┴┼┣┫┳┻╋╭╮╯╰┿╂╞╡", "+"),
    **dict.fromkeys("▏▎▍░·", "."),
    **dict.fromkeys("▌▐▋▊▉█▅▆▇▓▒⊞", "#"),
    **dict.fromkeys("▁▂▃▄", "_"),
    **dict.fromkeys("●■•▪", "*"),
    **dict.fromkeys("◆◇", "@"),
    **dict.fromkeys("▸▶›→", ">"),
    **dict.fromkeys("◂◀‹←", "<"),
    **dict.fromkeys("▾▼↓", "v"),
    **dict.fromkeys("▴▲↑", "^"),
    **dict.fromkeys("–—", "-"),
    "◉": "&", "ƒ": "f", "⋯": "~", "…": "~", "▀": '"',
    "✖": "x", "✔": "v", "×": "x", "±": "~", "⏎": ">",
})  # fmt: skip


def shown(text: str) -> str:
    """Return text with the glyphs that the set in use has: none but ASCII ones for ``ascii``.

    Letters of other scripts stay; only symbols that this program draws with are replaced, one cell
    by one cell.
    """
    if text.isascii() or _in_use[0] is UNICODE:
        return text
    return text.translate(_TO_ASCII)


def bar(fraction: float, cells: int) -> str:
    """Return a bar of exactly `cells` cells, filled to `fraction` (0 to 1) in eighths of a cell."""
    eighths = round(min(1.0, max(0.0, fraction)) * cells * 8)
    full, part = divmod(eighths, 8)
    blocks = _in_use[0].bar
    filled = blocks[7] * full + (blocks[part - 1] if part else "")
    return filled.ljust(cells)
