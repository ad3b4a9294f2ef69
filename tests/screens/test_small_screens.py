"""Every page in a small terminal: the cursor is in sight, and the key bar leads out."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.text import cell_width
from dld_tui.widgets.shell.page import KeyBar, Page
from tests.screens.test_unfilled_pages import OVER, TABS, folder, show
from tests.support.workspace import NARROW, Session, opened

__all__ = ["folder"]

FEW = ("report", "form tune", "initializers")
"""The pages that are walked every time."""
SIZES = ((60, 15), (40, 15), (300, 90))
NAMES = [
    pytest.param(name, id=name, marks=() if name in FEW else pytest.mark.slow)
    for name in (*OVER, *TABS)
]


def look(session: Session, page: Page, size: tuple[int, int]) -> None:
    """Check what can be seen of the page in front."""
    screen = session.app.screen
    focused = screen.focused
    lines = session.text.splitlines()
    assert max(map(cell_width, lines)) <= size[0]
    if focused is not None:
        seen = screen._compositor.visible_widgets
        assert focused in seen, f"{focused} has the focus and is not seen at {size}"
        region, clip = seen[focused]
        part = region.intersection(clip)
        assert part.width >= 8, (size, focused)
        assert part.height >= 1, (size, focused)
    else:
        assert not screen.focus_chain, f"nothing has the focus at {size}"
    bar = lines[-1]
    assert bar.strip(), f"no key bar at {size}"
    assert "?" in bar or "F1" in bar, bar
    assert any(key in bar for key in ("Esc", " q", "^P")), bar
    assert page.query(KeyBar)


@pytest.mark.broad
@pytest.mark.parametrize("name", NAMES)
async def test_a_page_in_a_small_terminal(name: str, folder: Path) -> None:
    async with opened(folder / "model.onnx", NARROW) as session:
        page = show(session, name, folder)
        await session.until(lambda: session.app.screen is page or session.app.page is page)
        await session.until(lambda: page.is_mounted and not page.tasks.is_working)
        for size in SIZES:
            await session.pilot.resize_terminal(*size)
            await session.pilot.pause()
            look(session, page, size)
            await session.pilot.press("tab")
            await session.pilot.pause()
            look(session, page, size)
