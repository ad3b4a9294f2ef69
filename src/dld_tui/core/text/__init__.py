"""Untrusted text: names, paths, log lines and messages that come from files and hosts.

Such text is never markup and never reaches a terminal raw. Everything that is shown passes through
:func:`visible` first.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: terminal control
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"  # bidi
    "\ud800-\udfff"  # bytes that are not UTF-8, kept by surrogateescape
    "\ufffe\uffff\U000e0000-\U000e0fff]"  # not in XML; tags
)
_ESCAPE = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape of one byte
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible(text: str | bytes) -> str:
    """Return text with every control, bidirectional and invalid character escaped, on one line."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_escaped, text)


def without_escapes(text: str) -> str:
    """Return text without the sequences by which programs set colours and move the cursor."""
    return _ESCAPE.sub("", text) if "\x1b[" in text else text


def encodable(text: str) -> str:
    """Return text that UTF-8 can hold: bytes that were not UTF-8 are written as escapes."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


@lru_cache(maxsize=4096)
def cell_width(text: str) -> int:
    """Return how many terminal cells visible text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # lazy: not needed for ASCII names

    return cell_len(text)


def clip(text: str, cells: int, *, keep: str = "start") -> str:
    """Cut visible text to at most `cells` cells, with an ellipsis where something is missing.

    Args:
        text: Text that has been through :func:`visible`.
        cells: The width; nothing fits in 0.
        keep: ``start``, ``end`` or ``middle``: the part that stays. Node names
            differ at their end, so ``end`` or ``middle`` suits them.
    """
    if cells <= 0:
        return ""
    # A name may be 100 KB long: never measure more of it than can be shown.
    if len(text) <= cells and cell_width(text) <= cells:
        return text
    if cells == 1:
        return "…"
    room = cells - 1
    if keep == "start":
        return _take(text[: room + 1], room) + "…"
    if keep == "end":
        return "…" + _take(text[-(room + 1) :][::-1], room)[::-1]
    head = (room + 1) // 2
    return _take(text[: head + 1], head) + "…" + _take(text[-(room + 1) :][::-1], room - head)[::-1]


def _take(text: str, cells: int) -> str:
    if text.isascii():
        return text[:cells]
    used = 0
    for index, char in enumerate(text):
        used += cell_width(char)
        if used > cells:
            return text[:index]
    return text


def shortened(name: str) -> str:
    """Return a foreign name fit for a message: escaped, and of bounded length."""
    return clip(visible(name), 60, keep="middle")


def quoted(name: str) -> str:
    """Return a foreign name fit for a message, in quotes; see :func:`shortened`."""
    return f"'{shortened(name)}'"


def fit(text: str, cells: int, *, align: str = "left", keep: str = "start") -> str:
    """Cut or pad visible text to exactly `cells` cells; `align` is ``left`` or ``right``."""
    cut = clip(text, cells, keep=keep)
    padding = " " * (cells - cell_width(cut))
    return padding + cut if align == "right" else cut + padding


def comma_separated(*texts: str) -> list[str]:
    """Return the parts of lists with commas, as of an option that may be repeated."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def common_prefix(texts: Collection[str]) -> str:
    """Return the characters that all texts begin with."""
    low, high = min(texts), max(texts)  # these two differ first
    for at, (first, second) in enumerate(zip(low, high, strict=False)):
        if first != second:
            return low[:at]
    return low
