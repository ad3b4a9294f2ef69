"""Keys as pages of the documentation write them, cut into what a terminal sends for them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.typist import SPECIAL

_NAMES = {
    "Enter": "<enter>", "Esc": "<esc>", "Tab": "<tab>", "Space": "<space>", "Del": "<del>",
    "↓": "<down>", "↑": "<up>", "→": "<right>", "←": "<left>",
    **{f"F{number}": f"<f{number}>" for number in (2, 5, 8, 9)},
    **{f"^{letter.upper()}": f"<^{letter}>" for letter in "opsu"},
}  # fmt: skip


def rows(page: Path, columns: int) -> list[list[str]]:
    """Return the cells of the rows of so many columns whose third cell is a number of presses."""
    found = [re.split(r"(?<!\\) ?\| ?", line.strip("| ")) for line in page.read_text().splitlines()]
    return [cells for cells in found if len(cells) == columns and cells[2].isdecimal()]


def typed(keys: str) -> list[str]:
    """Return what is sent, a key or a text at a time: keys stand in backquotes, texts between."""
    found = []
    for key, text in re.findall(r"`([^`]+)`|([^`]+)", keys):
        if key:
            found.append(SPECIAL[_NAMES[key]] if key in _NAMES else key)
        elif text.strip():
            found.append(text.strip())
    return found


def presses(keys: str) -> int:
    """Return how many keys there are besides texts."""
    return keys.count("`") // 2
