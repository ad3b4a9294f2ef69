"""The table of layers of a report or an engine: its columns, filter, groups and totals.

A column that is added to :func:`layer_columns` is at the end of each output. `VIEWS` gives it a
place instead, and leaves it out of those that do not name it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.groups import (
    GROUPINGS,
    group_layers,
    has_gpu_times,
    launches_are_timed,
    main_node,
    time_title,
)
from dld_tui.core.report.records import LAYER_MEANS, Dims, Group, Layer, NodeLink, Wording
from dld_tui.core.report.roofline import limiter, per_second, roof_percent
from dld_tui.core.report.schema import as_list
from dld_tui.core.statistics import share_percent
from dld_tui.core.tables.table import (
    BAR,
    COUNT,
    FINE_MS,
    FLAG,
    MEAN,
    MS,
    NAMES,
    NOTE,
    PERCENT,
    PLACE,
    SHORT,
    SIZE,
    Column,
    Table,
    Unit,
)
from dld_tui.core.text import visible
from dld_tui.core.text.names import disambiguated
from dld_tui.core.types import SHORT_DTYPES, precision_style

if TYPE_CHECKING:
    from dld_tui.core.report.measurement import Measurement


_Columns: TypeAlias = "tuple[Column[Layer], ...]"


def shape_text(dims: Dims) -> str:
    """Return a shape in trtexec's form, e.g. ``1x3x224x224``; ``scalar`` and ``?`` where it is."""
    if dims is None:
        return "?"
    return "x".join("?" if dim is None else str(dim) for dim in dims) or "scalar"


def shapes_text(dims: Iterable[Dims]) -> str:
    """Return shapes in trtexec's form; empty without any."""
    return "; ".join(map(shape_text, dims))


def short_provider(provider: str | None) -> str:
    """Return providers without the words that all of them share, e.g. ``CUDA, CPU``."""
    return visible(provider.replace("ExecutionProvider", "")) if provider else fmt.UNKNOWN


def short_precision(precision: str | None) -> str:
    """Return a precision as people say it, e.g. ``fp16``."""
    return SHORT_DTYPES.get(precision, visible(precision)) if precision else fmt.UNKNOWN


def findings_text(layer: Layer, warning: str = "▲") -> str:
    """Return a glyph, `warning` or that of notes, and how many findings a layer has if several."""
    count = (layer.engine and layer.engine.findings) or 0
    glyph = warning if layer.engine is not None and layer.engine.is_warned else "·"
    return f"{glyph}{count if count > 1 else ''}" if count else ""


def all_nodes(layer: Layer) -> str:
    """Return the ONNX nodes of a layer, the one that it is called by first; foreign text."""
    if not layer.nodes:
        return fmt.UNKNOWN
    main = main_node(layer.nodes)
    others = (link for link in layer.nodes if link is not main)
    return ", ".join(link.label for link in (main, *others))


SHAPES = Unit("shapes", shapes_text, "list", shape_text, as_list)
NODES = Unit(
    "nodes",
    lambda links: ", ".join(link.label for link in links),
    "list",
    lambda link: str(link.label),
    lambda link: str(link.name or link.node),
)


def figure(path: str, unknown: Any = None) -> Callable[[Layer], Any]:
    """Return what reads a figure of a layer, such as ``time_ms`` or ``cost.flops``."""
    part, _, key = path.rpartition(".")
    return lambda layer: getattr(getattr(layer, part) if part else layer, key, unknown)


def layer_columns(
    layers: Sequence[Layer] = (),
    measurement: Measurement | None = None,
    wording: Wording = Wording(),  # noqa: B008
    *,
    engine: bool = False,
) -> _Columns:
    """Return the columns of all layer tables.

    Args:
        layers: The rows, for shares of all of them.
        measurement: What they are of; None when only one figure of each is known.
        wording: What the rows and their times are.
        engine: Of an engine: places are those in the file.
    """
    on_gpu, time = has_gpu_times(layers), time_title(layers)
    own = "CPU " if on_gpu else ""
    launched = (
        ", on the CPU, which launches what runs on a GPU" if launches_are_timed(layers) else ""
    )
    kernels_ms = sum(layer.gpu_time_ms or 0.0 for layer in layers)

    def gpu_percent(layer: Layer) -> float | None:
        return share_percent(layer.gpu_time_ms, kernels_ms)

    def of_pass(layer: Layer) -> float | None:
        return None if measurement is None else measurement.of_pass_percent(layer)

    def precision(layer: Layer) -> str:
        first_input = short_precision(layer.precision)
        output = layer.engine and layer.engine.output_precision
        return first_input if not output or output == first_input else f"{first_input} → {output}"

    flops, moved = figure("cost.flops"), figure("cost.moved_bytes")
    ms = FINE_MS if engine else MS
    return (
        Column("index", "#", figure("engine.engine_layer" if engine else "index"), PLACE, 5,
               priority=6, style="dim", descending=False,
               help="Place in the file." if engine else "Order of execution."),
        Column("findings", "", figure("engine.findings"), COUNT, 2, priority=1,
               style=lambda layer: "warn" if layer.engine and layer.engine.is_warned else "info",
               text=findings_text,
               order=lambda layer: (layer.engine and layer.engine.findings) or None,
               help="Number of findings that may cost time."),
        Column("name", wording.row, figure("name"), least=28 if engine else 20, keep="end",
               pinned=True, help="Layer name of the backend."),
        Column("type", "type", figure("type", ""), width=18,
               priority=2, keep="middle", help="Layer type of the backend."),
        Column("input_dims", "input shapes", figure("input_dims"), SHAPES, 26, priority=9,
               style="dim", shown=False, help="Shapes of the inputs."),
        Column("output_dims", "output shapes", figure("output_dims"), SHAPES, 18, priority=9,
               style="dim", help="Shapes of the outputs."),
        Column("input_types", "input types", figure("input_types"), NAMES, 18, priority=9,
               style="dim", shown=False, help="Types of the inputs."),
        Column("output_types", "output types", figure("output_types"), NAMES, 18, priority=9,
               style="dim", shown=False, help="Types of the outputs."),
        Column("provider", "provider", figure("provider"), width=9, priority=4, style="dim",
               text=lambda layer: short_provider(layer.provider), help="The execution provider."),
        Column("precision", "dtype",
               (lambda layer: layer.precision or "") if engine else figure("precision"),
               width=11 if engine else 6, priority=3,
               text=precision, style=lambda layer: precision_style(layer.precision),
               help="Type of the inputs, then of the outputs." if engine
               else "Type of the first output."),
        Column("output_precision", "to", figure("engine.output_precision", ""), width=6,
               priority=8, shown=False, help="Type of the first output."),
        Column("time_ms", time, figure("time_ms"), ms, max(9, len(time) + 2), heat=True,
               help=f"{wording.figure.capitalize()} {'' if engine else 'self '}time of"
               f" a {wording.whole}{launched}."),
        Column("percent", "%", figure("percent"), PERCENT, 5, heat=True,
               help=f"Of what all {wording.rows} cost."),
        Column("cost", "", figure("cost_ms"), BAR, 10, align="left", heat=True,
               priority=2, sortable=False,
               help=f"The cost as a bar; full is the costliest {wording.row}."),
        Column("gpu_time_ms", "GPU ms", figure("gpu_time_ms"), MS, 9, priority=1, heat=True,
               help="GPU kernel time per pass."),
        Column("gpu_percent", "GPU %", gpu_percent, PERCENT, 6, priority=2,
               help="Share of the total GPU kernel time."),
        Column("of_pass", "% pass", of_pass, PERCENT, 7, priority=6, style="dim", shown=False,
               help="Share of the whole pass."),
        Column("min_ms", f"{own}min", figure("min_ms"), MS, 8, priority=7, style="dim",
               help=f"Fastest pass, ms{launched}."),
        Column("max_ms", f"{own}max", figure("max_ms"), MS, 8, priority=7, style="dim",
               help=f"Slowest pass, ms{launched}."),
        Column("mean_ms", f"{own}mean", figure("mean_ms"), MS, 8, priority=8, style="dim",
               shown=False, help=f"Mean of the passes in which the layer ran, ms{launched}."),
        Column("median_ms", "median ms", figure("engine.median_ms"), ms, 9, priority=9,
               style="dim", shown=False, help="Median time per pass."),
        Column("count", "runs", figure("count"), MEAN, 5, priority=8, style="dim",
               help="Executions per pass; above 1 in a loop."),
        Column("passes", "passes", figure("passes"), COUNT, 6, priority=8, style="dim",
               shown=False, help="Number of passes in which the layer ran."),
        Column("footprint", "bytes", figure("engine.footprint"), SIZE, 8, priority=4,
               style="dim", help="Bytes of weights, outputs, and what is read of the inputs."),
        Column("weights_bytes", "weights", figure("engine.weights_bytes"), SIZE, 8, priority=7,
               style="dim", help="Bytes of weights and biases."),
        Column("io_bytes", "in+out", figure("engine.io_bytes"), SIZE, 8, priority=9,
               style="dim", help="Bytes of inputs and outputs."),
        Column("unread_bytes", "not read", figure("engine.unread_bytes"), SIZE, 8, priority=9,
               style="dim", shown=False, help="Bytes of the inputs that the layer does not read."),
        Column("flops", "FLOPs", flops, SHORT, 8, priority=8, style="dim", shown=False,
               help="Operations per execution; a multiply-accumulate counts as two."),
        Column("moved_bytes", "moved", moved, SIZE, 8, priority=8, style="dim",
               shown=False, help="Bytes read and written per execution."),
        Column("flops_per_s", "FLOP/s", lambda layer: per_second(layer, flops(layer)), SHORT, 8,
               priority=8, style="dim", shown=False, help="Achieved operations per second."),
        Column("bytes_per_s", "B/s", lambda layer: per_second(layer, moved(layer)), SHORT, 8,
               priority=8, style="dim", shown=False, help="Achieved bytes per second."),
        Column("roof_percent", "% limit", roof_percent, PERCENT, 7, priority=8, style="dim",
               shown=False, help="Minimum time by the roofline as a share of the measured time."),
        Column("limiter", "limited by", limiter, NOTE, 10, priority=8, style="dim", shown=False,
               help="Limiter of the minimum time: compute, memory, launch or overhead."),
        Column("in_use_bytes", "in use", figure("cost.in_use_bytes"), SIZE, 8, priority=8,
               style="dim", shown=False,
               help="Bytes of live activations after the layer, in the first pass."),
        Column("layer_type", "layer type", figure("engine.layer_type", ""), width=18, priority=8,
               style="dim", shown=False, help="Layer type in the file."),
        Column("tactic", "tactic", figure("engine.tactic", ""), width=34, priority=8, keep="end",
               style="dim", help="Tactic (kernel) of the layer."),
        Column("nodes", "ONNX nodes", figure("nodes"), NODES, priority=6, keep="end", least=20,
               text=all_nodes, style="link", help="ONNX nodes that the layer computes."),
        Column("confidence", "sure", figure("engine.mapping_confidence" if engine else
               "confidence", ""), NOTE, 8, shown=False, help="How the ONNX nodes were matched."),
    )  # fmt: skip


VIEWS: Mapping[str, str] = {
    "report csv": "index name type input_dims output_dims provider precision time_ms percent min_ms"
    " max_ms mean_ms count passes gpu_time_ms nodes confidence flops moved_bytes flops_per_s"
    " bytes_per_s roof_percent limiter in_use_bytes",
    "report json": "index name type input_dims output_dims input_types output_types provider"
    " precision time_ms percent min_ms max_ms mean_ms count passes gpu_time_ms nodes confidence"
    " flops moved_bytes flops_per_s bytes_per_s roof_percent limiter in_use_bytes",
    "report parquet": "index name type input_dims output_dims input_types output_types provider"
    " precision time_ms percent min_ms max_ms mean_ms gpu_time_ms count passes nodes confidence"
    " flops moved_bytes flops_per_s bytes_per_s roof_percent limiter in_use_bytes",
    "report text": "name type time_ms gpu_time_ms percent nodes",
    "report html": "index name type time_ms gpu_time_ms percent min_ms max_ms count precision"
    " provider output_dims flops_per_s bytes_per_s roof_percent limiter nodes",
    "report screen": "index type name time_ms percent cost gpu_time_ms gpu_percent of_pass min_ms"
    " max_ms mean_ms count passes provider precision input_dims output_dims flops"
    " moved_bytes flops_per_s bytes_per_s roof_percent limiter in_use_bytes nodes",
    "engine csv": "index name type time_ms median_ms percent precision output_precision io_bytes"
    " unread_bytes weights_bytes footprint tactic",
    "engine text": "name type precision time_ms percent footprint nodes",
    "engine html": "index name type precision time_ms percent footprint weights_bytes tactic nodes"
    " confidence",
    "engine screen": "index findings type name precision time_ms percent cost median_ms footprint"
    " weights_bytes io_bytes unread_bytes layer_type output_dims tactic nodes",
}
"""The columns of each output, in order. Those of CSV, JSON and Parquet are a contract."""


_ROOFLINE = frozenset({"flops_per_s", "bytes_per_s", "roof_percent", "limiter"})


def view_columns(columns: _Columns, view: str) -> _Columns:
    """Return the columns of one of `VIEWS`, and those at the end that none of them names."""
    by_key = {column.key: column for column in columns}
    named = {key for keys in VIEWS.values() for key in keys.split()}
    others = (column for column in columns if column.key not in named)
    return (*(by_key[key] for key in VIEWS[view].split()), *others)


def are_named_by_nodes(layers: Sequence[Layer]) -> bool:
    """Return whether a layer has nodes of another name than its own: people know theirs."""
    return any(
        layer.nodes and layer.name not in (layer.nodes[0].label, layer.nodes[0].name)
        for layer in layers
    )


def layer_name(layer: Layer) -> str:
    """Return the name that people know: of its main ONNX node, or the layer's own without any."""
    return visible(main_node(layer.nodes).label if layer.nodes else layer.name)


def layer_names(layers: Sequence[Layer], among: Sequence[Layer] = ()) -> list[str]:
    """Return the names that people know of layers, and the own ones of those of the same node.

    Of these, the only one that TensorRT did not put in keeps the name of the node.

    Args:
        layers: Any.
        among: All of the report where they are some of it: each has one name wherever it is told.
    """
    if among:
        known = dict(zip((one.index for one in among), layer_names(among), strict=True))
        return [known[one.index] for one in layers]
    names = [*map(layer_name, layers)]
    counts = Counter(
        name
        for name, layer in zip(names, layers, strict=True)
        if not (layer.engine and layer.engine.inserted)
    )
    own = [
        name
        if counts[name] == 1 and not (layer.engine and layer.engine.inserted)
        else visible(layer.name)
        for name, layer in zip(names, layers, strict=True)
    ]
    return disambiguated(names, own)


def _every_known_name(layer: Layer) -> str:
    return all_nodes(layer) if layer.nodes else layer.name


def _nodes_first(columns: _Columns, text: Callable[[Layer], str]) -> _Columns:
    """Return columns with the nodes where the names were, which wait for room at their place."""
    by_key = {column.key: column for column in columns}
    name, nodes = by_key["name"], by_key["nodes"]
    ahead = replace(
        nodes, text=text, least=name.least, pinned=True, priority=0,
        style=lambda layer: "link" if layer.nodes else "",
    )  # fmt: skip
    behind = replace(name, least=nodes.least, pinned=False, priority=nodes.priority, style="dim")
    exchanged = {"name": ahead, "nodes": behind}
    return tuple(exchanged.get(column.key, column) for column in columns)


def layer_table(
    layers: Sequence[Layer],
    view: str,
    measurement: Measurement | None = None,
    wording: Wording | None = None,
) -> Table[Layer]:
    """Return the layers as a table of one of `VIEWS`, in the order that they are in."""
    engine = view.startswith("engine ")
    wording = wording or (LAYER_MEANS if engine else Wording())
    columns = view_columns(layer_columns(layers, measurement, wording, engine=engine), view)
    if view.endswith((" text", " html", " screen")) and are_named_by_nodes(layers):
        names = dict(zip((layer.index for layer in layers), layer_names(layers), strict=True))
        columns = _nodes_first(
            columns,
            _every_known_name if view.endswith("html") else lambda layer: names[layer.index],
        )
    if view.endswith((" text", " html")) and not has_gpu_times(layers):
        columns = tuple(column for column in columns if column.key != "gpu_time_ms")
    if view.endswith(" html") and not any(
        layer.cost and layer.cost.flops is not None for layer in layers
    ):
        columns = tuple(column for column in columns if column.key not in _ROOFLINE)
    return Table(
        columns,
        layers,
        groups=ENGINE_GROUPINGS if engine else REPORT_GROUPINGS,
        name="layers",
        title=wording.rows.capitalize(),
        row_key=lambda layer: layer.index,
    )


def informative_columns(table: Table[Layer]) -> tuple[str, ...]:
    """Return the columns to begin with: the usual ones that say something of these layers."""
    silent = set()
    if len({layer.provider for layer in table.rows}) < 2:
        silent.add("provider")
    if all(layer.count in (None, 1.0) for layer in table.rows):
        silent.add("count")
    if table.rows:
        empty = (None, "", (), 0)
        silent |= {
            column.key
            for column in table.columns
            if column.key not in ("index", "name")
            and all(column.value(layer) in empty for layer in table.rows)
        }
    return tuple(
        column.key for column in table.columns if column.shown and column.key not in silent
    )


def costliest_first(table: Table[Layer]) -> Table[Layer]:
    """Return a table of layers, the costliest first."""
    by = "percent" if has_gpu_times(table.rows) else "time_ms"
    return table.sorted_by(by)


REPORT_GROUPINGS = ("layer", *(by for by in GROUPINGS if by != "layer"))
ENGINE_GROUPINGS = ("layer", "type", "precision", "node", "scope", "op", "layer_type", "tactic")

_GROUP_VIEWS: Mapping[str, str] = {
    "csv": "key count time_ms percent gpu_time_ms estimate cost_ms",
    "text": "key count time_ms gpu_time_ms percent",
    "screen": "key time_ms percent gpu_time_ms cost count",
}


def group_table(
    groups: Sequence[Group], by: str, view: str, layers: Sequence[Layer] = ()
) -> Table[Group]:
    """Return groups of layers as a table.

    Args:
        groups: The rows.
        by: What they are grouped by.
        view: ``csv`` (also for JSON), ``text`` (also for HTML), or ``screen``.
        layers: Those that are grouped, for the names of columns that people read.
    """

    def known(group: Group, figure: float) -> float | None:
        return figure if group.is_timed else None

    def time(group: Group) -> str:
        text = fmt.milliseconds(known(group, group.time_ms))
        return f"≈{text}" if group.estimate and group.is_timed else text

    title = time_title(layers)
    columns: dict[str, Column[Group]] = {column.key: column for column in (
        Column("key", by.replace("_", " "), lambda group: group.key, least=16, keep="end"),
        Column("count", "count", lambda group: group.count, COUNT, 7, priority=1, style="dim"),
        Column("time_ms", title, lambda group: known(group, group.time_ms), MS,
               max(9, len(title) + 2),
               text=time, heat=True),
        Column("percent", "%", lambda group: known(group, group.percent), PERCENT, 5, heat=True),
        Column("gpu_time_ms", "GPU ms", lambda group: group.gpu_time_ms, MS, 9),
        Column("estimate", "estimate", lambda group: group.estimate, FLAG),
        Column("cost_ms", "cost ms", lambda group: known(group, group.cost_ms), MS),
        Column("cost", "", lambda group: group.cost_ms, BAR, 16, align="left", heat=True,
               priority=2, sortable=False),
    )}  # fmt: skip
    keys = _GROUP_VIEWS[view].split()
    if view != "csv" and not has_gpu_times(layers):
        keys.remove("gpu_time_ms")
    return Table([columns[key] for key in keys], groups, name=by, row_key=lambda group: group.key)


def node_link_json(link: NodeLink) -> dict[str, Any]:
    """Return a link as JSON data."""
    return {
        "scope": list(link.scope),
        "node": link.node,
        "op_type": link.op_type,
        "confidence": link.confidence,
        "share": link.share,
    }


_Test: TypeAlias = "Callable[[Layer], bool]"
_LIMIT = re.compile(r"([a-z%]+)(<=|>=|<|>)([0-9.]+(?:e[0-9]+)?)")
_FIELD = re.compile(r"([a-z]+):(.+)", re.DOTALL)
REPORT_FILTER = "words all must match · type:Conv · node:enc · provider:CPU · ms>0.1 · %>5"
ENGINE_FILTER = (
    "words all must match · type:conv · precision:int8 · tactic:xmma · ms>0.1 · bytes>1e6"
)


def matcher(text: str, *, engine: bool = False) -> _Test | None:
    """Return a test for the words of a filter; None if it passes everything.

    Every word must be found, in any case: ``conv fp16``. ``type:``, ``name:``, ``provider:``,
    ``prec:``, ``node:``, ``op:`` and ``scope:`` search one field; ``ms>0.1``, ``%>=5``, ``gpu``,
    ``min``, ``max``, ``mean``, ``runs`` and ``passes`` compare a number. Engines also have
    ``tactic:``, ``kind:``, ``out:``, ``origin:``, ``format:``, ``bytes``, ``weights`` and
    ``findings``.
    """
    tests = [_test_of(word, engine) for word in text.split()]
    return (lambda layer: all(test(layer) for test in tests)) if tests else None


def _test_of(word: str, engine: bool) -> _Test:
    places = {**_PLACES, **_ENGINE_PLACES} if engine else _PLACES
    limits = _ENGINE_LIMITS if engine else _LIMITS
    limit = _LIMIT.fullmatch(word)
    if limit is not None and limit[1] in limits:
        try:
            return _limit_test(limits[limit[1]], limit[2], float(limit[3]))
        except ValueError:  # such as 1.2.3: then it is a plain word
            pass
    named = _FIELD.fullmatch(word)
    if named is not None and named[1] in places:
        texts, wanted = [places[named[1]]], named[2].lower()
    else:
        texts, wanted = [places[name] for name in places if name not in _NAMED_ONLY], word.lower()
    return lambda layer: any(
        wanted in text.lower() for texts_of in texts for text in texts_of(layer)
    )


def _limit_test(key: str, sign: str, limit: float) -> _Test:
    figure_of = figure(key)

    def test(layer: Layer) -> bool:
        value = figure_of(layer)
        if not isinstance(value, (int, float)):
            return False
        if sign.startswith(">"):
            return value >= limit if sign == ">=" else value > limit
        return value <= limit if sign == "<=" else value < limit

    return test


def _precisions(layer: Layer) -> tuple[str, str]:
    return short_precision(layer.precision), layer.precision or ""


def _scopes(layer: Layer) -> Iterator[str]:
    for link in layer.nodes:
        yield "/".join(link.scope)
        yield link.name.rpartition("/")[0]


_PLACES: Mapping[str, Callable[[Layer], Iterable[str]]] = {
    "type": lambda layer: (layer.type,),
    "name": lambda layer: (layer.name,),
    "provider": lambda layer: (short_provider(layer.provider),),
    "precision": _precisions,
    "node": lambda layer: (link.label for link in layer.nodes),
    "op": lambda layer: (link.op_type for link in layer.nodes),
    "scope": _scopes,
}
_ENGINE_PLACES: Mapping[str, Callable[[Layer], Iterable[str]]] = {
    "tactic": lambda layer: (layer.engine.tactic,) if layer.engine else (),
    "kind": lambda layer: (layer.engine.layer_type,) if layer.engine else (),
    "out": lambda layer: (layer.engine.output_precision,) if layer.engine else (),
    "origin": lambda layer: (layer.engine.origin,) if layer.engine else (),
    "format": lambda layer: (*layer.input_types, *layer.output_types),
}
_NAMED_ONLY = ("scope",)
_LIMITS: Mapping[str, str] = {
    "ms": "time_ms", "time": "time_ms", "%": "percent", "percent": "percent",
    "gpu": "gpu_time_ms", "min": "min_ms", "max": "max_ms", "mean": "mean_ms", "runs": "count",
    "count": "count", "passes": "passes",
}  # fmt: skip
_ENGINE_LIMITS: Mapping[str, str] = {
    "ms": "time_ms", "time": "time_ms", "%": "percent", "percent": "percent",
    "bytes": "engine.footprint", "weights": "engine.weights_bytes",
    "findings": "engine.findings",
}  # fmt: skip


def select(
    layers: Sequence[Layer],
    text: str = "",
    group: tuple[str, str] | None = None,
    *,
    engine: bool = False,
) -> list[int]:
    """Return the positions of the layers that pass a filter and belong to a (grouping, key)."""
    test = matcher(text, engine=engine)
    return [
        position
        for position, layer in enumerate(layers)
        if (test is None or test(layer)) and (group is None or _in_group(layer, *group))
    ]


def _in_group(layer: Layer, by: str, key: str) -> bool:
    return any(group.key == key for group in group_layers([layer], by))


def groups_of(
    layers: Sequence[Layer],
    by: str,
    text: str = "",
    *,
    engine: bool = False,
) -> list[Group]:
    """Return the groups of layers that pass a filter, the costliest first; shares are of all."""
    chosen = [layers[at] for at in select(layers, text, engine=engine)]
    return group_layers(chosen, by, whole=layers)


@dataclass(frozen=True)
class LayerSelection:
    """What some layers add up to; times in milliseconds."""

    count: int
    total_ms: float
    """The sum of their times."""
    min_ms: float
    max_ms: float
    mean_ms: float
    percent: float
    """Of what all layers cost."""
    gpu_ms: float | None = None
    """On the GPU; None when that is known of none."""
    distinct: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    """(property, its values by frequency) of the properties of layers."""


_DISTINCT: tuple[tuple[str, Callable[[Layer], str]], ...] = (
    ("type", lambda layer: layer.type),
    ("precision", lambda layer: short_precision(layer.precision)),
    ("provider", lambda layer: short_provider(layer.provider)),
    ("output", lambda layer: shapes_text(layer.output_dims)),
    ("input", lambda layer: shapes_text(layer.input_dims)),
)


def summarise_selection(layers: Sequence[Layer]) -> LayerSelection | None:
    """Return the sums over some layers, or None without any."""
    if not layers:
        return None
    times = [layer.time_ms or 0.0 for layer in layers]
    total = sum(times)
    gpu = [layer.gpu_time_ms for layer in layers if layer.gpu_time_ms is not None]
    return LayerSelection(
        count=len(layers),
        total_ms=total,
        min_ms=min(times),
        max_ms=max(times),
        mean_ms=total / len(times),
        percent=sum(layer.percent or 0.0 for layer in layers),
        gpu_ms=sum(gpu) if gpu else None,
        distinct=tuple(
            (title, tuple(Counter(map(value, layers)).most_common())) for title, value in _DISTINCT
        ),
    )
