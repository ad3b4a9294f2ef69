"""Pages, cards, traces and documents of whole reports, compared with the files beside."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dld_tui.core.reading.card import card_lines, card_svg
from dld_tui.core.reading.export import (
    Graph,
    Lane,
    Span,
    layers_csv,
    report_json,
    report_page,
    timeline,
)
from dld_tui.core.reading.first_lines import brief, headline, title
from dld_tui.core.report.formats.chrome_trace import trace_lines
from dld_tui.core.report.report import Report
from dld_tui.core.tables.html_page import SCRIPT, STYLE, digest
from dld_tui.core.types import JSON
from tests.support.recorded import Recorded
from tests.support.report_files import writer
from tests.support.transcript_files import FILES

REPORTS = {
    "cards": (
        "apart", "busy", "decoder", "fork", "fused", "gpu", "killed", "nested", "rich", "profiled"
    ),
    "documents": ("busy", "decoder", "fork", "gpu", "nested", "rich"),
    "pages": ("bare", "busy", "decoder", "gpu", "nested", "rich"),
    "traces": ("gpu", "nested", "rich"),
}  # fmt: skip
TAG = re.compile(r"\n?(?=<(?:section|tr|rect|polygon|li|p|div class=.tile|svg|line|h1)[ >])")


def page(report: Report) -> str:
    made = report_page(report).replace(STYLE, "STYLE").replace(SCRIPT, "SCRIPT")
    made = made.replace(digest(STYLE), "STYLE").replace(digest(SCRIPT), "SCRIPT")
    return TAG.sub("\n", made)


def card(report: Report) -> str:
    lines = [title(report), headline(report), brief(report), *card_lines(report)]
    return "\n".join([*lines, card_svg(report)])


def rounded(data: JSON) -> JSON:
    """Return a document with nine digits of each figure, which all machines agree on."""
    if isinstance(data, dict):
        return {key: rounded(value) for key, value in data.items()}
    if isinstance(data, list):
        return [rounded(value) for value in data]
    return float(f"{data:.9g}") if isinstance(data, float) else data


def document(report: Report) -> str:
    """Return all documents of a report, with a line for each value or item of a list."""
    made = report_json(report)
    lines = []
    for key, value in made.items():
        items = value if isinstance(value, list) else [value]
        lines += [f"{key}: {json.dumps(rounded(item))}" for item in items]
    groups = [json.dumps([*report_json(report, by).values()][-2:]) for by in ("type", "op")]
    return "\n".join([*lines, *groups, layers_csv(report.layers)])


def trace(report: Report) -> str:
    """Return the beginning and the end of a trace: passes are alike."""
    lines = [*trace_lines(report)]
    return "\n".join(lines if len(lines) < 160 else [*lines[:80], "…", *lines[-70:]])


@pytest.mark.parametrize("made", [page, card, document, trace])
def test_whole_reports(made: Callable[[Report], str], tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for name in REPORTS[f"{made.__name__}s"]:
        path = tmp_path / f"{name}.dldprof"
        if name == "bare":
            writer(path).finish()
        else:
            FILES[path.name](path)
        with Report.open(path) as report:
            text = made(report).replace(report.created, "CREATED")
        texts[name] = text.replace(str(tmp_path), "FOLDER")
    recorded(f"whole_{made.__name__}s", texts)


def test_timelines(recorded: Recorded) -> None:
    """Neighbours too thin to be seen are one bar; names are cut; gaps of counters stay open."""
    thin = [Span(10.0 * at, 5.0, f"k{at}", "h0") for at in range(40)]
    spans = [
        *thin, Span(900.0, 4.0, "alone", "h1"), Span(2000.0, 3.0, "apart", "h2"),
        Span(6000.0, 4000.0, "a/long <kernel>/", "h4"), Span(6000.0, 300.0, "/inside", "h1", 1),
        Span(6400.0, 500.0, "second/inside of it", "s1", 1), Span(4000.0, 330.0, "four", "quiet"),
        Span(5000.0, 5.0, "first", "h1"), Span(5002.0, 1.0, "second", "h1"),
        Span(10_100.0, 3.0, "last", "h2"),
    ]  # fmt: skip
    deep = [Span(100.0 * at, 2000.0, f"level {at}", "h3", at) for at in range(18)]
    lanes = [
        Lane("thread 1", spans),
        Lane("none", []),
        Lane("a name of 30 letters or more <", deep),
    ]
    graphs = [
        Graph("SM <active>", [10.0, 20.0, None, None, 30.0, 150.0, -1.0], 100.0, "up to 30 %"),
        Graph("none", [None], 1.0, ""),
        Graph("one", [0.5], 1.0, "0.5"),
        Graph("empty", [], 1.0, "<"),
    ]
    made = {
        "all": timeline(lanes, graphs, 10_000.0),
        "lane": timeline(lanes[2:], [], 4_000.0),
        "nothing": timeline([Lane("a", [])], graphs, 1.0) + timeline(lanes, [], 0.0),
    }
    tag = re.compile(r"\n?(?=<(?:rect|text|polygon|line)[ >])")
    recorded("whole_timelines", {name: tag.sub("\n", drawn) for name, drawn in made.items()})
