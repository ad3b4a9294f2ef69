"""A thin border with a title and keys or a count, and scrollbars for the ASCII glyph set."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.style import Style

from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets.hints import hint
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    from textual.widget import Widget

    _Base = Widget
else:
    _Base = object

_FILL = {"heavy": "━", "ascii": "-"}


class Frame(_Base):
    """A mixin for a widget with a border, put before the widget class.

    Call :meth:`frame` at any time; the text is taken as text. The style sheet draws the border: the
    class ``frame`` has a thin one, heavier and coloured with the focus inside.
    """

    frame_title = ""
    frame_keys = ""

    def frame(self, title: str, keys: str = "") -> None:
        """Set what the upper border says at its left and at its right.

        A command's id in braces among the keys, as in ``{tools.add} add``, stands for its key.
        """
        with contextlib.suppress(KeyError):  # braces of a text that is no hint
            keys = hint(keys)
        title, keys = visible(title), visible(keys)
        if (title, keys) != (self.frame_title, self.frame_keys) or self._border_title is None:
            self.frame_title, self.frame_keys = title, keys
            self.add_class("frame")
            self._draw_frame()

    def on_resize(self) -> None:
        """Fill the border again for the new width."""
        self._draw_frame()

    def notify_style_update(self) -> None:
        """Take the border's new colour, e.g. when the focus moves."""
        super().notify_style_update()
        if self.is_mounted:
            self._draw_frame()

    def _draw_frame(self) -> None:
        width = self.outer_size.width - 6  # corners, and the blanks that Textual adds
        if width <= 0 or not (self.frame_title or self.frame_keys):
            return
        kind, colour = self.styles.border_top
        keys = clip(self.frame_keys, max(0, width - 6 - min(cell_width(self.frame_title), 20)))
        title = clip(self.frame_title, width - (cell_width(keys) + 2 if keys else 0))
        fill = width - cell_width(title) - cell_width(keys) - 2
        parts: list[tuple[str, Style]] = [(title, Style(bold=True, foreground=self.styles.color))]
        if keys:
            line = _FILL.get(str(kind), "─") * fill
            parts.append((f" {line} ", Style(foreground=colour)))
            parts.append((keys, Style(foreground=self.styles.border_title_color)))
        content = Content.assemble(*((glyphs.shown(text), style) for text, style in parts))
        if content != self._border_title:
            self.border_title = content


class PlainScrollBar(ScrollBarRender):
    """Draws whole cells only."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def use(glyphs: str) -> None:
    """Draw scrollbars for a glyph set, ``unicode`` or ``ascii``."""
    ScrollBar.renderer = PlainScrollBar if glyphs == "ascii" else ScrollBarRender
