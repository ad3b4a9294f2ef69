"""A log of trtexec: what it says in short, the command that reproduces it, and all its lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.core.files.source import Source
from dld_tui.core.plan.trtexec_log import TrtexecLog, read_log
from dld_tui.core.text import visible
from dld_tui.screens.files import read_or_close
from dld_tui.styles import STYLES
from dld_tui.widgets.lists.line_source import ListSource
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.plan.trtexec_log import LogRows, level_of, summary_lines
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.tasks import task

_MOST_BYTES = 64 << 20
"""Of a log that is read; what follows is left out, and said."""


@dataclass(frozen=True)
class ReadLog:
    """A log with what takes time to find out."""

    log: TrtexecLog
    lines: Sequence[str]
    problems: Sequence[int]
    """Places of the lines with warnings and errors."""
    is_cut: bool


def read(path: Path) -> ReadLog:
    """Read a log.

    Raises:
        InputError: The file cannot be read.
    """
    source = Source.open(path)
    try:
        data = source.read(0, min(source.size, _MOST_BYTES))
        is_cut = source.size > _MOST_BYTES
    finally:
        source.close()
    text = bytes(data).decode("utf-8-sig", "surrogateescape")
    lines = text.splitlines()
    problems = [place for place, line in enumerate(lines) if level_of(line)]
    return ReadLog(read_log(text), lines, problems, is_cut)


class LogSummary(LineView):
    """What the log says in short."""

    HELP = (
        "The command, the device, the times, and what went wrong. {log.command} copies the command."
    )

    def __init__(self) -> None:
        super().__init__(gutter=False, id="log-summary", classes="frame")
        self.shown_log: TrtexecLog | None = None

    def show(self, log: TrtexecLog) -> None:
        """Show a log."""
        self.shown_log = log
        self.frame.show("trtexec", "{log.command} copy command")
        self._draw()

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self._draw()

    def _draw(self) -> None:
        if self.shown_log is not None and self.size.width > 4:
            lines = summary_lines(self.shown_log, self.size.width - 2)
            self.set_lines(ListSource([[(" ", ""), *line] for line in lines]), keep=False)


class LogLines(LineView):
    """All lines of the log."""

    HELP = (
        "The log as it is; warnings and errors stand out, {log.problem} goes to the next of them."
    )


class LogScreen(Page):
    """One log."""

    SCOPE = "log"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("log")
    CSS_PATH = STYLES / "plan.tcss"
    AUTO_FOCUS = "#log-lines"
    HELP = "A log of trtexec. {log.plan} shows the layers that it tells of as an engine."

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.tab_title = path.name
        self.shown_log: ReadLog | None = None

    def body(self) -> Iterable[Widget]:
        """Return the two parts."""
        return (
            Rows([[(f" reading {visible(self.tab_title)} …", "dim")]], id="loading"),
            Vertical(LogSummary(), LogLines(id="log-lines"), id="log"),
        )

    def on_mount(self) -> None:
        """Read the file."""
        self.query_one("#log").display = False
        self._load()

    @task("load")
    async def _load(self) -> None:
        path = self.path
        assert path is not None  # given to __init__
        found = await read_or_close(self, lambda progress, cancelled: read(path))
        self.shown_log = found
        self.tab_status = "trtexec log"
        self.query_one("#loading").display = False
        self.query_one("#log").display = True
        self.query_one(LogSummary).show(found.log)
        view = self.query_one(LogLines)
        cut = ", the first 64 MiB" if found.is_cut else ""
        view.frame.show(
            f"Log · {len(found.lines):,} lines{cut}",
            "{list.search} search  {log.problem} next warning",
        )
        view.set_lines(LogRows(found.lines), keep=False)
        view.focus()
        self.tab_changed()
        self.refresh_bindings()

    def facts(self) -> set[str]:
        """Return what holds now."""
        found = self.shown_log
        log = found.log if found is not None else None
        known = {
            "log": found is not None,
            "log_command": log is not None and bool(log.command),
            "log_layers": log is not None and bool(log.layers or log.profile),
        }
        return super().facts() | {name for name, holds in known.items() if holds}

    def action_copy_command(self) -> None:
        """Copy the command that reproduces the run."""
        if self.shown_log is not None:
            self.app.copy_to_clipboard(visible(self.shown_log.log.command))

    def action_next_problem(self) -> None:
        """Go to the next warning or error, the first one after the last."""
        found = self.shown_log
        if found is None or not found.problems:
            self.notify("The log has no warnings and no errors", timeout=3)
            return
        view = self.query_one(LogLines)
        later = (place for place in found.problems if place > view.cursor)
        view.cursor = next(later, found.problems[0])
        view.focus()

    def action_open_plan(self) -> None:
        """Show the layers that the log tells of, in a tab of their own."""
        from dld_tui.screens.plan.page import PlanScreen

        if self.path is not None:
            host(self).add_page(PlanScreen(self.path))
