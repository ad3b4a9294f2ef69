"""The report screen: summary, timeline, layers, charts, environment, each on a key.

On a large terminal all are seen at once; on a smaller one summary, timeline and one other; on 80x24
one at a time. The cursors of table and timeline go together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.document import Document, Node
from dld_tui.core.files.writer import write_text
from dld_tui.core.notes import Note
from dld_tui.core.report.export import FORMATS, export_report, groups_csv, layers_csv
from dld_tui.core.report.gpu_kernels import GpuSummary, gpu_summary
from dld_tui.core.report.layer_table import shared_names, short_provider
from dld_tui.core.report.records import Group, Layer, PassState
from dld_tui.core.report.report import Report, open_report, times_by_node
from dld_tui.core.report.story import Story, card_lines, request_of, story_of, write_card
from dld_tui.core.report.triage import notes_of
from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.results.compare import ask_reports
from dld_tui.screens.results.pages import Panes, PaneStrip, ask_where, read_or_close
from dld_tui.styles import STYLES
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, Dialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows
from dld_tui.widgets.results.layers import LayerPane, column_title
from dld_tui.widgets.results.report_views import (
    ChartPane,
    EnvironmentView,
    SummaryView,
    costliest,
)
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import bindings_for, hint, holding
from dld_tui.widgets.shell.page import host, offer_rules
from dld_tui.widgets.tasks import on_thread, task
from dld_tui.widgets.timeline.lanes import Timeline, timeline_of
from dld_tui.widgets.timeline.timeline import TimelineView, span_lines

PANES = ("summary", "timeline", "layers", "charts", "environment")


class ColumnList(LineView):
    """One row a column; Space and Enter switch it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "activate", "switch", show=False)]
    HELP = "Space shows or hides a column, d restores the default columns, Esc closes the list."


class ColumnsDialog(Dialog[tuple[str, ...]]):
    """Which columns to show; changes are kept when it is closed."""

    TITLE_TEXT = "Columns"
    KEYS = "Space switch  d default  Esc done"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "done", show=False),
        Binding("f,C", "close", "done", show=False),
        Binding("d", "defaults", "default", show=False),
    ]

    def __init__(self, chosen: Sequence[str], known: Table[Layer]) -> None:
        super().__init__()
        self.chosen = set(chosen)
        self.known = known

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        view = ColumnList(self._rows())
        view.styles.height = min(len(self.known.columns), max(self.app.size.height - 6, 4))
        yield view

    def _rows(self) -> ListSource:
        shown = glyphs.current()
        rows: list[list[Piece]] = []
        for column in self.known.columns:
            on = column.key in self.chosen
            rows.append(
                [
                    (shown.on if on else shown.off, "accent" if on else "dim"),
                    (f" {column_title(column):<14}", "strong" if on else ""),
                    (f" {column.help}", "dim"),
                ]
            )
        return ListSource(rows, self.known.keys)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Show or hide the column at the cursor."""
        event.stop()
        self.chosen ^= {str(event.key)}
        self.query_one(ColumnList).set_lines(self._rows())

    def action_defaults(self) -> None:
        """Take the columns that a new user sees."""
        self.chosen = {column.key for column in self.known.columns if column.shown}
        self.query_one(ColumnList).set_lines(self._rows())

    def go_back(self) -> None:
        """Give the chosen columns, in the order of the table."""
        self.dismiss(tuple(key for key in self.known.keys if key in self.chosen))


# --- reading a report in a thread: everything that the screen shows first ------------------------


@dataclass(frozen=True)
class Loaded:
    """A report with what takes time to find out."""

    report: Report
    notes: tuple[Note, ...]
    timeline: Timeline
    """Of the median pass; empty when there is none."""
    types: tuple[Group, ...]
    """What the layers cost, by type."""
    model_problem: str | None
    gpu: GpuSummary | None
    """What a GPU does in a pass."""
    story: Story
    """The sentences about it."""


def load(
    path: Path,
    cancelled: CancelCheck | None = None,
    progress: ProgressCallback | None = None,
) -> Loaded:
    """Open a report, or what another profiler wrote as one.

    Args:
        path: The file.
        cancelled: Asked while a profile is read.
        progress: Told the bytes that are read, and all of them.

    Raises:
        InputError: The file cannot be read or is not a report or profile.
        CancelledError: `cancelled` returned True.
    """
    report = open_report(path, progress, cancelled)
    try:
        return complete(report)
    except BaseException:
        report.close()
        raise


def complete(report: Report) -> Loaded:
    """Find out the rest about an open report."""
    median = report.median_pass
    return Loaded(
        report,
        tuple(notes_of(report)),
        Timeline([], 0.0) if median is None else timeline_of(report, median),
        tuple(report.groups("type")),
        report.model_problem(),
        gpu_summary(report),
        story_of(report),
    )


# --- what one can do with a report beside looking: go to the model, save a table, compare --------


_LETTERS = "123456789"


_SHOW_S = 0.4
"""A report that is read sooner is painted once, in the place of what was there before."""
_FILL_S = 5.0
"""Its panes are painted when all of them are laid out; if that takes longer, one by one."""


class ReportScreen(Panes):
    """One report."""

    SCOPE = "report"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("report")
    CSS_PATH = STYLES / "report.tcss"
    HELP = (
        "{report.pane.1} to {report.pane.5} focus the panes: the summary, the timeline of one "
        "pass, the layers, the charts, and the environment. {timeline.open} on a layer goes to its "
        "ONNX node."
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.report: Report | None = None
        self.shown_pass: int | None = None

    def body(self) -> Iterable[Widget]:
        """Return the panes."""
        return (
            PaneStrip(PANES),
            Rows([[(f" reading {visible(self.tab_title)} …", "dim")]], id="loading"),
            Container(
                SummaryView(id="summary"),
                TimelineView(empty=" No pass was profiled: no timeline.", id="timeline"),
                Container(
                    LayerPane(id="layers"),
                    Vertical(ChartPane(id="charts"), EnvironmentView(id="environment"), id="side"),
                    id="lower",
                ),
                id="panes",
            ),
        )

    def on_mount(self) -> None:
        """Read the report."""
        self.query_one("#panes").display = False
        self.tab_status = ""
        self.hold_paint(_SHOW_S)
        self._load()

    def on_unmount(self) -> None:
        """Close the file."""
        if self.report is not None:
            self.report.close()

    # Loading

    @task("load")
    async def _load(self) -> None:
        path, begin = self.path, monotonic()
        assert path is not None  # given to __init__
        loaded = await read_or_close(
            self,
            lambda progress, cancelled: load(path, cancelled, progress),
            lambda done, total: self._show_progress(done, total, monotonic() - begin),
        )
        report = loaded.report
        self.hold_paint(_FILL_S)  # again: reading may have taken longer
        self.report = report
        provider = short_provider(report.execution_provider) if report.execution_provider else ""
        self.tab_status = " · ".join(visible(part) for part in (provider, report.device) if part)
        self.set_class(report.has_gpu_events or bool(report.counters), "-gpu")
        self.query_one("#loading").display = False
        self.query_one("#panes").display = True
        self.query_one(SummaryView).set_report(report, loaded.notes, loaded.gpu, loaded.story)
        self.query_one(LayerPane).set_layers(report.layers, report.measurement, report.wording)
        self.query_one(ChartPane).set_report(report, loaded.types)
        self.query_one(EnvironmentView).set_report(report, loaded.model_problem)
        self.query_one(TimelineView).describe = self._describe
        self.show_pass(report.median_pass, loaded.timeline)
        for layer in costliest(report.layers, 1):
            self.query_one(TimelineView).go_to(layer.index)
        self.restore_columns()
        self.show_pane("layers" if self.size_class == "large" else "summary")
        self.release_paint_when_laid_out()
        self.show_awaited_layer()
        self.tab_changed()

    def _show_progress(self, done: int, total: int, seconds: float) -> None:
        if not total or self.report is not None or not self.is_mounted:
            return
        progress = f"{100 * done / total:.0f} % of {fmt.size(total)}"
        rate = fmt.size(int(done / seconds)) if seconds else fmt.UNKNOWN
        text = f" reading {visible(self.tab_title)}: {progress}, {rate}/s"
        text += f"   {hint('{report.clear} stops')}"
        self.query_one("#loading", Rows).set_rows([[(text, "dim")]])

    # The pass that is drawn

    def show_pass(self, index: int | None, timeline: Timeline) -> None:
        """Draw a pass."""
        self.shown_pass = index
        view = self.query_one(TimelineView)
        view.set_timeline(timeline)
        view.frame.show(
            self._pass_title(index, timeline),
            "{report.zoom_in} {report.zoom_out} zoom  {timeline.measure} measure",
        )

    def _pass_title(self, index: int | None, timeline: Timeline) -> str:
        report = self.report
        if report is None or index is None:
            return "Timeline"
        shared = visible(shared_names(report.layers).gapped)
        names = f" · {shared}" if shared else ""
        kind = "median pass" if index == report.median_pass else "pass"
        shown_pass = next(
            (candidate for candidate in report.passes if candidate.index == index), None
        )
        state = (
            ""
            if shown_pass is None or shown_pass.state is PassState.MEASURED
            else f" · {shown_pass.state}"
        )
        length = fmt.milliseconds(timeline.total_us / 1000)
        return f"Timeline{names} · {kind} {index + 1} of {len(report.passes)} · {length} ms{state}"

    def action_previous_pass(self) -> None:
        """Draw the pass before."""
        self._step_pass(-1)

    def action_next_pass(self) -> None:
        """Draw the pass after."""
        self._step_pass(1)

    @task("pass", replace=True)
    async def _step_pass(self, step: int) -> None:
        report = self.report
        if report is None or self.shown_pass is None:
            return
        numbers = [shown_pass.index for shown_pass in report.passes]
        at = numbers.index(self.shown_pass) + step
        if not 0 <= at < len(numbers):
            self.notify("No further pass", timeout=2)
            return
        wanted = self.shown_pass = numbers[at]
        self.show_pass(wanted, await on_thread(timeline_of, report, wanted))

    @on(ChartPane.PassChosen)
    def _pass_chosen(self, event: ChartPane.PassChosen) -> None:
        self._open_pass(event.index)

    @task("pass", replace=True)
    async def _open_pass(self, index: int) -> None:
        if self.report is not None:
            self.show_pass(index, await on_thread(timeline_of, self.report, index))
            self.show_pane("timeline")

    def _describe(self, room: int) -> list[Line]:
        view = self.query_one(TimelineView)
        if self.report is None or not view.timeline.lanes:
            return []
        return span_lines(view, self.report.layers, room)

    # Cursors in step

    def layer_at_cursor(self) -> Layer | None:
        """Return the layer under the cursor of the pane with the focus."""
        if self.report is None:
            return None
        if self.pane == "timeline":
            key = self.query_one(TimelineView).key_at_cursor()
            return None if key is None else self.report.layers[key]
        return self.query_one(LayerPane).layer_at_cursor()

    def facts(self) -> set[str]:
        """Return what holds now."""
        layer = self.layer_at_cursor() if self.is_mounted else None
        path = self.model_path()
        return super().facts() | holding(
            report=self.report is not None,
            layer=layer is not None,
            linked=layer is not None and bool(layer.nodes) and path is not None,
            model=path is not None,
            optimized=self.optimized_path() is not None,
        )

    @property
    def knows_times(self) -> bool:
        """Whether it has been read."""
        return self.report is not None

    def node_times(self, document: Document) -> tuple[Mapping[Node, float], str] | None:
        """Return the milliseconds of the nodes of the model that was measured."""
        path = document.path
        if self.report is None or path is None or self.model_path() != path.absolute():
            return None
        return times_by_node(self.report.layers, document), self.tab_title

    # Messages may be late: the pane with the focus leads, and its current cursor counts.

    @on(LayerPane.LayerMoved)
    def _table_moved(self) -> None:
        layer = self.query_one(LayerPane).layer_at_cursor()
        view = self.query_one(TimelineView)
        if self.pane != "timeline" and layer is not None and view.key_at_cursor() != layer.index:
            view.go_to(layer.index)
        self.facts_changed()

    @on(TimelineView.CursorMoved)
    def _timeline_moved(self) -> None:
        key = self.query_one(TimelineView).key_at_cursor()
        if self.pane == "timeline" and key is not None:
            self.query_one(LayerPane).go_to(key)
        self.facts_changed()

    @on(LayerPane.LayerChosen)
    def _layer_chosen(self, event: LayerPane.LayerChosen) -> None:
        layer = self.layer_at_cursor()
        if layer is not None and layer.nodes and self.model_path() is not None:
            self.action_go_to_node()
        else:
            self.show_in_timeline(event.index)

    @on(TimelineView.Activated)
    def _span_chosen(self, event: TimelineView.Activated) -> None:
        self.show_in_table(event.key)

    @on(ChartPane.LayerChosen)
    def _dot_chosen(self, event: ChartPane.LayerChosen) -> None:
        self.show_in_table(event.index)

    @on(ChartPane.TypeChosen)
    def _type_chosen(self, event: ChartPane.TypeChosen) -> None:
        self.query_one(LayerPane).set_filter("", ("type", event.type))
        self.show_pane("layers")

    def show_in_timeline(self, index: int) -> None:
        """Go to a layer in the timeline, near enough to see it."""
        if self.query_one(TimelineView).go_to(index, frame=True):
            self.show_pane("timeline")
        else:
            self.notify("The layer did not run in this pass", timeout=3)

    def layer_count(self) -> int | None:
        """Return how many layers the report has; None while it is being read."""
        return None if self.report is None else len(self.report.layers)

    def show_in_table(self, index: int | None) -> None:
        """Go to a layer in the table, without a filter that hides it."""
        if index is None:
            return
        self.query_one(LayerPane).go_to(index, clear=True)
        self.show_pane("layers")

    # --- the commands of the report screen -------------------------------------------------------

    @task()
    async def action_compare_with(self) -> None:
        """Choose another report and compare this one with it."""
        await ask_reports(host(self), self.path)

    def model_path(self) -> Path | None:
        """Return where the report says its model is."""
        path = self.report.model.get("path") if self.report is not None else None
        return Path(path) if isinstance(path, str) and path else None

    def optimized_path(self) -> Path | None:
        """Return where the run saved the model as the runtime optimised it."""
        path = self.report.facts.get("optimized_model") if self.report is not None else None
        return Path(path) if isinstance(path, str) and path else None

    def action_open_optimized(self) -> None:
        """Open the model as the runtime optimised it."""
        path = self.optimized_path()
        if path is not None:
            host(self).open_path(path)

    # To the model

    @task()
    async def action_go_to_node(self) -> None:
        """Show the layer's ONNX node in the model; asks which one when there are several."""
        layer = self.layer_at_cursor()
        path, report = self.model_path(), self.report
        if layer is None or not layer.nodes or path is None or report is None:
            return
        link = layer.nodes[0]
        if len(layer.nodes) > 1:
            links = layer.nodes[: len(_LETTERS)]
            choices = [
                Choice(_LETTERS[n], f"{visible(link.op_type)}  {visible(link.label)}", str(n))
                for n, link in enumerate(links)
            ]
            about = f"{visible(layer.name)} computes {len(layer.nodes)} ONNX nodes."
            answer = await self.tasks.ask(ChoiceDialog("Which node?", about, choices))
            if answer is None:
                return
            link = links[int(answer)]
        problem = await on_thread(report.model_problem)
        if problem is not None:
            gone = not os.path.lexists(path)
            text = f"{visible(str(path))}: {problem}. The report's figures are as they were."
            self.notify(text, severity="warning", timeout=8, markup=False)
            if gone:
                return
        host(self).reveal(path, link.scope, link.node)

    def action_profile(self) -> None:
        """Open the form of the profile, filled as it was."""
        path = self.model_path()
        if path is None or self.report is None:
            return
        values: dict[str, JSON] = {**self.report.settings, "model": str(path)}
        values.pop("output", None)
        host(self).start_activity("profile_onnxruntime", values)

    @task()
    async def action_improve(self) -> None:
        """Ask which of the things that may help is to be done to the model."""
        report, path = self.report, self.model_path()
        if report is None or path is None:
            return
        story = await on_thread(story_of, report)
        if not story.steps:
            self.notify("Nothing to suggest from these figures", timeout=4)
            return
        choices = [
            Choice(_LETTERS[n], step.text, str(n), step.about) for n, step in enumerate(story.steps)
        ]
        text = story.opening
        if any(step.changes for step in story.steps):
            text += " A change is measured, and kept only if it is significantly faster."
        answer = await self.tasks.ask(ChoiceDialog("What may help", text, choices))
        if answer is None:
            return
        step = story.steps[int(answer)]
        if step.rules:
            ways = [
                Choice("m", "measure it, and keep it if it is significantly faster", "measure"),
                Choice("p", "preview it in the model, and apply it", "preview"),
            ]
            way = await self.tasks.ask(ChoiceDialog(step.text, step.about, ways))
            if way == "preview":
                offer_rules(host(self), path, step.rules)
            if way != "measure":
                return
        activity, values = request_of(report, step, path)
        if activity == "tune":
            from dld_tui.screens.results.table import run_activity

            run_activity(host(self), activity, values)
        else:
            host(self).start_activity(activity, values)

    def action_critical_path(self) -> None:
        """Find the longest path through the times of this report."""
        from dld_tui.screens.results.table import run_activity

        path = self.model_path()
        if path is not None and self.path is not None:
            values = {"report": str(self.path), "model": str(path)}
            run_activity(host(self), "critical_path", values)

    @task()
    async def action_card(self) -> None:
        """Copy the report in a few lines, or ask where to write them."""
        report = self.report
        if report is None:
            return
        lines = await on_thread(card_lines, report)
        choices = [
            Choice("c", "copy the text", "copy"),
            Choice("s", "write a picture (SVG)", ".svg"),
            Choice("p", "write a picture (PNG)", ".png"),
            Choice("t", "write the text", ".txt"),
        ]
        answer = await self.tasks.ask(ChoiceDialog("Share", "\n".join(lines), choices))
        if answer == "copy":
            self.app.copy_to_clipboard("\n".join(lines))
        elif answer is not None:
            name = visible((self.path or Path("report")).stem) + answer
            about = "A name ending in .svg or .png gives a picture, any other gives text. "
            about += f"Relative to {os.getcwd()}."
            ask_where(
                self, "Write the card", about, name,
                lambda path, over: write_card(report, path, over),
            )  # fmt: skip

    # Tables

    def action_filter(self) -> None:
        """Filter the layers while one types."""
        self.show_pane("layers")
        self.query_one(LayerPane).open_filter()

    def action_group(self) -> None:
        """Group the layers by the next thing."""
        self.show_pane("layers")
        self.query_one(LayerPane).next_grouping()

    @task()
    async def action_columns(self) -> None:
        """Choose the columns of the layer table."""
        pane = self.query_one(LayerPane)
        keys = await self.tasks.ask(ColumnsDialog(pane.columns, pane.known))
        if keys is not None and keys != pane.columns:
            pane.set_columns(keys)
            host(self).state.put("layouts", "report.columns", {"keys": list(keys)})

    def restore_columns(self) -> None:
        """Take the columns that the user chose before."""
        keys = host(self).state.get("layouts", "report.columns").get("keys")
        if isinstance(keys, list):
            self.query_one(LayerPane).set_columns([str(key) for key in keys])

    def action_show_other(self) -> None:
        """Show the layer in the timeline, or the timeline's layer in the table."""
        layer = self.layer_at_cursor()
        if layer is None:
            return
        if self.pane == "timeline":
            self.show_in_table(layer.index)
        else:
            self.show_in_timeline(layer.index)

    def action_clear(self) -> None:
        """Take back marks, the filter, the group, the measure; stop loading."""
        if self.report is None:
            self.tasks.cancel("load")
        elif not (self.pane == "timeline" and self.query_one(TimelineView).clear_measure()):
            self.query_one(LayerPane).clear()

    def action_save_csv(self) -> None:
        """Ask for a path and write the shown table, with its filter and order."""
        pane = self.query_one(LayerPane)
        plain = pane.by == "layer"
        text = layers_csv(pane.shown_layers()) if plain else groups_csv(pane.shown_groups())
        stem = visible((self.path or Path("report")).stem)
        name = f"{stem}.csv" if plain else f"{stem}-by-{pane.by}.csv"
        rows = len(pane.table.order)
        about = f"{rows:,} rows as they are shown, all columns. Relative to {os.getcwd()}."
        ask_where(
            self,
            "Save as CSV",
            about,
            name,
            lambda path, over: write_text(path, text, overwrite=over),
        )

    def action_export(self) -> None:
        """Ask for a path, whose ending chooses the format, and write the whole report."""
        report = self.report
        if report is None:
            return
        stem = visible((self.path or Path("report")).stem)
        kinds = "; ".join(f"{ending}: {title}" for ending, (title, _) in FORMATS.items())
        about = f"The file name's ending chooses the format: {kinds}. Relative to {os.getcwd()}."
        ask_where(
            self,
            "Export the report",
            about,
            f"{stem}.html",
            lambda path, over: export_report(report, path, overwrite=over),
        )

    # Timeline and chart

    def action_unit(self) -> None:
        """Switch the chart between milliseconds and percent."""
        self.query_one(ChartPane).toggle_unit()

    def action_chart(self) -> None:
        """Show the next chart."""
        self.show_pane("charts")
        self.query_one(ChartPane).next_chart()

    def action_zoom_in(self) -> None:
        """Show less of the timeline, larger."""
        self.query_one(TimelineView).action_zoom_in()

    def action_zoom_out(self) -> None:
        """Show more of the timeline."""
        self.query_one(TimelineView).action_zoom_out()

    def action_zoom_reset(self) -> None:
        """Show the whole pass."""
        self.query_one(TimelineView).action_zoom_reset()

    # --- arranges the panes of the report screen for its size ------------------------------------

    PANES: ClassVar[tuple[str, ...]] = PANES
    FOCUS: ClassVar[dict[str, str]] = {"layers": "#layer-table", "charts": "#type-chart"}

    def visible_panes(self) -> set[str]:
        """Return the panes that are seen: on a medium size summary and timeline stay."""
        if self.maximised or self.size_class == "small":
            return {self.pane}
        if self.size_class == "large":
            return set(PANES)
        lower = self.pane if self.pane in PANES[2:] else "layers"
        return {"summary", "timeline", lower}

    def place_panes(self, shown: set[str]) -> None:
        """Hide what holds nothing."""
        self.query_one("#side").display = bool(shown & {"charts", "environment"})
        self.query_one("#lower").display = bool(shown & set(PANES[2:]))
