from __future__ import annotations

from pathlib import Path

from dld_tui.core.report.model import Report
from dld_tui.core.report.records import Track
from dld_tui.widgets.timeline.model import short_name, timeline_of, track_title
from tests.support.report_files import HOSTILE, make_nested_report, make_report


def test_a_pass_becomes_lanes_of_its_threads(tmp_path: Path) -> None:
    with Report.open(make_nested_report(tmp_path / "n.dldprof")) as report:
        line = timeline_of(report, 0)
    assert [(lane.title, list(lane.keys)) for lane in line.lanes] == [
        ("thread 1", [0, 1, 5]),
        ("", [2, 3, 4]),
        ("thread 2", [6]),
    ]
    assert line.total_us == 1000
    assert line.names[1] == ("If_0", "If_0", "Relu")


def test_times_are_of_the_pass(tmp_path: Path) -> None:
    with Report.open(make_report(tmp_path / "a.dldprof", passes=3)) as report:
        for index in range(3):
            line = timeline_of(report, index)
            assert line.lanes[0].starts[0] == 0
            assert len(line.lanes) == 1


def test_a_pass_that_is_not_there_is_empty(tmp_path: Path) -> None:
    with Report.open(make_report(tmp_path / "a.dldprof", passes=0)) as report:
        assert timeline_of(report, 0).lanes == []


def test_names_for_bars_and_tracks_are_safe_and_short() -> None:
    assert short_name("/layer1/layer1.0/conv2/Conv") == "Conv"
    assert short_name("///") == ""
    assert track_title(Track(0, "thread", "140706209270656"), 2) == "thread 2"
    assert "\x1b" not in track_title(Track(0, "stream", HOSTILE), 1)
