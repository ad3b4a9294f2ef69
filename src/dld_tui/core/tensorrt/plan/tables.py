"""The tables of an engine plan besides that of its layers.

Two are computed here: attention block by block, fused into one kernel or not, and its cost; and why
the engine changes formats and types, with the edit that avoids each change.

::

    table = make_table(plan, "convolutions")
    table.columns[0].title, table.values(table.rows[0])       # "layer", ("conv1 + relu1", 0.43, …)
    table.sorted_by("time_ms")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.foreign import whole_of
from dld_tui.core.machine.peaks import Peaks
from dld_tui.core.report.layer_table import layer_table
from dld_tui.core.report.records import Layer
from dld_tui.core.statistics import median
from dld_tui.core.tables.table import (
    BYTES,
    COUNT,
    FINE_MS,
    PERCENT,
    RATIO,
    SHORT,
    SIZE,
    TEXT,
    Column,
    Table,
    Unit,
)
from dld_tui.core.tensorrt.plan.engine_plan import (
    EngineLayer,
    EnginePlan,
    EngineTensor,
    TimeStatistics,
    bytes_of,
)
from dld_tui.core.tensorrt.plan.gains import gain_text
from dld_tui.core.tensorrt.plan.json_text import layout_of
from dld_tui.core.tensorrt.plan.layer_kinds import (
    FLOATS,
    Links,
    channels,
    in_dtype,
    is_fused_attention,
    is_reformat,
    out_dtype,
    quantizing,
)
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.layer_work import (
    Placement,
    arithmetic_intensity,
    attribute,
    convolution,
    gemm_dims,
    is_convolution,
    is_product,
    macs,
    peaks_of,
    placement,
)
from dld_tui.core.tensorrt.plan.layers import is_pointwise, operations
from dld_tui.core.tensorrt.plan.lint import (
    LEVELS,
    FindingGroup,
    PlanFinding,
    grouped,
    unfused_attention,
)
from dld_tui.core.tensorrt.plan.mapping import NOTHING, LayerNodes, map_plan
from dld_tui.core.tensorrt.plan.summary import (
    LayerDevice,
    PlanGroup,
    device_table,
    groups,
    matching,
)
from dld_tui.core.types import precision_style


@dataclass(frozen=True)
class AttentionBlock:
    """One attention. Texts are foreign."""

    name: str
    """Of the kernel, or of the softmax."""
    layers: tuple[EngineLayer, ...]
    """The fused kernel; or all from the first product over the softmax to the second product."""
    fused: bool

    @property
    def precisions(self) -> str:
        """The types that its layers work in, in their order."""
        return ", ".join(dict.fromkeys(layer.precision for layer in self.layers if layer.precision))

    @property
    def tactics(self) -> str:
        """What computes it, in its order."""
        return ", ".join(dict.fromkeys(layer.tactic for layer in self.layers if layer.tactic))

    @property
    def time_ms(self) -> float | None:
        """None without a profile."""
        times = [layer.time_ms for layer in self.layers if layer.time_ms is not None]
        return sum(times) if times else None

    @property
    def percent(self) -> float | None:
        """Share of the time of all layers."""
        shares = [layer.percent for layer in self.layers if layer.percent is not None]
        return sum(shares) if shares else None


def attention_blocks(plan: EnginePlan) -> list[AttentionBlock]:
    """Return the blocks in the order of the engine."""
    links, blocks = Links(plan), []
    for place, layer in enumerate(plan.layers):
        if is_fused_attention(layer):
            blocks.append(AttentionBlock(layer.name, (layer,), True))
        elif places := unfused_attention(plan, links, {}, place):
            layers = tuple(plan.layers[at] for at in places)
            blocks.append(AttentionBlock(layer.name, layers, False))
    return blocks


def attention_table(plan: EnginePlan) -> Table[AttentionBlock]:
    """Return the blocks as a table, with the ONNX nodes in the names of their layers."""
    blocks = attention_blocks(plan)
    mapping = map_plan(plan) if blocks else {}

    def nodes_of(block: AttentionBlock) -> str | None:
        matches = (mapping.get(layer.index, NOTHING) for layer in block.layers)
        # The name of a fused kernel is the compiler's own.
        refs = (
            ref
            for match in matches
            if not (block.fused and match.how == "name")
            for ref in match.nodes
        )
        return ", ".join(dict.fromkeys(ref.label for ref in refs)) or None

    columns: tuple[Column[AttentionBlock], ...] = (
        Column("name", "attention", lambda block: block.name, least=28, keep="end", pinned=True),
        Column("fused", "fused", lambda block: "yes" if block.fused else "no", width=6),
        Column("precision", "types", lambda block: block.precisions, width=12),
        Column("time_ms", "time ms", lambda block: block.time_ms, FINE_MS, 9, heat=True),
        Column("percent", "%", lambda block: block.percent, PERCENT, 6),
        Column("layers", "layers", lambda block: len(block.layers), COUNT, 7),
        Column("nodes", "ONNX nodes", nodes_of, keep="end", priority=15),
        Column("tactics", "tactics", lambda block: block.tactics, keep="end", priority=20),
    )
    return Table(columns, blocks)


_ALIGNED = 8
_STEPS = 8


class Reformat(NamedTuple):
    """A change, its cause and what avoids it. Texts are foreign."""

    layer: EngineLayer
    cause: str
    about: str
    """The cause in full."""
    edit: str


def reformats(plan: EnginePlan) -> list[Reformat]:
    """Return the layers that change format or type only, those of one cause together.

    The cause that takes longest comes first.
    """
    links = Links(plan)
    rows = [
        Reformat(layer, *_explained(layer, links, place))
        for place, layer in enumerate(plan.layers)
        if is_reformat(layer)
    ]
    total: dict[str, float] = {}
    for row in rows:
        total[row.cause] = total.get(row.cause, 0.0) + (row.layer.time_ms or 0.0)
    return sorted(rows, key=lambda row: (-total[row.cause], row.cause, -(row.layer.time_ms or 0)))


def _explained(layer: EngineLayer, links: Links, place: int) -> tuple[str, str, str]:
    """Return the cause in a word, in full, and the edit."""
    of, to = in_dtype(layer), out_dtype(layer)
    before, after = _neighbour(links, place, links.before), _neighbour(links, place, links.after)
    maker, reader = _called(before, "the input"), _called(after, "the output")
    layouts = [
        layout_of(tensors[0].format) if tensors else "" for tensors in (layer.inputs, layer.outputs)
    ]
    role = quantizing(layer, None)
    if role == "Quantize" and links.is_at_input(place):
        return (
            "input type",
            f"an input is {of} and is quantized for {reader}",
            f"Feed {to}: let the model begin behind its first QuantizeLinear",
        )
    if role:
        where = f"after {maker}" if role == "Quantize" else f"before {reader}"
        fused = f"let {maker} quantize" if role == "Quantize" else f"quantize {reader}, too"
        return (
            "quantization",
            f"{role} {where} is a layer of its own, not a part of one",
            f"{fused[0].upper()}{fused[1:]}; or leave the part around it in floats"
            " (dld convert quantize --exclude)",
        )
    if of and to and of != to:
        return _converted(links, place, of, to, maker, reader)
    if links.is_at_input(place):
        return (
            "input format",
            f"an input comes as {layouts[0] or 'it is'}, {reader} wants {layouts[1] or 'another'}",
            _given("--input-formats", to, layouts[1], "what makes the input"),
        )
    if links.is_at_output(place):
        return (
            "output format",
            f"{maker} makes {layouts[0] or 'another'}, an output is {layouts[1] or 'as set'}",
            _given("--output-formats", of, layouts[0], "what reads the output"),
        )
    odd = next(
        (
            neighbour
            for neighbour in (before, after)
            if neighbour is not None and _is_odd(neighbour)
        ),
        None,
    )
    if odd is not None:
        counts = channels(odd)
        return (
            "channels",
            f"{odd.name} has {' to '.join(map(str, counts or ()))} channels, which vectorized"
            " formats hold with padding only",
            f"Make its channels a multiple of {_ALIGNED} (16 for int8)",
        )
    for adjacent, side in ((before, "makes"), (after, "takes")):
        if adjacent is not None and not is_convolution(adjacent) and not is_reformat(adjacent):
            return (
                "operator between",
                f"{adjacent.name} ({adjacent.kind}) {side} another format than what is around it",
                f"Move it away from between the layers around it, or replace it: a {adjacent.kind}"
                " at an end of the network, or fused into a neighbour, needs no copy",
            )
    return (
        "choice of tactics",
        f"{maker} and {reader} are fastest in different formats, by the builder's measurements",
        "Build with more timings (--avg-timing 8) or --optimization-level 5, and compare both",
    )


def _converted(
    links: Links, place: int, of: str, to: str, maker: str, reader: str
) -> tuple[str, str, str]:
    if links.is_at_input(place):
        return (
            "input type",
            f"an input is {of}, {reader} works in {to}",
            f"Let the model take {to} (dld convert fp16 does, without --keep-io-types), or feed it"
            f" (--input-formats {to}:chw, to TensorRT 10)",
        )
    if links.is_at_output(place):
        return (
            "output type",
            f"{maker} works in {of}, an output is {to}",
            f"Let the model give {of} (dld convert fp16 does, without --keep-io-types), or take it"
            f" (--output-formats {of}:chw, to TensorRT 10)",
        )
    how = "with Casts in the model, or --layer-precision" if {of, to} <= FLOATS else (
        "by quantizing both or neither"
    )  # fmt: skip
    return (
        "mixed types",
        f"{maker} works in {of}, {reader} in {to}",
        f"Let both work in one type, {how}",
    )


def _given(option: str, dtype: str, layout: str, who: str) -> str:
    name = "chw" if layout == "LINEAR" else layout.lower()
    return f"Build with {option} {dtype or 'TYPE'}:{name or 'FORMAT'}, if {who} can"


def _is_odd(layer: EngineLayer) -> bool:
    counts = channels(layer) if is_convolution(layer) else None
    return counts is not None and any(number % _ALIGNED for number in counts)


def _neighbour(links: Links, place: int, step: Callable[[int], list[int]]) -> EngineLayer | None:
    """Return the next layer in a direction that is no change of format itself."""
    for _ in range(_STEPS):
        neighbours = step(place)
        if not neighbours:
            return None
        place = neighbours[0]
        if not is_reformat(links.layers[place]):
            return links.layers[place]
    return None


def _called(layer: EngineLayer | None, otherwise: str) -> str:
    return otherwise if layer is None else layer.name


def reformat_table(plan: EnginePlan) -> Table[Reformat]:
    """Return the changes by cause as a table."""

    def form(tensors: Sequence[EngineTensor]) -> str:
        return tensors[0].format if tensors else ""

    def converts(row: Reformat) -> str:
        return "type" if row.layer.precision != row.layer.output_precision else "layout"

    columns: tuple[Column[Reformat], ...] = (
        Column(
            "name", "layer", lambda reformat: reformat.layer.name, least=28, keep="end", pinned=True
        ),
        Column(
            "time_ms", "time ms", lambda reformat: reformat.layer.time_ms, FINE_MS, 9, heat=True
        ),
        Column("percent", "%", lambda reformat: reformat.layer.percent, PERCENT, 6),
        Column("cause", "cause", lambda reformat: reformat.cause, width=17),
        Column("edit", "what avoids it", lambda reformat: reformat.edit, priority=5),
        Column("about", "why", lambda reformat: reformat.about, priority=10),
        Column("from", "from", lambda reformat: form(reformat.layer.inputs), priority=20),
        Column("to", "to", lambda reformat: form(reformat.layer.outputs), priority=20),
        Column("converts", "converts", converts, width=8, priority=15),
        Column(
            "io_bytes", "in + out", lambda reformat: reformat.layer.io_bytes, BYTES, 10, priority=15
        ),
        Column("origin", "origin", lambda reformat: reformat.layer.origin, priority=30),
    )
    return Table(columns, reformats(plan))


_Columns: TypeAlias = "tuple[Column[EngineLayer], ...]"
_TIMES = {
    "latency": "latency",
    "compute": "GPU compute",
    "h2d": "host to device",
    "d2h": "device to host",
    "enqueue": "enqueue",
}
_PARTS = 10


def make_table(
    plan: EnginePlan,
    view: str,
    text: str = "",
    mapping: Mapping[int, LayerNodes] | None = None,
) -> Table[Any]:
    """Return a table of :data:`VIEWS`, with only the rows about layers that pass a filter.

    Args:
        plan: The whole plan: what a row says of a layer may be about its neighbours.
        view: The view.
        text: The filter; an empty one passes all.
        mapping: The ONNX nodes of the layers, as in :func:`matching`.

    Raises:
        KeyError: The view is unknown.
        UsageError: There is a filter, and the view is not of layers.
    """
    title, make = _MAKERS[view]
    table = replace(make(plan), name=view, title=title)
    if not text.split():
        return table
    if view in _NOT_OF_LAYERS:
        raise UsageError(f"a filter chooses layers, and the view {view} has none: omit it")
    chosen = {layer.index for layer in matching(plan, text, mapping)}
    return replace(
        table, rows=[row for row in table.rows if not chosen.isdisjoint(layers_of_row(row))]
    )


def layers_of_row(row: Any) -> tuple[int, ...]:
    """Return the layers that a row of a view is about, each by `EngineLayer.index`."""
    if isinstance(row, EngineLayer):
        return (row.index,)
    if isinstance(row, AttentionBlock):
        return tuple(layer.index for layer in row.layers)
    if isinstance(row, (Reformat, LayerDevice)):
        return () if row.layer is None else (row.layer.index,)
    if isinstance(row, Layer) and row.engine is not None:
        return () if row.engine.engine_layer is None else (row.engine.engine_layer,)
    return ()


def group_table(
    plan: EnginePlan,
    by: str,
    text: str = "",
    mapping: Mapping[int, LayerNodes] | None = None,
) -> Table[PlanGroup]:
    """Return the time and memory of layers that have something in common.

    The arguments are those of :func:`make_table`; shares are of all layers.
    """
    if text.split():
        plan = replace(plan, layers=tuple(matching(plan, text, mapping)))
    named = by.replace("_", " ")
    columns: tuple[Column[PlanGroup], ...] = (
        Column("key", named, lambda group: group.key, keep="end"),
        Column("count", "count", lambda group: group.count, COUNT),
        Column("time_ms", "time ms", lambda group: group.time_ms, FINE_MS),
        Column("percent", "%", lambda group: group.percent, PERCENT),
        Column("bytes", "bytes", lambda group: group.bytes, SIZE),
        Column("weights_bytes", "weights", lambda group: group.weights_bytes, SIZE),
    )
    return Table(columns, groups(plan, by), name=by, title=f"Layers by {named}")


_FINDING_LAYERS = 8


def finding_table(
    plan: EnginePlan, findings: Sequence[PlanFinding], names: Mapping[int, str]
) -> Table[FindingGroup]:
    """Return the findings by rule as a table; `names` are those of the layers by their index."""

    def layers(group: FindingGroup) -> str:
        shown = [
            f"{names[layer.index]} ({fmt.percent(layer.percent)} %)" if layer.percent is not None
            else names[layer.index]
            for layer in group.layers
        ]  # fmt: skip
        return fmt.listed(shown, _FINDING_LAYERS) or "the whole engine"

    columns: tuple[Column[FindingGroup], ...] = (
        Column("level", "", lambda group: group.level, width=2,
               text=lambda group: "▲" if group.level == LEVELS[0] else "·"),
        Column("percent", "% of time", lambda group: group.percent, PERCENT),
        Column("rule", "rule", lambda group: group.rule, width=20),
        Column("what", "what", lambda group: "; ".join(group.hazards)),
        Column("do", "what to do", lambda group: ". ".join(group.mitigations)),
        Column("gain", "could save", lambda group: gain_text(group.gain) if group.gain else ""),
        Column("layers", "layers", layers),
    )  # fmt: skip
    return Table(columns, [*grouped(plan, findings)])


# Columns of layers. Wide and less useful ones are dropped first in narrow terminals.


def _text(
    key: str, title: str, value: Callable[[EngineLayer], str], late: int = 20, **more: Any
) -> Column[EngineLayer]:
    return Column(key, title, value, width=30, priority=late, style="dim", **more)


def _figure(
    key: str, title: str, value: Callable[[EngineLayer], Any], unit: Unit, late: int = 10
) -> Column[EngineLayer]:
    return Column(key, title, value, unit, width=30, priority=late)


_NAME: Column[EngineLayer] = Column(
    "name", "layer", lambda layer: layer.name, least=28, keep="end", pinned=True
)
_TIME: Column[EngineLayer] = Column(
    "time_ms", "time ms", lambda layer: layer.time_ms, FINE_MS, 9, heat=True
)
_SHARE: Column[EngineLayer] = Column("percent", "%", lambda layer: layer.percent, PERCENT, 6)
_TYPE = _text("type", "type", lambda layer: layer.kind, 48)
_PRECISION: Column[EngineLayer] = Column(
    "precision", "precision", lambda layer: layer.precision, width=10, priority=4,
    style=lambda layer: precision_style(layer.precision),
)  # fmt: skip
_TACTIC = _text("tactic", "tactic", lambda layer: layer.tactic, 60, keep="end")
_WEIGHTS = _figure("weights_bytes", "weights", lambda layer: layer.known_weights, BYTES)
_FOOTPRINT = _figure("footprint", "footprint", lambda layer: layer.footprint, BYTES)
_SPEED = _figure("gb_per_s", "GB/s", lambda layer: _rate(layer.footprint, layer, 1e6), RATIO)
_PRODUCT = (
    _figure("m", "M", lambda layer: gemm_dims(layer).m, COUNT, 24),
    _figure("n", "N", lambda layer: gemm_dims(layer).n, COUNT, 24),
    _figure("k", "K", lambda layer: gemm_dims(layer).k, COUNT, 24),
)


def _rate(amount: int | None, layer: EngineLayer, scale: float) -> float | None:
    """Return a rate per second; None if the amount or the time is unknown or 0."""
    return amount / layer.time_ms / scale if amount is not None and layer.time_ms else None


def _work(peaks: Peaks | None) -> _Columns:
    """Return what convolutions and products are measured by."""

    def place(layer: EngineLayer) -> Placement | None:
        return placement(layer, peaks) if peaks else None

    def bound(layer: EngineLayer) -> str:
        point = place(layer)
        return point.bound if point else ""

    def efficiency(layer: EngineLayer) -> float | None:
        point = place(layer)
        return 100 * point.efficiency if point and point.efficiency is not None else None

    return (
        _figure("macs", "MACs", macs, SHORT, 5),
        _figure("arithmetic_intensity", "MACs/B", arithmetic_intensity, RATIO, 6),
        _figure("tmacs_per_s", "TMAC/s", lambda layer: _rate(macs(layer), layer, 1e9), RATIO, 7),
        replace(_SPEED, priority=8),
        _text("bound", "bound", bound, 9),
        _figure("efficiency_percent", "of limit %", efficiency, PERCENT, 10),
    )


def _convolutions(plan: EnginePlan) -> Table[EngineLayer]:
    def sides(layer: EngineLayer, name: str) -> str:
        value = attribute(layer, name)
        return "x".join(map(str, value)) if isinstance(value, list) else ""

    def parts(layer: EngineLayer) -> int | None:
        value = convolution(layer)
        return value.groups if value else whole_of(attribute(layer, "Groups"))

    columns = (
        _NAME, _TIME, _SHARE, _PRECISION, *_work(peaks_of(plan.device)),
        _text("kernel", "kernel", lambda layer: sides(layer, "Kernel"), 56),
        _text("stride", "stride", lambda layer: sides(layer, "Stride"), 58),
        _figure("groups", "groups", parts, COUNT, 54),
        _text("in", "in", lambda layer: _dims(layer.inputs), 52),
        _text("out", "out", lambda layer: _dims(layer.outputs), 50),
        *_PRODUCT, _TACTIC,
    )  # fmt: skip
    return Table(columns, [*filter(is_convolution, plan.layers)])


def _dims(tensors: Sequence[EngineTensor]) -> str:
    dims = tensors[0].dims if tensors else None
    return "" if dims is None else fmt.shape(dims).replace(" ", "")


def _products(plan: EnginePlan) -> Table[EngineLayer]:
    """Return all matrix products, including those of convolutions by implicit GEMM."""
    batch = _figure("batch", "batch", lambda layer: gemm_dims(layer).batch, COUNT, 24)
    columns = (
        _NAME, _TYPE, _TIME, _SHARE, _PRECISION, batch, *_PRODUCT,
        *_work(peaks_of(plan.device)), _TACTIC,
    )  # fmt: skip
    layers = [layer for layer in plan.layers if is_convolution(layer) or is_product(layer)]
    return Table(columns, layers)


def _pointwise(plan: EnginePlan) -> Table[EngineLayer]:
    columns = (
        _NAME, _TYPE, _TIME, _SHARE, _PRECISION,
        _figure("operations_count", "ops", lambda layer: len(operations(layer)) or None, COUNT),
        _text("operations", "operations", lambda layer: ", ".join(operations(layer)), keep="end"),
    )  # fmt: skip
    return Table(columns, [*filter(is_pointwise, plan.layers)])


def _memory(plan: EnginePlan) -> Table[EngineLayer]:
    def total(layer: EngineLayer, tensors: Sequence[EngineTensor]) -> int | None:
        return None if layer.is_named_only else bytes_of(tensors)

    unread = _figure("unread_bytes", "not read", lambda layer: layer.unread_bytes, SIZE)
    columns = (
        _NAME, _TYPE, _WEIGHTS,
        _figure("input_bytes", "in", lambda layer: total(layer, layer.inputs), BYTES),
        *([unread] if any(layer.unread_bytes for layer in plan.layers) else []),
        _figure("output_bytes", "out", lambda layer: total(layer, layer.outputs), BYTES),
        _FOOTPRINT, _TIME,
        replace(_SPEED, value=lambda layer: _rate(layer.footprint or None, layer, 1e6)),
        _text("weights_from", "weights from", lambda layer: layer.weights_source, 24),
    )  # fmt: skip
    return Table(columns, plan.layers)


def _bindings(plan: EnginePlan) -> Table[EngineTensor]:
    def profiles(tensor: EngineTensor) -> str:
        return "; ".join(" ".join(map(fmt.shape, profile)) for profile in tensor.profile_dims)

    def text(
        key: str, title: str, value: Callable[[EngineTensor], str], **more: Any
    ) -> Column[EngineTensor]:
        return Column(key, title, value, width=30, style="dim", **more)

    columns: tuple[Column[EngineTensor], ...] = (
        Column("name", "name", lambda tensor: tensor.name, least=28, keep="end"),
        text("mode", "mode", lambda tensor: tensor.mode, priority=1),
        Column("dtype", "type", lambda tensor: tensor.dtype, width=10, priority=2,
               style=lambda tensor: precision_style(tensor.dtype)),
        text("dims", "dimensions",
             lambda tensor: "" if tensor.dims is None else fmt.shape(tensor.dims), priority=3),
        Column("bytes", "bytes", lambda tensor: tensor.bytes, BYTES, 30, priority=4),
        text("format", "format", lambda tensor: tensor.format, priority=5, keep="end"),
        text("profiles", "min, opt, max", profiles, priority=6, keep="end"),
    )  # fmt: skip
    return Table(columns, plan.bindings)


class _Times(NamedTuple):
    kind: str
    figures: TimeStatistics


def _timing(plan: EnginePlan) -> Table[_Times]:
    """Return each kind of time over all inferences, and the compute time of each tenth of them."""

    def figure(name: str, title: str, unit: Unit, key: str, late: int) -> Column[_Times]:
        return Column(key, title, lambda row: getattr(row.figures, name), unit, 30, priority=late)

    names = ("min", "median", "mean", "p90", "p95", "p99", "max")
    columns: tuple[Column[_Times], ...] = (
        Column("what", "what", lambda row: row.kind, TEXT, least=28, keep="end"),
        figure("count", "count", COUNT, "count", 1),
        *(figure(name, name, FINE_MS, f"{name}_ms", at) for at, name in enumerate(names, 2)),
        figure("cov_percent", "CoV %", PERCENT, "cov_percent", 9),
    )
    timing = plan.timing
    if timing is None:
        return Table(columns, ())
    named = [(title, getattr(timing, name)) for name, title in _TIMES.items()]
    rows = [_Times(title, figures) for title, figures in named if figures is not None]
    series = timing.series.get("compute", ())
    if len(series) >= 2 * _PARTS:
        rows += [_part(series, part) for part in range(_PARTS)]
    return Table(columns, rows)


def _part(series: tuple[float, ...], part: int) -> _Times:
    begin, end = (len(series) * place // _PARTS for place in (part, part + 1))
    values = series[begin:end]
    return _Times(
        f"GPU compute, inferences {begin + 1} to {end}",
        TimeStatistics(
            min(values), max(values), sum(values) / len(values), median(values), count=len(values)
        ),
    )


def _layers(plan: EnginePlan) -> Table[Any]:
    return layer_table(layer_records(plan, {}), "engine csv")


_MAKERS: Mapping[str, tuple[str, Callable[[EnginePlan], Table[Any]]]] = {
    "layers": ("Layers", _layers),
    "convolutions": ("Convolutions", _convolutions),
    "gemm": ("Matrix products", _products),
    "pointwise": ("Pointwise layers", _pointwise),
    "reformats": ("Reformats", reformat_table),
    "attention": ("Attention", attention_table),
    "dla": ("Layers by device", device_table),
    "memory": ("Memory", _memory),
    "bindings": ("Inputs and outputs", _bindings),
    "timing": ("Inference times", _timing),
}
VIEWS = tuple(_MAKERS)
"""The tables of a plan."""
_NOT_OF_LAYERS = frozenset({"bindings", "timing"})
