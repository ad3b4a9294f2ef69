"""The errors of tensors of two runs: the outputs, every tensor, the first divergence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.accuracy.engine_settings import is_engine
from dld_tui.core.accuracy.result import (
    AccuracyReport,
    Row,
    accuracy_table,
    rows_csv,
    side_text,
    verdict,
)
from dld_tui.core.document import Document, Node
from dld_tui.core.files.writer import write_text
from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.activity.results import Paragraph, ParagraphsDialog, ResultHead
from dld_tui.screens.files import ask_where
from dld_tui.screens.list_page import ListPage
from dld_tui.screens.model.result import ResultModel, model_of
from dld_tui.styles import STYLES
from dld_tui.widgets.shell.command_dispatch import bindings_for
from dld_tui.widgets.shell.page import NodeErrors

_FILTERS: Mapping[str, Callable[[Row], bool]] = {
    "all tensors": lambda row: True,
    "only what differs": lambda row: bool(row.problem),
    "only outputs": lambda row: row.is_output,
}


class AccuracyScreen(ListPage[Row]):
    """One comparison.

    Args:
        result: What the activity gave.
        model: The model that nodes are shown in; by default the reference.
    """

    SCOPE = "accuracy"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("accuracy")
    CSS_PATH = STYLES / "lists.tcss"
    LIST_EMPTY = "No tensor to show"
    HELP = (
        "Each row is a tensor of the model, the largest errors first. {accuracy.order} sorts by "
        "execution order, {accuracy.first} goes to the first tensor outside its tolerance, and "
        "{list.activate} goes to its producer. In the graph, {graph.overlay} colours nodes by "
        "these errors."
    )

    def __init__(self, result: AccuracyReport, model: Path | None = None) -> None:
        super().__init__()
        self.report = result
        self.found = result.found
        path = model or Path(result.reference.model)
        if is_engine(path) and not is_engine(result.other.model):
            path = Path(result.other.model)  # an engine has no nodes to go to
        self.subject = ResultModel(self, "accuracy", path)
        other = Path(result.other.model).name
        is_state = other.startswith(path.name)  # as edited, say
        self.tab_title = f"accuracy of {other if is_state else path.name}"
        self.filter = "all tensors"
        self.by_order = False

    @classmethod
    def of_job(cls, result: AccuracyReport, values: Mapping[str, JSON]) -> AccuracyScreen:
        """Return the page of what a job found; `values` are those of its form."""
        return cls(result, model_of(values))

    def body(self) -> Iterable[Widget]:
        return ResultHead(
            self._head(), keys="{accuracy.remarks} shows all remarks"
        ), *super().body()

    def on_mount(self) -> None:
        """Show the rows."""
        self.show_rows()

    # --- what is shown --------------------------------------------------------------------------

    def _head(self) -> list[Paragraph]:
        good = self.found.is_good
        bad = [row for row in self.found.outputs if row.problem]
        said = "all outputs are within the tolerance" if good else (
            f"{len(bad):,} of {fmt.plural(len(self.found.outputs), 'output')} not within tolerance"
        )  # fmt: skip
        verdict = (" ok ", "good strong") if good else (" differs ", "bad strong")
        paragraphs = [Paragraph(f"{said}  {self.report.tolerance}", "strong", verdict)]
        if self.subject.is_outdated:
            paragraphs.append(Paragraph("The model was edited since; this is of before.", "warn"))
        paragraphs += [
            Paragraph(side_text(self.report.reference), "", (" reference  ", "dim")),
            Paragraph(side_text(self.report.other), "", (" other      ", "dim")),
        ]
        paragraphs += [Paragraph(f"{row.name}: {row.problem}", "warn") for row in bad]
        return paragraphs + [Paragraph(remark, "dim") for remark in self.found.remarks]

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Say whether the model was edited while another tab was seen."""
        for head in self.query(ResultHead):
            head.set_paragraphs(self._head())

    def action_remarks(self) -> None:
        self.app.push_screen(ParagraphsDialog("Remarks", self._head()))

    def table(self) -> Table[Row]:
        """Return the tensors that pass the filter, in the order that was chosen."""
        rows = self.found.rows if self.by_order else self.found.worst()
        shown = [row for row in rows if _FILTERS[self.filter](row)]
        order = "in order" if self.by_order else "largest errors first"
        title = f"{fmt.plural(len(shown), 'tensor')}, {order}"
        keys = "{accuracy.filter} filter  {table.sort} sort"
        self.view.frame.show(title, self.filter if self.filter != "all tensors" else keys)
        return accuracy_table(shown, "screen")

    def facts(self) -> set[str]:
        row = self.row
        known = {
            "tensor_node": row is not None and bool(row.node),
            "diverges": self.found.first is not None,
        }
        return super().facts() | {name for name, holds in known.items() if holds}

    def node_errors(self, document: Document) -> NodeErrors | None:
        """Return how large the errors of nodes of the main graph are, relative to its values."""
        if not self.subject.is_of(document):
            return None

        def values() -> Mapping[Node, float]:
            found = ((document.main.find(ref), error) for ref, error in self.found.growth.items())
            return {node: error for node, error in found if node is not None}

        return NodeErrors(self, self.tab_title, self.subject.is_outdated, values)

    # --- commands -------------------------------------------------------------------------------

    def row_changed(self) -> None:
        """Say what is wrong with the tensor."""
        self.crumb(visible(verdict(self.row)) if self.row is not None else "")
        super().row_changed()

    def activate(self) -> None:
        """Go to the node."""
        self.action_go_to_node()

    def action_go_to_node(self) -> None:
        row = self.row
        if row is not None and row.node:
            self.subject.show_node([], row.node)

    def action_filter(self) -> None:
        names = list(_FILTERS)
        self.filter = names[(names.index(self.filter) + 1) % len(names)]
        self.show_rows()

    def action_in_order(self) -> None:
        self.by_order = not self.by_order
        self.view.sort_by(None)
        self.show_rows()

    def action_first(self) -> None:
        first = self.found.first
        if first is None:
            return
        if not _FILTERS[self.filter](first):
            self.filter = "all tensors"
            self.show_rows()
        self.view.go_to_key(first.name)

    def action_save_csv(self) -> None:
        def write(path: Path, overwrite: bool) -> Sequence[str]:
            return write_text(path, rows_csv(self.found.rows), overwrite=overwrite)

        name = str(self.subject.path.with_suffix(".accuracy.csv"))
        ask_where(self, "Save CSV", "Write the tensors to", name, write)
