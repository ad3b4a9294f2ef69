"""Results of activities: a page of sentences over a table, and what opens after a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.accuracy.scores import DatasetScores, score_lines, score_table
from dld_tui.core.compare.gate import gate_bars, gate_table, listed_nodes, more_nodes
from dld_tui.core.compare.requirement_files import keep_verdict
from dld_tui.core.compare.requirements import requirements_bars, requirements_table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.machine.health import (
    SelfTest,
    check_lines,
    check_table,
    checks_here,
    selftest_lines,
    step_table,
)
from dld_tui.core.model.cost.memory import MemoryPlan, memory_lines, memory_table
from dld_tui.core.report.load import LoadResult, load_lines, load_table
from dld_tui.core.report.provider_support import ProvidersResult, support_lines, support_table
from dld_tui.core.report.startup import SessionStartup, node_table, startup_lines
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import Table, figure_text
from dld_tui.core.text import visible
from dld_tui.core.tune.placement import PlacementResult, placement_lines, placement_table
from dld_tui.core.types import JSON
from dld_tui.screens.results.results_page import ALWAYS, Pane, ResultsPage
from dld_tui.widgets.charts.plots import Axis, ChartView, Marks, Plot, Spot, draw
from dld_tui.widgets.results.paragraphs import Paragraph, ResultHead
from dld_tui.widgets.shell.page import host

if TYPE_CHECKING:
    from dld_tui.activities.gate import Result as Gate
    from dld_tui.activities.machine.doctor import Result as Checked

_LOW, _LOW_PLOT = 36, 8
"""A screen of fewer rows is low; rows of a chart there."""


@dataclass(frozen=True)
class TableData:
    """Sentences about a result and its table."""

    summary: Sequence[str]
    """Fit for a terminal."""
    rows: Table[Any]
    plot: Plot | None = None
    """What is drawn between them."""
    written: Table[Any] | None = None
    """What is written as CSV, where rows have figures that are only drawn."""


class TableResult(ResultsPage[TableData]):
    """Shows such a result.

    Args:
        title: Of the tab.
        summary: The sentences, fit for a terminal.
        rows: The table.
        plot: What is drawn between them.
        written: What is written as CSV, where the rows have figures that are only drawn.
        about_row: What is said of the row at the cursor, fit for a terminal.
    """

    SCOPE = "result"
    COMMAND_TABLE = table(
        "result",
        ("result.copy", "copy", "y", "", "copy", "Copy the text above the table."),
        ("result.csv", "save_csv", "w", "", "save csv", "Write the table as a CSV file."),
        ("result.about", "about", "i", "", "full text", "Show the full text above the table."),
        ("result.compare", "compare_with", "c", "result_file", "compare",
         "Choose another sweep, and compare this one with it point by point."),
        ("result.again", "again", "f5", "form", "again", "Open the form again."),
        footer="result.copy result.csv result.compare result.about result.again",
    )  # fmt: skip
    HELP = "{result.copy} copies the text, {result.csv} writes the table."
    LIST_EMPTY = "There are no rows"
    MORE = "{result.about} whole summary"
    form: tuple[str, Mapping[str, JSON]] | None = None
    """The activity that this came from, and the values of its form."""

    def __init__(
        self,
        title: str,
        summary: Sequence[str],
        rows: Table[Any],
        plot: Plot | None = None,
        written: Table[Any] | None = None,
        about_row: Callable[[Any], str] = lambda _: "",
    ) -> None:
        super().__init__(None, title, TableData(tuple(summary), rows, plot, written))
        self._about_row = about_row
        if plot is not None:
            head, listed = self.panes
            self.panes = (head, Pane("plot", partial(ChartView, id="plot"), stays=ALWAYS), listed)

    @property
    def _below(self) -> int:
        """Rows of the plot on a low screen; 0 where it has its usual height, or there is none."""
        return _LOW_PLOT if self.result.plot is not None and self.app.size.height < _LOW else 0

    def head(self) -> Sequence[Paragraph]:
        """Return the sentences."""
        styles = ["strong", *[""] * len(self.result.summary)]
        return [Paragraph(*pair) for pair in zip(self.result.summary, styles, strict=False)]

    def make_head(self) -> ResultHead:
        """Return the sentences, fewer where a plot needs the room."""
        return ResultHead(self.head(), keys=self.MORE, below=self._below)

    def table(self) -> Table[Any]:
        """Return the rows."""
        rows = self.result.rows
        self.view.frame.show(rows.title, "{result.csv} save csv  {table.sort} sort")
        return rows

    def fill(self, loaded: TableData) -> None:
        """Show the rows and the plot."""
        super().fill(loaded)
        if loaded.plot is not None:
            plot = self.query_one("#plot", ChartView)
            if self._below:
                plot.styles.height = self._below
            plot.show_chart("plot", partial(draw, loaded.plot))

    def row_changed(self) -> None:
        """Say what is known of a row beside its cells."""
        self.crumb(self._about_row(self.row) if self.row is not None else "")
        super().row_changed()

    def action_about(self) -> None:
        """Show the whole summary above the table."""
        self.show_text(self.tab_title)

    def conditions(self) -> set[str]:
        """Return whether the form can be opened again, and whether the result is in a file."""
        known = {"form": self.form, "result_file": self.path}
        return super().conditions() | {name for name, value in known.items() if value is not None}

    def action_again(self) -> None:
        if self.form is not None:
            host(self).start_activity(*self.form)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard("\n".join(self.result.summary))

    @property
    def stem(self) -> str:
        """The name of the table."""
        return self.result.rows.name

    def shown_csv(self) -> tuple[str, int, str]:
        """Return the table."""
        table = self.result.rows if self.result.written is None else self.result.written
        return "", len(table), csv_of(table)


def of_startup(result: SessionStartup, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of the start of a session."""
    stages = [f"{stage.name}: {stage.ms:.3f} ms" for stage in result.stages]
    summary = [*startup_lines(result), "; ".join(stages)]
    return TableResult(f"start of {Path(result.model).name}", summary, node_table(result))


def of_gate(result: Gate, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of a gate: the verdict in the border, the intervals on one axis."""
    if result.versions is not None:
        versions = result.versions
        summary = [versions.line, *(f"Note: {note}" for note in versions.notes)]
        if versions.nodes_compared and not listed_nodes(versions):
            summary.append(f"No node changed among {fmt.count(versions.nodes_compared)}.")
        summary += filter(None, [more_nodes(versions)])
        title = f"gate of {Path(versions.base).name} and {Path(versions.new).name}"
        bars = gate_bars(versions)
        written = replace(gate_table(versions), rows=bars.rows)
        return TableResult(title, summary, bars, written=written)
    assert result.required is not None
    met = result.required
    model = Path(str(values["model"]))  # by its place here: the job may have run elsewhere
    keep_verdict(model, met)
    title = f"gate of {model.name}"
    return TableResult(title, [met.line], requirements_bars(met), written=requirements_table(met))


def of_placement(result: PlacementResult, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of a search of Q/DQ places, with what quantizing each region changes."""
    return TableResult(
        f"placement of {Path(result.model).name}", placement_lines(result), placement_table(result)
    )


def of_scores(result: DatasetScores, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of models on a dataset."""
    return TableResult(
        f"{result.title} of {Path(result.scores[0].model).name}", score_lines(result),
        score_table(result),
    )  # fmt: skip


def of_load(result: LoadResult, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of a load, with the median latency over throughput."""
    spots = [
        Spot(
            point.throughput, point.latency_ms[0],
            f"{fmt.plural(point.clients, 'client')}: {figure_text(point.throughput)} requests/s,"
            f" median {fmt.milliseconds(point.latency_ms[0])} ms",
        )
        for point in result.points
        if point.throughput is not None and point.latency_ms and point.latency_ms[0] is not None
    ]  # fmt: skip
    plot = Plot(
        [Marks([spot.x for spot in spots], [spot.y for spot in spots])],
        Axis("requests/s", figure_text, least=0.0),
        Axis("median ms", figure_text, least=0.0),
        spots,
    )
    title = f"load of {Path(result.model).name}"
    return TableResult(title, load_lines(result), load_table(result), plot)


def of_memory(plan: MemoryPlan, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of what a run of a model needs."""
    name = Path(str(values.get("model", ""))).name
    sizes = [float(step.bytes) for step in plan.steps]
    spots = [
        Spot(at, step.bytes, f"{fmt.size(step.bytes)}  while {visible(step.node)} runs")
        for at, step in enumerate(plan.steps)
    ]
    at_peak = [float(at) for at, step in enumerate(plan.steps) if step.bytes == plan.peak]
    plot = Plot(
        [Marks(range(len(sizes)), sizes, "bars")],
        Axis("nodes, in the order in which they run", lambda at: f"{at + 1:,.0f}"),
        Axis(text=lambda size: fmt.size(round(size)), least=0.0), spots,
        [(at, "warn") for at in at_peak[:1]],
    )  # fmt: skip
    return TableResult(f"memory of {name}", memory_lines(plan), memory_table(plan), plot)


def of_providers(result: ProvidersResult, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of what each provider takes."""
    title = f"providers of {Path(result.model).name}"
    return TableResult(title, support_lines(result), support_table(result))


def of_selftest(result: SelfTest, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of a self-test."""
    return TableResult("self-test", selftest_lines(result), step_table(result))


def of_doctor(result: Checked, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of the checks of this machine."""
    checks = checks_here(result.checks)
    return TableResult("doctor", check_lines(checks), check_table(checks))
