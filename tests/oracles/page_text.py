"""What is on an HTML page, read back by a parser that shares nothing with the product."""

from __future__ import annotations

import re
from html.parser import HTMLParser

ROUNDED = {0: 0.501, 1: 0.0501, 2: 0.00501, 3: 0.000501, 4: 0.0000501}
"""How far a figure of so many decimals may be from its value."""


class Page(HTMLParser):
    """The sections of a page: their text, tables and drawn bars."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {"": []}
        self.tables: dict[str, list[dict[str, str]]] = {}
        """The rows of each table by its id, or that of its section."""
        self.bars: dict[str, dict[str, str]] = {}
        """What bars are of and their figures, by section; of several the last."""
        self.series: dict[str, dict[str, list[str]]] = {}
        """The figures of all bars of a name, by section."""
        self._section, self._table, self._heads = "", "", list[str]()
        self._row: list[str] | None = None
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        self._open.append(tag)
        if tag == "section":
            self._section = own.get("id") or ""
        elif tag == "table":
            self._table, self._heads = own.get("id") or self._section, []
        elif tag == "tr":
            self._row = []
        elif tag in ("td", "th") and self._row is not None:
            self._row.append("")
        elif tag in ("p", "li", "text", "h2", "div"):
            self.texts.setdefault(self._section, []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass
        if tag == "tr" and self._row is not None:
            if not self._heads and not self._row[0].isdigit() and self._table != self._section:
                self._heads = self._row
            else:
                heads = self._heads or [str(n) for n in range(len(self._row))]
                rows = self.tables.setdefault(self._table, [])
                rows.append(dict(zip(heads, self._row, strict=True)))
            self._row = None

    def handle_data(self, data: str) -> None:
        if "style" in self._open or "script" in self._open:
            return
        if self._row is not None and self._row:
            self._row[-1] += data
        elif self._open[-2:] == ["rect", "title"]:
            name, _, figure = data.rpartition(": ")
            self.bars.setdefault(self._section, {})[name] = figure
            self.series.setdefault(self._section, {}).setdefault(name, []).append(figure)
        elif self._open[-1:] != ["title"]:
            lines = self.texts.setdefault(self._section, [""])
            lines[-1:] = [(lines[-1] if lines else "") + data]

    def lines(self, section: str) -> list[str]:
        """Return the lines of a section that are not empty."""
        return [line for line in map(str.strip, self.texts.get(section, [])) if line]

    def facts(self, section: str) -> dict[str, str]:
        """Return the names and values of a section; doubts, which have one name, are joined."""
        found: dict[str, str] = {}
        for row in self.tables.get(section, []):
            found[row["0"]] = "\n".join(filter(None, (found.get(row["0"]), row["1"])))
        return found


def number(text: str) -> float | None:
    """Return a figure as it is shown; None for a dash."""
    found = re.match(r"≈? ?(-?[\d,]+(?:\.\d+)?)", text)
    return float(found[1].replace(",", "")) if found else None


def shows(text: str, value: float | None) -> bool:
    """Return whether a figure that is shown is a value, rounded to the decimals that it has."""
    shown = number(text)
    if shown is None or value is None:
        return shown is None and not value
    decimals = len(text.strip("≈ ").split(" ")[0].partition(".")[2])
    return abs(shown - value) <= ROUNDED.get(decimals, 1e-9) + 1e-9 * abs(value)
