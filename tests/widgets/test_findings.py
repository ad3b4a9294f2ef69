"""Findings of models and of engine plans: rows, and one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.checks.findings import Finding
from dld_tui.core.model.document import Document
from dld_tui.core.tables.table import Table
from dld_tui.core.tensorrt.plan.gains import GainRange, gain_text
from dld_tui.core.tensorrt.plan.lint import PlanFinding
from dld_tui.widgets.charts.report_charts import distribution_plot
from dld_tui.widgets.explorer.findings import FindingLines, Findings
from dld_tui.widgets.results import plan_summary
from dld_tui.widgets.results.plan import SpecialNames, detail_lines
from dld_tui.widgets.results.plan_summary import PlanCharts
from tests.support import models
from tests.support.known import known
from tests.support.plans import layer, tensor
from tests.support.tui import HostApp, screen_text


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


@pytest.mark.parametrize(("at", "firsts"), [(0, "ooooo"), (1, "soooo"), (2, "aaooo"), (3, "4asoo")])
def test_names_of_tables_begin_where_the_chosen_one_is_seen(at: int, firsts: str) -> None:
    names = SpecialNames()
    names.tables = [Table((), (), title=title) for title in ("One", "Second", "A third", "4")]
    names.at = at
    for width, first in zip((6, 13, 22, 25, 40), firsts, strict=True):
        (line,) = names.content(width)
        assert [text for text, style in line if style == "current"] == [
            (" one ", " second ", " a third ", " 4 ")[at]
        ]
        assert line[0][0][1] == first, width
