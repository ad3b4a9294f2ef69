"""The panes of an engine that are lines of text: the report card and the charts."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core import fmt
from dld_tui.core.plan.model import EnginePlan
from dld_tui.core.plan.roofline import peaks_of, placement, unknown_device
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.text import clip, visible
from dld_tui.widgets.charts.bars import Line, bar
from dld_tui.widgets.charts.report_charts import Chart, distribution_lines
from dld_tui.widgets.lists.line_source import ListSource
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.table_view import bar_ramp
from dld_tui.widgets.operators.styles import layer_style
from dld_tui.widgets.plan.summary import PlanFacts, summary_lines
from dld_tui.widgets.report.views import ChartPane
from dld_tui.widgets.shell.frame import Frame

_ROOF_BAR = 16


class PlanSummary(Frame, LineView):
    """What the engine is, how long it takes, where the time goes, and what to look at."""

    HELP = (
        "The report card of the engine: times of whole inferences when they are known, precisions "
        "and types by their share of the time, the costliest layers, what was found, and what the "
        "files do not say."
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, gutter=False, classes="frame")
        self.about: PlanFacts | None = None

    def set_plan(self, facts: PlanFacts) -> None:
        """Show an engine."""
        self.about = facts
        self.frame("Engine")
        self._draw()

    def on_resize(self) -> None:
        """Lay the blocks out for the new width."""
        self._draw_frame()
        self._draw()
        super().on_resize()

    def notify_style_update(self) -> None:
        """Draw again when the glyph set changes with the theme."""
        super().notify_style_update()
        if self.is_mounted:
            self._draw()

    def _draw(self) -> None:
        if self.about is not None and self.size.width > 4:
            lines = summary_lines(self.about, self.size.width - 2)
            self.set_lines(ListSource([[(" ", ""), *line] for line in lines]), keep=False)


class PlanCharts(ChartPane):
    """The charts of an engine, one at a time, and the times of whole inferences."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._plan: EnginePlan | None = None

    def set_plan(self, plan: EnginePlan, layers: Sequence[Layer], types: Sequence[Group]) -> None:
        """Show the charts of an engine; `layers` are its records."""
        self._plan = plan
        series = plan.timing.series if plan.timing is not None else {}
        values = series.get("compute") or series.get("latency") or ()
        what = "GPU compute" if series.get("compute") else "latency"
        self.set_layers(layers, types, values, f"{what} over the inferences, ms")

    def line_charts(self) -> dict[str, Chart]:
        """Return those of a report, with other distributions, and the roofline."""
        own = {
            "distribution": Chart(
                "distribution",
                "Distribution of the layers' times",
                lambda data: distribution_lines(
                    [layer.time_ms for layer in data.layers if layer.time_ms],
                    data.width,
                    data.height,
                ),
            ),
            "inferences": Chart(
                "inferences",
                "Distribution of the inferences' times",
                lambda data: (
                    distribution_lines(data.latencies, data.width, data.height)
                    if data.latencies
                    else [[("The files have no time of single inferences.", "dim")]]
                ),
            ),
        }
        roofline = Chart(
            "roofline",
            "Roofline",
            lambda data: [] if self._plan is None else roofline_lines(self._plan, data.width),
        )
        return {**own, **(super().line_charts() | own), "roofline": roofline}


def roofline_lines(plan: EnginePlan, width: int) -> list[Line]:
    """Return how near to what the device can do the layers come, the costliest first."""
    peaks = peaks_of(plan.device)
    if peaks is None:
        why = unknown_device(plan)
        return [[(part, "dim")] for part in (why[:1].upper() + why[1:] + ".",)]
    tops = ", ".join(f"{kind} {value:g}" for kind, value in peaks.tflops.items())
    lines: list[Line] = [
        [(clip(f"{visible(peaks.device)}: {peaks.bandwidth_gbs:,.0f} GB/s", width), "strong")],
        [(clip(f"T(FL)OPS at most: {tops}", width), "dim")],
        [],
    ]
    counts = {"compute": 0.0, "memory": 0.0}
    rows: list[Line] = []
    for layer in sorted(plan.layers, key=lambda one: -(one.time_ms or 0.0)):
        found = placement(layer, peaks)
        if found is None:
            continue
        counts[found.bound] += layer.time_ms or 0.0
        share = found.efficiency
        text = fmt.UNKNOWN if share is None else f"{100 * share:.0f}"
        room = max(width - _ROOF_BAR - 34, 8)
        rows.append([
            (f"{fmt.milliseconds(layer.time_ms):>8} ms ", "number"),
            (f"{found.bound:<8}", "warn" if found.bound == "compute" else "info"),
            (bar(share, _ROOF_BAR, bar_ramp()), layer_style(layer.kind)),
            (f" {text:>4} %  ", ""),
            (clip(visible(layer.name), room, keep="end"), ""),
        ])  # fmt: skip
    whole = sum(counts.values())
    if whole > 0:
        parts = (f"{100 * time / whole:.0f} % {bound} bound" for bound, time in counts.items())
        lines.insert(2, [(f"of the time {', '.join(parts)}", "")])
    return [*lines, *rows]
