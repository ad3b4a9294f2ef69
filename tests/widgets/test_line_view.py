from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from textual.geometry import Region

from dld_tui.widgets.lists import search
from dld_tui.widgets.lists.line_view import LineView, ListSource
from tests.support.tui import ESCAPE, HOSTILE, HostApp, Numbered, rows_of, until


class Wide(Numbered):
    content_width = 300


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


@pytest.mark.parametrize(("jump", "offset"), [(True, range(3, 9)), (False, [2])])
async def test_the_view_scrolls_only_when_the_cursor_leaves_it(
    jump: bool, offset: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By half of what is seen, or by a line."""
    monkeypatch.setattr(LineView, "JUMP", jump)
    app, view, _ = app_with(1000)
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press(*["j"] * 9)
        assert view.scroll_offset.y == 0
        await pilot.press("j", "j")
        assert view.cursor == 11
        assert view.scroll_offset.y in offset


async def test_the_cursor_stays_on_its_key() -> None:
    def lines(names: str) -> ListSource:
        return ListSource([[(name, "")] for name in names], list(names))

    view = LineView(lines("abc"))
    app = HostApp(view)
    async with app.run_test() as pilot:
        await pilot.press("j")
        for names, found in (("cxb", (2, "b")), ("c", (0, "c")), ("", (0, None))):
            view.set_lines(lines(names))
            assert (view.cursor, view.key_at_cursor()) == found
        await pilot.press("j", "enter", "space", "Y", "n")
        assert app.copied == []


async def test_messages_tell_index_and_key_and_marks_are_shown() -> None:
    app, view, _ = app_with(100)
    async with app.run_test(size=(40, 10), message_hook=app.note) as pilot:
        await pilot.press("j", "enter", "space")
        await pilot.pause()
        moved = app.of(LineView.CursorMoved)
        assert [(m.index, m.key, m.control) for m in moved] == [(1, "k1", view), (2, "k2", view)]
        assert [(m.index, m.key) for m in app.of(LineView.Activated)] == [(1, "k1")]
        assert app.of(LineView.MarksChanged)[-1].marks == {"k1"}
        await pilot.press("j", "M")  # a range from the last mark
        assert view.marks == {"k1", "k2", "k3"}
        assert [row[0] for row in rows_of(app)[:4]] == [" ", "•", "•", "▪"]
        await pilot.press("g", "j", "space")
        assert view.marks == {"k2", "k3"}
        view.set_marks(set())
        assert view.marks == set()


async def test_hostile_text_is_text_and_columns_stay_aligned() -> None:
    rows = [
        [(HOSTILE, ""), ("|", "")], [(ESCAPE + "abc", ""), ("|", "")], [("漢字", ""), ("|", "")],
        [("x" * 100_000, ""), ("|", "")], [("a\nb", ""), ("\udcff", "")],
    ]  # fmt: skip
    app = HostApp(LineView(ListSource(rows), gutter=False))
    async with app.run_test(size=(40, 8)):
        drawn = rows_of(app)
        assert drawn[0].rstrip() == HOSTILE + "|"
        assert drawn[1].rstrip() == "\\x1b]0;x\\x07abc|"
        assert drawn[2].startswith("漢字|")
        assert drawn[3] == "x" * 39 + "…"
        assert drawn[4].rstrip() == "a\\nb\\xff"
        assert all("\x1b" not in row for row in drawn)


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


async def test_the_mouse_chooses_marks_and_scrolls() -> None:
    app, view, _ = app_with(1000)
    async with app.run_test(size=(40, 10), message_hook=app.note) as pilot:
        await pilot.click(view, offset=(5, 4))
        assert view.cursor == 4
        await pilot.click(view, offset=(5, 4), times=2)
        assert app.of(LineView.Activated)[-1].index == 4
        await pilot.click(view, offset=(5, 6), control=True)
        assert view.marks == {"k6"}
        for _ in range(4):
            view._on_mouse_scroll_down(_wheel(view))
        await pilot.pause()
        top = view.scroll_offset.y
        assert top == 12
        assert top <= view.cursor < top + 10


def _wheel(view: LineView) -> Any:
    from textual.events import MouseScrollDown

    return MouseScrollDown(view, 1, 1, 0, 0, 0, False, False, False)


async def test_long_rows_scroll_sideways() -> None:
    source = Wide(5, {0: "0123456789" * 30})
    app = HostApp(LineView(source, gutter=False))
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("l")
        assert rows_of(app)[0].startswith("890123")
        await pilot.press("h", "h")
        assert rows_of(app)[0].startswith("012345")


async def test_a_tail_follows_the_end_until_one_moves_away() -> None:
    rows: list[list[tuple[str, str]]] = [[(f"line {n}", "")] for n in range(5)]
    view = LineView(ListSource(rows), tail=True)
    app = HostApp(view)
    async with app.run_test(size=(40, 10)) as pilot:
        view.set_lines(ListSource(rows))
        for n in range(5, 50):
            rows.append([(f"line {n}", "")])
        view.set_lines(ListSource(rows))
        assert view.cursor == 49
        await pilot.press("k")
        rows.append([("one more", "")])
        view.set_lines(ListSource(rows))
        assert view.cursor == 48


async def test_an_empty_list_says_what_to_press() -> None:
    app = HostApp(LineView(empty="press a to add a layer"))
    async with app.run_test(size=(40, 10)):
        assert "press a to add a layer" in rows_of(app)[0]


async def test_it_works_at_any_size() -> None:
    app, view, _ = app_with(1000)
    async with app.run_test(size=(1, 1)) as pilot:
        for size in ((1, 1), (3, 2), (20, 3), (200, 50), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.press("j", "pagedown", "G", "g", "space", "G")
            assert view.cursor == 999
        assert any("row 999" in row for row in rows_of(app))
