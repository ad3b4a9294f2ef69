"""The jobs that have ended in this session: how each ended, its result and its log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core.text import fit, visible
from dld_tui.styles import STYLES
from dld_tui.widgets.lists.line_source import ListSource, Piece
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.row_table import RowTable
from dld_tui.widgets.lists.styled import wrap
from dld_tui.widgets.lists.table_view import Column, TableView
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.frame import Frame
from dld_tui.widgets.shell.host import EndedJob, host
from dld_tui.widgets.shell.page import SubPage

_LABEL = 18
_STYLES = {"done": "good", "stopped": "warn", "failed": "bad"}


class EndedList(Frame, TableView):
    """The jobs, the newest first."""

    HELP = (
        "The jobs that have ended since the program was started, the newest first. "
        "{ended_jobs.result} opens what one wrote, {ended_jobs.copy} copies its result and log."
    )


class EndedLog(Frame, LineView):
    """The result and the log of the job under the cursor."""

    HELP = "What the job gave and said."


class EndedJobsScreen(SubPage):
    """A list, and below it result and log of one job."""

    SCOPE = "ended_jobs"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("ended_jobs")
    CSS_PATH = STYLES / "ended_jobs.tcss"
    tab_title = "ended jobs"
    HELP = EndedList.HELP

    def body(self) -> Iterable[Widget]:
        """Return the list and the pane below it."""
        view = EndedList(
            [
                Column("time", "Ended", 8),
                Column("end", "How", 8),
                Column("title", "Job", min_width=20),
            ],
            empty="No job has ended yet.",
            id="ended",
        )
        view.frame("Ended jobs")
        log = EndedLog(ListSource([]), gutter=False, id="ended-log")
        log.frame("Result and log")
        return view, log

    def on_mount(self) -> None:
        """Show the jobs."""
        view = self.query_one(EndedList)
        view.set_table(
            RowTable(
                [*host(self).ended_jobs][::-1],
                {
                    "time": lambda job: job.time,
                    "end": lambda job: (job.end, _STYLES[job.end]),
                    "title": lambda job: (visible(job.title), "strong"),
                },
                key=lambda job: job.number,
            )
        )
        view.focus()
        self._show_log()

    def facts(self) -> set[str]:
        """Return whether there is a file to open."""
        job = self._job() if self.is_mounted else None
        return super().facts() | ({"result"} if job is not None and job.files else set())

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Show the log of the job under the cursor."""
        if isinstance(event.view, EndedList):
            self._show_log()
            self.refresh_bindings()

    def on_line_view_activated(self) -> None:
        """Open what the job wrote: the list takes Enter before this page does."""
        self.action_result()

    def _job(self) -> EndedJob | None:
        number = self.query_one(EndedList).key_at_cursor()
        return next((job for job in host(self).ended_jobs if job.number == number), None)

    def _show_log(self) -> None:
        job = self._job()
        width = max(20, self.app.size.width - 4)
        lines: list[list[Piece]] = []
        for label, text in job.result if job is not None else ():
            for at, part in enumerate(wrap(visible(text), max(10, width - _LABEL))):
                lines.append([(fit("" if at else visible(label), _LABEL), "dim"), (part, "")])
        lines += [[]] if lines else []
        for text in job.log if job is not None else ():
            lines += [[(row, "")] for row in wrap(visible(text), width)]
        self.query_one(EndedLog).set_lines(ListSource(lines))

    def action_result(self) -> None:
        """Open what the job wrote."""
        job = self._job()
        if job is not None and job.files:
            owner = host(self)
            self.dismiss(None)
            owner.open_path(Path(job.files[0]))

    def action_copy_log(self) -> None:
        """Copy result and log."""
        job = self._job()
        if job is not None:
            rows = [f"{label}: {text}" for label, text in job.result]
            self.app.copy_to_clipboard("\n".join([job.title, *rows, *job.log]))
