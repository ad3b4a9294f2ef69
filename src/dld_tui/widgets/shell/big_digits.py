"""The one number that a screen is about, three lines high."""

from __future__ import annotations

_GLYPHS = {
    "0": ("█▀█", "█ █", "▀▀▀"),
    "1": ("▄█ ", " █ ", "▀▀▀"),
    "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", " ▀█", "▀▀▀"),
    "4": ("█ █", "▀▀█", "  ▀"),
    "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"),
    "7": ("▀▀█", "  █", "  ▀"),
    "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"),
    ".": (" ", " ", "▀"),
    ",": (" ", " ", "▄"),
    "–": ("  ", "▀▀", "  "),
    "-": ("  ", "▀▀", "  "),
    " ": (" ", " ", " "),
}


def big_digits(text: str) -> tuple[str, str, str] | None:
    """Return a number as three lines, or None when a character has no large form."""
    if not text or any(char not in _GLYPHS for char in text):
        return None
    top, middle, bottom = (" ".join(_GLYPHS[char][row] for char in text) for row in range(3))
    return top, middle, bottom
