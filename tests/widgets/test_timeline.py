from __future__ import annotations

import random

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region

from dld_tui.core.text import cell_width
from dld_tui.widgets.shell.themes import THEMES
from dld_tui.widgets.timeline.cells import (
    ASCII_SHADES,
    CURSOR,
    EMPTY,
    GAP,
    TEXT,
    UNICODE_SHADES,
    Cell,
    Label,
    Run,
    TimeScale,
    axis,
    paint,
)
from dld_tui.widgets.timeline.lanes import Span, Timeline, layout
from dld_tui.widgets.timeline.timeline import TimelineView, axis_line
from tests.support.work import steps_in


class Host(App[None]):
    CSS = "TimelineView { height: 100%; } .line--span { color: red; }"

    def __init__(self, line: Timeline) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "dark"
        self.line = line
        self.moves: list[int] = []
        self.chosen: list[int] = []

    def compose(self) -> ComposeResult:
        yield TimelineView(empty="nothing here")

    def on_mount(self) -> None:
        view = self.query_one(TimelineView)
        view.set_timeline(self.line)
        view.focus()

    def on_timeline_view_cursor_moved(self, event: TimelineView.CursorMoved) -> None:
        self.moves.append(event.key)

    def on_timeline_view_activated(self, event: TimelineView.Activated) -> None:
        self.chosen.append(event.key)


def span(start: float, end: float, key: int) -> Span:
    return Span(start, end, key, 1, end - start)


def steps(count: int, length: float = 10.0) -> Timeline:
    spans = [span(n * length, (n + 1) * length, n) for n in range(count)]
    names = {n: (f"node_{n}", f"node_{n}", "Conv") for n in range(count)}
    return Timeline(layout([("thread 1", spans)]), count * length, names)


def text_of(view: TimelineView) -> str:
    return "\n".join(view.render_line(y).text for y in range(view.size.height))


async def test_keys_move_from_layer_to_layer_and_say_so() -> None:
    app = Host(steps(20))
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.press("right", "l", "left", "end", "right", "home", "h", "enter")
        assert app.moves == [1, 2, 1, 19, 0]
        assert app.chosen == [0]


async def test_the_window_moves_by_panning_and_with_the_cursor() -> None:
    app = Host(steps(50))
    async with app.run_test(size=(80, 12)) as pilot:
        # Panning moves the window and not the cursor.
        view = app.query_one(TimelineView)
        for _ in range(4):
            view.action_zoom_in()
        before = view.scale.offset_us
        await pilot.press("L", "pagedown")
        assert view.scale.offset_us > before
        await pilot.press("shift+left", "pageup", "pageup")
        assert view.scale.offset_us == 0
        assert app.moves == []
        # The cursor stays in view when zoomed.
        view = app.query_one(TimelineView)
        view.action_zoom_in()
        view.action_zoom_in()
        assert view.scale.zoom > 2
        await pilot.press("end")
        assert view.scale.end_us == view.timeline.total_us
        await pilot.press("home")
        assert view.scale.offset_us == 0
        view.action_zoom_reset()
        assert view.scale.zoom == 1


async def test_a_move_repaints_only_the_spans_it_touches_and_the_text_below() -> None:
    app = Host(steps(20))
    async with app.run_test(size=(110, 14)) as pilot:
        view = app.query_one(TimelineView)
        await pilot.pause()
        painted: list[Region] = []

        def noting(*regions: Region, **_: object) -> TimelineView:
            painted.extend(regions or (view.size.region,))
            return view

        view.refresh = noting  # type: ignore[method-assign]
        await pilot.press("right")
        lanes = [region for region in painted if region.y < 2 + view.lane_rows]
        assert lanes
        assert all(region.y == 2 and region.width <= 16 for region in lanes)
        assert any(region.y == 2 + view.lane_rows for region in painted)


async def test_lanes_scroll_when_there_are_more_than_rows() -> None:
    app = Host(Timeline(layout([(f"t{n}", [span(0, 5, n)]) for n in range(30)]), 5))
    async with app.run_test(size=(80, 10)) as pilot:
        view = app.query_one(TimelineView)
        assert "t29" not in text_of(view)
        assert (view.lane_height, view.lane_rows, view.lanes_seen) == (1, 7, 7)
        await pilot.click(view, offset=(40, 2 + view.lane_rows))  # what is said of a span
        assert view.key_at_cursor() == 0
        for _ in range(40):
            await pilot.press("down")
        assert view.key_at_cursor() == 29
        assert "t29" in text_of(view)


async def test_clicks_choose_a_span_and_the_overview_moves_the_window() -> None:
    app = Host(steps(10))
    async with app.run_test(size=(110, 12)) as pilot:
        view = app.query_one(TimelineView)
        await pilot.click(TimelineView, offset=(10 + 55, 3))
        assert view.key_at_cursor() == 5
        await pilot.click(TimelineView, offset=(10 + 15, 3), times=2)
        assert app.chosen == [1]
        for _ in range(5):
            view.action_zoom_in()
        await pilot.click(TimelineView, offset=(10 + 95, 0))
        assert view.scale.end_us > 90
        await pilot.click(TimelineView, offset=(3, 11))


async def test_nothing_to_show_says_so() -> None:
    app = Host(Timeline([], 0))
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.press("right", "down", "space", "enter", "home", "end", "pagedown")
        assert "nothing here" in text_of(app.query_one(TimelineView))


async def test_any_size_draws() -> None:
    app = Host(steps(30))
    async with app.run_test(size=(80, 12)) as pilot:
        view = app.query_one(TimelineView)
        for size in ((20, 3), (11, 1), (200, 50), (80, 5)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            drawn = {view.render_line(y).cell_length for y in range(view.size.height)}
            assert drawn == {view.size.width}


def dense(count: int) -> Timeline:
    dice = random.Random(2)
    at, spans = 0.0, []
    for key in range(count):
        length = dice.expovariate(0.2)
        spans.append(Span(at, at + length, key, dice.randrange(6), length))
        at += length
    return Timeline(layout([("thread 1", spans)]), at)


@pytest.mark.broad
async def test_the_cost_of_zooming_does_not_depend_on_the_number_of_spans() -> None:
    app = Host(dense(20))
    async with app.run_test(size=(200, 50)):
        view = app.query_one(TimelineView)

        def zoom() -> None:
            for action in (view.action_zoom_in, view.action_zoom_in, view.action_zoom_out):
                action()
                text_of(view)

        work = []
        for count in (20, 3_000, 12_000):
            view.set_timeline(dense(count))
            work.append(steps_in(zoom))
        assert work[2] < 2 * work[1]  # with four times the spans


BAR = Cell(0, 2, 2)


def test_whole_cells_are_paper_and_borders_are_eighths() -> None:
    assert paint([BAR, BAR, Cell(3, 2, 5), EMPTY], []) == [
        Run("  ", TEXT, 2),
        Run("▍", 2, 5),
        Run(" ", TEXT, GAP),
    ]


def test_a_label_lies_on_its_bar() -> None:
    assert paint([BAR] * 6, [Label(1, 4, "Conv")]) == [Run(" Conv ", TEXT, 2)]


def test_a_wide_label_takes_its_cells() -> None:
    (run,) = paint([BAR] * 6, [Label(1, 4, "畳込")])
    assert run.text == " 畳込 "
    assert cell_width(run.text) == 6


def test_without_colours_tones_cursor_and_borders_are_glyphs() -> None:
    cells = [
        Cell(0, 0, 0), Cell(0, 5, 5), Cell(0, CURSOR, CURSOR), Cell(4, GAP, 5), Cell(2, 5, GAP),
        Cell(7, 5, GAP), Cell(2, 0, 5), EMPTY,
    ]  # fmt: skip
    assert "".join(run.text for run in paint(cells, [], UNICODE_SHADES)) == "░█▚▐▌██ "
    ascii_text = "".join(run.text for run in paint(cells, [], ASCII_SHADES))
    assert ascii_text == ".#@|'## "
    assert ascii_text.isascii()


def test_the_axis_says_its_unit_even_where_ticks_fill_it() -> None:
    for total_us, cells in ((433.0, 58), (433.0, 20), (12_000.0, 40)):
        scale = TimeScale.fit(total_us, cells)
        text = "".join(part for part, _ in axis_line(scale, 20))
        assert text[:20].split()[-1] == axis(scale).unit
        assert text[20] == "0"
