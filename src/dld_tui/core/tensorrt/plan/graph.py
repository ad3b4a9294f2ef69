"""The graph of an engine: its layers and bindings, the tensors between them, and its picture."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.graph import Graph, Kind
from dld_tui.core.model.graph.pictures.content import Content, graph_content, short_type
from dld_tui.core.model.graph.pictures.style import precision_class
from dld_tui.core.model.operators.categories import colour_class_of
from dld_tui.core.report.groups import UNKNOWN
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan, EngineTensor
from dld_tui.core.tensorrt.plan.json_text import layout_of
from dld_tui.core.tensorrt.plan.layer_work import macs
from dld_tui.core.text import visible

_CATEGORIES: tuple[tuple[str, str], ...] = (
    (r"conv", "layer"),
    (r"pool", "pool"),
    (r"gemm|matrixmultiply|matmul|fullyconnected|attention|mha|fmha|einsum", "attention"),
    (r"softmax|norm|lrn", "normalization"),
    (r"quantize|^scale", "quantization"),
    (r"activation|relu|gelu", "activation"),
    (r"pointwise|pwn|elementwise|unary|kgen|reduce|myelin|foreignnode|topk|cast", "math"),
    (r"reformat|shuffle|slice|concat|gather|scatter|shape|resize|padding|transpose|copy|noop",
     "shape"),
    (r"constant|fill|random", "data"),
    (r"loop|condition|trip|recurrence|iterator|rnn|signal|wait", "control"),
)  # fmt: skip
"""Part of a layer's type, in small letters, to the category of an operator of that kind."""
_FIRST_NODE = re.compile(
    r"^(?:Reformatting CopyNode for (?:Input|Output) Tensor \d+ to )?(?:PWN\(|\{ForeignNode\[|\()*"
)
_NEXT_NODE = re.compile(r" \+ | \|\| |\.\.\.|, (?=PWN\()|[)\]}]")


@dataclass(frozen=True)
class LayerVertex:
    """What the vertex of a layer represents."""

    row: int
    """Place among ``EnginePlan.layers``."""


@dataclass
class PlanGraph:
    """A graph, and what its vertices stand for."""

    graph: Graph
    subjects: list[Hashable]
    """A :class:`LayerVertex`, or the name of a binding."""
    first: int
    """The vertex of the first layer: the others follow it."""

    def vertex(self, row: int) -> int:
        """Return the vertex of the layer at a place of ``EnginePlan.layers``."""
        return self.first + row


def drawn_plan(plan: EnginePlan, nodes: Mapping[int, str] | None = None) -> PlanGraph:
    """Return the graph of an engine, and what its vertices stand for.

    Several layers may write parts of one tensor: who reads it is linked to all of them.

    Args:
        nodes: By the index of a layer: the ONNX node that says where in the model it is.
    """
    return _Builder(plan, nodes or {}).drawn


class _Builder:
    def __init__(self, plan: EnginePlan, nodes: Mapping[int, str]) -> None:
        self.graph = Graph()
        self.drawn = PlanGraph(self.graph, [], 0)
        self._makers: dict[str, list[int]] = {}
        self._readers: dict[str, list[int]] = {}
        self._types: dict[str, str] = {}
        inputs, outputs = _bindings(plan)
        for name in inputs:
            self._makers.setdefault(name, []).append(self._add(name, name, Kind.INPUT, name))
        self.drawn.first = len(self.graph)
        for row, layer in enumerate(plan.layers):
            self._add_layer(row, layer, nodes.get(layer.index, ""))
        for tensor in plan.bindings:
            self._types.setdefault(tensor.name, tensor_type(tensor))
        for name in outputs:
            self._readers.setdefault(name, []).append(self._add(name, name, Kind.OUTPUT, name))
        self._link()

    def _add(
        self, label: str, name: str, kind: str, subject: Hashable, category: str = "",
        path: str = "",
    ) -> int:  # fmt: skip
        self.drawn.subjects.append(subject)
        self.graph.paths.append(path)
        return self.graph.add(label, name, kind, category)

    def _add_layer(self, row: int, layer: EngineLayer, node: str) -> None:
        label = layer.kind or UNKNOWN
        path = node or first_node(layer.name)
        vertex = self._add(
            label, layer.name, Kind.NODE, LayerVertex(row), category_of_layer(layer), path
        )
        for tensor in layer.inputs:
            for name in tensor.source_names:
                self._readers.setdefault(name, []).append(vertex)
                self._types.setdefault(name, tensor_type(tensor))
        for name in dict.fromkeys(tensor.name for tensor in layer.outputs):
            self._makers.setdefault(name, []).append(vertex)
        for tensor in layer.outputs:
            self._types[tensor.name] = tensor_type(tensor)

    def _link(self) -> None:
        for name, makers in self._makers.items():
            readers = self._readers.get(name, ())
            for maker in makers:
                # A layer that works in place reads the previous value, not its own output.
                after = [reader for reader in readers if reader > maker]
                early = [r for r in readers if r < maker and not any(m < r for m in makers)]
                self.graph.link(name, maker, [*after, *early], self._types.get(name, ""))


def _bindings(plan: EnginePlan) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of inputs and outputs: as the file says, else as the layers need them."""
    produced = {tensor.name for layer in plan.layers for tensor in layer.outputs}
    read = dict.fromkeys(
        name for layer in plan.layers for tensor in layer.inputs for name in tensor.source_names
    )
    inputs: list[str] = []
    outputs: list[str] = []
    for tensor in plan.bindings:
        if tensor.mode == "output" or (not tensor.mode and tensor.name in produced):
            outputs.append(tensor.name)
        elif tensor.mode == "input" or tensor.name in read:
            inputs.append(tensor.name)
    if not plan.bindings:
        inputs = [name for name in read if name not in produced]
        outputs = [
            name
            for name in dict.fromkeys(t.name for layer in plan.layers for t in layer.outputs)
            if name not in read
        ]
    return list(dict.fromkeys(inputs)), list(dict.fromkeys(outputs))


def category_of_layer(layer: EngineLayer) -> str:
    """Return the category, of :mod:`~dld_tui.core.model.operators.categories`, of a layer."""
    return category_of_type(layer.kind) or category_of_type(layer.type) or "other"


def category_of_type(kind: str) -> str:
    """Return the category of a layer type of TensorRT; empty when it is not known."""
    small = kind.lower()
    categories = (name for part, name in _CATEGORIES if re.search(part, small))
    return next(categories, "") if small else ""


def colour_of_type(kind: str) -> str:
    """Return the colour class of a layer type: see :func:`colour_class_of`."""
    return colour_class_of(category_of_type(kind), kind)


def first_node(name: str) -> str:
    """Return the first of the ONNX nodes in the name of a layer."""
    inner = name[_FIRST_NODE.match(name).end() :]  # type: ignore[union-attr]  # may be empty
    return _NEXT_NODE.split(inner, maxsplit=1)[0]


def tensor_type(tensor: EngineTensor) -> str:
    """Return the type of a tensor, e.g. ``int8[32,64,56,56]``; empty when nothing is known."""
    if tensor.dims is None:
        return tensor.dtype
    dims = ",".join("?" if dim < 0 else str(dim) for dim in tensor.dims)
    return f"{tensor.dtype or '?'}[{dims}]"


def plan_content(plan: EnginePlan, colour: str = "type", drawn: PlanGraph | None = None) -> Content:
    """Return the picture of an engine.

    Args:
        colour: What colours tell apart: ``type`` or ``precision``.
        drawn: Its graph, if already built.

    Raises:
        UsageError: The engine has too many layers for a picture.
    """
    drawn = drawn or drawn_plan(plan)
    content = graph_content(drawn.graph, plan.title)
    content.noun = "layer"
    for vertex, subject in enumerate(drawn.subjects):
        if isinstance(subject, LayerVertex):
            layer = plan.layers[subject.row]
            content.notes[vertex] = layer_notes(layer)
            content.tips[vertex] = layer_tips(layer)
            if colour == "precision":
                content.colours[vertex] = precision_class(layer.precision)
    layouts = {
        tensor.name: layout
        for layer in plan.layers
        for tensor in (*layer.inputs, *layer.outputs)
        if (layout := layout_of(tensor.format))
    }
    for place, net in enumerate(drawn.graph.nets):
        if net.name in layouts:
            content.net_labels[place] = f"{short_type(net.label)} {layouts[net.name]}".strip()
    return content


def layer_tips(layer: EngineLayer) -> list[str]:
    """Return further lines of a tooltip: kernel, sizes, work."""
    count = macs(layer)
    sizes = [
        f"{title} {fmt.size(size)}"
        for title, size in (("moves", layer.footprint), ("weights", layer.weights_bytes or None))
        if size is not None
    ]
    lines = [
        f"tactic {visible(layer.tactic)}" if layer.tactic else "",
        ", ".join(sizes),
        f"{fmt.short_count(count)} MACs" if count else "",
        *(
            f"← {visible(tensor.name)}  {tensor_type(tensor)} {layout_of(tensor.format)}".rstrip()
            for tensor in layer.inputs[:4]
        ),
    ]
    return [line for line in lines if line]


def layer_notes(layer: EngineLayer) -> list[str]:
    """Return the lines below the type of a layer: name, precision, time."""
    lines = [visible(layer.name)] if layer.name else []
    precision = precision_text(layer)
    time = "" if layer.time_ms is None else f"{fmt.milliseconds(layer.time_ms)} ms"
    share = "" if layer.percent is None else f"{fmt.percent(layer.percent)} %"
    figures = "  ".join(part for part in (precision, time, share) if part)
    return [*lines, figures] if figures else lines


def precision_text(layer: EngineLayer) -> str:
    """Return the precision of a layer, and that of its outputs when it is another one."""
    if layer.output_precision and layer.output_precision != layer.precision:
        return f"{visible(layer.precision) or '?'} → {visible(layer.output_precision)}"
    return visible(layer.precision)
