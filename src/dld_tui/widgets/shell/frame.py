"""A thin border with a title and keys or a count, and scrollbars for the ASCII glyph set."""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.style import Style

from dld_tui.core.dataclass import dataclass
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint

if TYPE_CHECKING:
    from textual.geometry import Size
    from textual.widget import Widget

    _Base = Widget
else:
    _Base = object

_FILL = {"heavy": "━", "ascii": "-"}


_TITLE = 24
"""Cells of a title that is cut, so that all choices are seen."""
CHOICE = "choice"
"""In the meta data of the cells that a choice is drawn in: its number."""


@dataclass(frozen=True)
class Choices:
    """What the upper border says where there is room to name all that one can choose from."""

    title: str
    """At the left, without what is chosen."""
    keys: str
    names: tuple[str, ...]
    chosen: int


class Frame:
    """The border of a widget, which has it as ``frame`` and redraws it with :meth:`draw`.

    The text is taken as text. The style sheet draws the border: the class ``frame`` has a thin one,
    heavier and coloured with the focus inside.
    """

    def __init__(self, widget: Widget) -> None:
        self.widget = widget
        self.number = 0
        """The key that goes to it, before its title; 0 for none."""
        self.title = self.keys = ""
        self.choices: Choices | None = None
        self._drawn: Content | None = None

    def show(self, title: str, keys: str = "", choices: Choices | None = None) -> None:
        """Set what the upper border says at its left and at its right.

        A command's id in braces among the keys, as in ``{tools.add} add``, stands for its key.
        Choices take the place of both where they fit; their cells have :data:`CHOICE`.
        """
        with contextlib.suppress(KeyError):  # braces of a text that is no hint
            keys = hint(keys)
        shown = (visible(title), visible(keys), choices)
        if shown != (self.title, self.keys, self.choices) or self.widget._border_title is None:
            self.title, self.keys, self.choices = shown
            # Before it is mounted it has no styles yet: it is given them once, with the class.
            self.widget.add_class("frame", update=self.widget.is_attached)
            self.draw()

    def draw(self) -> None:
        """Fill the border for the widget's width and colours, which may be others now."""
        width = self.widget.outer_size.width - 6  # corners, and the blanks that Textual adds
        if width <= 0 or not (self.title or self.keys):
            return
        styles = self.widget.styles
        kind, colour = styles.border_top
        quiet = Style(foreground=styles.border_title_color)
        loud = Style(bold=True, foreground=styles.color)
        title, keys, names = self.title, self.keys, self._names(width)
        if names and self.choices is not None:
            title, keys = self.choices.title, self.choices.keys
            width -= sum(cell_width(name) + 1 for name in names)
        key = f"{self.number} " if self.number else ""
        width -= len(key)
        keys = _fitting(keys, max(0, width - 6 - min(cell_width(title), 20)))
        title = clip(title, width - (cell_width(keys) + 2 if keys else 0))
        fill = width - cell_width(title) - cell_width(keys) - 2
        parts: list[tuple[str, Style]] = [(key, quiet), (title, loud)]
        if keys:
            line = _FILL.get(str(kind), "─") * fill
            parts.append((f" {line} ", Style(foreground=colour)))
            parts.append((keys, quiet))
        for number, name in enumerate(names):
            is_chosen = self.choices is not None and number == self.choices.chosen
            # Reversed, so that it is seen without colours, too.
            style = loud + Style(reverse=True) if is_chosen else quiet
            parts += [(" ", quiet), (name, style + Style.from_meta({CHOICE: number}))]
        content = Content.assemble(*((glyphs.shown(text), style) for text, style in parts))
        # Contents with the same text are equal to ``==``, whatever their styles are.
        if self._drawn is None or not content.is_same(self._drawn):
            self.widget.border_title = self._drawn = content

    def _names(self, width: int) -> tuple[str, ...]:
        """Return what one can choose from, where all of it fits; a long title gives way."""
        choices = self.choices
        if choices is None:
            return ()
        others = min(cell_width(choices.title), _TITLE) + cell_width(choices.keys) + 3
        others += len(f"{self.number} ") if self.number else 0
        needed = others + sum(cell_width(name) + 1 for name in choices.names)
        return choices.names if needed <= width else ()


def _fitting(keys: str, width: int) -> str:
    """Return the keys that fit, each with its whole text; the last one, which leads out, stays."""
    *entries, last = keys.split("  ")
    while entries and cell_width("  ".join([*entries, last])) > width:
        entries.pop()
    shown = "  ".join([*entries, last])
    return shown if cell_width(shown) <= width else ""


class Framed(_Base):
    """A mixin for a container with a frame, put before its class; a LineView has one anyway."""

    DEFAULT_CLASSES: ClassVar[str] = "frame"
    frame = cached_property(Frame)

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        # Not every new size comes with an event.
        is_changed = super()._size_updated(size, virtual_size, container_size, layout)
        if is_changed:
            self.frame.draw()
        return is_changed

    def notify_style_update(self) -> None:
        """Take the border's new colour, e.g. when the focus moves."""
        super().notify_style_update()
        if self.is_mounted:
            self.frame.draw()


class PlainScrollBar(ScrollBarRender):
    """Draws whole cells only."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def use(glyphs: str) -> None:
    """Draw scrollbars for a glyph set, ``unicode`` or ``ascii``."""
    ScrollBar.renderer = PlainScrollBar if glyphs == "ascii" else ScrollBarRender
