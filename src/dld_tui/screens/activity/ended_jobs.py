"""The jobs that have ended in this session: how each ended, its result and its log."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.binding import BindingType

from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import fit, visible
from dld_tui.screens.list_page import LABEL, ListPage
from dld_tui.styles import STYLES
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.lists.styled import wrap
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.host import EndedJob, host
from dld_tui.widgets.shell.page import SubPage

_STYLES = {"done": "good", "stopped": "warn", "failed": "bad"}


class EndedJobsScreen(ListPage[EndedJob], SubPage):
    """A list, and below it result and log of one job."""

    SCOPE = "ended_jobs"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("ended_jobs")
    CSS_PATH = STYLES / "ended_jobs.tcss"
    tab_title = "ended jobs"
    LIST_TITLE, LIST_EMPTY, ABOUT_TITLE = "Ended jobs", "No job has ended yet.", "Result and log"
    HELP = (
        "The jobs that have ended since the program was started, the newest first. "
        "{ended_jobs.result} opens what one wrote, {ended_jobs.copy} copies its result and log."
    )

    def on_mount(self) -> None:
        """Show the jobs."""
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
        """Return whether there is a file to open."""
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
        """Open what the job wrote."""
        if self.row is not None and self.row.files:
            owner, path = host(self), Path(self.row.files[0])
            self.dismiss(None)
            owner.open_path(path)

    def action_copy_log(self) -> None:
        """Copy result and log."""
        job = self.row
        if job is not None:
            rows = [f"{label}: {text}" for label, text in job.result]
            self.app.copy_to_clipboard("\n".join([job.title, *rows, *job.log]))
