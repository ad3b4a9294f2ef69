"""Hints name the keys that the user has."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.config import Config
from dld_tui.widgets import hints
from dld_tui.widgets.hints import hint
from tests.support.gpu_reports import make_gpu_report
from tests.support.report_screen import LARGE, opened, pane, until


def test_a_hint_has_the_keys_that_were_told_last() -> None:
    try:
        hints.use({"work.stop": "f9,escape"})
        assert hint("{work.stop} stops, {list.activate} opens") == "F9 stops, Enter opens"
    finally:
        hints.use({})
    assert hint("{work.stop} stops") == "Esc stops"
    with pytest.raises(KeyError):
        hint("{no.command} does")


async def test_a_changed_key_is_named_and_works(tmp_path: Path) -> None:
    path = make_gpu_report(tmp_path / "g.dldprof", layers=8)
    async with opened(path, LARGE, Config(keys={"report.group": "f9"})) as (pilot, screen):
        layers = pane(screen)
        assert "F9 group" in str(layers.border_title)
        assert " b group" not in str(layers.border_title)
        await pilot.press("f9")
        await until(pilot, lambda: layers.by != "layer")
    hints.use({})
