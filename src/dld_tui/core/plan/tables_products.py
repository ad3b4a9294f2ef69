"""Tables of convolutions and matrix products: work, intensity, how near to the roof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.plan.macs import (
    arithmetic_intensity,
    attribute,
    convolution,
    gemm_dims,
    is_convolution,
    is_product,
    macs,
)
from dld_tui.core.plan.roofline import Peaks, peaks_of, placement
from dld_tui.core.plan.table_values import COUNT, MACS, MS, PERCENT, RATIO, TEXT, Column, Row
from dld_tui.core.plan.values import whole_of

if TYPE_CHECKING:
    from dld_tui.core.plan.model import EngineLayer, EnginePlan

_COMMON = (
    Column("time_ms", "time ms", MS), Column("percent", "%", PERCENT),
    Column("precision", "precision", TEXT),
)  # fmt: skip
_WORK = (
    Column("macs", "MACs", MACS),
    Column("arithmetic_intensity", "MACs/B", RATIO),
    Column("tmacs_per_s", "TMAC/s", RATIO),
    Column("gb_per_s", "GB/s", RATIO),
    Column("bound", "bound", TEXT),
    Column("efficiency_percent", "of roof %", PERCENT),
)
_GEMM = (Column("m", "M", COUNT), Column("n", "N", COUNT), Column("k", "K", COUNT))


def convolution_rows(plan: EnginePlan) -> tuple[tuple[Column, ...], list[Row]]:
    """Return the convolutions with their shapes, and the product that each is."""
    columns = (
        Column("name", "layer", TEXT, flexible=True), *_COMMON,
        *_WORK, Column("kernel", "kernel", TEXT), Column("stride", "stride", TEXT),
        Column("groups", "groups", COUNT), Column("in", "in", TEXT), Column("out", "out", TEXT),
        *_GEMM,
        Column("tactic", "tactic", TEXT, flexible=True),
    )  # fmt: skip
    peaks = peaks_of(plan.device)
    rows: list[Row] = []
    for layer in filter(is_convolution, plan.layers):
        found = convolution(layer)
        product = gemm_dims(layer)
        kernel = attribute(layer, "Kernel")
        groups = found.groups if found else whole_of(attribute(layer, "Groups"))
        stride = attribute(layer, "Stride")
        rows.append(
            (
                layer.name, layer.time_ms, layer.percent, layer.precision, *_work(layer, peaks),
                "x".join(map(str, kernel)) if isinstance(kernel, list) else "",
                "x".join(map(str, stride)) if isinstance(stride, list) else "",
                groups, _dims(layer, True), _dims(layer, False),
                product.m, product.n, product.k,
                layer.tactic,
            )
        )  # fmt: skip
    return columns, rows


def gemm_rows(plan: EnginePlan) -> tuple[tuple[Column, ...], list[Row]]:
    """Return all matrix products: those of convolutions by implicit GEMM, too."""
    columns = (
        Column("name", "layer", TEXT, flexible=True), Column("type", "type", TEXT), *_COMMON,
        Column("batch", "batch", COUNT), *_GEMM, *_WORK,
        Column("tactic", "tactic", TEXT, flexible=True),
    )  # fmt: skip
    peaks = peaks_of(plan.device)
    rows: list[Row] = []
    for layer in plan.layers:
        if not is_convolution(layer) and not is_product(layer):
            continue
        found = gemm_dims(layer)
        shape = (found.batch, found.m, found.n, found.k)
        rows.append(
            (
                layer.name, layer.kind, layer.time_ms, layer.percent, layer.precision, *shape,
                *_work(layer, peaks), layer.tactic,
            )
        )  # fmt: skip
    return columns, rows


def _dims(layer: EngineLayer, read: bool) -> str:
    tensors = layer.inputs if read else layer.outputs
    dims = tensors[0].dims if tensors else None
    return "" if dims is None else fmt.shape(dims).replace(" ", "")


def _work(layer: EngineLayer, peaks: Peaks | None) -> Row:
    count, size, time_ms = macs(layer), layer.footprint, layer.time_ms
    place = placement(layer, peaks) if peaks else None
    return (
        count,
        arithmetic_intensity(layer),
        count / time_ms / 1e9 if count is not None and time_ms else None,
        size / time_ms / 1e6 if size is not None and time_ms else None,
        place.bound if place else "",
        100 * place.efficiency if place and place.efficiency is not None else None,
    )
