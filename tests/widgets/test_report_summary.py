from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.report.measured_facts import MeasuredFact
from dld_tui.core.report.report import Report
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.widgets.charts.bars import width_of
from dld_tui.widgets.results import report_views
from dld_tui.widgets.results.report_views import (
    costliest,
    input_shapes,
    precisions,
    summary_lines,
    when,
)
from tests.support.report_files import HOSTILE, layer, make_report, writer


def shown(path: Path, width: int = 160, advice: tuple[Note, ...] = ()) -> str:
    with Report.open(path) as report:
        lines = summary_lines(report, advice, width)
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def test_summary_names_what_was_measured_and_its_figures(tmp_path: Path) -> None:
    path = make_report(tmp_path / "a.dldprof")
    with Report.open(path) as report:
        latency = report.latency
        top = costliest(report.layers)[0]
    assert latency is not None
    text = shown(path)
    for wanted in ("tiny.onnx", "ONNX Runtime 1.31.1", "CPU", "a processor", "fp32", "20 passes"):
        assert wanted in text
    for name, value in (("min", latency.min), ("p90", latency.p90), ("p99", latency.p99)):
        assert f"{name}" in text
        assert f"{value:.3f}" in text
    assert "CoV" in text
    assert "inferences/s" in text
    assert top.name.rpartition("/")[2] in text
    assert "100 % of time joined to ONNX nodes" in text
    assert "PARTIAL" not in text


@pytest.mark.parametrize("width", [20, 60, 78, 120, 198])
def test_summary_fits_any_width(tmp_path: Path, width: int) -> None:
    path = make_report(tmp_path / "a.dldprof", names=[HOSTILE * 20])
    with Report.open(path) as report:
        lines = summary_lines(report, [Note(NoteKind.WARNING, "word " * 60)], width)
    assert {width_of(line) for line in lines} == {width}


def test_partial_is_said_loudly(tmp_path: Path) -> None:
    path = make_report(tmp_path / "a.dldprof", finish=False)
    with Report.open(path) as report:
        lines = summary_lines(report, [], 100)
    (text, style) = lines[1][0]
    assert "PARTIAL REPORT" in text
    assert "warn" in style


def test_a_report_with_nothing_in_it_says_so(tmp_path: Path) -> None:
    path = writer(tmp_path / "empty.dldprof").finish()
    text = shown(path)
    assert "no latency was measured" in text
    assert "no layer was measured" in text


def test_one_pass_and_zero_durations(tmp_path: Path) -> None:
    path = make_report(tmp_path / "z.dldprof", layers=3, passes=1, latencies=1, zero=True)
    text = shown(path)
    assert "1 pass" in text
    assert "passes ·" not in text


def test_profiled_passes_are_named_when_there_was_no_latency_loop(tmp_path: Path) -> None:
    assert "of profiled passes" in shown(make_report(tmp_path / "p.dldprof", latencies=0))


def test_hostile_names_are_shown_safely(tmp_path: Path) -> None:
    path = make_report(tmp_path / "h.dldprof", layers=1, names=[HOSTILE], network=HOSTILE)
    text = shown(path)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert visible(HOSTILE)[:20] in text


def test_advice_is_wrapped_and_marked(tmp_path: Path) -> None:
    path = make_report(tmp_path / "a.dldprof")
    text = shown(
        path, 60, (Note(NoteKind.WARNING, "too noisy " * 12), Note(NoteKind.INFO, "a note"))
    )
    assert " ▲ too noisy" in text
    assert " · a note" in text


def test_precisions_by_share_of_time() -> None:
    def one(index: int, precision: str | None, time_ms: float) -> object:
        return layer(index, precision=precision, time_ms=time_ms)

    layers = [one(0, "float16", 3.0), one(1, "float32", 1.0), one(2, None, 9.0)]
    assert precisions(layers) == "fp16 75 %, fp32 25 %"  # type: ignore[arg-type]
    assert precisions(layers[:1]) == "fp16"  # type: ignore[arg-type]
    assert precisions([]) == ""


def test_input_shapes_are_named_and_counted() -> None:
    shapes: dict[str, JSON] = {"x": [8, 3, 224, 224], "flag": [], "m": [8, "N"], "z": [None]}
    assert input_shapes({"input_shapes": shapes}) == "x 8x3x224x224  m 8xN +1"
    assert input_shapes({"input_shapes": {HOSTILE: [1]}}).isprintable()
    assert input_shapes({}) == input_shapes({"input_shapes": [1]}) == ""


def test_times_are_written_for_people() -> None:
    assert when("2026-11-21T14:02:59+00:00") == "2026-11-21 14:02"
    assert when("2026-11-21T14:02:59Z") == "2026-11-21 14:02"
    assert when("yesterday\x1b") == "yesterday\\x1b"


def test_what_most_names_share_is_left_out(tmp_path: Path) -> None:
    names = [f"/backbone/stage/{kind}_{kind}" for kind in "abcdefghi"]
    path = make_report(tmp_path / "a.dldprof", 9, names=names)
    text = shown(path)
    assert "/backbone" not in text
    with Report.open(path) as report:
        for one in costliest(report.layers):
            assert one.name.rpartition("/")[2] in text


def test_long_facts_are_wrapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"word{number}" for number in range(60)]
    found = [MeasuredFact("limited by", " ".join(words))]
    monkeypatch.setattr(report_views, "measured_facts", lambda report: found)
    path = make_report(tmp_path / "a.dldprof")
    for width in (40, 78, 160, 198):
        text = shown(path, width)
        assert [word for word in text.split() if word.startswith("word")] == words
