"""All that is known of one layer of an engine, as lines; some of them go somewhere on Enter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.message import Message

from dld_tui.core import fmt
from dld_tui.core.plan.graph import precision_text, tensor_type
from dld_tui.core.plan.lint import PlanFinding
from dld_tui.core.plan.mapping import LayerNodes
from dld_tui.core.plan.model import EngineLayer, EngineTensor
from dld_tui.core.report.layer_table import precision_style
from dld_tui.core.text import clip, visible
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.explorer.findings import level_glyph
from dld_tui.widgets.lists.line_source import ListSource
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import wrap
from dld_tui.widgets.operators.styles import layer_style
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.frame import Frame

_LEVEL_STYLES = {"warning": "warn", "note": "info"}
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


class PlanDetails(Frame, LineView):
    """The layer under the cursor of another pane."""

    HELP = (
        "Everything the file says of the layer: tensors with their formats, weights, tactic, the "
        "ONNX nodes that it computes, and what was found. {list.activate} on a node goes to the "
        "model."
    )

    @dataclass
    class NodeChosen(Message):
        """Enter on the line of an ONNX node."""

        place: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, empty="No layer is chosen.", classes="frame")
        self._shown: tuple[EngineLayer, LayerNodes | None, Sequence[PlanFinding]] | None = None

    def show(
        self, layer: EngineLayer, nodes: LayerNodes | None, findings: Sequence[PlanFinding]
    ) -> None:
        """Show a layer, the ONNX nodes that it computes and what was found in it."""
        same = self._shown is not None and self._shown[0].index == layer.index
        self._shown = (layer, nodes, findings)
        self.frame(f"Layer {layer.index}", "s go to node")
        self._draw(keep=same)

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self._draw_frame()
        self._draw(keep=True)
        super().on_resize()

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
    elif layer.weights_from == "unknown":
        lines.append([("weights ", "dim"), ("not in the file", "dim")])
    tactic = " ".join(visible(part) for part in (layer.tactic, layer.tactic_value) if part)
    if tactic:
        lines.append([("tactic  ", "dim"), (clip(tactic, width - 8, keep="middle"), "")])
    if layer.origin:
        lines.append([("origin  ", "dim"), (visible(layer.origin), "")])
    found: list[tuple[Line, NodeLine | None]] = [(line, None) for line in lines]
    found += _node_lines(nodes, width)
    found += [(line, None) for line in _attribute_lines(layer, width)]
    return found


def _figures(layer: EngineLayer) -> str:
    if layer.time_ms is None:
        return ""
    return f"{fmt.milliseconds(layer.time_ms)} ms  {fmt.percent(layer.percent)} %"


def _finding_lines(finding: PlanFinding, width: int) -> list[Line]:
    style = _LEVEL_STYLES.get(finding.level, "info")
    lines: list[Line] = []
    for number, part in enumerate(wrap(finding.hazard, width - 2)):
        mark = f"{level_glyph(finding.level)} " if number == 0 else "  "
        lines.append([(mark, style), (part, style)])
    if finding.mitigation:
        lines += [[("  ", ""), (part, "")] for part in wrap(finding.mitigation, width - 2)]
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
        return [([("ONNX    ", "dim"), ("no node is known of this layer", "dim")], None)]
    count = fmt.plural(len(nodes.nodes), "node")
    cut = ", the file cut the list" if nodes.truncated else ""
    how = f"{count}, {nodes.confidence}, by {_HOW.get(nodes.how, nodes.how)}{cut}"
    found: list[tuple[Line, NodeLine | None]] = [([("ONNX    ", "dim"), (how, "dim")], None)]
    for place, node in enumerate(nodes.nodes[:_MOST_NODES]):
        kind = visible(node.op_type)
        label = clip(visible(node.label), max(width - len(kind) - 6, 8), keep="end")
        line: Line = [("  ", ""), (label, "link"), (f"  {kind}" if kind else "", "dim")]
        found.append((line, NodeLine(place)))
    if len(nodes.nodes) > _MOST_NODES:
        found.append(([(f"  {len(nodes.nodes) - _MOST_NODES:,} more", "dim")], None))
    return found


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
