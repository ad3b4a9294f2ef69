"""The page of a search for wrong tactics."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.accuracy.tactics import TacticReport
from dld_tui.core.codec import decode
from dld_tui.screens.accuracy.searches import TacticsScreen
from dld_tui.screens.list_page import ListTable
from tests.cli.test_tactics import FOUND
from tests.support import models
from tests.support.workspace import NARROW, opened


async def test_tactics_are_shown_with_the_command_that_avoids_them(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    async with opened(path, NARROW) as session:
        page = TacticsScreen.of_job(decode(TacticReport, FOUND), {"model": str(path)})
        assert isinstance(page, TacticsScreen)
        session.app.add_page(page)
        await session.until(lambda: page.is_current and page.query(ListTable))
        await session.until(lambda: "three" in session.text)
        assert "1 tactic makes the result wrong" in session.text
        assert "kernel (0x66)" in session.text
        await session.pilot.press("y")
        await session.until(lambda: session.app.clipboard == page.command)
        assert "--editable-timing-cache" in page.command
