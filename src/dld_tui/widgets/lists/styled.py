"""Drawing (text, style class) pieces, and breaking foreign text into rows of a width.

The style classes of :data:`~dld_tui.widgets.lists.line_source.STYLES` are theme variables of the
same names. A widget may add or replace one by a component class ``line--NAME`` with a rule in its
style sheet; the shared ones are no component classes, because Textual would match 50 rules a
widget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from dld_tui.core.text import cell_width, visible
from dld_tui.widgets.lists.line_source import STYLES, Piece, matches
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    _Base = Widget
else:
    _Base = object

_QUIET = ("dim", "faint", "type", "info", "guide", "rest", "header", "empty", "bar-row")
"""Styles that are dimmed where the theme has no colours."""
_VARIABLES = {
    **{name: name for name in STYLES},
    "dim": "quiet",
    "strong": "",
    "type": "quiet",
    "badge": "key",
    "header": "quiet",
    "header-sort": "foreground",
    "empty": "quiet",
    "current": "foreground",
    "mark": "mark",
    "bar-row": "quiet",
}
"""Style class to the theme variable of its text's colour."""
_BACKGROUNDS = {"match": "match", "current": "background", "bar-row": "panel"}
_BOLD = ("strong", "heat-5", "header-sort", "current")


def _style(name: str, variables: Mapping[str, str]) -> Style:
    def colour(variable: str) -> Any:
        text = variables.get(variable, "")
        return Color.parse(text).rich_color if text else None

    quiet = variables.get("quiet-style", "none") if name in _QUIET else "none"
    return Style(
        color=colour(_VARIABLES.get(name, "")),
        bgcolor=colour(_BACKGROUNDS.get(name, "")),
        bold=True if name in _BOLD else None,
        dim=True if quiet == "dim" else None,
        reverse=True if variables.get(f"{name}-style") == "reverse" else None,
    )


class Styled(_Base):
    """A mixin that turns pieces into segments."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set()
    search_pattern: str = ""
    """Parts of the text that match are shown in the style ``match``."""

    def strip_of(self, pieces: Sequence[Piece], width: int, states: tuple[str, ...] = ()) -> Strip:
        """Return a strip of exactly `width` cells; `states` colour the whole row."""
        segments = [
            Segment(text, self.piece_style(name, states))
            for text, name in self._highlighted(pieces, width)
        ]
        strip = Strip(segments)
        if strip.cell_length > width:
            strip = strip.crop(0, width)
        return strip.extend_cell_length(width, self.piece_style("", states))

    def _highlighted(self, pieces: Sequence[Piece], room: int) -> Iterator[Piece]:
        for text, name in pieces:
            # A source should have made the text safe and short; never trust that it did.
            safe = glyphs.shown(visible(text[: max(0, room)]))
            for part, is_match in matches(safe, self.search_pattern):
                yield part, f"{name} match" if is_match else name

    def piece_style(self, names: str, states: tuple[str, ...] = ()) -> Style:
        """Return the style of a piece in a row that has some states."""
        cache = self._piece_styles()
        key = (names, *states)
        style = cache.get(key)
        if style is None:
            style = self.visual_style.rich_style
            # A match shows on the cursor's row too.
            for name in sorted((*names.split(), *states), key="match".__eq__):
                if f"line--{name}" in self._component_styles:
                    style += self.get_component_rich_style(f"line--{name}", partial=True)
                else:
                    style += _style(name, self.app.theme_variables)
            cache[key] = style
        return style

    def _piece_styles(self) -> dict[tuple[str, ...], Style]:
        found: dict[tuple[str, ...], Style] | None = self.__dict__.get("_piece_style_cache")
        if found is None:
            found = self.__dict__["_piece_style_cache"] = {}
        return found

    def notify_style_update(self) -> None:
        """Forget the styles when the theme, the focus or a class changes."""
        super().notify_style_update()
        self._piece_styles().clear()


class Rows(Styled, Widget):
    """A few rows of pieces with no cursor: bars, figures, a paragraph.

    Override :meth:`content`, or set ``rows``; call ``refresh()`` when the content changed, with
    ``layout=True`` when the number of rows did.
    """

    ALLOW_SELECT = False

    def __init__(
        self,
        rows: Sequence[Sequence[Piece]] = (),
        *,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.rows = rows

    def set_rows(self, rows: Sequence[Sequence[Piece]]) -> None:
        """Show other rows."""
        changed = len(rows) != len(self.rows)
        self.rows = rows
        self.refresh(layout=changed)

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the rows for a width in cells."""
        return self.rows

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of rows."""
        return len(self.content(width))

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        width = self.size.width
        rows = self.content(width)
        return self.strip_of(rows[y] if y < len(rows) else (), width)


_MOST = 5000
"""Rows of a very long text that are kept."""

_MOST_CHARS = 20_000
"""Characters of one very long line that are kept."""


def wrap(text: str, cells: int) -> list[str]:
    """Break text at blanks into rows of at most `cells` cells; its own line breaks stay.

    A word that is too long is cut. The rows have been through ``visible``.
    """
    rows: list[str] = []
    for line in text.splitlines()[:_MOST]:
        rows += _wrap_line(visible(line[:_MOST_CHARS].expandtabs(4)), max(1, cells))
    return rows[:_MOST]


def _wrap_line(line: str, cells: int) -> list[str]:
    if len(line) <= cells and cell_width(line) <= cells:
        return [line]
    indent = line[: len(line) - len(line.lstrip(" "))][: cells // 2]
    rows: list[str] = []
    row = indent
    for word in line.split():
        gap = " " if row.strip() else ""
        if cell_width(row) + len(gap) + cell_width(word) <= cells:
            row += gap + word
            continue
        if row.strip():
            rows.append(row)
        row = indent + word
        while cell_width(row) > cells:
            head = _head(row, cells)
            rows.append(head)
            row = indent + row[len(head) :]
    return [*rows, row]


def _head(text: str, cells: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += cell_width(char)
        if used > cells:
            return text[: max(index, 1)]
    return text
