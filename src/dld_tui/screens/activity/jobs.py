"""Pages of jobs: one that runs, the same on several targets, and those that have ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.activities.registry import decode_result, request_data
from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.errors import CancelledError, DldError, ExitStatus, SaveError, UsageError
from dld_tui.core.events import TERMINAL, Cancelled, Event, Failed, Finished, Log, Metric, Progress
from dld_tui.core.params import RequestData
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import clip, fit, visible
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.base_pages import LABEL, ListPage
from dld_tui.styles import STYLES
from dld_tui.targets import registry as targets
from dld_tui.targets.base import Job
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.charts.plots import Series, Stages, best_figure, rate_text
from dld_tui.widgets.dialogs.dialogs import Choice, QuestionDialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import LogSource, Piece, Rows, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.page import Page, host
from dld_tui.widgets.shell.page import host as host_of
from dld_tui.widgets.shell.progress import ProgressRows
from dld_tui.widgets.tasks import EndedJob, JobRun, task

_DRAW_S = 1.0
"""A chart and its figures are 300 bytes, more where the scale changes: no more often than this."""
_ASK_AFTER_S = 10.0
_MOST_LINES, _LEFT_LINES = 10_000, 7_500
_LIVE_ROWS = 8
"""Of the chart, at most; a quarter of a low screen."""
_FRAME, _BARS = 2, 2
"""Rows of a border, and those of the screen above and below a page."""
LEVEL_STYLES = {"debug": "faint", "info": "", "warning": "warn", "error": "bad"}


class JobBox(Framed, Vertical):
    """The frame of the progress."""


class LogView(LineView):
    """The messages of jobs, wrapped to the width; the view follows the end.

    It is not there without messages, and takes only the rows that it needs.
    """

    HELP = "The job's messages. The view follows the end while the cursor is on the last line."

    def __init__(self) -> None:
        super().__init__(gutter=False, tail=True)
        self.frame.show("Log", "{job.copy} copy")
        self.display = False
        self.texts: list[str] = []
        """The messages as they came, to be copied."""
        self._said: list[Piece] = []
        self._drawn = 0
        """How many of them are among the rows."""
        self._rows: list[list[Piece]] = []
        self._width = 0
        self._dropped = 0
        """Rows at the beginning that were discarded."""

    def say(self, text: str, style: str = "") -> None:
        """Add a message; :meth:`show` draws it."""
        self.texts.append(text)
        self._said.append((text, style))

    def show(self) -> None:
        """Draw what was added."""
        width = max(20, self.app.size.width - 4)
        if self._width != width:
            self._width, self._rows, self._dropped, self._drawn = width, [], 0, 0
        self._rows += [
            [(row, style)] for text, style in self._said[self._drawn :] for row in wrap(text, width)
        ]
        if len(self._rows) > _MOST_LINES:
            self._dropped += len(self._rows) - _LEFT_LINES
            self._rows = self._rows[-_LEFT_LINES:]
            del self.texts[:-_MOST_LINES], self._said[:-_MOST_LINES]
        self._drawn = len(self._said)
        is_first = bool(self._rows) and not self.display
        self.display = bool(self._rows)
        self.set_lines(LogSource(self._rows, self._dropped))
        self.fit()
        if is_first and self.screen.focused is None:
            self.focus()

    def on_resize(self) -> None:
        """Break the messages for another width."""
        super().on_resize()
        self.show()

    def fit(self) -> None:
        """Take the rows that are needed and the progress above leaves; that takes the others."""
        box = self.screen.query_one(JobBox)
        needed = _FRAME + sum(child.outer_size.height for child in box.children)
        rows = len(self._rows) + _FRAME
        fills = rows > self.screen.size.height - _BARS - needed
        box.styles.height = "auto" if fills else "1fr"
        self.styles.height = "1fr" if fills else rows

    def reset(self) -> None:
        """Discard all messages."""
        self.texts, self._said, self._rows, self._drawn = [], [], [], 0
        self.show()


class JobInput:
    """Files that are written once before a job starts, and removed with its page.

    Args:
        prepare: Writes it, on the thread of the job; None when there is nothing to write.
        tidy: Removes what was written; may be called more than once.
    """

    def __init__(
        self,
        prepare: Callable[[CancelCheck], None] | None = None,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        self._prepare, self.tidy = prepare, tidy
        self.stop = threading.Event()
        """Set when the job is not to start any more."""
        self._gone = threading.Event()

    def write(self) -> None:
        """Write it, if that was not done.

        Raises:
            SaveError: It cannot be written.
            CancelledError: The job is to be stopped.
        """
        if self._prepare is not None:
            try:
                self._prepare(self.stop.is_set)
            except OSError as error:
                raise SaveError(f"the model cannot be written for the job: {error}") from None
            self._prepare = None
        if self._gone.is_set():
            self.tidy()
        if self.stop.is_set():
            raise CancelledError

    def leave(self) -> None:
        """Remove what was written, or is being written."""
        self._gone.set()
        self.stop.set()
        self.tidy()


class JobScreen(Page):
    """Runs one job from its start to its result."""

    SCOPE = "job"
    COMMAND_TABLE = table(
        "job",
        ("job.cancel", "cancel", "escape", "", "cancel or close",
         "Cancel the job, or close the page when the job has ended."),
        ("job.result", "result", "enter", "result", "open result", "Open the result of the job."),
        ("job.again", "again", "f5", "finished", "run again", "Run the same job again."),
        ("job.node", "go_to_node", "s", "failed_node", "go to node",
         "Show the node where the job failed."),
        ("job.copy", "copy_log", "y", "", "copy log", "Copy the log and the error."),
        footer="job.cancel job.result job.node job.again job.copy",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "lists.tcss"
    tab_title = "job"
    AUTO_FOCUS: ClassVar[str | None] = ""  # the log, once it is there
    HELP = (
        "{job.cancel} cancels the job. When it has ended, {job.result} opens its result and "
        "{job.cancel} goes back."
    )

    def __init__(
        self,
        activity: str,
        request: Mapping[str, JSON],
        on_result: Callable[[Any], None],
        *,
        title: str = "",
        target: str | None = None,
        start: Callable[[], Job] | None = None,
        job_input: JobInput | None = None,
        replaces: Sequence[str] = (),
    ) -> None:
        """Make the page; `start` replaces the start on the target, `replaces` may be replaced."""
        super().__init__()
        self.activity = activity
        self.request = request if isinstance(request, dict) else dict(request)
        self.on_result = on_result
        self.job_title = title or activity
        self.target = target
        self._job_input = job_input or JobInput()
        self._replaces = replaces
        self._start = start or self._start_on_target
        self.runner = JobRun(self._start)
        self.end: Finished | Failed | Cancelled | None = None
        self._began = self._ended_at = monotonic()
        self._metrics: dict[str, Metric] = {}
        self._series: dict[str, Series] = {}
        self._stages = Stages()
        self._cancelling = False
        self._progress: Progress | None = None

    def _start_on_target(self) -> Job:
        self._job_input.write()
        try:
            target = targets.get(self.target)
            if self.target in (None, targets.LOCAL):
                data = RequestData(self.request)
                data.replaces = tuple(self._replaces)
                return target.start(self.activity, data)
            return target.start(
                self.activity, request_data(self.activity, self.request, self._replaces)
            )
        except OSError as error:
            raise UsageError(f"the job cannot be started: {error}") from error

    @property
    def at_work(self) -> str:
        """A line for the question before quitting; empty when the job has ended."""
        done = self.end is not None or self.runner.can_leave
        return "" if done else f"{self.job_title} still runs"

    @property
    def goes_on(self) -> str:
        """A line for that question when the job does not end with the program."""
        if self.end is not None or not self.runner.can_leave:
            return ""
        return f"{self.job_title} continues on {self.target}; Targets lists it under J"

    def body(self) -> Iterable[Widget]:
        box = JobBox(
            ProgressRows(), Rows([[]], id="stages"), Rows([[]], id="figures"), Rows([], id="live")
        )
        box.frame.show(self.job_title, "{job.cancel} cancel")
        yield box
        yield LogView()

    def on_mount(self) -> None:
        """Start the job."""
        self.set_interval(_DRAW_S, self._show_work)
        self._run()

    def _run(self) -> None:
        self._began = monotonic()
        self._follow(self.runner)

    @task("job")
    async def _follow(self, runner: JobRun) -> None:
        async for events in runner.batches():
            self.take(events)

    def on_unmount(self) -> None:
        """Leave nothing running here; what runs on a target goes on."""
        self._job_input.stop.set()
        if self.end is None:
            self.runner.leave()
        self._job_input.leave()

    def conditions(self) -> set[str]:
        conditions = super().conditions()
        conditions.add("running" if self.end is None else "finished")
        if isinstance(self.end, Failed) and self.end.finding is not None:
            conditions.add("failed_node")
        return conditions | ({"result"} if isinstance(self.end, Finished) else set())

    # Events

    def take(self, events: Sequence[Event]) -> None:
        """Show a batch of events."""
        has_news = False
        before = self._progress.stage if self._progress is not None else None
        for event in events:
            if isinstance(event, Failed) and event.status == int(ExitStatus.CANCELLED):
                event = Cancelled()  # stopped while the input was written
            if isinstance(event, Progress):
                self._progress = event
                self._stages.reach(event.stage)
            elif isinstance(event, Log):
                self._log.say(event.text, LEVEL_STYLES.get(event.level, ""))
                has_news = True
            elif isinstance(event, Metric):
                self._metrics[event.name] = event
                series = self._series.setdefault(event.name, Series(event.name, event.unit))
                series.add(event.value)
            elif isinstance(event, TERMINAL):
                self.end, self._ended_at = event, monotonic()
                if isinstance(event, Finished):
                    self._stages.end()
        if self.end is not None:
            self._ended()
        if has_news or self.end is not None:
            self._log.show()
        stage = self._progress.stage if self._progress is not None else None
        if self.end is not None or stage != before:
            self._show_work()

    @property
    def _log(self) -> LogView:
        return self.query_one(LogView)

    def _show_work(self) -> None:
        """Show how far the job is: now and then, since each time is sent to the terminal."""
        if self._progress is not None:
            self.query_one(ProgressRows).show_progress(self._progress)
        self._show_figures()

    def _show_figures(self) -> None:
        if self.end is not None and not self.is_mounted:
            return
        elapsed = fmt.duration(monotonic() - self._began)
        row: list[Piece] = [(elapsed, "dim")] if self.end is None else []
        if self._cancelling and self.end is None:
            row.append(("   stopping …", "warn"))
        for metric in self._metrics.values():
            row += [(f"   {metric.name} ", "dim"), (_figure(metric), "")]
            if rate := rate_text(self._series[metric.name]):
                row.append((f", {rate}", "dim"))
        rows = [row] if self.end is None else [[*self._verdict(), *row], *self._reason()]
        self.query_one("#figures", Rows).set_rows(rows)
        width = max(20, self.app.size.width - 4)
        self.query_one("#stages", Rows).set_rows([self._stages.line(width)])
        drawn = best_figure([*self._series.values()])
        room = min(_LIVE_ROWS, self.app.size.height // 4)
        lines = [] if drawn is None else drawn.lines(width, room)
        live = self.query_one("#live", Rows)
        live.styles.height = len(lines)
        live.set_rows(lines)
        self._log.fit()

    def _reason(self) -> list[list[Piece]]:
        width = max(20, self.app.size.width - 6)
        if isinstance(self.end, Cancelled):
            took = fmt.duration(self._ended_at - self._began)
            text = f"{self.job_title} was stopped after {took}"
            if self.end.left:
                text += f". {visible(self.end.left)}"
            return [[(row, "dim")] for row in wrap(text, width)]
        if not isinstance(self.end, Failed):
            return []
        where = f"{self.end.where}: " if self.end.where else ""
        rows: list[list[Piece]] = [[(row, "")] for row in wrap(where + self.end.message, width)]
        return rows + [[(row, "dim")] for row in wrap(self.end.hint or "", width)]

    def _verdict(self) -> list[Piece]:
        shown = glyphs.current()
        if isinstance(self.end, Finished):
            return [(f"{shown.good} done", "good strong")]
        if isinstance(self.end, Cancelled):
            rest = "the results so far are kept" if self.end.left else "no partial files are left"
            return [(f"{shown.warning} stopped; {rest}", "warn")]
        return [(f"{shown.error} failed", "bad strong")]

    def _ended(self) -> None:
        box = self.query_one(JobBox)
        node = "  {job.node} go to node" if "failed_node" in self.conditions() else ""
        box.frame.show(self.job_title, "{job.cancel} close  {job.again} again" + node)
        if isinstance(self.end, Failed):
            self._log.texts.append(str(self.end.to_error()))
            if self.end.details:
                self._log.say(self.end.details, "dim")
        self._keep()
        self.refresh_bindings()
        if isinstance(self.end, Finished):
            if self.is_current:
                self.open_result()
            else:
                self.notify(f"{self.job_title}: done", markup=False)

    def _keep(self) -> None:
        """Let the result and the log be read when this page has closed."""
        end = {Finished: "done", Cancelled: "stopped"}.get(type(self.end), "failed")
        result = self.end.result if isinstance(self.end, Finished) else {}
        host_of(self).job_ended(EndedJob.of(self.job_title, end, result, self._log.texts))

    def on_line_view_activated(self) -> None:
        """Open what was made: the list takes Enter before this page does."""
        self.open_result()

    # Commands

    def action_cancel(self) -> None:
        """Stop the job, after asking when it has run for a while; close the page after its end."""
        if self.end is not None:
            self.dismiss(None)
        elif self._cancelling or (
            monotonic() - self._began < _ASK_AFTER_S and not self.runner.can_leave
        ):
            self._cancel("stop")
        else:
            choices = [Choice("g", "let it go on", "go"), Choice("s", "stop it", "stop")]
            text = f"{self.job_title} has run for a while."
            if self.runner.can_leave:
                text = f"{self.job_title} runs on {self.target}, with or without this page."
                choices.append(Choice("c", "close the page; Targets lists it under J", "leave"))
            self.app.push_screen(QuestionDialog("Stop the job?", text, choices), self._cancel)

    def _cancel(self, answer: str | None) -> None:
        if answer == "stop":
            self._job_input.stop.set()
        if answer == "leave":
            self.dismiss(None)
        elif answer == "stop" and self.end is None:
            self._cancelling = True
            self._show_figures()
            self.runner.cancel()

    def action_result(self) -> None:
        self.open_result()

    def action_go_to_node(self) -> None:
        self.go_to_node()

    def action_again(self) -> None:
        self.run_again()

    def open_result(self) -> None:
        """Close the page and open what the job made."""
        if isinstance(self.end, Finished):
            try:
                result = decode_result(self.activity, self.end.result)
            except DldError as error:
                host_of(self).show_error(error)
                return
            self.dismiss(None)
            self.on_result(result)

    def go_to_node(self) -> None:
        """Close the page and show the node that the failure is about."""
        finding = self.end.finding if isinstance(self.end, Failed) else None
        if finding is not None and finding.model is not None:
            host = host_of(self)
            self.dismiss(None)
            host.reveal(Path(finding.model), finding.scope, finding.node)

    def run_again(self) -> None:
        """Run the job again."""
        self._job_input.stop.clear()
        self.end = None
        self._cancelling = False
        self._progress = None
        self._metrics.clear()
        self._series.clear()
        self._stages = Stages()
        self.runner = JobRun(self._start)
        self.query_one(JobBox).frame.show(self.job_title, "{job.cancel} cancel")
        self._log.reset()
        self._show_work()
        self.refresh_bindings()
        self._run()

    def action_copy_log(self) -> None:
        self.app.copy_to_clipboard("\n".join(self._log.texts))


def _figure(metric: Metric) -> str:
    if metric.unit == "s":  # beside the time that has passed, which is told in minutes
        return fmt.duration(metric.value)
    return f"{metric.value:,.4g} {metric.unit}".rstrip()


_STYLES = {"done": "good", "stopped": "warn", "failed": "bad"}


class EndedJobsScreen(ListPage[EndedJob]):
    """A list, and below it result and log of one job."""

    SCOPE = "ended_jobs"
    COMMAND_TABLE = table(
        "ended_jobs",
        ("ended_jobs.result", "result", "enter", "result", "open result",
         "Open the result of the job."),
        ("ended_jobs.copy", "copy_log", "y", "", "copy log", "Copy the result and the log."),
        footer="ended_jobs.result ended_jobs.copy",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "lists.tcss"
    tab_title = "ended jobs"
    LIST_TITLE, LIST_EMPTY, ABOUT_TITLE = "Ended jobs", "No job has ended yet.", "Result and log"
    HELP = (
        "The finished jobs of this session, newest first. {ended_jobs.result} opens the result "
        "of a job, {ended_jobs.copy} copies its result and log."
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

    def conditions(self) -> set[str]:
        return super().conditions() | (
            {"result"} if self.row is not None and self.row.files else set()
        )

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


_NAME, _STAGE, _BAR = 16, 26, 16


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
            pieces += [(glyphs.bar(fraction, _BAR), "bar"), (f"{fmt.progress(fraction, 1):>6}", "")]
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
    COMMAND_TABLE = table(
        "many_jobs",
        ("many_jobs.cancel", "cancel", "escape", "", "cancel or close",
         "Cancel all jobs, or close the page when they have ended."),
        ("many_jobs.result", "result", "enter", "result", "compare", "Compare the reports."),
        ("many_jobs.copy", "copy_log", "y", "", "copy log", "Copy the logs of the jobs."),
        footer="many_jobs.cancel many_jobs.result many_jobs.copy",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "lists.tcss"
    tab_title = "jobs"
    AUTO_FOCUS: ClassVar[str | None] = ""  # the log, once it is there
    HELP = (
        "{many_jobs.cancel} cancels all jobs. When all have succeeded, their reports are "
        "compared; if one failed, {many_jobs.result} compares the others."
    )

    def __init__(self, title: str, starts: Sequence[tuple[str, Callable[[], Job]]]) -> None:
        super().__init__()
        self.job_title = title
        self.runs = [_Run(target, start) for target, start in starts]
        self._began = monotonic()

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
        box = JobBox(rows, Rows([[]], id="figures"))
        box.frame.show(self.job_title, "{many_jobs.cancel} cancel all")
        yield box
        log = LogView()
        log.frame.show("Log", "{many_jobs.copy} copy")
        yield log

    def on_mount(self) -> None:
        """Start the jobs, side by side."""
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

    def conditions(self) -> set[str]:
        conditions = super().conditions() | {"finished" if self.is_over else "running"}
        return conditions | ({"result"} if self.is_over and self.reports else set())

    # Events

    def take(self, run: _Run, events: Sequence[Event]) -> None:
        """Show a batch of events of one job."""
        log = self.query_one(LogView)
        for event in events:
            if isinstance(event, Progress):
                run.progress = event
            elif isinstance(event, Metric):
                run.metric = event
            elif isinstance(event, Log):
                log.say(f"{run.target}: {event.text}", LEVEL_STYLES.get(event.level, ""))
            elif isinstance(event, TERMINAL):
                run.end = event
                if isinstance(event, Failed):
                    log.say(f"{run.target}: {event.to_error()}", "bad")
                    if event.details:
                        log.say(event.details, "dim")
        log.show()
        self._show()
        if self.is_over:
            self._ended()

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
        self.query_one(JobBox).frame.show(
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
        choices = [Choice("g", "let them go on", "go"), Choice("s", "stop them", "stop")]
        text = f"{self.job_title} runs on {', '.join(r.target for r in self.runs if not r.end)}."
        question = QuestionDialog("Stop all jobs?", visible(text), choices)
        if await self.tasks.ask(question) != "stop":
            return
        for run in self.runs:
            if run.end is None:
                run.runner.cancel()
        if not self.is_over:
            self.query_one(JobBox).frame.show(self.job_title, "stopping …")

    def action_result(self) -> None:
        """Close the page and compare the reports; a single one is opened."""
        from dld_tui.screens.results.compare import CompareScreen  # lazy: few jobs need it

        owner, reports = host(self), self.reports
        if not self.is_over or not reports:
            return
        self.dismiss(None)
        if len(reports) == 1:
            owner.open_path(str(reports[0]))
        else:
            owner.add_page(CompareScreen(reports))

    def action_copy_log(self) -> None:
        self.app.copy_to_clipboard("\n".join(self.query_one(LogView).texts))
