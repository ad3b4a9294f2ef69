"""The panes of a plan: the details of a layer, findings, and tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.tables.table import Table
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan, EngineTensor
from dld_tui.core.tensorrt.plan.gains import gain_text
from dld_tui.core.tensorrt.plan.graph import (
    precision_text,
    tensor_type,
)
from dld_tui.core.tensorrt.plan.lint import PlanFinding
from dld_tui.core.tensorrt.plan.mapping import LayerNodes
from dld_tui.core.tensorrt.plan.tables import VIEWS, layers_of_row, make_table
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.core.text.names import ListedNames
from dld_tui.core.types import precision_style
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.explorer.findings import level_glyph
from dld_tui.widgets.lists.line_view import LineView, MarksChanged
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, layer_style, wrap
from dld_tui.widgets.lists.table_view import TableView
from dld_tui.widgets.results.plan_summary import LEVEL_STYLES, NAME_STEP, layers_text
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.frame import Framed

_MOST_NODES = 60
_MOST_TENSORS = 40
_QUIET = ("Name", "LayerType", "Inputs", "Outputs", "Constants", "TacticName", "Metadata",
          "ParameterType", "TacticValue", "StreamId", "Origin")  # fmt: skip
"""Attributes of the file that have lines of their own."""


@dataclass(frozen=True)
class NodeLine:
    """The key of a line about an ONNX node."""

    place: int
    """Among the layer's nodes."""


class PlanDetails(LineView):
    """The layer under the cursor of another pane."""

    HELP = (
        "Everything that the file says about the layer: tensors with formats, weights, tactic, "
        "ONNX nodes and findings. {list.activate} on a node goes to the model."
    )

    @dataclass
    class NodeChosen(Message):
        """Enter on the line of an ONNX node."""

        place: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, empty="No layer is selected.", classes="frame")
        self._shown: tuple[EngineLayer, LayerNodes | None, Sequence[PlanFinding]] | None = None

    def show(
        self, layer: EngineLayer, nodes: LayerNodes | None, findings: Sequence[PlanFinding]
    ) -> None:
        """Show a layer, the ONNX nodes that it computes and what was found in it."""
        same = self._shown is not None and self._shown[0].index == layer.index
        self._shown = (layer, nodes, findings)
        self.frame.show(f"Layer {layer.index}", "s go to node")
        self._draw(keep=same)

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self._draw(keep=True)

    def _draw(self, keep: bool) -> None:
        if self._shown is None:
            return
        rows = detail_lines(*self._shown, max(self.size.width - 2, 20))
        keys = [key if key is not None else number for number, (_, key) in enumerate(rows)]
        self.set_lines(ListSource([line for line, _ in rows], keys), keep=keep)

    def activate(self) -> None:
        """Go to the node of the line, if it is one."""
        key = self.key_at_cursor()
        if isinstance(key, NodeLine):
            self.post_message(self.NodeChosen(key.place))


def detail_lines(
    layer: EngineLayer,
    nodes: LayerNodes | None,
    findings: Sequence[PlanFinding],
    width: int,
) -> list[tuple[Line, NodeLine | None]]:
    """Return lines about a layer, the most telling first, and which node each is of."""
    kind = visible(layer.type) or "type not in the file"
    figures = _figures(layer)
    style = layer_style(layer.kind)
    lines: list[Line] = [
        [(part, "strong")] for part in wrap(visible(layer.name) or "(no name)", width)[:3]
    ]
    first: Line = [(kind, style)]
    if layer.subtype and layer.subtype != layer.type:
        first.append((f" {visible(layer.subtype)}", "dim"))
    precision = precision_text(layer)
    if precision:
        first.append((f"  {precision}", precision_style(layer.precision)))
    lines += [[*first, (f"  {figures}" if figures else "", "number")]]
    for finding in findings:
        lines += _finding_lines(finding, width)
    lines += _tensors("in", layer.inputs, width) + _tensors("out", layer.outputs, width)
    if layer.weights_bytes:
        estimated = ", estimated from shapes" if layer.weights_from == "shapes" else ""
        lines.append([("weights ", "dim"), (f"{fmt.size(layer.weights_bytes)}{estimated}", "")])
    elif layer.known_weights is None:
        lines.append([("weights ", "dim"), ("not in the file", "dim")])
    tactic = " ".join(visible(part) for part in (layer.tactic, layer.tactic_value) if part)
    if tactic:
        lines.append([("tactic  ", "dim"), (clip(tactic, width - 8, keep="middle"), "")])
    if layer.origin:
        lines.append([("origin  ", "dim"), (visible(layer.origin), "")])
    rows: list[tuple[Line, NodeLine | None]] = [(line, None) for line in lines]
    rows += _node_lines(nodes, width)
    rows += [(line, None) for line in _attribute_lines(layer, width)]
    return rows


def _figures(layer: EngineLayer) -> str:
    if layer.time_ms is None:
        return ""
    return f"{fmt.milliseconds(layer.time_ms)} ms  {fmt.percent(layer.percent)} %"


def _finding_lines(finding: PlanFinding, width: int) -> list[Line]:
    style = LEVEL_STYLES.get(finding.level, "info")
    lines: list[Line] = []
    for number, part in enumerate(wrap(finding.hazard, width - 2)):
        mark = f"{level_glyph(finding.level)} " if number == 0 else "  "
        lines.append([(mark, style), (part, style)])
    if finding.mitigation:
        lines += [[("  ", ""), (part, "")] for part in wrap(finding.mitigation, width - 2)]
    if finding.gain is not None:
        text = wrap(gain_text(finding.gain), width - 2)
        lines += [[("  ", ""), (part, "info")] for part in text]
    return lines


def _tensors(title: str, tensors: Sequence[EngineTensor], width: int) -> list[Line]:
    shown = glyphs.current()
    arrow = shown.left if title == "in" else shown.right
    lines: list[Line] = []
    for number, tensor in enumerate(tensors[:_MOST_TENSORS]):
        head = f"{title:<4}" if number == 0 else "    "
        kind = visible(tensor_type(tensor)) or "type unknown"
        size = f"  {fmt.size(tensor.bytes)}" if tensor.bytes is not None else ""
        room = max(width - len(head) - 2 - len(kind) - len(size) - 2, 8)
        name = clip(visible(tensor.name), room, keep="middle")
        lines.append([
            (head, "dim"), (f"{arrow} ", "io"), (f"{name}  ", "link"), (kind, ""), (size, "dim"),
        ])  # fmt: skip
        about = ", ".join(visible(part) for part in (tensor.format, tensor.location) if part)
        if about and about.lower() != tensor.dtype:
            lines.append([(" " * 6, ""), (clip(about, width - 6), "dim")])
    if len(tensors) > _MOST_TENSORS:
        lines.append([(f"    {len(tensors) - _MOST_TENSORS:,} more", "dim")])
    return lines


def _node_lines(nodes: LayerNodes | None, width: int) -> list[tuple[Line, NodeLine | None]]:
    if nodes is None or not nodes.nodes:
        return [([("ONNX    ", "dim"), ("no ONNX node is known for this layer", "dim")], None)]
    count = fmt.plural(len(nodes.nodes), "node")
    cut = ", the file cut the list" if nodes.truncated else ""
    how = f"{count}, {nodes.confidence}, by {_HOW.get(nodes.how, nodes.how)}{cut}"
    rows: list[tuple[Line, NodeLine | None]] = [([("ONNX    ", "dim"), (how, "dim")], None)]
    for place, node in enumerate(nodes.nodes[:_MOST_NODES]):
        kind = visible(node.op_type)
        label = clip(visible(node.label), max(width - len(kind) - 6, 8), keep="end")
        line: Line = [("  ", ""), (label, "link"), (f"  {kind}" if kind else "", "dim")]
        rows.append((line, NodeLine(place)))
    if len(nodes.nodes) > _MOST_NODES:
        rows.append(([(f"  {len(nodes.nodes) - _MOST_NODES:,} more", "dim")], None))
    return rows


_HOW = {
    "metadata": "the layer's metadata",
    "name": "its name",
    "range": "the range in its name",
    "join": "the names in its name",
}


def _attribute_lines(layer: EngineLayer, width: int) -> list[Line]:
    shown = [(key, value) for key, value in layer.attributes.items() if key not in _QUIET]
    if layer.stream is not None:
        shown.append(("stream", layer.stream))
    return [
        [
            (f"{clip(visible(key), 26)} ", "dim"),
            (clip(visible(str(value)), max(width - 28, 8), keep="middle"), ""),
        ]
        for key, value in shown
    ]


_NAME_SHARE = 0.35
_NAME_FROM = 96
"""Rows of so many cells name the layer, shorter ones where the finding leaves room."""
_LEAST_NAME = 14


class FindingRows:
    """Findings as the lines of a view."""

    def __init__(self, findings: Sequence[PlanFinding], names: Mapping[int, str]) -> None:
        self.findings = findings
        self._names = names
        self._has_percent = any(finding.percent is not None for finding in findings)
        self._listed = ListedNames(map(self._name, findings), NAME_STEP)

    def __len__(self) -> int:
        return len(self.findings)

    def key(self, index: int) -> Hashable:
        finding = self.findings[index]
        return finding.rule, finding.layer, finding.layers, finding.hazard

    def _name(self, finding: PlanFinding) -> str:
        return layers_text(finding, self._names) or "the whole engine"

    def text(self, index: int) -> str:
        finding = self.findings[index]
        parts = (finding.rule, self._name(finding), finding.hazard, finding.mitigation)
        return "\t".join(visible(part) for part in parts)

    def line(self, index: int, width: int) -> Sequence[Piece]:
        finding = self.findings[index]
        style = LEVEL_STYLES.get(finding.level, "info")
        pieces: list[Piece] = [(f"{level_glyph(finding.level)} ", style)]
        if self._has_percent:
            share = "" if finding.percent is None else f"{fmt.percent(finding.percent)} %"
            pieces.append((f"{share:>7}  ", "number"))
        room = width - sum(cell_width(text) for text, _ in pieces)
        named = int(room * _NAME_SHARE) if width >= _NAME_FROM else 0
        whole = visible(finding.hazard)
        if not named and room - cell_width(whole) >= _LEAST_NAME:
            named = room - cell_width(whole) - 2  # what a short finding leaves
        hazard = clip(whole, room - named - (2 if named else 0))
        pieces.append((hazard, ""))
        if named:
            gap = room - named - cell_width(hazard)
            pieces.append((" " * gap, ""))
            pieces.append((self._listed.cut(self._name(finding), named), "link"))
        return pieces


class PlanFindings(LineView):
    """The findings of an engine."""

    HELP = (
        "Findings that may cost time in this engine, the costliest first. The details say what "
        "to do. {list.activate} goes to the layer; if the finding names a rewrite rule, "
        "{plan.improve} previews it on the model."
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, empty="Nothing was found that costs time.", classes="frame")
        self.findings: Sequence[PlanFinding] = ()

    def show(self, findings: Sequence[PlanFinding], names: Mapping[int, str]) -> None:
        """Show findings; the names of layers are by their own index."""
        self.findings = findings
        counts = [
            fmt.plural(sum(finding.level == level for finding in findings), word)
            for level, word in (("warning", "warning"), ("note", "note"))
            if any(finding.level == level for finding in findings)
        ]
        title = f"Findings · {', '.join(counts)}" if counts else "Findings"
        self.frame.show(title, "{list.activate} layer" if findings else "")
        self.set_lines(FindingRows(findings, names))

    def finding_at_cursor(self) -> PlanFinding | None:
        """Return the finding under the cursor."""
        return self.findings[self.cursor] if self.cursor < len(self.findings) else None


_SHOWN = tuple(view for view in VIEWS if view != "layers")


def special_tables(plan: EnginePlan) -> list[Table[Any]]:
    """Return the tables of a plan that have rows, what takes longest first."""
    tables = []
    for view in _SHOWN:
        table = make_table(plan, view)
        if view == "memory":
            table = table.sorted_by("footprint")
        elif "time_ms" in table.keys:
            table = table.sorted_by("time_ms")
        if table.rows:
            tables.append(table.telling())
    return tables


class SpecialView(TableView):
    """The rows of the table that is chosen."""

    FITTED = True
    HELP = (
        "Layers of one kind with their specific figures. {plan.table} shows the next kind, "
        "{table.sort} sorts by the next column, {list.activate} shows the layer in the layer "
        "table."
    )


class SpecialNames(Rows):
    """The names of the tables, the chosen one marked."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: Sequence[Table[Any]] = ()
        self.at = 0

    def content(self, width: int) -> list[Line]:
        """Return the row; it begins where the chosen name can be seen."""
        names = [f" {table.title.lower()} " for table in self.tables]
        first = 0
        while sum(map(len, names[first : self.at + 1])) > width and first < self.at:
            first += 1
        shown = enumerate(names[first:], first)
        return [[(name, "current" if at == self.at else "dim") for at, name in shown]]


class SpecialPane(Framed, Vertical):
    """One special table, and the names of all."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.tables: Sequence[Table[Any]] = ()
        self.at = 0
        self._rows: Mapping[int, int] = {}

    def compose(self) -> ComposeResult:
        yield SpecialNames()
        yield SpecialView(empty="The file does not say.", id="special-table")

    @property
    def view(self) -> SpecialView:
        """The table."""
        return self.query_one(SpecialView)

    def set_tables(self, plan: EnginePlan, tables: Sequence[Table[Any]]) -> None:
        """Show the first of the tables of a plan, or the one that was shown before."""
        before = self.view.table.name
        self.tables = tables
        self._rows = {layer.index: place for place, layer in enumerate(plan.layers)}
        self.show_table(next((at for at, table in enumerate(tables) if table.name == before), 0))

    def next_table(self) -> None:
        """Show the next table."""
        if self.tables:
            self.show_table((self.at + 1) % len(self.tables))

    def show_table(self, at: int) -> None:
        """Show a table by its place."""
        self.at = at
        if not self.tables:
            self.frame.show("Special tables")
            return
        table = self.tables[at]
        is_same = table.name == self.view.table.name
        if not is_same:
            self.view.sort_column = None
        self.view.set_table(table, keep=is_same)
        names = self.query_one(SpecialNames)
        names.tables, names.at = self.tables, at
        names.refresh()
        self.frame.show(
            f"{table.title} · {fmt.count(len(table.rows))}",
            "{plan.table} next table  {table.sort} sort",
        )

    def shown_table(self) -> Table[Any] | None:
        """Return the table that is seen, sorted as it is."""
        return replace(self.view.table, rows=self.view.shown_rows()) if self.tables else None

    def layer_at_cursor(self) -> int | None:
        """Return the layer of the row under the cursor, by its place among the plan's."""
        row = self.view.row_at_cursor()
        if row is None or not self.tables:
            return None
        of = layers_of_row(self.tables[self.at].rows[row])
        return self._rows.get(of[0]) if of else None

    @on(MarksChanged)
    def _marked(self, event: MarksChanged) -> None:
        event.stop()
