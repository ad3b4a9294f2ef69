"""What a run needs, from the page of a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.screens.results.table import TableResult
from dld_tui.widgets.results.paragraphs import ParagraphsDialog
from tests.support import models
from tests.support.workspace import NARROW, opened


async def test_the_memory_of_a_model_is_shown_with_what_is_alive(tmp_path: Path) -> None:
    text = "m (float[4, 64] x) => (float[4, 64] y) { [a] a = Relu(x) [last] y = Add(a, x) }"
    path = models.write(tmp_path, f'<ir_version: 10, opset_import: ["" : 18]>\n{text}')
    async with opened(path) as session:
        session.screen.activities.memory()
        await session.settle()
        await session.press("f5")
        await session.until(lambda: isinstance(session.app.page, TableResult))
        await session.settle()
        assert "2.05 kB at the peak, while last runs" in session.text
        assert "an output" in session.text
        await session.until(lambda: "1 of 2" in session.text)
        await session.press("shift+tab", "right")
        await session.until(lambda: "2 of 2  2.05 kB  while last runs" in session.text)


@pytest.mark.broad
async def test_on_a_low_screen_there_is_room_for_the_list_and_a_way_to_the_rest(
    tmp_path: Path,
) -> None:
    text = "m (float[4, 64] x) => (float[4, 64] y) { [a] a = Relu(x) [last] y = Add(a, x) }"
    path = models.write(tmp_path, f'<ir_version: 10, opset_import: ["" : 18]>\n{text}')
    async with opened(path, NARROW) as session:
        session.screen.activities.memory()
        await session.settle()
        await session.press("f5")
        await session.until(lambda: isinstance(session.app.page, TableResult))
        await session.settle()
        page = session.app.page
        assert isinstance(page, TableResult)
        await session.until(lambda: page.view.size.height >= 4)
        assert "an output" in session.text
        await session.press("i")
        await session.until(lambda: isinstance(session.app.screen, ParagraphsDialog))
        assert "with kernels" in session.text
