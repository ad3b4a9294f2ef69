"""Panes of a report: the answer, bars, details of layers, the environment."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from dld_tui.core import fmt
from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.report import store
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
from tests.support.graph_panes import painted
from tests.support.recorded import Recorded, settled
from tests.support.report_files import HOSTILE, make_report, writer
from tests.support.transcript_files import FILES

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


def text_of(lines: list[Line]) -> str:
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def shown(path: Path, width: int = 76, room: int = 20) -> str:
    with Report.open(path) as report:
        return text_of(answer_lines(report, width, room))


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


def test_times_are_written_for_people() -> None:
    assert when("2026-11-21T14:02:59+00:00") == "2026-11-21 14:02"
    assert when("2026-11-21T14:02:59Z") == "2026-11-21 14:02"
    assert when("yesterday\x1b") == visible("yesterday\x1b")


_FACTS: dict[str, dict[str, JSON]] = {
    "not steady": {
        "gpu_clocks_locked": False, "gpu_throttling": "none", "gpu_throttling_after": "power cap",
        "gpu_power_w": 650.25, "jetson_power_mode": "MAXN\x1b[2J",
    },
    "moved": {"gpu_sm_mhz": 1980.0, "gpu_sm_mhz_lowest": 1755.0, "gpu_sm_mhz_highest": 1980.0},
    "calm": {"gpu_throttling": "none", "gpu_clocks_locked": 1590},
}  # fmt: skip
_REPORTS: dict[str, Callable[[Path], object]] = {
    **{name: FILES[f"{name}.dldprof"] for name in ("net", "rich", "gpu", "nested", "decoder",
                                                   "killed", "apart", "busy")},
    "many": partial(make_report, layers=25),
    "one pass": partial(make_report, layers=3, passes=1, latencies=1, zero=True),
    "profiled": partial(make_report, latencies=0),
    "empty": lambda path: writer(path).finish(),
}  # fmt: skip


def test_views_of_reports(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = datetime(2026, 1, 2, tzinfo=timezone.utc)
    monkeypatch.setattr(store, "datetime", Mock(now=lambda zone: created))
    texts = {}
    for title, make in _REPORTS.items():
        path = tmp_path / f"{title}.dldprof"
        make(path)
        with Report.open(path) as report:
            for width, room in ((44, 9), (76, 19), (150, 30)):
                texts[f"{title}: answer, {width}"] = painted(answer_lines(report, width, room))
            texts[f"{title}: doubts"] = painted(doubt_lines(report, 60, 2))
            shares = [*share_lines(report, 60, 3), *slowest_lines(report.layers, 60, 4)]
            texts[f"{title}: shares"] = painted(shares)
            texts[f"{title}: environment"] = painted(environment_lines(report, None))
            layers = [layer_lines(one, 120.0, 1500.0, 70) for one in report.layers[:3]]
            texts[f"{title}: layers"] = painted(line for lines in layers for line in lines)
    for values, width in (([1.0, 2.0, 4.0] * 50, 60), ([3.0], 40), ([], 60), ([1.0], 10)):
        texts[f"passes, {len(values)} in {width}"] = painted(passes_lines(values, width, 3))
    notes = [Note(NoteKind.WARNING, "too noisy " * 12), Note(NoteKind.INFO, "a note")]
    texts["advice"] = painted([*advice_lines(notes, 60), *advice_lines([], 60)])
    for is_percent in (False, True):
        rows = BarRows(chart_rows(GROUPS, is_percent))
        texts[f"bars, {is_percent}"] = painted(rows.line(at, 50) for at in range(len(rows)))
    for title, facts in _FACTS.items():
        texts[title] = "\n".join(map(str, device_rows(facts)))
    recorded("views_of_reports", {name: settled(text, tmp_path) for name, text in texts.items()})
