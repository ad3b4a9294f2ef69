"""The jobs that have ended in this session: how each ended, its result and its log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.events import TERMINAL, Cancelled, Event, Failed, Finished, Log, Metric, Progress
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import clip, fit, visible
from dld_tui.screens.compare.page import CompareScreen
from dld_tui.screens.list_page import LABEL, ListPage
from dld_tui.styles import STYLES
from dld_tui.targets.base import Job
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.lists.line_source import LogSource, Piece
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import bindings_for
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.host import EndedJob, host
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.tasks import JobRun, task

_STYLES = {"done": "good", "stopped": "warn", "failed": "bad"}


class EndedJobsScreen(ListPage[EndedJob]):
    """A list, and below it result and log of one job."""

    SCOPE = "ended_jobs"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("page", "ended_jobs")
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "lists.tcss"
    tab_title = "ended jobs"
    LIST_TITLE, LIST_EMPTY, ABOUT_TITLE = "Ended jobs", "No job has ended yet.", "Result and log"
    HELP = (
        "The finished jobs of this session, newest first. {ended_jobs.result} opens the result of "
        "a job, {ended_jobs.copy} copies its result and log."
    )

    def on_mount(self) -> None:
        """Show the jobs."""
        self.show_rows()

    def job_ended(self) -> None:
        """Show the job that has ended, too."""
        if self.is_mounted:
            self.show_rows()

    def table(self) -> Table[EndedJob]:
        """Return the jobs, the newest first."""
        return Table(
            (
                Column("time", "ended", lambda job: job.time, width=8),
                Column("end", "how", lambda job: job.end, width=8,
                       style=lambda job: _STYLES[job.end]),
                Column("title", "job", lambda job: job.title, least=20, style="strong"),
            ),
            [*host(self).ended_jobs][::-1],
            row_key=lambda job: job.number,
        )  # fmt: skip

    def facts(self) -> set[str]:
        return super().facts() | ({"result"} if self.row is not None and self.row.files else set())

    def about(self) -> list[Line]:
        """Return result and log of the job."""
        job, width = self.row, max(20, self.app.size.width - 4)
        lines: list[Line] = []
        for label, text in job.result if job is not None else ():
            for at, part in enumerate(wrap(visible(text), max(10, width - LABEL))):
                lines.append([(fit("" if at else visible(label), LABEL), "dim"), (part, "")])
        lines += [[]] if lines else []
        for text in job.log if job is not None else ():
            lines += [[(row, "")] for row in wrap(visible(text), width)]
        return lines

    def activate(self) -> None:
        """Open what the job wrote."""
        self.action_result()

    def action_result(self) -> None:
        if self.row is not None and self.row.files:
            owner, path = host(self), Path(self.row.files[0])
            self.dismiss(None)
            owner.open_path(path)

    def action_copy_log(self) -> None:
        job = self.row
        if job is not None:
            rows = [f"{label}: {text}" for label, text in job.result]
            self.app.copy_to_clipboard("\n".join([job.title, *rows, *job.log]))


# --- one activity on several targets at once: how far each is, and then the comparison -----------

_LEVELS = {"debug": "faint", "info": "", "warning": "warn", "error": "bad"}
_MOST_LINES, _LEFT_LINES = 10_000, 7_500
_NAME, _STAGE, _BAR = 16, 26, 16


class JobsBox(Framed, Vertical):
    """The frame of the rows, one a target."""


class JobsLog(LineView):
    """What the jobs say, following the end."""

    HELP = "The messages of all jobs, each with its target."


class _Run:
    """The job on one target, as it is shown."""

    def __init__(self, target: str, start: Callable[[], Job]) -> None:
        self.target = target
        self.runner = JobRun(start)
        self.progress: Progress | None = None
        self.metric: Metric | None = None
        self.end: Finished | Failed | Cancelled | None = None

    @property
    def report(self) -> Path | None:
        path = self.end.result.get("report") if isinstance(self.end, Finished) else None
        return Path(path) if isinstance(path, str) else None

    def pieces(self, width: int) -> list[Piece]:
        shown = glyphs.current()
        name = fit(clip(visible(self.target), _NAME), _NAME + 2)
        room = max(10, width - _NAME - 4)
        if isinstance(self.end, Finished):
            what = visible(str(self.report or "done"))
            return [
                (f"{shown.good} ", "good"),
                (name, "strong"),
                (clip(what, room, keep="end"), ""),
            ]
        if isinstance(self.end, Failed):
            where = f"{self.end.where}: " if self.end.where else ""
            text = visible(f"{where}{self.end.message}")
            return [(f"{shown.error} ", "bad"), (name, "strong"), (clip(text, room), "bad")]
        if self.end is not None:
            return [(f"{shown.warning} ", "warn"), (name, "strong"), ("stopped", "warn")]
        progress = self.progress
        stage = progress.stage if progress is not None else "starting"
        pieces: list[Piece] = [("  ", ""), (name, "strong")]
        pieces.append((fit(clip(visible(stage or "working"), _STAGE), _STAGE + 1), ""))
        if progress is not None and progress.total:
            fraction = min(1.0, progress.done / progress.total)
            pieces += [(glyphs.bar(fraction, _BAR), "bar"), (f" {100 * fraction:3.0f} %", "")]
        if self.metric is not None and width > _NAME + _STAGE + _BAR + 34:
            unit = f" {self.metric.unit}" if self.metric.unit else ""
            text = f"{self.metric.name} {self.metric.value:,.4g}{unit}"
            pieces.append((f"   {visible(text)}", "dim"))
        return pieces


class ManyJobsScreen(Page):
    """Runs the same on several targets, and compares the reports when all have ended.

    Args:
        title: What runs.
        starts: Starts the job of each target, by its name.
    """

    SCOPE = "many_jobs"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("page", "many_jobs")
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "lists.tcss"
    tab_title = "jobs"
    HELP = (
        "{many_jobs.cancel} cancels all jobs. When all have succeeded, their reports are compared; "
        "if one failed, {many_jobs.result} compares the others."
    )

    def __init__(self, title: str, starts: Sequence[tuple[str, Callable[[], Job]]]) -> None:
        super().__init__()
        self.job_title = title
        self.runs = [_Run(target, start) for target, start in starts]
        self._began = monotonic()
        self._lines: list[list[Piece]] = []
        self._dropped = 0
        """Lines at the beginning that are not kept any more."""
        self._texts: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether all jobs have ended."""
        return all(run.end is not None for run in self.runs)

    @property
    def reports(self) -> list[Path]:
        """The reports that were written."""
        return [run.report for run in self.runs if run.report is not None]

    @property
    def at_work(self) -> str:
        """A line for the question before quitting: jobs that would end with the program."""
        ending = [r.target for r in self.runs if r.end is None and not r.runner.can_leave]
        return f"{self.job_title} still runs on {', '.join(ending)}" if ending else ""

    @property
    def goes_on(self) -> str:
        """A line for that question: jobs that go on on their targets."""
        going = [r.target for r in self.runs if r.end is None and r.runner.can_leave]
        there = ", ".join(going)
        return f"{self.job_title} continues on {there}; Targets lists it under J" if going else ""

    def body(self) -> Iterable[Widget]:
        rows = Rows([[]] * len(self.runs), id="runs")
        rows.styles.height = len(self.runs)
        box = JobsBox(rows, Rows([[]], id="figures"))
        box.frame.show(self.job_title, "{many_jobs.cancel} cancel all")
        yield box
        log = JobsLog(empty="nothing was said yet", gutter=False, tail=True)
        log.frame.show("Log", "{many_jobs.copy} copy")
        yield log

    def on_mount(self) -> None:
        """Start the jobs, side by side."""
        self.query_one(JobsLog).focus()
        self.set_interval(1.0, self._show)
        for run in self.runs:
            self._follow(run)

    @task("job")
    async def _follow(self, run: _Run) -> None:
        async for events in run.runner.batches():
            self.take(run, events)

    def on_unmount(self) -> None:
        """Leave nothing running here; what runs on a target goes on."""
        for run in self.runs:
            if run.end is None:
                run.runner.leave()

    def facts(self) -> set[str]:
        facts = super().facts() | {"finished" if self.is_over else "running"}
        return facts | ({"result"} if self.is_over and self.reports else set())

    # Events

    def take(self, run: _Run, events: Sequence[Event]) -> None:
        """Show a batch of events of one job."""
        for event in events:
            if isinstance(event, Progress):
                run.progress = event
            elif isinstance(event, Metric):
                run.metric = event
            elif isinstance(event, Log):
                self._say(f"{run.target}: {event.text}", _LEVELS.get(event.level, ""))
            elif isinstance(event, TERMINAL):
                run.end = event
                if isinstance(event, Failed):
                    self._say(f"{run.target}: {event.to_error()}", "bad")
                    if event.details:
                        self._say(event.details, "dim")
        self._show()
        if self.is_over:
            self._ended()

    def _say(self, text: str, style: str) -> None:
        self._texts.append(text)
        width = max(20, self.app.size.width - 4)
        self._lines += [[(row, style)] for row in wrap(text, width)]
        if len(self._lines) > _MOST_LINES:
            self._dropped += len(self._lines) - _LEFT_LINES
            self._lines = self._lines[-_LEFT_LINES:]
            del self._texts[:-_MOST_LINES]
        self.query_one(JobsLog).set_lines(LogSource(self._lines, self._dropped))

    def _show(self) -> None:
        if not self.is_mounted:
            return
        width = max(20, self.app.size.width - 6)
        self.query_one("#runs", Rows).set_rows([run.pieces(width) for run in self.runs])
        if not self.is_over:
            elapsed = fmt.duration(monotonic() - self._began)
            self.query_one("#figures", Rows).set_rows([[(elapsed, "dim")]])

    def _ended(self) -> None:
        many = len(self.reports)
        text = {0: "no report was written", 1: "one report was written"}.get(
            many, f"{many} reports were written"
        )
        self.query_one("#figures", Rows).set_rows([[(text, "dim")]])
        self.query_one(JobsBox).frame.show(
            self.job_title, "{many_jobs.result} open  {many_jobs.cancel} close"
        )
        self.refresh_bindings()
        if many == len(self.runs):
            if self.is_current:
                self.action_result()
            else:
                self.notify(f"{self.job_title}: done on {many} targets", markup=False)

    def on_line_view_activated(self) -> None:
        """Open what was made: the list takes Enter before this page does."""
        self.action_result()

    # Commands

    @task()
    async def action_cancel(self) -> None:
        """Stop all jobs, after asking; close the page when they have ended."""
        if self.is_over:
            self.dismiss(None)
            return
        choices = [Choice("s", "stop them", "stop"), Choice("g", "let them go on", "go")]
        text = f"{self.job_title} runs on {', '.join(r.target for r in self.runs if not r.end)}."
        question = ChoiceDialog("Stop all jobs?", visible(text), choices)
        if await self.tasks.ask(question) != "stop":
            return
        for run in self.runs:
            if run.end is None:
                run.runner.cancel()
        if not self.is_over:
            self.query_one(JobsBox).frame.show(self.job_title, "stopping …")

    def action_result(self) -> None:
        """Close the page and compare the reports; a single one is opened."""
        owner, reports = host(self), self.reports
        if not self.is_over or not reports:
            return
        self.dismiss(None)
        if len(reports) == 1:
            owner.open_path(str(reports[0]))
        else:
            owner.add_page(CompareScreen(reports))

    def action_copy_log(self) -> None:
        self.app.copy_to_clipboard("\n".join(self._texts))
