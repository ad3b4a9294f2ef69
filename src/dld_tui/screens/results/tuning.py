"""The result of a tuning: the verdict, the reasons, and the candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible
from dld_tui.core.tune.result import Candidate, TuneResult, load_result, result_parts, tune_table
from dld_tui.core.types import JSON
from dld_tui.screens.base_pages import ListPage
from dld_tui.screens.results.table import Paragraph, ParagraphsDialog, ResultHead
from dld_tui.styles import STYLES
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.shell.command_dispatch import bindings_for
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import task

LABEL = 9
"""Cells of the names above the table."""


class TuneScreen(ListPage[Candidate]):
    """One result."""

    SCOPE = "tuned"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("tuned")
    CSS_PATH = STYLES / "lists.tcss"
    LIST_TITLE = "Candidates in the races"
    LIST_EMPTY = "Nothing was measured"
    HELP = (
        "Each row is a candidate: a model with session settings, the fastest first. A speedup of "
        "2× is twice as fast as the baseline. {tuned.open} opens the faster model, or copies the "
        "session settings as code, as {tuned.copy} does. {tuned.compare} compares the profiles of "
        "both, and {tuned.about} shows the full text above the table."
    )

    def __init__(self, result: TuneResult | Path) -> None:
        """Make the page of a result, or of the file of one.

        Raises:
            InputError: The file cannot be read.
        """
        super().__init__()
        self.result = load_result(result) if isinstance(result, Path) else result
        self.path = Path(self.result.report)
        self.tab_title = f"tuned {Path(self.result.source).name}"

    @classmethod
    def of_job(cls, result: TuneResult, values: Mapping[str, JSON]) -> TuneScreen:
        """Return the page of what a job found."""
        return cls(result)

    def body(self) -> Iterable[Widget]:
        """Return the verdict and the table."""
        yield ResultHead(self._paragraphs, keys="{tuned.about} whole summary")
        yield from super().body()

    @property
    def _paragraphs(self) -> list[Paragraph]:
        good = self.result.is_faster
        (_, verdict), *others = result_parts(self.result)
        label = (" faster ", "good strong") if good else (" no gain ", "warn strong")
        return [
            Paragraph(verdict, "strong", label),
            *(Paragraph(text, "", (f" {name:<{LABEL}}", "dim")) for name, text in others),
        ]

    def on_mount(self) -> None:
        """Show the rows."""
        if self.result.is_faster:
            takes = "open the faster model" if self.result.model else "copy its settings"
            self.view.frame.show(self.LIST_TITLE, f"{{tuned.open}} {takes}")
        self.show_rows(self.result.best)

    def table(self) -> Table[Candidate]:
        """Return what was tried."""
        return tune_table(self.result)

    def facts(self) -> set[str]:
        """Return whether something is faster."""
        return super().facts() | ({"faster"} if self.result.is_faster else set())

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
        """Show the whole summary."""
        self.app.push_screen(ParagraphsDialog("Tuning", self._paragraphs))

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
