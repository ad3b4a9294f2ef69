"""The result of a tuning: the verdict, the candidates as intervals on one axis, and the reasons."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.containers import Container

from dld_tui.commands.command import table
from dld_tui.core.errors import DldError
from dld_tui.core.report.report import Report, open_report
from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible
from dld_tui.core.tune.result import (
    Candidate,
    TuneResult,
    doubt_parts,
    load_result,
    result_parts,
    tune_bars,
    why_parts,
)
from dld_tui.core.types import JSON
from dld_tui.screens.results.results_page import ALWAYS, Pane, ResultsPage
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.results.paragraphs import Paragraph
from dld_tui.widgets.results.passes import PassTimeline
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import on_thread, task
from dld_tui.widgets.timeline.lanes import Timeline, timeline_of

LABEL = 9
"""Cells of the names of texts."""
RUNS = ("before", "after")
"""The timelines of the original model and of the best candidate, by their ids."""


class TuneScreen(ResultsPage[TuneResult]):
    """One result."""

    SCOPE = "tuned"
    COMMAND_TABLE = (
        *table(
            "tuned",
            ("tuned.open", "open_model", "enter", "faster", "open result",
             "Open the faster model, or copy the session settings that make it faster."),
            ("tuned.copy", "copy", "y", "faster", "copy settings",
             "Copy the settings as Python, C++ or a command."),
            ("tuned.compare", "compare", "c", "faster", "compare profiles",
             "Compare the profiles of the baseline and of the fastest candidate."),
            ("tuned.about", "about", "i", "", "details", "Show all that is known of the result."),
            ("tuned.again", "again", "f5", "", "again", "Open the form again."),
            footer="tuned.open tuned.copy tuned.compare tuned.about tuned.again",
        ),
        *table(
            "tuned",
            ("tuned.pane.1", "pane 1", "1", "", "pane 1", "Focus the candidates."),
            ("tuned.pane.2", "pane 2", "2", "", "pane 2", "Focus the passes before and after."),
            palette=False,
        ),
    )  # fmt: skip
    LIST_EMPTY = "Nothing was measured"
    MORE = "{tuned.about} all that is known"
    FIRST: ClassVar[tuple[str, str]] = ("candidates", "candidates")
    HELP = (
        "Each row is a candidate: a model with session settings, the fastest first. The axis is "
        "the confirmed speedup with its 95 % interval: at 2× a pass takes half of the original "
        "model's time, whose speedup of 1× is marked in each row. What is unconfirmed only seemed "
        "faster at first: the first comparison favours those that win it. {tuned.open} opens the "
        "faster model, or copies the session settings as code, as {tuned.copy} does. "
        "{tuned.compare} compares the profiles of both, and {tuned.about} shows all that is known "
        "of the result. {tuned.pane.2} shows a typical pass of each."
    )

    def __init__(self, result: TuneResult | Path) -> None:
        """Make the page of a result, or of the file of one.

        Raises:
            InputError: The file cannot be read.
        """
        loaded = load_result(result) if isinstance(result, Path) else result
        super().__init__(None, f"tuned {Path(loaded.source).name}", loaded)
        self.path = Path(loaded.report)
        self._reports: list[Report] = []
        has_runs = len(loaded.reports) == len(RUNS) and all(map(os.path.isfile, loaded.reports))
        self.panes = (
            Pane("candidates", partial(self.make_list, "candidates"), "main",
                 ("large",) if has_runs else ALWAYS),
            Pane("head", self.make_head, "main", below=("candidates",)),
            Pane("passes", _runs, "side", ("large",), f"#{RUNS[0]}"),
        )[: 3 if has_runs else 2]  # fmt: skip

    @classmethod
    def of_job(cls, result: TuneResult, values: Mapping[str, JSON]) -> TuneScreen:
        """Return the page of what a job found."""
        return cls(result)

    def head(self) -> Sequence[Paragraph]:
        """Return the reasons, and what speaks against them."""
        return [
            *_paragraphs(why_parts(self.result), ""), *_paragraphs(doubt_parts(self.result), "warn")
        ]  # fmt: skip

    def fill(self, loaded: TuneResult) -> None:
        """Show the candidates, and the passes where their profiles are there."""
        winner = loaded.winner
        same = "results identical" if winner is not None and winner.identical else ""
        about = same or (visible(winner.accuracy) if winner is not None else "")
        keys = about if loaded.is_faster else "{tuned.about} details"
        self.view.frame.show(visible(loaded.headline), keys)
        self.show_rows(loaded.best)
        if self.query("#passes"):
            self._read_runs()

    def on_unmount(self) -> None:
        """Close the profiles."""
        for report in self._reports:
            report.close()

    @task("times")
    async def _read_runs(self) -> None:
        """Show typical passes of the original model and of the best one on one axis."""
        runs = await on_thread(_runs_of, self.result.reports)
        self._reports = [report for report, _ in runs]
        longest = max((timeline.total_us for _, timeline in runs), default=0.0)
        for name, (report, timeline) in zip(RUNS, runs, strict=False):
            self.query_one(f"#{name}", PassTimeline).set_report(report, timeline, longest)

    def table(self) -> Table[Candidate]:
        """Return what was tried."""
        return tune_bars(self.result)

    def conditions(self) -> set[str]:
        """Return whether something is faster."""
        return super().conditions() | ({"faster"} if self.result.is_faster else set())

    def row_changed(self) -> None:
        """Show why a candidate was excluded."""
        self.crumb(visible(self.row.problem) if self.row is not None else "")
        super().row_changed()

    def activate(self) -> None:
        """Open the faster model, or copy the faster settings."""
        if self.result.is_faster:
            self.action_open_model()
        else:
            self.notify("No candidate is measurably faster: the model stays unchanged", timeout=3)

    def action_open_model(self) -> None:
        """Open the faster model; where settings make it faster, copy these."""
        if self.result.model is None:
            self.action_copy()
        else:
            host(self).open_path(Path(self.result.model))

    def action_about(self) -> None:
        """Show all that is known."""
        self.show_text("Tuning", _paragraphs(result_parts(self.result), ""))

    def action_compare(self) -> None:
        """Compare the profiles of the original and of the faster model."""
        from dld_tui.screens.results.compare import CompareScreen

        host(self).add_page(CompareScreen([Path(path) for path in self.result.reports]))

    @task()
    async def action_copy(self) -> None:
        """Copy the settings as code."""
        code = self.result.code
        choices = [
            Choice("p", "Python", "python"), Choice("c", "C++", "cpp"),
            Choice("s", "the command that profiles it", "command"),
        ]  # fmt: skip
        question = "Copy the faster settings as"
        answer = await self.tasks.ask(ChoiceDialog("Copy the settings", question, choices))
        if answer is not None:
            texts: dict[str, Any] = {"python": code.python, "cpp": code.cpp}
            self.app.copy_to_clipboard(texts.get(answer, code.command))

    def action_again(self) -> None:
        """Show the form again."""
        host(self).start_activity("tune", {"model": self.result.source})


def _paragraphs(parts: Iterable[tuple[str, str]], style: str) -> list[Paragraph]:
    return [Paragraph(text, style, (f" {name:<{LABEL}}", "dim")) for name, text in parts]


def _runs() -> Container:
    keys = "{timeline.measure} measure"
    return Container(
        *(PassTimeline(title=name.capitalize(), keys=keys, id=name) for name in RUNS), id="passes"
    )


def _runs_of(paths: Iterable[str]) -> list[tuple[Report, Timeline]]:
    """Return profiles with the timelines of their typical passes; none if one is not there."""
    runs: list[tuple[Report, Timeline]] = []
    try:
        for path in paths:
            report = open_report(Path(path))
            typical = report.typical_pass
            runs.append((report, Timeline([], 0.0)))
            if typical is not None:
                runs[-1] = report, timeline_of(report, typical)
    except DldError:  # they may have been removed since: the result is whole without
        for report, _ in runs:
            report.close()
        return []
    return runs
