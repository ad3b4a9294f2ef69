from __future__ import annotations

from pathlib import Path

from dld_tui.core.tensorrt.plan.lint import findings
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.text import cell_width
from dld_tui.widgets.charts.report_charts import distribution_plot
from dld_tui.widgets.results.plan import FindingRows
from dld_tui.widgets.results.plan_summary import PlanCharts
from tests.support.plans import write_layers, write_profile


def test_a_short_finding_names_its_layer_where_there_is_room(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "net.graph.json", [{"Name": "first"}, {"Name": "second"}])
    write_profile(tmp_path / "net.profile.json", [("first", 3.0), ("second", 1.0)])
    plan = open_plan(path)
    rows = FindingRows(findings(plan), {layer.index: layer.name for layer in plan.layers})
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
