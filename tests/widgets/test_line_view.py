from __future__ import annotations

from typing import Any

import pytest
from textual.geometry import Region

from dld_tui.widgets.lists import search
from dld_tui.widgets.lists.line_view import LineView
from tests.support.tui import HostApp, Numbered, rows_of, until


def app_with(count: int, **options: Any) -> tuple[HostApp, LineView, Numbered]:
    source = Numbered(count)
    view = LineView(source, **options)
    return HostApp(view), view, source


async def test_keys_move_the_cursor_and_only_rows_that_are_seen_or_changed_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, view, source = app_with(100_000)
    async with app.run_test(size=(40, 10)) as pilot:
        assert set(source.asked) <= set(range(10))
        for keys, cursor in (
            ("j j down", 3), ("j k up", 0), ("G", 99_999), ("end k", 99_998), ("G g", 0),
            ("pagedown", 9), ("pagedown pagedown pageup", 9),
        ):  # fmt: skip
            await pilot.press("g", *keys.split())
            assert view.cursor == cursor, keys
            assert view.scroll_offset.y <= cursor < view.scroll_offset.y + 10
            assert f"▌row {cursor}" in [row.rstrip() for row in rows_of(app)]
        await pilot.press("g")
        regions: list[Region] = []
        refresh = view.refresh

        def spy(*args: Region, **options: Any) -> LineView:
            regions.extend(args)
            assert args, "the whole view was refreshed"
            return refresh(*args, **options)

        monkeypatch.setattr(view, "refresh", spy)
        source.asked.clear()
        await pilot.press("j")
        monkeypatch.undo()
        assert sorted((region.y, region.height) for region in regions) == [(0, 1), (1, 1)]
        assert set(source.asked) <= {0, 1}


@pytest.mark.broad
async def test_search_goes_on_from_the_cursor_and_wraps_and_escape_goes_back() -> None:
    view = LineView(Numbered(5_000, {7: "Conv A", 4_000: "conv B"}))
    app = HostApp(view)
    async with app.run_test(size=(60, 10)) as pilot:
        for keys, found in (("slash c o n v enter", 7), ("n", 4_000), ("n", 7), ("N", 4_000)):
            await pilot.press(*keys.split())
            await until(pilot, lambda found=found: view.cursor == found)
        assert view.has_focus
        view.finder.start("Conv", first=0)  # a capital makes the case count
        await until(pilot, lambda: view.cursor == 7)
        plain, shown = (
            {str(segment.style) for segment in view.render_line(y)}
            for y in (6 - view.scroll_offset.y, 7 - view.scroll_offset.y)
        )
        assert len(shown) > len(plain)
        await pilot.press("slash", *"row 500")
        await until(pilot, lambda: view.cursor == 500)
        await pilot.press("escape")
        assert (view.cursor, view.finder.pattern, view.has_focus) == (7, "Conv", True)


async def test_a_search_that_finds_nothing_says_so_and_does_not_stall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 0 < search._SLICE_S <= 0.02
    monkeypatch.setattr(search, "_SLICE_S", -1.0)  # a slice is as short as can be
    read: list[int] = []

    class Counted(Numbered):
        def text(self, index: int) -> str:
            read.append(index)
            return super().text(index)

    view = LineView(Counted(5000))
    app = HostApp(view)
    async with app.run_test(size=(60, 10)) as pilot:
        read.clear()
        view.finder.start("nowhere")
        assert len(read) == 256, "the rest is searched in slices, between other events"
        await until(pilot, lambda: bool(app._notifications))
        assert set(read) == set(range(5000))
        assert view.cursor == 0


async def test_it_works_at_any_size() -> None:
    app, view, _ = app_with(1000)
    async with app.run_test(size=(1, 1)) as pilot:
        for size in ((1, 1), (3, 2), (20, 3), (200, 50), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.press("j", "pagedown", "G", "g", "space", "G")
            assert view.cursor == 999
        assert any("row 999" in row for row in rows_of(app))
