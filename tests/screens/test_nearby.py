"""What lies beside is offered first, with what is of the same model on top."""

from __future__ import annotations

from pathlib import Path

from dld_tui.app import DldApp
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.state import State
from dld_tui.screens.results.diff import DiffScreen
from dld_tui.widgets.dialogs.search import PickDialog
from tests.support import models
from tests.support.tui import rows_of, screen_text, until


async def test_models_are_compared_with_those_beside(tmp_path: Path) -> None:
    new = models.write(tmp_path, models.CHAIN, "new.onnx")
    models.write(tmp_path, models.CHAIN, "old.onnx")
    (tmp_path / "notes.json").write_text("{}")
    app = DldApp([new], Config(), State())
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.page.edited_document)
        app.action_compare()
        await until(pilot, lambda: isinstance(app.screen, PickDialog))
        await until(pilot, lambda: "another file" in screen_text(app))
        shown = [row for row in rows_of(app) if "old.onnx" in row]
        assert len(shown) == 1
        assert "now" in shown[0]
        assert "notes.json" not in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.page, DiffScreen))
