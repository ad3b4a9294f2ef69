from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.widgets.shell.page import TabStrip
from tests.support.tui import ESCAPE, HOSTILE, HostApp, rows_of


def page(title: str, dirty: bool = False) -> Any:
    return SimpleNamespace(tab_title=title, tab_dirty=dirty)


def host_with(*titles: str, current: int = 0) -> HostApp:
    app = HostApp(TabStrip())
    app.pages = [page(title, title.startswith("*")) for title in titles]
    app.page = app.pages[current] if titles else None
    return app


async def test_names_marks_and_separators() -> None:
    app = host_with("a.onnx", "*b.onnx", "c.dldprof", current=1)
    shown: list[Any] = []
    app.show_page = shown.append  # type: ignore[attr-defined]
    async with app.run_test(size=(60, 4)) as pilot:
        row = rows_of(app)[0]
        assert row.rstrip() == " a.onnx │ *b.onnx ● │ c.dldprof"
        await pilot.click(TabStrip, offset=(row.index("c.dldprof"), 0))
        assert shown == [app.pages[2]]


async def test_the_start_page_says_its_folder_as_far_as_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = host_with()
    folder = f"~/{'folder/' * 9}\x1b[1mmodels"
    async with app.run_test(size=(60, 4)) as pilot:
        monkeypatch.setattr(app.screen, "tab_place", folder, raising=False)
        monkeypatch.setattr(app.screen, "tab_status", "12 models  3 reports", raising=False)
        for width in (90, 60, 30, 12):
            await pilot.resize_terminal(width, 4)
            app.query_one(TabStrip).refresh()
            await pilot.pause()
            row = rows_of(app)[0]
            assert row.startswith(" dld "[:width])
            assert len(row) == width
            assert "\x1b" not in row
            assert width < 90 or row.endswith("models  12 models  3 reports ")


async def test_names_are_text() -> None:
    app = host_with(HOSTILE, ESCAPE, "漢字.onnx")
    async with app.run_test(size=(80, 4)):
        row = rows_of(app)[0]
        assert HOSTILE in row
        assert "\\x1b]0;x\\x07" in row
        assert "漢字.onnx" in row


async def test_the_shown_tab_stays_visible_among_many() -> None:
    app = host_with(*(f"model-number-{number}.onnx" for number in range(40)), current=33)
    async with app.run_test(size=(80, 4)):
        row = rows_of(app)[0]
        assert "33" in row
        assert "+" in row
