"""The tables of an engine plan beside that of its layers.

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
from dld_tui.core.plan.accelerator import placed_table
from dld_tui.core.plan.attention import attention_table
from dld_tui.core.plan.filter import PlanGroup, groups, matching
from dld_tui.core.plan.folding import is_pointwise, operations
from dld_tui.core.plan.json_text import whole_of
from dld_tui.core.plan.macs import (
    arithmetic_intensity,
    attribute,
    convolution,
    gemm_dims,
    is_convolution,
    is_product,
    macs,
)
from dld_tui.core.plan.model import EngineLayer, EnginePlan, EngineTensor, TimeStatistics
from dld_tui.core.plan.reformats import reformat_table
from dld_tui.core.plan.roofline import Peaks, Placement, peaks_of, placement
from dld_tui.core.plan.subject import layer_records
from dld_tui.core.report.layer_table import layer_table, precision_style
from dld_tui.core.report.statistics import median
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.units import BYTES, COUNT, FINE_MS, PERCENT, RATIO, SHORT, SIZE, TEXT, Unit

_Columns: TypeAlias = "tuple[Column[EngineLayer], ...]"
_TIMES = {
    "latency": "latency",
    "compute": "GPU compute",
    "h2d": "host to device",
    "d2h": "device to host",
    "enqueue": "enqueue",
}
_PARTS = 10


def make_table(plan: EnginePlan, view: str, text: str = "") -> Table[Any]:
    """Return a table of :data:`VIEWS`, of the layers that contain `text` only.

    Raises:
        KeyError: There is no such view.
    """
    if text:
        plan = replace(plan, layers=tuple(matching(plan, text)))
    title, make = _MAKERS[view]
    return replace(make(plan), name=view, title=title)


def group_table(plan: EnginePlan, by: str, text: str = "") -> Table[PlanGroup]:
    """Return the time and memory of layers that have something in common."""
    if text:
        plan = replace(plan, layers=tuple(matching(plan, text)))
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


def tensor_text(tensors: Sequence[EngineTensor]) -> str:
    """Return tensors in short, e.g. ``fp16[1,64,56,56]``. Free of foreign text."""
    return ", ".join(
        f"{tensor.dtype or '?'}{fmt.shape(tensor.dims).replace(' ', '')}" for tensor in tensors
    )


def known_weights(layer: EngineLayer) -> int | None:
    """Return the bytes of a layer's weights; None where it has some that are not known."""
    return None if layer.weights_from == "unknown" else layer.weights_bytes


# Columns of layers. What is wide or says little gives way first where room is scarce.


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
_IO = _figure("io_bytes", "in + out", lambda layer: layer.io_bytes, BYTES)
_WEIGHTS = _figure("weights_bytes", "weights", known_weights, BYTES)
_FOOTPRINT = _figure("footprint", "footprint", lambda layer: layer.footprint, BYTES)
_SPEED = _figure("gb_per_s", "GB/s", lambda layer: _rate(layer.footprint, layer, 1e6), RATIO)
_PRODUCT = (
    _figure("m", "M", lambda layer: gemm_dims(layer).m, COUNT, 24),
    _figure("n", "N", lambda layer: gemm_dims(layer).n, COUNT, 24),
    _figure("k", "K", lambda layer: gemm_dims(layer).k, COUNT, 24),
)


def _rate(amount: int | None, layer: EngineLayer, scale: float) -> float | None:
    """Return an amount a second; None when it or the time is unknown or no time."""
    return amount / layer.time_ms / scale if amount is not None and layer.time_ms else None


def _work(peaks: Peaks | None) -> _Columns:
    """Return what convolutions and products are measured by."""

    def place(layer: EngineLayer) -> Placement | None:
        return placement(layer, peaks) if peaks else None

    def bound(layer: EngineLayer) -> str:
        found = place(layer)
        return found.bound if found else ""

    def efficiency(layer: EngineLayer) -> float | None:
        found = place(layer)
        return 100 * found.efficiency if found and found.efficiency is not None else None

    return (
        _figure("macs", "MACs", macs, SHORT, 5),
        _figure("arithmetic_intensity", "MACs/B", arithmetic_intensity, RATIO, 6),
        _figure("tmacs_per_s", "TMAC/s", lambda layer: _rate(macs(layer), layer, 1e9), RATIO, 7),
        replace(_SPEED, priority=8),
        _text("bound", "bound", bound, 9),
        _figure("efficiency_percent", "of roof %", efficiency, PERCENT, 10),
    )


def _convolutions(plan: EnginePlan) -> Table[EngineLayer]:
    def sides(layer: EngineLayer, name: str) -> str:
        found = attribute(layer, name)
        return "x".join(map(str, found)) if isinstance(found, list) else ""

    def parts(layer: EngineLayer) -> int | None:
        found = convolution(layer)
        return found.groups if found else whole_of(attribute(layer, "Groups"))

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
    """Return all matrix products: those of convolutions by implicit GEMM, too."""
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
    def total(tensors: Sequence[EngineTensor]) -> int | None:
        sizes = [tensor.bytes for tensor in tensors]
        return None if None in sizes else sum(size or 0 for size in sizes)

    columns = (
        _NAME, _TYPE, _WEIGHTS,
        _figure("input_bytes", "in", lambda layer: total(layer.inputs), BYTES),
        _figure("output_bytes", "out", lambda layer: total(layer.outputs), BYTES),
        _FOOTPRINT, _TIME,
        replace(_SPEED, value=lambda layer: _rate(layer.footprint or None, layer, 1e6)),
        _text("weights_from", "weights from", lambda layer: layer.weights_from, 24),
    )  # fmt: skip
    return Table(columns, plan.layers)


def _bindings(plan: EnginePlan) -> Table[EngineTensor]:
    def profiles(tensor: EngineTensor) -> str:
        return "; ".join(" ".join(map(fmt.shape, one)) for one in tensor.profile_dims)

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
    what: str
    figures: TimeStatistics


def _timing(plan: EnginePlan) -> Table[_Times]:
    """Return each kind of time over all inferences, and the compute time of each tenth of them."""

    def figure(name: str, title: str, unit: Unit, key: str, late: int) -> Column[_Times]:
        return Column(key, title, lambda row: getattr(row.figures, name), unit, 30, priority=late)

    names = ("min", "median", "mean", "p90", "p95", "p99", "max")
    columns: tuple[Column[_Times], ...] = (
        Column("what", "what", lambda row: row.what, TEXT, least=28, keep="end"),
        figure("count", "count", COUNT, "count", 1),
        *(figure(name, name, FINE_MS, f"{name}_ms", at) for at, name in enumerate(names, 2)),
        figure("cov_percent", "CoV %", PERCENT, "cov_percent", 9),
    )
    timing = plan.timing
    if timing is None:
        return Table(columns, ())
    found = [(title, getattr(timing, name)) for name, title in _TIMES.items()]
    rows = [_Times(title, figures) for title, figures in found if figures is not None]
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
    "dla": ("Layers by device", placed_table),
    "memory": ("Memory", _memory),
    "bindings": ("Inputs and outputs", _bindings),
    "timing": ("Inference times", _timing),
}
VIEWS = tuple(_MAKERS)
"""The tables of a plan."""
