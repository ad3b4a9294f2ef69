"""Errors of tensors of two runs, and what the searches of precisions and tactics found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import events

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.accuracy.engine_settings import is_engine
from dld_tui.core.accuracy.result import (
    AccuracyReport,
    AccuracyRow,
    accuracy_table,
    output_text,
    rows_csv,
    side_text,
    verdict,
)
from dld_tui.core.accuracy.search import (
    KeptNode,
    PrecisionEstimate,
    PrecisionResult,
    kept_table,
    not_minimal_text,
)
from dld_tui.core.accuracy.tactics import (
    BadTactic,
    TacticReport,
    avoiding_command,
    counts_text,
    tactic_table,
    verdict_text,
)
from dld_tui.core.codec import encode
from dld_tui.core.errors import DldError
from dld_tui.core.files.writer import write_text
from dld_tui.core.model.document import Document, Node
from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.results.pages import ResultModel, ask_where, model_of
from dld_tui.screens.results.results_page import ResultsPage
from dld_tui.widgets.results.paragraphs import Paragraph, ResultHead
from dld_tui.widgets.shell.command_dispatch import hint, holding
from dld_tui.widgets.shell.page import NodeErrors, host

if TYPE_CHECKING:
    from dld_tui.core.model.document import Document
    from dld_tui.widgets.shell.page import Page


class Filter(Enum):
    """Which tensors are shown."""

    ALL = "all tensors"
    DIFFERENT = "only what differs"
    OUTPUTS = "only outputs"

    def shows(self, row: AccuracyRow) -> bool:
        """Return whether a tensor passes."""
        if self is Filter.DIFFERENT:
            return bool(row.problem)
        return self is Filter.ALL or row.is_output


class AccuracyScreen(ResultsPage[AccuracyReport]):
    """One comparison.

    Args:
        result: What the activity gave.
        model: The model that nodes are shown in; by default the reference.
    """

    SCOPE = "accuracy"
    COMMAND_TABLE = table(
        "accuracy",
        ("accuracy.node", "go_to_node", "s", "tensor_node", "go to node",
         "Show the producer of the tensor in the model."),
        ("accuracy.filter", "filter", "f", "", "filter",
         "Show all tensors, only those outside their tolerance, or only the outputs."),
        ("accuracy.first", "first", "exclamation_mark", "diverges", "first divergence",
         "Go to the first tensor, in execution order, outside its tolerance."),
        ("accuracy.order", "in_order", "v", "", "in order", "Sort by execution order or by error."),
        ("accuracy.remarks", "remarks", "i", "", "notes",
         "Show the notes on the comparison: how it ran, what it left out.", "remarks"),
        ("accuracy.again", "subject.again", "f5", "", "again",
         "Open the form again with the same settings."),
        ("accuracy.csv", "save_csv", "w", "", "save csv", "Write all tensors as a CSV file."),
        footer="accuracy.node accuracy.filter accuracy.first accuracy.order accuracy.remarks "
        "accuracy.again accuracy.csv",
    )  # fmt: skip
    MORE = "{accuracy.remarks} shows all notes"
    LIST_EMPTY = "No tensor to show"
    HELP = (
        "Each row is a tensor of the model, the largest errors first. {accuracy.order} sorts by "
        "execution order, {accuracy.first} goes to the first tensor outside its tolerance, and "
        "{list.activate} goes to its producer. In the graph, {graph.overlay} colours nodes by "
        "these errors."
    )

    def __init__(self, result: AccuracyReport, model: Path | None = None) -> None:
        self.errors = result.found
        path = model or Path(result.reference.model)
        if is_engine(path) and not is_engine(result.other.model):
            path = Path(result.other.model)  # an engine has no nodes to go to
        other = Path(result.other.model).name
        is_state = other.startswith(path.name)  # as edited, say
        super().__init__(None, f"accuracy of {other if is_state else path.name}", result)
        self.subject = ResultModel(self, "accuracy", path)
        self.filter = Filter.ALL
        self.by_order = False

    @classmethod
    def of_job(cls, result: AccuracyReport, values: Mapping[str, JSON]) -> AccuracyScreen:
        """Return the page of what a job found; `values` are those of its form."""
        return cls(result, model_of(values))

    def head(self) -> Sequence[Paragraph]:
        """Return the verdict, and what was compared."""
        good = self.errors.is_good
        bad = [row for row in self.errors.outputs if row.problem]
        summary = "all outputs are within the tolerance" if good else (
            f"{len(bad):,} of {fmt.plural(len(self.errors.outputs), 'output')} not within tolerance"
        )  # fmt: skip
        verdict = (" ok ", "good strong") if good else (" differs ", "bad strong")
        paragraphs = [Paragraph(f"{summary}  {self.result.tolerance}", "strong", verdict)]
        if self.subject.is_outdated:
            paragraphs.append(
                Paragraph(
                    "The model was edited since; this result does not include those edits.", "warn"
                )
            )
        paragraphs += [
            Paragraph(side_text(self.result.reference), "", (" reference  ", "dim")),
            Paragraph(side_text(self.result.other), "", (" other      ", "dim")),
        ]
        paragraphs += [Paragraph(f"{row.name}: {row.problem}", "warn") for row in bad]
        return paragraphs + [Paragraph(remark, "dim") for remark in self.errors.remarks]

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Say whether the model was edited while another tab was seen."""
        for head in self.query(ResultHead):
            head.set_paragraphs(self.head())

    def action_remarks(self) -> None:
        self.show_text("Notes")

    def table(self) -> Table[AccuracyRow]:
        """Return the tensors that pass the filter, in the order that was chosen."""
        rows = self.errors.rows if self.by_order else self.errors.worst()
        shown = [row for row in rows if self.filter.shows(row)]
        order = "in order" if self.by_order else "largest errors first"
        title = f"{fmt.plural(len(shown), 'tensor')}, {order}"
        keys = "{accuracy.filter} filter  {table.sort} sort"
        self.view.frame.show(title, keys if self.filter is Filter.ALL else self.filter.value)
        return accuracy_table(shown, "screen")

    def conditions(self) -> set[str]:
        row = self.row
        return super().conditions() | holding(
            tensor_node=row is not None and bool(row.node),
            diverges=self.errors.first is not None,
        )

    def node_errors(self, document: Document) -> NodeErrors | None:
        """Return how large the errors of nodes of the main graph are, relative to its values."""
        if not self.subject.is_of(document):
            return None

        def values() -> Mapping[Node, float]:
            errors = ((document.main.find(ref), error) for ref, error in self.errors.growth.items())
            return {node: error for node, error in errors if node is not None}

        return NodeErrors(self, self.tab_title, self.subject.is_outdated, values)

    def row_changed(self) -> None:
        """Show what is wrong with the tensor."""
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
        filters = [*Filter]
        self.filter = filters[(filters.index(self.filter) + 1) % len(filters)]
        self.show_rows()

    def action_in_order(self) -> None:
        self.by_order = not self.by_order
        self.view.sort_by(None)
        self.show_rows()

    def action_first(self) -> None:
        first = self.errors.first
        if first is None:
            return
        if not self.filter.shows(first):
            self.filter = Filter.ALL
            self.show_rows()
        self.view.go_to_key(first.name)

    @property
    def stem(self) -> str:
        """The name of the model, with its folder."""
        return visible(str(self.subject.path.with_suffix(".accuracy")))

    def shown_csv(self) -> tuple[str, int, str]:
        """Return all tensors."""
        return "", len(self.errors.rows), rows_csv(self.errors.rows)


class PrecisionScreen(ResultsPage[PrecisionResult]):
    """One result.

    Args:
        result: What the activity gave.
        model: The model that was searched.
    """

    SCOPE = "precision"
    COMMAND_TABLE = table(
        "precision",
        ("precision.apply", "apply", "e", "precisions", "apply",
         "Set the precisions in the editor as one edit; for int8, open the quantization form."),
        ("precision.node", "go_to_node", "s", "kept_node", "go to node",
         "Show the node in the model."),
        ("precision.script", "save_script", "w", "precisions", "save script",
         "Write the edit script that sets the precisions, or the node names for int8."),
        ("precision.again", "subject.again", "f5", "", "again",
         "Open the form again with the same settings."),
        footer="precision.apply precision.node precision.script precision.again",
    )  # fmt: skip
    ROW_CONDITION = "kept_node"
    HELP = (
        "The nodes that must stay in fp32 to keep the outputs within their tolerance; none of them "
        "can be left out. {precision.apply} sets the precisions of all nodes in the editor, as one "
        "edit; {precision.script} writes the same as an edit script. For int8, {precision.apply} "
        "opens the quantization form with these nodes excluded, and {precision.script} writes "
        "their names."
    )

    def __init__(self, result: PrecisionResult, model: Path) -> None:
        super().__init__(None, f"{result.precision} of {model.name}", result)
        self.subject = ResultModel(self, "search_precision", model)

    @classmethod
    def of_job(cls, result: PrecisionResult, values: Mapping[str, JSON]) -> PrecisionScreen:
        """Return the page of what a job found; `values` are those of its form."""
        return cls(result, model_of(values))

    @property
    def kept(self) -> tuple[KeptNode, ...] | None:
        """The nodes; None when there is no result."""
        return None if isinstance(self.result, PrecisionEstimate) else self.result.kept

    @property
    def edits(self) -> list[dict[str, Any]]:
        """The edits that set the precisions, as scripts have them; none for int8."""
        return [] if isinstance(self.result, PrecisionEstimate) else encode(self.result.edits)

    @property
    def _is_int8(self) -> bool:
        """Whether the nodes are those that a quantization leaves out."""
        return self.result.precision == "int8"

    def fill(self, loaded: PrecisionResult) -> None:
        """Show the nodes."""
        self.view.empty = (
            "No node has to stay in fp32" if self.kept == () else "No set of nodes is enough"
        )
        self.view.frame.show(
            fmt.plural(len(self.kept or ()), "node"),
            "{precision.apply} apply  {precision.script} script",
        )
        super().fill(loaded)

    def table(self) -> Table[KeptNode]:
        """Return the nodes."""
        return kept_table(self.kept or ())

    def head(self) -> Sequence[Paragraph]:
        """Return how many nodes can be lowered, what that took, and the errors that are left."""
        data = self.result
        if isinstance(data, PrecisionEstimate):
            least, most = data.estimate.trials
            duration = fmt.duration(data.estimate.trial_seconds)
            return [Paragraph(f"{data.estimate.nodes:,} nodes can be lowered: {least} to about"
                              f" {most} trials of {duration}")]  # fmt: skip
        cost = f"{fmt.plural(data.trials, 'trial')} in {fmt.duration(data.seconds)}"
        if self.kept is None:
            return [Paragraph(f"No set of nodes is enough ({cost}): the outputs are not within"
                              " their tolerances even with all nodes in fp32", "warn")]  # fmt: skip
        lowered = fmt.plural(data.lowered or 0, "node")
        lines = [Paragraph(f"{lowered} in {data.precision}  {cost}", "strong")]
        if not data.minimal:
            lines.append(Paragraph(not_minimal_text(data), "warn"))
        return lines + [
            Paragraph(output_text(name, error), "dim") for name, error in data.errors.items()
        ]

    def conditions(self) -> set[str]:
        is_usable = bool(self.kept if self._is_int8 else self.edits)
        return super().conditions() | ({"precisions"} if is_usable else set())

    def activate(self) -> None:
        """Go to the node."""
        self.action_go_to_node()

    def action_go_to_node(self) -> None:
        node = self.row
        if node is not None:
            self.subject.show_node(node.scope, node.node)

    def action_apply(self) -> None:
        owner = host(self)
        page, document = self._editor()
        if page is None or document is None:
            owner.open_path(self.subject.path)
            self.app.notify("The model is being opened: apply again when it is open", timeout=5)
            return
        if self._is_int8:
            owner.show_page(page)
            names: list[JSON] = [node.node for node in self.kept or ()]
            page.show_conversion_form("convert_quantize", {"dynamic": False, "exclude": names})
            return
        steps: list[JSON] = []
        for edit in self.edits:
            arguments = dict(edit)
            steps.append([arguments.pop("edit"), arguments])
        places = [place for edit in self.edits for place in edit["nodes"]]
        missing = [place for place in places if document.find_node(*place) is None]
        if missing:
            message = f"{len(missing):,} of the nodes are no longer in the model"
            owner.show_error(DldError(message, hint="Search again"))
            return
        title = f"keep {fmt.plural(len(self.kept or ()), 'node')} in fp32"
        owner.show_page(page)
        page.apply_steps(
            title,
            steps,
            lambda: page.notify(hint("The precisions are set; {edit.undo} undoes that"), timeout=4),
        )

    def _editor(self) -> tuple[Page, Document] | tuple[None, None]:
        """Return the tab in which the model is edited."""
        for page in host(self).pages:
            document = page.edited_document
            if document is not None and self.subject.is_of(document):
                return page, document
        return None, None

    def action_save_script(self) -> None:
        def write(path: Path, overwrite: bool) -> Sequence[str]:
            lines = [json.dumps(edit, ensure_ascii=False) for edit in self.edits]
            if self._is_int8:
                lines = [node.node for node in self.kept or ()]
            text = "".join(f"{line}\n" for line in lines)
            return write_text(path, text, overwrite=overwrite)

        ending = ".float-nodes.txt" if self._is_int8 else ".precisions.jsonl"
        title = "Save the names of the nodes" if self._is_int8 else "Save the edit script"
        ask_where(self, title, "Write it to", str(self.subject.path.with_suffix(ending)), write)


class TacticsScreen(ResultsPage[TacticReport]):
    """One result.

    Args:
        result: What the activity gave.
        model: The model that was searched.
    """

    SCOPE = "tactics"
    COMMAND_TABLE = table(
        "tactics",
        ("tactics.copy", "copy_command", "y", "avoids", "copy command",
         "Copy the command that builds without these tactics."),
        ("tactics.again", "subject.again", "f5", "", "again",
         "Open the form again with the same settings."),
        ("tactics.remarks", "remarks", "i", "", "notes", "Show the notes on the search."),
        footer="tactics.copy tactics.remarks tactics.again",
    )  # fmt: skip
    LIST_EMPTY = "No tactic causes it"
    MORE = "{tactics.remarks} shows all notes"
    HELP = (
        "The TensorRT tactics that each make the result wrong; a build without them was correct. "
        "{tactics.copy} copies the command that builds without them. If there are none, the list "
        "shows tactics that occurred only in wrong builds."
    )

    def __init__(self, result: TacticReport, model: Path) -> None:
        super().__init__(None, f"tactics of {model.name}", result)
        self.subject = ResultModel(self, "tactics", model)

    @classmethod
    def of_job(cls, result: TacticReport, values: Mapping[str, JSON]) -> TacticsScreen:
        """Return the page of what a job found; `values` are those of its form."""
        return cls(result, model_of(values))

    @property
    def command(self) -> str:
        """The command that builds without the tactics; empty where none is known."""
        return avoiding_command(self.result, self.subject.path)

    def table(self) -> Table[BadTactic]:
        """Return the layers and their tactics."""
        tactics = tactic_table(self.result)
        title = "tactic" if self.result.culprits else "suspect"
        keys = "{tactics.copy} copy command" if self.command else ""
        self.view.frame.show(fmt.plural(len(tactics), title), keys)
        return tactics

    def head(self) -> Sequence[Paragraph]:
        """Return the verdict, and how it was found."""
        data = self.result
        lines = [Paragraph(verdict_text(data), "strong"), Paragraph(counts_text(data), "dim")]
        if data.problem:
            lines.append(Paragraph(f"wrong: {data.problem}", "warn"))
        if self.command:
            lines.append(Paragraph(self.command))
        return lines + [Paragraph(remark, "dim") for remark in data.remarks]

    def action_remarks(self) -> None:
        self.show_text("Notes")

    def conditions(self) -> set[str]:
        return super().conditions() | ({"avoids"} if self.command else set())

    def action_copy_command(self) -> None:
        self.app.copy_to_clipboard(self.command)
