"""The colours of the timeline: component classes turned into the styles of segments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from dld_tui.widgets import glyphs
from dld_tui.widgets.styled import Styled
from dld_tui.widgets.timeline_cells import CURSOR, GAP
from dld_tui.widgets.timeline_model import GPU_TONES, TONES
from dld_tui.widgets.timeline_paint import ASCII_SHADES, TEXT, UNICODE_SHADES, Run, Shades

if TYPE_CHECKING:
    from textual.widget import Widget

    class _Base(Styled, Widget):
        pass
else:
    _Base = Styled

_OWN = ("span", "label", "window", "measure", "axis", *GPU_TONES)


class TimelineStyles(_Base):
    """A mixin: pieces as everywhere, and bars whose colour is the foreground of their tone."""

    COMPONENT_CLASSES: ClassVar[set[str]] = Styled.COMPONENT_CLASSES | {
        f"line--{name}" for name in _OWN
    }

    def bar_segments(self, runs: Iterable[Run]) -> list[Segment]:
        """Return the segments of a painted lane."""
        return [Segment(run.text, self._bar_style(run.ink, run.paper)) for run in runs]

    def shades(self) -> Shades | None:
        """Return the glyphs to use instead of colours, or None where there are colours."""
        if glyphs.current().name == "ascii":
            return ASCII_SHADES
        hot, cold = (self.piece_style(name).color for name in (TONES[0], TONES[5]))
        return UNICODE_SHADES if hot == cold else None

    def _bar_style(self, ink: int, paper: int) -> Style:
        cache = self._piece_styles()
        key = ("bar", str(ink), str(paper))
        style = cache.get(key)
        if style is None:
            style = cache[key] = self._mixed(ink, paper)
        return style

    def _mixed(self, ink: int, paper: int) -> Style:
        base = self.piece_style("")
        if ink == TEXT:
            if paper == GAP:
                return base
            return base + self.piece_style("label") + Style(bgcolor=self._colour(paper))
        front = base.bgcolor if ink == GAP else self._colour(ink)
        back = base.bgcolor if paper == GAP else self._colour(paper)
        # Where colours are missing the cursor's style is a text style, such as reverse.
        reverse = self.piece_style("span").reverse if ink == CURSOR else None
        return base + Style(color=front, bgcolor=back, reverse=reverse)

    def _colour(self, tone: int) -> Color | None:
        return self.piece_style("span" if tone == CURSOR else TONES[tone]).color
