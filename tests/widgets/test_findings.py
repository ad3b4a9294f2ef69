"""Findings of models and of engine plans: rows, and one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.checks import check
from dld_tui.core.checks.findings import Finding
from dld_tui.core.model.document import Document
from dld_tui.core.tensorrt.plan.gains import GainRange, gain_text
from dld_tui.core.tensorrt.plan.lint import PlanFinding, findings
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.text import cell_width
from dld_tui.widgets.charts.report_charts import distribution_plot
from dld_tui.widgets.explorer.findings import FindingLines, Findings, NoticeLine, summary_text
from dld_tui.widgets.results import plan_summary
from dld_tui.widgets.results.plan import FindingRows, detail_lines
from dld_tui.widgets.results.plan_summary import PlanCharts
from tests.support import models
from tests.support.known import known
from tests.support.plans import layer, tensor, write_layers, write_profile
from tests.support.tui import HostApp, screen_text


def test_one_line_counts_by_level_and_shows_the_worst() -> None:
    # Summary counts by level.
    findings = [
        Finding("error", "a", "x"),
        Finding("warning", "b", "y"),
        Finding("warning", "b", "z"),
    ]
    assert summary_text(findings) == "1 error  2 warnings"
    assert summary_text([Finding("info", "c", "w")]) == "1 info"
    assert summary_text([]) == ""
    # The notice line shows the worst.
    line = NoticeLine()
    line.show([Finding("error", "a", "first"), Finding("info", "b", "second")])
    assert "".join(text for text, _ in line.rows[0]) == " ✖ 1 error  1 info  first"
    line.show([])
    assert list(line.rows) == [[]]


@pytest.mark.parametrize("width", [0, 10, 40, 61, 78, 198])
def test_rows_name_node_and_place_and_fit(tmp_path: Path, width: int) -> None:
    document = Document.open(models.write(tmp_path, models.BRANCHES))
    scope = document.main.nodes[1].subgraphs()[0]
    lines = FindingLines(
        [
            Finding("error", "rule", "broken [/x]", scope, scope.nodes[0]),
            Finding("warning", "rule", "the whole model"),
        ]
    )
    for at in range(2):
        assert sum(len(text) for text, _ in lines.line(at, width)) <= max(2, width)
    text = lines.text(0)
    assert all(part in text for part in ("✖", "Neg", "inner", "broken [/x]", "then_branch"))
    document.close()


def test_rows_say_what_can_be_repaired_where_there_is_room(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    (found,) = (f for f in check(document) if f.rule == "unused-initializer")
    lines = FindingLines([found])
    assert lines.line(0, 100)[-1] == (" f fixes", "dim")
    assert "f fixes" not in "".join(text for text, _ in lines.line(0, 30))
    assert lines.key(0) == FindingLines([found, found]).key(1)
    document.close()


async def test_a_message_that_is_cut_is_said_whole_where_there_is_room() -> None:
    name = "gpu_0/imagenet1k_blobs_queue_f22e83c9-22cd-4a8b-a66d-113af6b832b4_0"
    pane = Findings()

    app = HostApp(pane)
    async with app.run_test(size=(60, 14)) as pilot:
        long = Finding("warning", "a", f"Initializer {name} is never used")
        pane.show([long, Finding("info", "b", "short")], older=False)
        await pilot.pause()
        assert "is never used" in screen_text(app)
        pane.list.cursor = 1
        await pilot.pause()
        assert "is never used" not in screen_text(app)
        pane.list.cursor = 0
        await pilot.resize_terminal(60, 7)
        await pilot.pause()
        assert "is never used" not in screen_text(app)


def test_a_short_finding_names_its_layer_where_there_is_room(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "net.graph.json", [{"Name": "first"}, {"Name": "second"}])
    write_profile(tmp_path / "net.profile.json", [("first", 3.0), ("second", 1.0)])
    opened = open_plan(path)
    rows = FindingRows(findings(opened), {one.index: one.name for one in opened.layers})
    at = next(n for n, found in enumerate(rows.findings) if found.rule == "long-layer")
    for width in (40, 78, 120):
        pieces = rows.line(at, width)
        assert sum(cell_width(text) for text, _ in pieces) <= width
        assert (("first", "link") in pieces) == (width >= 78)


def test_the_chart_named_after_the_inferences_shows_them() -> None:
    """It showed the layers' time against their size."""
    charts = PlanCharts()
    charts._latencies = [1.0, 1.1, 1.2, 5.0] * 5
    charts.chart = "inferences"
    chart = charts.charts["inferences"]
    assert chart.plot is not None
    assert (
        str(chart.plot(charts.data(60, 12)))[:99]
        == str(distribution_plot(charts._latencies, 60))[:99]
    )
    charts._latencies = ()
    assert "no time of single inferences" in str(chart.plot(charts.data(60, 12)))


def test_details_of_a_layer_name_it_its_tensors_and_forms_that_differ() -> None:
    formed = [replace(tensor("fp32"), format=form, location="") for form in ("FP32", "Linear", "")]
    for name, told in (("first", "first"), ("", "(no name)")):
        one = replace(layer(inputs=tuple(formed), outputs=()), name=name)
        lines = ["".join(text for text, _ in line) for line, _ in detail_lines(one, None, [], 60)]
        assert lines[0] == told
        at = next(n for n, line in enumerate(lines) if line.startswith("in "))
        forms = [line.strip() == "Linear" for line in lines[at : at + 4]]
        assert forms == [False, False, True, False]  # the type is not told again


def test_details_of_a_layer_tell_what_is_slow_what_to_do_and_what_it_brings() -> None:
    found = PlanFinding(0, "r", "warning", "a hazard of two lines", "do this", 5.0)
    gain = replace(found, mitigation="", gain=GainRange((0.0, 5.0), "its share"))
    pieces = [line for line, _ in detail_lines(layer(), None, [found, gain], 14)]
    at = next(n for n, line in enumerate(pieces) if line[-1][0] == "a hazard of")
    style = pieces[at][0][1]
    mark = pieces[at][0][0]
    hazard = [[(mark, style), ("a hazard of", style)], [("  ", style), ("two lines", style)]]
    assert mark.strip()
    assert pieces[at : at + 5] == [*hazard, [("  ", ""), ("do this", "")], *hazard]
    told = [line[-1] for line in pieces[at + 5 :]]
    words = " ".join(text for text, form in told if form == "info")
    assert words == gain_text(known(gain.gain))


def test_passes_of_a_plan_are_counted() -> None:
    counts = (None, 0, 1, 2, 2_000)
    assert [*map(plan_summary._passes, counts)] == ["", "", "1 pass", "2 passes", "2,000 passes"]
