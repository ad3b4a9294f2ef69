"""Panes of a report: the answer, bars, details of layers, the environment."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core import fmt
from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.reading import first_lines
from dld_tui.core.report.generation import GenerationFigures
from dld_tui.core.report.records import Group
from dld_tui.core.report.report import Report
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.widgets.charts.bars import Line, width_of
from dld_tui.widgets.charts.report_charts import BarRows, chart_rows
from dld_tui.widgets.results.report_views import (
    advice_lines,
    device_rows,
    environment_lines,
    layer_lines,
    passes_lines,
    when,
)
from dld_tui.widgets.results.summary import answer_lines, doubt_lines, share_lines, slowest_lines
from tests.support.gpu_reports import make_gpu_report
from tests.support.report_files import HOSTILE, layer, make_report, writer

GROUPS = (
    Group("Conv", 12, 3.0, 75.0, cost_ms=3.0),
    Group(HOSTILE, 1, 1.0, 25.0, cost_ms=1.0),
    Group("Cast", 2, 0.0, 0.0),
)


@pytest.mark.parametrize("width", [20, 40, 78, 198])
@pytest.mark.parametrize("percent", [False, True])
def test_bars_take_the_width_and_keep_their_proportion(width: int, percent: bool) -> None:
    rows = BarRows(chart_rows(GROUPS, percent))
    lines = [rows.line(index, width) for index in range(len(rows))]
    bars = [next(text for text, style in line if style.startswith("heat")) for line in lines]
    if width > 30:
        assert all(width_of(line) <= width for line in lines)
        assert bars[0].strip() == "█" * len(bars[0])
        assert abs(len(bars[1].strip()) - len(bars[0]) / 3) <= 1
    assert not bars[2].strip()


def test_values_of_the_bars() -> None:
    assert [row.value for row in chart_rows(GROUPS, False)][:2] == ["3.000 ms", "1.000 ms"]
    assert [row.value for row in chart_rows(GROUPS, True)][:2] == ["75.0 %", "25.0 %"]
    assert "\x1b" not in chart_rows(GROUPS, False)[1].label
    assert chart_rows((), False) == []


def test_latency_over_passes_has_its_scale_beside_it() -> None:
    lines = passes_lines([1.0, 2.0, 4.0] * 50, 60, 3)
    texts = ["".join(text for text, _ in line) for line in lines]
    assert texts[0].endswith("4.00")
    assert texts[-1].endswith("1.00")
    assert {width_of(line) for line in lines} <= set(range(50, 61))
    assert passes_lines([], 60, 3) == []
    assert passes_lines([1.0], 10, 3) == []


@pytest.mark.parametrize("width", [40, 80, 200])
def test_details_of_a_layer_fit(width: int) -> None:
    one = replace(layer(0, "/x" * 500), time_ms=1.5, percent=20.0, min_ms=1.0, max_ms=2.0)
    lines = layer_lines(one, 120.0, 1500.0, width)
    assert width_of(lines[0]) <= width
    text = "".join(part for line in lines for part, _ in line)
    assert "1.500 ms" in text
    assert "0.120 ms" in text
    assert "1.50 ms" in text
    assert "1x8x16x16" in text


def test_the_gpu_comes_first_with_units_and_what_changed_in_the_run(tmp_path: Path) -> None:
    with Report.open(make_gpu_report(tmp_path / "g.dldprof")) as report:
        lines = environment_lines(report, None)
    texts = ["".join(text for text, _ in line).strip() for line in lines]
    assert texts.index("GPU, clocks and power") < texts.index("Environment")
    assert texts.index("python  3.11") > texts.index("Environment")
    found = {line.split("  ")[0]: line for line in texts}
    assert "1,980 MHz, after the run 1,755 MHz" in found["sm"]
    assert "151 GB" in found["memory"]
    assert "31 °C" in found["temperature"]
    assert not any("after" in name for name in found)


def test_throttling_and_floating_clocks_are_warnings() -> None:
    facts: dict[str, JSON] = {
        "gpu_clocks_locked": False, "gpu_throttling": "none", "gpu_throttling_after": "power cap",
        "gpu_power_w": 650.25, "jetson_power_mode": "MAXN\x1b[2J",
    }  # fmt: skip
    rows = {name: (text, style) for name, text, style in device_rows(facts)}
    assert rows["clocks locked"] == ("no", "warn")
    assert rows["throttling"] == ("none, after the run power cap", "warn")
    assert rows["power"] == ("650.2 W", "")
    assert rows["jetson power mode"] == ("MAXN\\x1b[2J", "")
    moved: dict[str, JSON] = {
        "gpu_sm_mhz": 1980.0,
        "gpu_sm_mhz_lowest": 1755.0,
        "gpu_sm_mhz_highest": 1980.0,
    }
    assert device_rows(moved) == [("sm", "1,980 MHz (1,755 MHz to 1,980 MHz)", "")]
    calm: dict[str, JSON] = {"gpu_throttling": "none", "gpu_clocks_locked": 1590}
    assert {style for _, _, style in device_rows(calm)} == {""}


def text_of(lines: list[Line]) -> str:
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def shown(path: Path, width: int = 76, room: int = 20) -> str:
    with Report.open(path) as report:
        return text_of(answer_lines(report, width, room))


def test_the_answer_has_the_figures_of_the_first_lines(tmp_path: Path) -> None:
    path = make_report(tmp_path / "a.dldprof", layers=25)
    text = shown(path, 120)
    with Report.open(path) as report:
        latency, told = report.latency, "\n".join(first_lines.text_lines(report))
    assert latency is not None
    for wanted in (*first_lines.spread(latency), first_lines.rate_text(latency), "20 passes"):
        assert wanted in text
        assert wanted in told
    assert "median" in text


def test_shares_and_layers_are_those_of_a_plain_sum(tmp_path: Path) -> None:
    path = make_report(tmp_path / "a.dldprof", layers=25)
    with Report.open(path) as report:
        costs = [(layer.cost_ms or 0.0, layer.type) for layer in report.layers]
        lines = text_of(share_lines(report, 76, 2))
        slow = text_of(slowest_lines(report.layers, 66, 3)).splitlines()
        named = {layer.nodes[0].label: layer.cost_ms or 0.0 for layer in report.layers}
    whole = sum(cost for cost, _ in costs)
    parts = {kind: sum(cost for cost, other in costs if other == kind) for _, kind in costs}
    percents = [100 * part / whole for part in sorted(parts.values(), reverse=True)]
    told = [float(text) for text in re.findall(r"([\d.]+) %", lines)]
    assert told[: len(told) - 1] == pytest.approx(percents[: len(told) - 1], abs=0.051)
    assert sum(told) == pytest.approx(100, abs=0.1 * len(told))
    bars = re.findall("[█▏▎▍▌▋▊▉]+", lines)
    assert [len(bar) for bar in bars] == sorted(map(len, bars), reverse=True)
    for line, cost in zip(slow, sorted(named.values(), reverse=True), strict=False):
        name = line.split()[1]
        assert named[name] == cost
        assert f" {fmt.three_digits(cost)} ms" in line


@pytest.mark.parametrize("width", [20, 60, 76, 120, 198])
@pytest.mark.parametrize("room", [3, 9, 19])
def test_the_answer_fits_any_size(tmp_path: Path, width: int, room: int) -> None:
    path = make_report(tmp_path / "a.dldprof", layers=9, names=[HOSTILE * 20])
    with Report.open(path) as report:
        lines = answer_lines(report, width, room)
    assert {width_of(line) for line in lines} == {width}
    assert len(lines) <= room
    text = text_of(lines)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_names_are_cut_where_they_are_equal(tmp_path: Path) -> None:
    long = [f"model/encoder/layers/{n}/attention/self/query/{'x' * 40}" for n in range(9)]
    path = make_report(tmp_path / "a.dldprof", 9, names=long)
    rows = [line for line in shown(path).splitlines() if "x" * 9 in line]
    assert len({re.sub(r"^.{11}", "", row).split()[0] for row in rows}) == len(rows) > 2


def test_doubts_are_told_in_whole_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [["It was busy.", "Its order is not certain."], [f"Sentence {n}." for n in range(9)]]
    monkeypatch.setattr("dld_tui.widgets.results.summary.doubts", lambda report: said)
    with Report.open(make_report(tmp_path / "a.dldprof")) as report:
        for width, most in ((40, 1), (60, 1), (60, 2), (200, 2)):
            text = " ".join(text_of(doubt_lines(report, width, most)).split())
            told, _, more = text.removeprefix("▲ ").partition(" … 5 tells more")
            assert " ".join(said[0] + said[1]).startswith(told)
            assert told.endswith(".")
            assert more == ""
            assert len(doubt_lines(report, width, most)) <= most


@pytest.mark.parametrize("width", [40, 66, 76, 120])
def test_both_figures_of_a_decoder_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    made = GenerationFigures(1, 512, 64, 6.4, 6.61, 120.0, (1.6, 1.7, 1.8), 1000)
    monkeypatch.setattr("dld_tui.widgets.results.summary.generation_of", lambda report: [made])
    text = shown(make_report(tmp_path / "a.dldprof"), width)
    for wanted in ("to the first token", "prompt 512, batch 1", "tokens/s", "1.88 ms each"):
        assert wanted in text


def test_partial_is_said_first(tmp_path: Path) -> None:
    path = make_report(tmp_path / "a.dldprof", finish=False)
    with Report.open(path) as report:
        [(_, style), (text, _)] = doubt_lines(report, 100, 1)[0]
    assert text.startswith("Partial: ")
    assert style == "warn"


def test_a_report_with_nothing_in_it_says_so(tmp_path: Path) -> None:
    text = shown(writer(tmp_path / "empty.dldprof").finish())
    assert "no latency was measured" in text
    assert "no layer was measured" in text


def test_one_pass_and_zero_durations(tmp_path: Path) -> None:
    path = make_report(tmp_path / "z.dldprof", layers=3, passes=1, latencies=1, zero=True)
    assert "1 pass\n" in shown(path)


def test_profiled_passes_are_named_when_there_was_no_latency_loop(tmp_path: Path) -> None:
    assert "median with profiling on" in shown(make_report(tmp_path / "p.dldprof", latencies=0))


def test_notes_are_wrapped_and_marked() -> None:
    notes = [Note(NoteKind.WARNING, "too noisy " * 12), Note(NoteKind.INFO, "a note")]
    text = text_of(advice_lines(notes, 60))
    assert text.startswith(" ▲ too noisy")
    assert "\n · a note" in text


def test_times_are_written_for_people() -> None:
    assert when("2026-11-21T14:02:59+00:00") == "2026-11-21 14:02"
    assert when("2026-11-21T14:02:59Z") == "2026-11-21 14:02"
    assert when("yesterday\x1b") == visible("yesterday\x1b")
