"""Tables of an engine plan, as plain values: for text, CSV, JSON and screens.

::

    table = make_table(plan, "convolutions")
    table.columns[0].title, table.rows[0]       # "layer", ("conv1 + relu1", 0.43, …)
    sorted_table(table, "time_ms")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.csv_text import csv_text
from dld_tui.core.errors import UsageError
from dld_tui.core.plan.filter import matching
from dld_tui.core.plan.groups import groups
from dld_tui.core.plan.model import EngineLayer, EnginePlan, EngineTensor
from dld_tui.core.plan.pointwise import is_pointwise, operations
from dld_tui.core.plan.table_values import (
    BYTES,
    COUNT,
    MS,
    PERCENT,
    TEXT,
    Column,
    Row,
    Table,
    Value,
)
from dld_tui.core.plan.tables_products import convolution_rows, gemm_rows
from dld_tui.core.plan.tables_timing import timing_rows

_Rows: TypeAlias = "tuple[tuple[Column, ...], list[Row]]"

NAME = Column("name", "layer", TEXT, flexible=True)
TIME = Column("time_ms", "time ms", MS)
SHARE = Column("percent", "%", PERCENT)


def make_table(plan: EnginePlan, view: str, text: str = "") -> Table:
    """Return a table of :data:`VIEWS`, of the layers that contain `text` only.

    Raises:
        KeyError: There is no such view.
    """
    if text:
        plan = replace(plan, layers=tuple(matching(plan, text)))
    title, make = _MAKERS[view]
    columns, rows = make(plan)
    return Table(view, title, columns, rows)


def group_table(plan: EnginePlan, by: str, text: str = "") -> Table:
    """Return the time and memory of layers that have something in common."""
    if text:
        plan = replace(plan, layers=tuple(matching(plan, text)))
    columns = (
        Column("key", by.replace("_", " "), TEXT, flexible=True), Column("count", "count", COUNT),
        TIME, SHARE, Column("bytes", "bytes", BYTES), Column("weights_bytes", "weights", BYTES),
    )  # fmt: skip
    rows: list[Row] = [
        (found.key, found.count, found.time_ms, found.percent, found.bytes, found.weights_bytes)
        for found in groups(plan, by)
    ]
    return Table(by, f"Layers by {by.replace('_', ' ')}", columns, rows)


def sorted_table(table: Table, key: str) -> Table:
    """Return a table in the order of a column: numbers from the greatest on, text from A.

    Raises:
        UsageError: It has no such column.
    """
    keys = [column.key for column in table.columns]
    if key not in keys:
        raise UsageError(f"--sort {key}: this table has {', '.join(keys)}")
    place = keys.index(key)
    number = table.columns[place].kind != TEXT

    def rank(row: Row) -> tuple[bool, float, str]:
        value = row[place]
        if number:
            known = isinstance(value, (int, float))
            return not known, -float(value) if isinstance(value, (int, float)) else 0.0, ""
        return value is None, 0.0, str(value)

    return replace(table, rows=sorted(table.rows, key=rank))


def table_csv(table: Table) -> str:
    """Return a table as CSV with the keys of its columns."""
    return csv_text([column.key for column in table.columns], table.rows, newline="\n")


def tensor_text(tensors: Sequence[EngineTensor]) -> str:
    """Return tensors in short, e.g. ``fp16[1,64,56,56]``. Free of foreign text."""
    return ", ".join(
        f"{tensor.dtype or '?'}{fmt.shape(tensor.dims).replace(' ', '')}" for tensor in tensors
    )


def _layers(plan: EnginePlan) -> _Rows:
    columns = (
        Column("index", "#", COUNT), NAME, Column("type", "type", TEXT), TIME,
        Column("median_ms", "median ms", MS), SHARE,
        Column("precision", "precision", TEXT), Column("output_precision", "to", TEXT),
        Column("io_bytes", "in + out", BYTES), Column("weights_bytes", "weights", BYTES),
        Column("footprint", "footprint", BYTES), Column("tactic", "tactic", TEXT, flexible=True),
    )  # fmt: skip
    rows: list[Row] = [
        (
            layer.index, layer.name, layer.kind, layer.time_ms, layer.median_ms, layer.percent,
            layer.precision, layer.output_precision, layer.io_bytes, known_weights(layer),
            layer.footprint, layer.tactic,
        )
        for layer in plan.layers
    ]  # fmt: skip
    return columns, rows


def known_weights(layer: EngineLayer) -> int | None:
    """Return the bytes of a layer's weights; None where it has some that are not known."""
    return None if layer.weights_from == "unknown" else layer.weights_bytes


def _pointwise(plan: EnginePlan) -> _Rows:
    columns = (
        NAME, Column("type", "type", TEXT), TIME, SHARE, Column("precision", "precision", TEXT),
        Column("operations_count", "ops", COUNT),
        Column("operations", "operations", TEXT, flexible=True),
    )  # fmt: skip
    rows: list[Row] = []
    for layer in filter(is_pointwise, plan.layers):
        inside = operations(layer)
        rows.append(
            (
                layer.name, layer.kind, layer.time_ms, layer.percent, layer.precision,
                len(inside) or None, ", ".join(inside),
            )
        )  # fmt: skip
    return columns, rows


def _reformats(plan: EnginePlan) -> _Rows:
    columns = (
        NAME, Column("origin", "origin", TEXT), TIME, SHARE, Column("from", "from", TEXT),
        Column("to", "to", TEXT), Column("converts", "converts", TEXT),
        Column("io_bytes", "in + out", BYTES),
    )  # fmt: skip
    rows: list[Row] = []
    for layer in plan.layers:
        if "Reformat" not in (layer.kind, layer.type):
            continue
        converts = layer.precision != layer.output_precision
        rows.append(
            (
                layer.name, layer.origin, layer.time_ms, layer.percent, _format(layer.inputs),
                _format(layer.outputs), "type" if converts else "layout", layer.io_bytes,
            )
        )  # fmt: skip
    return columns, rows


def _format(tensors: Sequence[EngineTensor]) -> str:
    return tensors[0].format if tensors else ""


def _memory(plan: EnginePlan) -> _Rows:
    columns = (
        NAME, Column("type", "type", TEXT), Column("weights_bytes", "weights", BYTES),
        Column("input_bytes", "in", BYTES), Column("output_bytes", "out", BYTES),
        Column("footprint", "footprint", BYTES), TIME,
        Column("gb_per_s", "GB/s", "ratio"), Column("weights_from", "weights from", TEXT),
    )  # fmt: skip
    rows: list[Row] = []
    for layer in plan.layers:
        footprint = layer.footprint
        speed = footprint / layer.time_ms / 1e6 if footprint and layer.time_ms else None
        rows.append(
            (
                layer.name, layer.kind, known_weights(layer), _bytes(layer.inputs),
                _bytes(layer.outputs), footprint, layer.time_ms, speed, layer.weights_from,
            )
        )  # fmt: skip
    return columns, rows


def _bytes(tensors: Sequence[EngineTensor]) -> int | None:
    total = 0
    for tensor in tensors:
        size = tensor.bytes
        if size is None:
            return None
        total += size
    return total


def _bindings(plan: EnginePlan) -> _Rows:
    columns = (
        Column("name", "name", TEXT, flexible=True), Column("mode", "mode", TEXT),
        Column("dtype", "type", TEXT), Column("dims", "dimensions", TEXT),
        Column("bytes", "bytes", BYTES), Column("format", "format", TEXT, flexible=True),
        Column("profiles", "min, opt, max", TEXT, flexible=True),
    )  # fmt: skip
    rows: list[Row] = [
        (
            tensor.name, tensor.mode, tensor.dtype,
            "" if tensor.dims is None else fmt.shape(tensor.dims), tensor.bytes, tensor.format,
            "; ".join(" ".join(fmt.shape(dims) for dims in one) for one in tensor.profile_dims),
        )
        for tensor in plan.bindings
    ]  # fmt: skip
    return columns, rows


_MAKERS: Mapping[str, tuple[str, Callable[[EnginePlan], _Rows]]] = {
    "layers": ("Layers", _layers),
    "convolutions": ("Convolutions", convolution_rows),
    "gemm": ("Matrix products", gemm_rows),
    "pointwise": ("Pointwise layers", _pointwise),
    "reformats": ("Reformats", _reformats),
    "memory": ("Memory", _memory),
    "bindings": ("Inputs and outputs", _bindings),
    "timing": ("Inference times", timing_rows),
}
VIEWS = tuple(_MAKERS)
"""The tables of a plan."""


def cell_text(value: Value, kind: str) -> str:
    """Return a value of a column as text; foreign where the column is text."""
    if value is None or value == "":
        return fmt.UNKNOWN
    if isinstance(value, str):
        return value
    if kind == MS:
        return fmt.milliseconds(value, digits=4)
    if kind == PERCENT:
        return fmt.percent(value)
    if kind == BYTES:
        return fmt.size(int(value))
    if kind == COUNT:
        return fmt.count(int(value))
    if kind == "macs":
        return fmt.short_count(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
