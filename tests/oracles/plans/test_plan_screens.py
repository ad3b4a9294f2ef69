"""Every figure of the terminal pages of an engine against its JSON document.

Summary, groups, findings, charts and special tables, at the widths of small and large terminals;
and the rows that a filter leaves, which say the same as without it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.report.layer_table import group_table, groups_of
from dld_tui.core.tensorrt.plan.export import plan_json
from dld_tui.core.tensorrt.plan.layer_records import shown_names
from dld_tui.core.tensorrt.plan.summary import matching
from dld_tui.core.tensorrt.plan.tables import VIEWS, layers_of_row, make_table
from dld_tui.screens.results.plan import Loaded, load
from dld_tui.widgets.charts.plots import Plot
from dld_tui.widgets.charts.report_charts import ChartData
from dld_tui.widgets.results.layers import screen_table
from dld_tui.widgets.results.plan import FindingRows
from dld_tui.widgets.results.plan_summary import (
    LoadedPlan,
    PlanCharts,
    roofline_lines,
    summary_lines,
)
from tests.oracles.page_text import shows

DATA = Path(__file__).parent / "data"
WIDTHS = (78, 118, 158)
ROUNDED = 0.501
SLOWED = 1.1
FILTERS = ("type:reformat", "ms>0.01", "precision:int8", "findings>0", "nothing-is-called-this")


def plain(line: Iterable[tuple[str, str]]) -> str:
    return "".join(text for text, _ in line)


def check_screens(path: Path) -> None:
    """Compare the panes of an engine with its document."""
    loaded = load(path)
    document: Any = plan_json(loaded.plan, loaded.findings, loaded.mapping)
    for width in WIDTHS:
        check_summary(loaded, document, width)
    check_groups(loaded, document)
    check_findings(loaded, document)
    check_limits(loaded, document)
    check_tables(loaded)


def check_summary(loaded: Loaded, document: Any, width: int) -> None:
    about = LoadedPlan(loaded.plan, loaded.layers, loaded.findings, 0)
    lines = [plain(line) for line in summary_lines(about, width)]
    text, total = "\n".join(lines), document["summary"]["total_ms"]
    assert f"{len(document['layers']):,} layer" in text
    whole = re.search(r"(profiled )?layers sum to +([\d.,]+) ms", text)
    assert (whole is None) == (not total)
    if whole is not None:
        compute = (document["timing_ms"] or {}).get("compute")
        slowed = compute is not None and total > SLOWED * compute["median"]
        assert (bool(whole[1]), shows(whole[2], total)) == (slowed, True)
    rate = re.search(r"([\d.,]+) inferences/s", text)
    throughput = (document["timing_ms"] or {}).get("throughput")
    assert (rate is None) == (not throughput)
    assert rate is None or shows(rate[1], throughput)
    bars = [*sums(document, "type").items(), *sums(document, "precision").items()]
    for key in {key for key, _ in bars}:
        told = re.findall(rf"(?<!\S){re.escape(key)} +[█▉▊▋▌▍▎▏]+ +(\d+) % +(.*)", text)
        for share, figures in told:
            shown = re.findall(r"[\d.,]+", figures)[: 2 if total else 1]
            known = [
                (ms, 100 * (ms / total if total else count / len(document["layers"])), count)
                for other, (ms, count) in bars
                if other == key
            ]
            agrees = [
                abs(int(share) - percent) <= ROUNDED
                for ms, percent, count in known
                if int(shown[-1].replace(",", "")) == count and (not total or shows(shown[0], ms))
            ]
            assert any(agrees), (key, share, figures)
    assert not loaded.findings or f"{len(document['findings']):,} finding" in text


def sums(document: Any, by: str) -> dict[str, tuple[float, int]]:
    """Return the time and the number of layers by a property."""
    found: dict[str, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
    for layer in document["layers"]:
        ms, count = found[layer[by] or "(unknown)"]
        found[layer[by] or "(unknown)"] = ms + (layer["time_ms"] or 0.0), count + 1
    return found


def check_groups(loaded: Loaded, document: Any) -> None:
    total = document["summary"]["total_ms"]
    for by in screen_table(loaded.layers, engine=True).groups:
        if by == "layer":
            continue
        table = group_table(groups_of(loaded.layers, by, engine=True), by, "screen", loaded.layers)
        times = [table.column("time_ms").shown_text(row) for row in table.rows]
        shares: list[Any] = [table.column("percent").value(row) for row in table.rows]
        if total is None:
            assert {*times, *shares} <= {"–", None}
        elif total:
            assert sum(share or 0.0 for share in shares) == pytest.approx(100)
            assert sum(row.time_ms for row in table.rows) == pytest.approx(total)


def check_findings(loaded: Loaded, document: Any) -> None:
    rows = FindingRows(loaded.findings, shown_names(loaded.plan, loaded.layers))
    shares = {layer["index"]: layer["percent"] for layer in document["layers"]}
    for place, finding in enumerate(document["findings"]):
        about = {finding["layer"], *finding["layers"]} - {None}
        share = re.match(r"\S *([\d.]+) %", plain(rows.line(place, 200)))
        assert share is None or shows(share[1], finding["percent"])
        more = re.search(r" and ([\d,]+) more\t", rows.text(place))
        assert (int(more[1].replace(",", "")) if more else 0) == max(len(about) - 1, 0)
        if finding["percent"] is not None and about:
            known = sum(shares.get(index) or 0.0 for index in about)
            assert finding["percent"] <= known + 1e-6


def check_limits(loaded: Loaded, document: Any) -> None:
    """Compare the line that says what limits the layers with the rows of JSON."""
    text = "\n".join(plain(line) for line in roofline_lines(loaded.plan, 200))
    told = re.search(r"of the time (.+)", text)
    spent: dict[str, float] = defaultdict(float)
    for layer in document["layers"]:
        if layer["efficiency"] is not None:
            spent[layer["bound"]] += layer["percent"] or 0.0
    assert {*spent} <= {"compute", "memory", "launch", "overhead"}
    assert (told is None) == (not any(spent.values()))
    if told is None:
        return
    known = dict(re.findall(r"(\w+) (below 1|\d+) %", told[1].partition(";")[0]))
    for limit, share in spent.items():
        # Percents that are listed sum to 100, so that one may be the next whole one.
        assert share < 1 if known[limit] == "below 1" else abs(int(known[limit]) - share) < 1
    covered = re.search(r"([\d.]+) % of the time is covered", told[1])
    assert shows(covered[1] if covered else "100", sum(spent.values()))
    for layer in document["layers"]:  # far below both roofs, neither is the limit
        near = layer["efficiency"] is None or layer["efficiency"] >= 0.1
        assert near or layer["bound"] in ("launch", "overhead")


def check_tables(loaded: Loaded) -> None:
    """Compare the rows that pass a filter with those of the whole engine."""
    for text in FILTERS:
        chosen = {layer.index for layer in matching(loaded.plan, text)}
        for view in VIEWS:
            if view in ("bindings", "timing"):
                continue
            whole, kept = make_table(loaded.plan, view), make_table(loaded.plan, view, text)
            rows = [row for row in whole.rows if chosen & {*layers_of_row(row)}]
            assert cells(kept, kept.rows) == cells(whole, rows), (view, text)


def cells(table: Any, rows: Sequence[Any]) -> list[list[Any]]:
    return [list(table.values(row)) for row in rows]


@pytest.mark.parametrize("name", ["qat", "qat-residual-qgap", "cookbook", "mobilenet"])
def test_screens_of_engines(name: str) -> None:
    check_screens(DATA / f"{name}.graph.json")


def test_reformats_are_explained_by_their_neighbours_whatever_the_filter() -> None:
    plan = load(DATA / "qat.graph.json").plan
    edits = {row.layer.name: row.edit for row in make_table(plan, "reformats").rows}
    kept = make_table(plan, "reformats", "type:reformat").rows
    assert len(kept) > 1
    assert {row.layer.name: row.edit for row in kept} == edits
    assert not any("Let the input quantize" in edit for edit in edits.values())


def test_the_chart_of_layer_times_has_the_median_of_all_layers(tmp_path: Path) -> None:
    rows = [{"name": name, "averageMs": ms} for name, ms in (("a", 0.0), ("b", 1.0), ("c", 3.0))]
    path = tmp_path / "e.profile.json"
    path.write_text(json.dumps([{"count": 9}, *rows]))
    loaded = load(path)
    charts = PlanCharts()
    shown = charts.line_charts()["distribution"].plot
    document: Any = plan_json(loaded.plan)
    assert shown is not None
    plot = shown(ChartData(loaded.layers, (), 80, 20))
    assert isinstance(plot, Plot)
    median = document["summary"]["distribution"]["median_ms"]
    assert f"median {median:.2f}" in plain(plot.below[0])
