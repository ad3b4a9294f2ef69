"""The timeline of a report: a typical pass, and the way to the others."""

from __future__ import annotations

from dld_tui.core import fmt
from dld_tui.core.report.layer_table import layer_names
from dld_tui.core.report.records import PassState
from dld_tui.core.report.report import Report
from dld_tui.core.text.names import MOST_SHARE, shared_ends
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.tasks import on_thread, task
from dld_tui.widgets.timeline.lanes import Timeline, timeline_of
from dld_tui.widgets.timeline.timeline import TimelineView, span_lines

_KEYS = "{report.zoom_in} {report.zoom_out} zoom  {timeline.measure} measure"


class PassTimeline(TimelineView):
    """The timeline of a pass of a report.

    Args:
        title: What it is called.
        keys: What the border says of keys.
        id: The widget's.
    """

    def __init__(
        self, *, title: str = "Timeline", keys: str = _KEYS, id: str | None = None
    ) -> None:
        super().__init__(empty=" No pass was profiled: no timeline.", id=id)
        self._called, self._keys = title, keys
        self.describe = self._describe
        self.report: Report | None = None
        self.shown_pass: int | None = None
        self._shared = ""
        """What the names of most layers begin and end with."""

    def set_report(self, report: Report, timeline: Timeline, axis_us: float = 0.0) -> None:
        """Show the typical pass of a report.

        Args:
            report: The report.
            timeline: That of the pass.
            axis_us: Where the axis ends, if that is later than the pass.
        """
        self.report = report
        self._shared = shared_ends(layer_names(report.layers), MOST_SHARE).gapped
        self.show_pass(report.typical_pass, timeline, axis_us)

    def show_pass(self, index: int | None, timeline: Timeline, axis_us: float = 0.0) -> None:
        """Draw a pass."""
        self.shown_pass = index
        timeline.total_us = max(axis_us, timeline.total_us)
        self.set_timeline(timeline)
        self._say()

    def _say(self) -> None:
        """Show the pass in the border, and the layer at the cursor where there is no row for it."""
        about = self._keys
        if self.size.height <= 2 + self.lane_rows + self.counter_count:
            line = next(iter(self._describe(1)), [])[1:]  # without the mark of the cursor
            about = "".join(text for text, _ in line)
        self.frame.show(self._title(), about)

    def moved(self, old: tuple[int, int]) -> None:
        """Say what the cursor is on."""
        super().moved(old)
        self._say()

    def on_resize(self) -> None:
        """Say what there is room for."""
        super().on_resize()
        self._say()

    def _title(self) -> str:
        report, index = self.report, self.shown_pass
        if report is None or index is None:
            return self._called
        names = f" · {self._shared}" if self._shared else ""
        kind = "typical pass" if index == report.typical_pass else "pass"
        shown = next(one for one in report.passes if one.index == index)
        end = "" if shown.state is PassState.MEASURED else f" · {shown.state}"
        length = fmt.milliseconds(shown.duration_us / 1000)  # kernels may end later
        return (
            f"{self._called}{names} · {kind} {index + 1} of {len(report.passes)} · {length} ms{end}"
        )

    @task("pass", replace=True)
    async def step_pass(self, step: str) -> None:
        """Draw another pass: the one before with ``-1``, the one after with ``1``."""
        report = self.report
        if report is None or self.shown_pass is None:
            return
        numbers = [one.index for one in report.passes]
        at = numbers.index(self.shown_pass) + int(step)
        if not 0 <= at < len(numbers):
            self.notify("No further pass", timeout=2)
            return
        self.shown_pass = numbers[at]  # for a next step before it is read
        self.show_pass(numbers[at], await on_thread(timeline_of, report, numbers[at]))

    @task("pass", replace=True)
    async def open_pass(self, index: int) -> None:
        """Draw a pass by its number in the report."""
        if self.report is not None:
            self.show_pass(index, await on_thread(timeline_of, self.report, index))

    def _describe(self, room: int) -> list[Line]:
        if self.report is None or not self.timeline.lanes:
            return []
        return span_lines(self, self.report.layers, room)
