"""A log of trtexec: what it says in short, the command that reproduces it, and all its lines."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.files.log_text import unwrapped
from dld_tui.core.files.source import Source
from dld_tui.core.tensorrt.plan.engine_plan import TrtexecLog
from dld_tui.core.tensorrt.plan.file_set import device_name, device_of
from dld_tui.core.tensorrt.plan.trtexec_log import (
    read_log,
    summary_doubts,
    timing_of_summary,
)
from dld_tui.core.text import cell_width, clip, visible, without_escapes
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.results.results_page import SIZES, Pane, ResultsPage
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.lists.line_view import LaidOutView, LineView
from dld_tui.widgets.lists.styled import Piece, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import holding
from dld_tui.widgets.shell.page import host

_LEVEL = re.compile(r"\[([WEF])\] ")
_HEAD = 120
"""Characters of a line in which its level stands."""
_SHOWN = 2_000
"""Characters of a line that are shown."""
_MESSAGES = 4
_TIMES = ("Latency", "GPU Compute Time", "Enqueue Time", "H2D Latency", "D2H Latency")


def level_of(line: str) -> str:
    """Return ``warn`` or ``bad`` for a warning or an error; empty for other lines."""
    level = _LEVEL.search(line, 0, _HEAD)
    if level is None:
        return ""
    return "warn" if level[1] == "W" else "bad"


class LogRows:
    """The lines of a log; only those that are seen are made ready to be shown."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.content_width = min(max((len(line) for line in lines), default=0), _SHOWN) + 2

    def __len__(self) -> int:
        return len(self.lines)

    def key(self, index: int) -> Hashable:
        return index

    def text(self, index: int) -> str:
        return visible(without_escapes(self.lines[index]))

    def line(self, index: int, width: int) -> Sequence[Piece]:
        text = clip(visible(without_escapes(self.lines[index][:_SHOWN])), width)
        return [(text, level_of(self.lines[index]) or ("strong" if "=== " in text else ""))]


def summary_lines(log: TrtexecLog, width: int) -> list[Line]:
    """Return the log in short for `width` cells."""
    shown = glyphs.current()
    good = log.status == "PASSED"
    head: Line = [(log.status or "NO RESULT", "good strong" if good else "bad strong")]
    device = visible(device_name(device_of(log.metadata)))
    version = f"TensorRT {visible(log.version)}" if log.version else ""
    runs = f"the last of {log.runs} runs" if log.runs > 1 else ""
    for part in filter(None, (version, device, runs)):
        head.append((f" {shown.dot} {part}", "dim"))
    lines: list[Line] = [head]
    for number, part in enumerate(wrap(visible(log.command), width - 2)):
        lines.append([("$ " if number == 0 else "  ", "key"), (part, "")])
    lines += _times(log, width)
    figures = [f"{visible(name)} {visible(value)}" for name, value in log.figures.items()]
    if figures:
        lines.append([(clip(f" {shown.dot} ".join(figures), width), "dim")])
    doubts = [*log.doubts, *summary_doubts(_summary_of(log), log.percentiles)]
    lines += [[(clip(visible(text), width), "warn")] for text in doubts]
    lines += _messages(log.errors, "error", "bad", shown.error, width)
    lines += _messages(log.warnings, "warning", "warn", shown.warning, width)
    return lines


def _summary_of(log: TrtexecLog) -> dict[str, JSON]:
    """Return the performance summary of a log; empty without one."""
    return log.sections.get("performance_summary", {})


def _times(log: TrtexecLog, width: int) -> list[Line]:
    """Return the sound figures of the performance summary, as many a row as fit."""
    timing = timing_of_summary(_summary_of(log), log.percentiles)
    if timing is None:
        return []
    times = (timing.latency, timing.compute, timing.enqueue, timing.h2d, timing.d2h)
    figures = [("Throughput", f"{timing.throughput:,.1f} qps")] if timing.throughput else []
    for name, time in zip(_TIMES, times, strict=True):
        figures += (
            [(name, f"{fmt.milliseconds(time.median)} ms median")] if time is not None else []
        )
    rows: list[Line] = [[]]
    used = 0
    for name, text in figures:
        cells = len(name) + cell_width(text) + 4
        if used and used + cells > width:
            rows.append([])
            used = 0
        rows[-1] += [(f"{name} ", "dim"), (f"{text}   ", "number")]
        used += cells
    return [row for row in rows if row]


def _messages(
    messages: Sequence[str], noun: str, style: str, glyph: str, width: int
) -> list[Line]:  # fmt: skip
    if not messages:
        return []
    lines: list[Line] = [[(f"{glyph} {fmt.plural(len(messages), noun)}", style)]]
    lines += [[("  ", ""), (clip(visible(text), width - 2), "")] for text in messages[:_MESSAGES]]
    return lines


_MOST_BYTES = 64 << 20
"""Bytes of a log that are read; the title says when the rest is omitted."""


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
    text = unwrapped(bytes(data).decode("utf-8-sig", "surrogateescape"))
    lines = text.splitlines()
    problems = [place for place, line in enumerate(lines) if level_of(line)]
    return ReadLog(read_log(text), lines, problems, is_cut)


class LogSummary(LaidOutView):
    """The summary of the log."""

    HELP = "The command, the device, the times and the errors. {log.command} copies the command."

    def __init__(self) -> None:
        super().__init__(id="log-summary")
        self.shown_log: TrtexecLog | None = None

    def show(self, log: TrtexecLog) -> None:
        """Show a log."""
        self.shown_log = log
        self.frame.show("trtexec", "{log.command} copy command")
        self.draw()

    def laid_out(self, width: int) -> Sequence[Line] | None:
        return None if self.shown_log is None else summary_lines(self.shown_log, width)


class LogLines(LineView):
    """All lines of the log."""

    HELP = (
        "The unmodified log. Warnings and errors are highlighted; {log.problem} goes to the next "
        "one."
    )


class LogScreen(ResultsPage[ReadLog]):
    """One log."""

    SCOPE = "log"
    COMMAND_TABLE = table(
        "log",
        ("log.command", "copy_command", "y", "log_command", "copy command",
         "Copy the command that reproduces the run."),
        ("log.problem", "next_problem", "exclamation_mark", "log", "next warning",
         "Go to the next warning or error."),
        ("log.plan", "open_plan", "t", "log_layers", "engine",
         "Show the layers that the log lists."),
        footer="log.command log.problem log.plan",
    )  # fmt: skip
    HELP = "A trtexec log. {log.plan} shows its layers as an engine plan."
    panes: Sequence[Pane] = (
        Pane("log-summary", LogSummary, stays=(*SIZES,)),
        Pane("log-lines", partial(LogLines, id="log-lines"), "main", stays=(*SIZES,)),
    )
    FIRST: ClassVar[tuple[str, str]] = ("log-lines", "log-lines")
    path: Path

    def load(self, progress: ProgressCallback, cancelled: CancelCheck) -> ReadLog:
        """Read the log."""
        return read(self.path)

    def fill(self, loaded: ReadLog) -> None:
        """Show the log."""
        self.tab_status = "trtexec log"
        self.query_one(LogSummary).show(loaded.log)
        view = self.query_one(LogLines)
        cut = ", the first 64 MiB" if loaded.is_cut else ""
        view.frame.show(
            f"Log · {len(loaded.lines):,} lines{cut}",
            "{list.search} search  {log.problem} next warning",
        )
        view.set_lines(LogRows(loaded.lines), keep=False)

    def conditions(self) -> set[str]:
        shown = self.loaded
        log = shown.log if shown is not None else None
        return super().conditions() | holding(
            log=shown is not None,
            log_command=log is not None and bool(log.command),
            log_layers=log is not None and bool(log.layers or log.profile),
        )

    def action_copy_command(self) -> None:
        if self.loaded is not None:
            self.app.copy_to_clipboard(visible(self.loaded.log.command))

    def action_next_problem(self) -> None:
        log = self.loaded
        if log is None or not log.problems:
            self.notify("The log has no warnings and no errors", timeout=3)
            return
        view = self.query_one(LogLines)
        later = (place for place in log.problems if place > view.cursor)
        view.cursor = next(later, log.problems[0])
        view.focus()

    def action_open_plan(self) -> None:
        from dld_tui.screens.results.plan import PlanScreen

        host(self).add_page(PlanScreen(self.path))
