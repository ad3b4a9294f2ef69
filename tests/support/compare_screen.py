"""The page that compares reports or engines, opened for a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.settings.config import Config
from dld_tui.screens.results.compare import CompareScreen
from dld_tui.widgets.results.report_compare import CompareAbout, ComparePane
from tests.support.tui import until


def pane(screen: CompareScreen) -> ComparePane:
    return screen.query_one(ComparePane)


@asynccontextmanager
async def opened(
    *paths: Path, size: tuple[int, int] = (200, 50)
) -> AsyncIterator[tuple[Pilot[Any], CompareScreen]]:
    app = DldApp([], Config())
    async with app.run_test(size=size) as pilot:
        screen = CompareScreen(paths)
        app.add_page(screen)
        await until(pilot, lambda: screen.comparison is not None and pane(screen).rows)
        await until(pilot, lambda: len(screen.query_one(CompareAbout).lines))
        yield pilot, screen
