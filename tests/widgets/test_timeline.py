from __future__ import annotations

import random

import pytest
from textual.app import App, ComposeResult

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
