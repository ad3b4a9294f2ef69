"""What a search for wrong tactics found: the layers, their tactics, and how to avoid these."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.accuracy.tactics import (
    BadTactic,
    TacticReport,
    avoiding_command,
    counts_text,
    tactic_table,
    verdict_text,
)
from dld_tui.core.tables.table import Table
from dld_tui.screens.activity.result_head import Paragraph, ParagraphsDialog, ResultHead
from dld_tui.screens.list_page import ListPage
from dld_tui.screens.model.result import ModelResult
from dld_tui.styles import STYLES
from dld_tui.widgets.shell.commands import bindings_for


class TacticsScreen(ListPage[BadTactic], ModelResult):
    """One result.

    Args:
        result: What the activity gave.
        model: The model that was searched.
    """

    SCOPE = "tactics"
    ACTIVITY = "isolate_tactic"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("tactics")
    CSS_PATH = STYLES / "accuracy.tcss"
    LIST_EMPTY = "No tactic is to blame"
    HELP = (
        "The tactics of TensorRT that make the result wrong, each by itself: a build without them "
        "was right. {tactics.copy} copies the command that builds without them. Without such "
        "tactics it lists those that occurred in wrong builds only."
    )

    def __init__(self, result: TacticReport, model: Path) -> None:
        super().__init__()
        self.data = result
        self.model = model
        self.tab_title = f"tactics of {model.name}"

    @property
    def command(self) -> str:
        """The command that builds without the tactics; empty where none is known."""
        return avoiding_command(self.data, self.model)

    def body(self) -> Iterable[Widget]:
        """Return what was found and the layers."""
        return ResultHead(self._head(), keys="{tactics.remarks} shows all remarks"), *super().body()

    def on_mount(self) -> None:
        """Show the layers."""
        self.show_rows()

    def table(self) -> Table[BadTactic]:
        """Return the layers and their tactics."""
        found = tactic_table(self.data)
        title = "tactic" if self.data.culprits else "suspect"
        keys = "{tactics.copy} copy command" if self.command else ""
        self.view.frame(fmt.plural(len(found), title), keys)
        return found

    def _head(self) -> list[Paragraph]:
        data = self.data
        lines = [Paragraph(verdict_text(data), "strong"), Paragraph(counts_text(data), "dim")]
        if data.problem:
            lines.append(Paragraph(f"wrong: {data.problem}", "warn"))
        if self.command:
            lines.append(Paragraph(self.command))
        return lines + [Paragraph(remark, "dim") for remark in data.remarks]

    def action_remarks(self) -> None:
        """Show all that is said of the search."""
        self.app.push_screen(ParagraphsDialog("Remarks", self._head()))

    def facts(self) -> set[str]:
        """Return what holds now."""
        return super().facts() | ({"avoids"} if self.command else set())

    def action_copy_command(self) -> None:
        """Copy the command that builds without the tactics."""
        self.app.copy_to_clipboard(self.command)
