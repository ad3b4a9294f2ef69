"""Rows of (text, style class) pieces: where they come from, how they are drawn and wrapped.

The style classes of :data:`~dld_tui.widgets.lists.styled.STYLES` are theme variables of the
same names. A widget may add or replace one by a component class ``line--NAME`` with a rule in its
style sheet; the shared ones are no component classes, because Textual would match 50 rules a
widget.

Operators and layers are coloured by their kind of work.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from dld_tui.core.model.operators.categories import colour_class
from dld_tui.core.text import cell_width, visible
from dld_tui.widgets.shell import glyphs

Piece: TypeAlias = "tuple[str, str]"
"""(text, style class): one or more of the names in STYLES, by spaces, or ``""``."""

STYLES: tuple[str, ...] = (
    "dim", "faint", "strong", "accent", "key", "link", "good", "warn", "bad", "info",
    "type", "number", "io", "guide", "badge", "bar", "rest",
    "op-conv", "op-matmul", "op-norm", "op-act", "op-elem",
    "op-shape", "op-data", "op-control", "op-quant", "op-other",
    "prec-fp32", "prec-fp16", "prec-bf16", "prec-int8", "prec-fp8", "prec-int4", "prec-other",
    "heat-0", "heat-1", "heat-2", "heat-3", "heat-4", "heat-5",
)  # fmt: skip
"""What a piece can be: quiet text, state, operator class, precision, heat (0 cold to 5 hot)."""


class LineSource(Protocol):
    """Rows by index. Only visible rows are asked for, so making one may cost microseconds."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def line(self, index: int, width: int) -> Sequence[Piece]:
        """Return one row for `width` cells; longer ones are cut, shorter ones padded."""

    def key(self, index: int) -> Hashable:
        """Return what identifies the row when rows are added, removed or sorted."""

    def text(self, index: int) -> str:
        """Return the row's text, for search and copy."""


class ListSource:
    """Rows that are already there: short lists, and logs that grow."""

    def __init__(
        self, rows: Sequence[Sequence[Piece]] = (), keys: Sequence[Hashable] | None = None
    ) -> None:
        self.rows = rows
        self.keys = keys

    def __len__(self) -> int:
        return len(self.rows)

    def line(self, index: int, width: int) -> Sequence[Piece]:
        """Return the row as it was given."""
        return self.rows[index]

    def key(self, index: int) -> Hashable:
        """Return the row's key, or its index when none were given."""
        return index if self.keys is None else self.keys[index]

    def text(self, index: int) -> str:
        """Return all the row's text."""
        return "".join(text for text, _ in self.rows[index])


class LogSource(ListSource):
    """Rows of which the first ones are given up now and then: keys count these, too.

    Args:
        rows: The rows that are kept; more may be added, and none is taken away.
        gone: How many there were before them.
    """

    def __init__(self, rows: Sequence[Sequence[Piece]], gone: int) -> None:
        super().__init__(rows)
        self.gone = gone

    def key(self, index: int) -> int:
        """Return the number of the row, from the first that there ever was."""
        return self.gone + index

    def index_of(self, key: int) -> int | None:
        """Return where the row with a number is, or None."""
        return key - self.gone if 0 <= key - self.gone < len(self.rows) else None


@lru_cache(maxsize=16)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return what a row that has `pattern` matches."""
    # As in less and vim: capitals in the pattern make the case count.
    return re.compile(re.escape(pattern), 0 if pattern != pattern.lower() else re.IGNORECASE)


def matches(text: str, pattern: str) -> Iterator[tuple[str, bool]]:
    """Cut text into (part, is a match) parts."""
    if not pattern:
        yield text, False
        return
    end = 0
    for match in compiled(pattern).finditer(text):
        if match.start() > end:
            yield text[end : match.start()], False
        yield match.group(), True
        end = match.end()
    if end < len(text) or not text:
        yield text[end:], False


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


class PieceStyles:
    """Turns pieces into segments in the styles of a widget.

    The widget tells with :meth:`forget` that its styles may be others. Parts of texts that match
    the pattern of its ``finder``, if it has one, are shown in the style ``match``.
    """

    def __init__(self, widget: Widget) -> None:
        self.widget: Any = widget
        self.known: dict[tuple[str, ...], Style] = {}

    def forget(self) -> None:
        """Forget the styles: the theme, the focus or a class has changed."""
        self.known.clear()

    def strip(self, pieces: Sequence[Piece], width: int, states: tuple[str, ...] = ()) -> Strip:
        """Return a strip of exactly `width` cells; `states` colour the whole row.

        A text that does not fit ends with a mark.
        """
        segments = [
            Segment(text, self.style(name, states)) for text, name in self._marked(pieces, width)
        ]
        strip = Strip(segments)
        if strip.cell_length > width:
            is_cut = width > 0 and not strip.crop(width).text.isspace()
            strip = strip.crop(0, width - is_cut)
            if is_cut:
                strip = Strip(
                    [*strip, Segment(glyphs.current().ellipsis, self.style("dim", states))]
                )
        return strip.extend_cell_length(width, self.style("", states))

    def _marked(self, pieces: Sequence[Piece], room: int) -> Iterator[Piece]:
        finder = getattr(self.widget, "finder", None)
        pattern = "" if finder is None else finder.pattern
        for text, name in pieces:
            # A source should have made the text safe and short; never trust that it did.
            safe = glyphs.shown(visible(text[: max(0, room + 1)]))
            for part, is_match in matches(safe, pattern):
                yield part, f"{name} match" if is_match else name

    def style(self, names: str, states: tuple[str, ...] = ()) -> Style:
        """Return the style of a piece in a row that has some states."""
        key = (names, *states)
        style = self.known.get(key)
        if style is None:
            widget = self.widget
            style = widget.visual_style.rich_style
            # A match shows on the cursor's row too.
            for name in sorted((*names.split(), *states), key="match".__eq__):
                if f"line--{name}" in widget._component_styles:
                    style += widget.get_component_rich_style(f"line--{name}", partial=True)
                else:
                    style += _style(name, widget.app.theme_variables)
            self.known[key] = style
        return style


class Rows(Widget):
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
        self.piece_styles = PieceStyles(self)
        self.rows = rows

    def notify_style_update(self) -> None:
        """Forget the styles of pieces."""
        super().notify_style_update()
        self.piece_styles.forget()

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
        return self.piece_styles.strip(rows[y] if y < len(rows) else (), width)


class WrappedRows(Rows):
    """Texts that are broken to the width there is, each (text, style class)."""

    def __init__(self, *texts: Piece, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._texts: Sequence[Piece] = texts
        self._broken: tuple[int, list[list[Piece]]] = (0, [])

    def set_texts(self, *texts: Piece) -> None:
        """Show other texts."""
        if texts != self._texts:
            self._texts, self._broken = texts, (0, [])
            self.refresh(layout=True)

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the rows; an empty text is an empty one."""
        if self._broken[0] != width:
            rows = [
                [(row, style)] for text, style in self._texts for row in wrap(text, width) or [""]
            ]
            self._broken = width, rows
        return self._broken[1]


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
    # Behind the indent there is room for the widest character.
    indent = line[: len(line) - len(line.lstrip(" "))][: max(0, min(cells // 2, cells - 2))]
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


def operator_style(op_type: str, domain: str = "") -> str:
    """Return the style class, e.g. ``op-conv``, of an operator."""
    return f"op-{colour_class(op_type, domain)}"


def layer_style(kind: str) -> str:
    """Return the style class of a layer's type, which may be an operator's or TensorRT's own."""
    from dld_tui.core.tensorrt.plan.graph import colour_of_type

    colour = colour_class(kind)
    return f"op-{colour_of_type(kind) if colour == 'other' else colour}"
