from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import textual
from textual.app import App, ComposeResult

from dld_tui.core.report.records import GpuEvent
from dld_tui.core.report.report import Report
from dld_tui.widgets.charts.bars import width_of
from dld_tui.widgets.shell.themes import THEMES
from dld_tui.widgets.timeline.lanes import (
    Span,
    Timeline,
    layout,
    measure,
    timeline_of,
)
from dld_tui.widgets.timeline.timeline import TimelineView, event_lines, kernels_line, span_lines
from tests.support.gpu_reports import gpu_writer, make_gpu_report
from tests.support.recorded import Recorded
from tests.support.report_files import HOSTILE, make_nested_report
from tests.support.tui import HostApp
from tests.support.walks import Steps, walked
from tests.support.work import steps_in


class Host(App[None]):
    CSS = "TimelineView { height: 100%; } .line--span { color: red; }"

    def __init__(self, report: Report, index: int = 0) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "dark"
        self.report, self.index = report, index
        self.moves: list[int] = []

    def compose(self) -> ComposeResult:
        yield TimelineView()

    def on_mount(self) -> None:
        view = self.query_one(TimelineView)
        view.describe = lambda room: span_lines(view, self.report.layers, room)
        view.set_timeline(timeline_of(self.report, self.index))
        view.focus()

    def on_timeline_view_cursor_moved(self, event: TimelineView.CursorMoved) -> None:
        self.moves.append(event.key)


@pytest.fixture
def report(tmp_path: Path) -> Iterator[Report]:
    with Report.open(make_gpu_report(tmp_path / "g.dldprof")) as found:
        yield found


def text_of(view: TimelineView) -> str:
    return "\n".join(view.render_line(y).text for y in range(view.size.height))


def test_streams_come_below_threads_and_overhead_last(report: Report) -> None:
    line = timeline_of(report, 0)
    assert [lane.title for lane in line.lanes] == ["thread 1", "stream 7", "stream 13", "overhead"]
    assert [lane.gpu for lane in line.lanes] == [False, True, True, True]


def test_measure_sums_the_time_in_which_the_gpu_was_busy(report: Report) -> None:
    line = timeline_of(report, 0)
    events = [event for event in report.gpu_events(0) if event.kind == "kernel"]
    first, last = events[0], events[-1]
    end = last.start_us + last.duration_us
    found = measure(line, first.start_us, end, on_gpu=True)
    assert found.gpu_us == pytest.approx(sum(event.duration_us for event in events))
    assert found.layers == 11
    half = measure(line, first.start_us + first.duration_us / 2, first.start_us, on_gpu=True)
    assert half.gpu_us == pytest.approx(first.duration_us / 2)
    launches = measure(line, 0.0, line.total_us)
    assert (launches.layers, launches.self_us) == (12, 120.0)


async def test_any_size_draws(report: Report) -> None:
    app = Host(report)
    async with app.run_test(size=(20, 3)) as pilot:
        view = app.query_one(TimelineView)
        for size in ((20, 3), (40, 8), (80, 10), (80, 21), (200, 50)):
            await pilot.resize_terminal(*size)
            await pilot.press("down", "space", "end", "plus")
            for y in range(view.size.height):
                assert view.render_line(y).cell_length == view.size.width


def crowded(path: Path, kernels: int) -> Path:
    with gpu_writer(path) as writer:
        writer.add_pass(0, 0.0, 50.0 * kernels)
        writer.add_gpu_events(
            0, [GpuEvent("s", "kernel", "k", 50.0 * n, 40.0) for n in range(kernels)]
        )
        for name in ("a", "b"):
            counter = writer.add_counter(name, name, "%", 100.0, "cupti-pm")
            samples = ((5.0 * n, n % 100.0) for n in range(10 * kernels))
            writer.add_counter_samples(counter, samples)
    return path


@pytest.mark.broad
async def test_the_cost_of_zoom_and_pan_does_not_depend_on_the_number_of_samples(
    tmp_path: Path,
) -> None:
    work = []
    for kernels in (400, 1600):
        with Report.open(crowded(tmp_path / f"{kernels}.dldprof", kernels)) as report:
            app = Host(report)
            async with app.run_test(size=(200, 50)):
                view = app.query_one(TimelineView)

                def move(view: TimelineView = view) -> None:
                    for _ in range(2):
                        view.action_zoom_in()
                        text_of(view)
                        view.action_pan("right")
                        text_of(view)

                move()  # styles are made at first use
                view.action_zoom_reset()
                work.append(steps_in(move))
    assert work[1] < 1.5 * work[0]


def timeline_steps(view: TimelineView) -> Steps:
    many = layout([(f"t{n}", [Span(n, 5.0 + n, n, 1, 5.0)]) for n in range(30)])
    return {
        "right right ~": None, "X ~": None, "X": None, "home X": None, "right right right": None,
        "down home ~": None, "enter X": None, "space right space ~": None, "escape": None,
        "up home space end space": None, "plus plus plus ~": None, "right": None, "L": None,
        "pagedown": None, "shift+left": None, "pageup pageup": None, "end": None, "home": None,
        "minus": None, "0": None, "click:80,4": None, "double:60,3": None, "click:80,10": None,
        "plus plus plus plus click:100,1": None, "click:4,20": None, "0 tab": None,
        "80x21": None, "40x8 ~": None, "20x3": None, "200x40 ~": None, "right ": None,
        "many": lambda: view.set_timeline(Timeline(many, 40.0)), "110x12": None,
        "down down down": None, "end ": None, "down down down down down down down down": None,
        "nothing": lambda: view.set_timeline(Timeline([], 0)),
        "right down space enter home end pagedown": None,
    }  # fmt: skip


@pytest.mark.broad
@pytest.mark.skipif(textual.__version__ != "8.2.8", reason="as Textual 8.2.8 draws")
@pytest.mark.parametrize("kind", ["gpu", "unmeasured", "partly", "nested"])
async def test_walks_through_timelines(kind: str, tmp_path: Path, recorded: Recorded) -> None:
    path = tmp_path / "g.dldprof"
    if kind == "unmeasured":
        why = "add the user to the group debug\x1b[2J"
        make_gpu_report(path, absent="no libcupti", no_counters=why)
    elif kind == "partly":
        with gpu_writer(path) as writer:
            writer.add_pass(0, 0.0, 100.0)
            writer.add_gpu_events(0, [GpuEvent("s", "kernel", "k", 0.0, 50.0)])
            counter = writer.add_counter("c", "SM", "%", 100.0, "cupti-pm")
            writer.add_counter_samples(counter, [(1000.0 + n, 5.0) for n in range(50)])
    else:
        (make_gpu_report if kind == "gpu" else make_nested_report)(path)
    view = TimelineView(empty="nothing here")
    app = HostApp(view)
    with Report.open(path) as found:
        async with app.run_test(size=(120, 24), message_hook=app.note) as pilot:
            view.describe = lambda room: span_lines(view, found.layers, room)
            view.set_timeline(timeline_of(found, 0))
            view.focus()
            steps = timeline_steps(view)
            few = dict([*steps.items()][: None if kind in ("gpu", "nested") else 9])
            texts = await walked(app, pilot, few)
    recorded(f"walk_of_timeline_{kind}", texts)


def test_details_of_everything_fit(report: Report) -> None:
    events = report.gpu_events(0)
    for width in (40, 80, 200):
        line = kernels_line([event for event in events if event.layer == 5], width)
        assert width_of(line) <= width + 8
        for event in events:
            layer = None if event.layer is None else report.layers[event.layer]
            lines = event_lines(event, layer, width)
            assert width_of(lines[0]) <= width
    unknown = event_lines(GpuEvent("s", "kernel", HOSTILE, 0.0, 0.0, None, 5), None, 80)
    text = "".join(part for line in unknown for part, _ in line)
    assert "\x1b" not in text
    assert "not attributed to a layer" in text
    assert "GB/s" not in text
