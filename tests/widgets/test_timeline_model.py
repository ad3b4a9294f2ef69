"""What a timeline draws: its scale, lanes, labels and cells."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from dld_tui.core.report.records import Track
from dld_tui.core.report.report import Report
from dld_tui.widgets.timeline.cells import (
    CURSOR,
    EMPTY,
    GAP,
    Cell,
    TimeScale,
    axis,
    labels,
    lane_cell,
    lane_cells,
    time_text,
    wide_spans,
    with_cursor,
)
from dld_tui.widgets.timeline.lanes import (
    Lane,
    Span,
    Timeline,
    highest,
    layout,
    measure,
    memory_rows,
    short_name,
    timeline_of,
    track_title,
)
from tests.support.report_files import HOSTILE, make_nested_report, make_report
from tests.support.work import steps_in


def span(start: float, end: float, key: int = 0, tone: int = 0) -> Span:
    return Span(start, end, key, tone, end - start)


def lane(*spans: Span) -> Lane:
    return Lane("thread 1", spans)


@pytest.mark.parametrize("at", [0.0, 10.0, 55.0, 99.9])
def test_a_span_of_no_length_is_seen_exactly_once(at: float) -> None:
    cells = lane_cells(lane(span(at, at, 1, 2)), TimeScale.fit(100, 10))
    assert [index for index, cell in enumerate(cells) if cell != EMPTY] == [int(at / 10)]


def test_sums_agree_with_exact_placing() -> None:
    seed = random.Random(5)
    at, spans = 0.0, []
    for index in range(400):
        at += seed.choice([0.0, 0.0, 0.3])
        length = seed.random()
        spans.append(span(at, at + length, index, seed.randrange(3)))
        at += length
    one = lane(*spans)
    for _ in range(50):
        start = seed.uniform(0, at - 30)
        end = start + 30
        busy = {0: 0.0, 1: 0.0, 2: 0.0, GAP: 30.0}
        for each in spans:
            overlap = min(each.end_us, end) - max(each.start_us, start)
            if overlap > 0:
                busy[each.tone] += overlap
                busy[GAP] -= overlap
        cell = lane_cell(one, start, end)
        largest = sorted(busy, key=lambda tone: -busy[tone])[:2]
        assert {cell.left, cell.right} == set(largest)
        share = busy[cell.left] / (busy[cell.left] + busy[cell.right])
        assert abs(cell.eighths / 8 - share) <= 1 / 8


def test_overlapping_spans_of_a_track_never_share_a_lane() -> None:
    seed = random.Random(7)
    spans = [
        span(start, start + seed.random() * 9, i)
        for i, start in enumerate(seed.random() * 100 for _ in range(300))
    ]
    lanes = layout([("stream 7", spans)])
    assert sum(len(each) for each in lanes) == 300
    for each in lanes:
        assert all(end <= start for end, start in zip(each.ends, each.starts[1:], strict=False))


def test_wide_spans_are_what_a_plain_scan_finds() -> None:
    seed = random.Random(3)
    at, spans = 0.0, []
    for index in range(3000):
        at += seed.choice([0.0, 0.01, 2.0])
        length = seed.choice([0.0, 0.001, 0.02, 5.0, 11.0])
        spans.append(span(at, at + length, index))
        at += length
    one = lane(*spans)
    for zoom in (1.0, 3.0, 40.0):
        scale = TimeScale.fit(at, 150).zoomed(zoom, about_us=at / 3)
        expected = [
            index
            for index, each in enumerate(spans)
            if each.end_us - each.start_us >= 2 * scale.us_per_cell
            and each.end_us >= scale.offset_us
            and each.start_us < scale.end_us
        ]
        assert wide_spans(one, scale, 2.0) == expected


def test_the_cursor_is_seen_at_every_zoom() -> None:
    one = lane(span(0, 49, 1), span(49, 49.5, 2), span(50, 100, 3))
    whole = TimeScale.fit(100, 20)
    small = with_cursor(lane_cells(one, whole), one, 1, whole)
    assert [cell.left for cell in small].count(CURSOR) == 1
    near = whole.zoomed(100, about_us=49.2)
    cells = with_cursor(lane_cells(one, near), one, 1, near)
    assert sum(cell == Cell(0, CURSOR, CURSOR) for cell in cells) > 5
    away = whole.zoomed(4, about_us=0)
    assert with_cursor(lane_cells(one, away), one, 2, away) == lane_cells(one, away)


def test_spans_are_found_by_time_and_by_layer() -> None:
    # Nearest prefers what runs.
    one = lane(span(0, 10, 1), span(40, 50, 2))
    assert [one.nearest(t) for t in (-5, 5, 12, 39, 45, 99)] == [0, 0, 0, 1, 1, 1]
    assert lane().nearest(3) is None
    # Find returns the longest span of a layer.
    line = Timeline(layout([("t", [span(0, 1, 7), span(5, 9, 7), span(9, 10, 8)])]), 10)
    assert line.find(7) == (0, 1)
    assert line.find(99) is None


def test_peaks_longest_and_measures_of_a_window() -> None:
    # Overview shows peaks of self time.
    parent = Span(0, 100, 1, 0, 5.0)
    line = Timeline(layout([("t", [parent, span(11, 39, 2), span(82, 89, 3)])]), 100)
    assert line.overview(10) == [5.0, 28.0, 28.0, 28.0, 5.0, 5.0, 5.0, 5.0, 7.0, 5.0]
    assert len(line.overview(5000)) == 5000
    assert max(found or 0 for found in line.overview(5000)) == 28.0
    assert Timeline([], 0).overview(3) == [None, None, None]
    assert line.overview(0) == []
    # Longest are of the window only.
    lanes = layout([("t", [Span(0, 50, 1, 0, 20.0), span(10, 40, 2), span(60, 95, 4)])])
    line = Timeline(lanes, 100)
    assert line.longest(0, 100, 2) == [(35.0, 4), (30.0, 2)]
    assert line.longest(0, 55, 5) == [(30.0, 2), (20.0, 1)]
    # Measure counts layers that lie inside.
    lanes = layout(
        [("t", [Span(0, 50, 1, 0, 20.0), span(10, 40, 2), span(50, 60, 3), span(60, 95, 4)])]
    )
    found = measure(Timeline(lanes, 100), 60, 0)
    assert (found.length_us, found.layers, found.self_us) == (60, 3, 60.0)


def many(count: int) -> Sequence[Span]:
    seed = random.Random(1)
    at, spans = 0.0, []
    for index in range(count):
        length = seed.expovariate(1 / 3)
        spans.append(span(at, at + length, index, seed.randrange(5)))
        at += length + 0.1
    return spans


def test_the_cost_of_a_repaint_depends_on_the_window_only() -> None:
    work = []
    for count in (2_500, 10_000):
        spans = many(count)
        scale = TimeScale.fit(spans[-1].end_us, 200)
        one = lane(*spans)
        work.append(steps_in(lane_cells, one, scale) + steps_in(labels, one, scale, {}))
    assert work[1] < 1.2 * work[0]


def test_a_pass_becomes_lanes_of_its_threads(tmp_path: Path) -> None:
    with Report.open(make_nested_report(tmp_path / "n.dldprof")) as report:
        line = timeline_of(report, 0)
    assert [(lane.title, list(lane.keys)) for lane in line.lanes] == [
        ("thread 1", [0, 1, 5]), ("", [2, 3, 4]), ("thread 2", [6]),
    ]  # fmt: skip
    assert line.total_us == 1000
    assert line.names[1] == ("If_0", "If_0", "Relu")
    with Report.open(make_report(tmp_path / "a.dldprof", passes=3)) as report:
        for index in range(3):  # times are of the pass
            (lane,) = timeline_of(report, index).lanes
            assert lane.starts[0] == 0
        assert timeline_of(report, 3).lanes == []  # which is not there


def test_names_for_bars_and_tracks_are_safe_and_short() -> None:
    assert short_name("/layer1/layer1.0/conv2/Conv") == "Conv"
    assert short_name("///") == ""
    titles = [("thread", "140706209270656"), ("thread", "main"), ("stream", "7")]
    assert [track_title(Track(0, *one), 2) for one in titles] == ["thread 2", "main", "7"]
    assert "\x1b" not in track_title(Track(0, "stream", HOSTILE), 1)


def test_the_activations_are_the_highest_of_each_part() -> None:
    """Against a plain look at many moments of each part."""
    randomly = random.Random(5)
    for _ in range(200):
        starts = sorted(randomly.sample(range(0, 1000, 10), randomly.randint(1, 30)))
        sizes = [float(randomly.randint(1, 99)) for _ in starts]
        begin, parts = randomly.randrange(0, 500, 20), randomly.choice([1, 5, 20])
        end = begin + 20 * parts
        shown = highest(starts, sizes, begin, end, parts)
        for number, bucket in enumerate(shown):
            moments = range(begin + 20 * number, begin + 20 * (number + 1))
            at = [[s for t, s in zip(starts, sizes, strict=True) if t <= m][-1:] for m in moments]
            known = [size for (size,) in filter(None, at)]
            assert (None if bucket is None else bucket.maximum) == max(known, default=None)


def test_a_report_without_memory_has_no_row_of_it(tmp_path: Path) -> None:
    with Report.open(make_report(tmp_path / "a.dldprof")) as report:
        assert memory_rows(report, report.pass_events(report.passes[0].index)) == []


@pytest.mark.parametrize("cells", [-500.0, 500.0])
def test_pan_stays_inside(cells: float) -> None:
    scale = TimeScale.fit(1000.0, 100).zoomed(2.0).panned(cells)
    assert 0.0 <= scale.offset_us <= 500.0
    assert scale.zoom == pytest.approx(2.0)


def test_the_window_moves_only_when_needed() -> None:
    # Resize keeps a whole view whole and a zoomed one at its scale.
    assert TimeScale.fit(1000.0, 100).resized(50).zoom == 1.0
    near = TimeScale.fit(1000.0, 100).zoomed(10.0, about_us=0.0)
    assert near.resized(200).us_per_cell == near.us_per_cell
    # Showing moves only when needed.
    scale = TimeScale.fit(1000.0, 100).zoomed(10.0, about_us=0.0)
    assert scale.showing(20.0, 30.0) == scale
    moved = scale.showing(500.0, 510.0)
    assert moved.offset_us < 500.0 < 510.0 < moved.end_us
    long = scale.showing(300.0, 900.0)
    assert long.offset_us < 300.0 < long.end_us
    # Framing puts a span in the middle.
    scale = TimeScale.fit(1000.0, 90).framing(400.0, 430.0)
    assert scale.cell_of(400.0) == pytest.approx(30.0)
    assert scale.cell_of(430.0) == pytest.approx(60.0)


@pytest.mark.parametrize("cells", [1, 7, 33, 80, 200])
@pytest.mark.parametrize("zoom", [1.0, 3.0, 1000.0])
def test_axis_labels_never_touch(cells: int, zoom: float) -> None:
    scale = TimeScale.fit(12345.6, cells).zoomed(zoom, about_us=4000.0)
    ticks = axis(scale).ticks
    for (cell, label), (following, _) in itertools.pairwise(ticks):
        assert cell + len(label) + 2 <= following
    assert all(cell >= 0 and cell + len(label) <= cells for cell, label in ticks)
    assert len({label for _, label in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("time_us", "text"),
    [(0.0, "0 µs"), (210.0, "0.210 ms"), (21.0, "21.0 µs"), (0.5, "500 ns"), (2.5e6, "2.50 s")],
)
def test_time_text(time_us: float, text: str) -> None:
    assert time_text(time_us) == text
