"""Open a report in the real app."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widget import Widget

from dld_tui.app import DldApp
from dld_tui.core.settings.config import Config
from dld_tui.screens.results.report import ReportScreen
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.results.layers import LayerPane
from dld_tui.widgets.results.passes import PassTimeline
from tests.support.tui import until

SMALL, LARGE = (80, 24), (200, 50)


@asynccontextmanager
async def opened(
    path: Path, size: tuple[int, int] = LARGE, config: Config | None = None
) -> AsyncIterator[tuple[Pilot[Any], ReportScreen]]:
    """Open a report and wait until it is there."""
    app = DldApp([path], config or Config())
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ReportScreen) and app.screen.report)
        screen = app.screen
        assert isinstance(screen, ReportScreen)
        await pilot.pause()
        yield pilot, screen


def text_of(widget: Widget) -> str:
    lines = [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]
    return "\n".join(lines)


def all_text(view: LineView) -> str:
    """Return all lines of a view, also those that are not seen."""
    return "\n".join(view.lines.text(at) for at in range(len(view.lines)))


def seen(screen: ReportScreen) -> set[str]:
    """Return the names of the panes that are seen."""
    names = ("summary", "timeline", "layers", "charts", "environment")
    return {name for name in names if screen.query_one(f"#{name}").region.area > 0}


def pane(screen: ReportScreen) -> LayerPane:
    return screen.query_one(LayerPane)


def timeline(screen: ReportScreen) -> PassTimeline:
    return screen.query_one(PassTimeline)
