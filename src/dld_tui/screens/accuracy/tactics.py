"""What a search for wrong tactics found: the layers, their tactics, and how to avoid these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    verdict_text,
)
from dld_tui.screens.activity.result_head import Paragraph, ParagraphsDialog, ResultHead
from dld_tui.screens.model.result import ModelResult
from dld_tui.styles import STYLES
from dld_tui.widgets.lists.row_table import RowTable
from dld_tui.widgets.lists.table_view import Cell, Column, TableView
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.frame import Frame

_COLUMNS = (
    Column("layer", "layer", None, min_width=16, keep="end"),
    Column("tactic", "wrong tactic", 30, keep="end"),
    Column("instead", "right one", 24, priority=1, keep="end"),
    Column("alone", "alone", 9, priority=2),
)


class TacticTable(Frame, TableView):
    """The layers."""


class TacticsScreen(ModelResult):
    """One result.

    Args:
        result: What the activity gave.
        model: The model that was searched.
    """

    SCOPE = "tactics"
    ACTIVITY = "isolate_tactic"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("tactics")
    CSS_PATH = STYLES / "accuracy.tcss"
    AUTO_FOCUS = "TacticTable"
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
        head = ResultHead(self._head(), keys="{tactics.remarks} shows all remarks")
        return head, TacticTable(_COLUMNS, empty="No tactic is to blame")

    def on_mount(self) -> None:
        """Show the layers."""
        rows = self.data.culprits or [
            BadTactic(one.layer, one.title, tactic, None, None)
            for one in self.data.suspects
            for tactic in one.tactics
        ]
        alone = {True: "wrong", False: "not built", None: ""}
        cells: dict[str, Callable[[BadTactic], Cell]] = {
            "layer": lambda one: one.title,
            "tactic": lambda one: (one.tactic.shown, "type"),
            "instead": lambda one: one.instead.shown if one.instead else "",
            "alone": lambda one: (alone[one.confirmed], "dim"),
        }
        table = self.query_one(TacticTable)
        table.set_table(RowTable(rows, cells))
        title = "tactic" if self.data.culprits else "suspect"
        table.frame(
            fmt.plural(len(rows), title), "{tactics.copy} copy command" if self.command else ""
        )
        self.refresh_bindings()

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
