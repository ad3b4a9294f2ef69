"""The columns of an engine's layer table, beside those that every layer table has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dld_tui.core import fmt
from dld_tui.core.report.records import Layer
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.widgets.layers.columns import (
    BY_KEY,
    ColumnSet,
    LayerColumn,
    SortValue,
    node_names,
    numbers,
    precision_style,
    short_precision,
    words,
)
from dld_tui.widgets.lists.table_view import Column
from dld_tui.widgets.operators.browser import layer_style
from dld_tui.widgets.shell import glyphs


def _number(layer: Layer, key: str) -> float | None:
    found = layer.details.get(key)
    return float(found) if isinstance(found, (int, float)) else None


def _size(layer: Layer, key: str) -> str:
    found = _number(layer, key)
    if found == 0:
        return ""
    return fmt.size(None if found is None else int(found))


def _text(found: JSON) -> str:
    return visible(found) if isinstance(found, str) else ""


def _findings(layer: Layer) -> str:
    count = int(_number(layer, "findings") or 0)
    return f"{glyphs.current().warning}{count if count > 1 else ''}" if count else ""


def _precision(layer: Layer) -> str:
    made = _text(layer.details.get("output_precision"))
    taken = short_precision(layer.precision)
    return taken if not made or made == taken else f"{taken}{glyphs.current().crumb}{made}"


def _tactic(layer: Layer) -> str:
    return _text(layer.details.get("tactic"))


def _nodes(layer: Layer) -> str:
    names = node_names(layer)
    sure = _text(layer.details.get("mapping_confidence"))
    return f"~{names}" if sure == "likely" and layer.nodes else names


def _sized(key: str, title: str, width: int, priority: int, help: str) -> LayerColumn:
    def value(layer: Layer) -> SortValue:
        return _number(layer, key)

    return LayerColumn(
        numbers(key, title, width, priority), help, lambda layer: _size(layer, key), value, "dim"
    )


_NAME_CELLS = 28
"""Names of fused layers are long: other columns give way before them."""


COLUMNS: tuple[LayerColumn, ...] = (
    LayerColumn(Column("index", "#", 5, "right", priority=6), "Place in the file.",
                lambda layer: str(layer.details.get("index", layer.index)),
                lambda layer: layer.index, "dim"),
    LayerColumn(numbers("findings", "", 2, 1), "How much was found that may cost time.",
                _findings, lambda layer: _number(layer, "findings") or None, "warn"),
    LayerColumn(words("type", "type", 15, 2, "middle"), "What the layer computes.",
                lambda layer: visible(layer.type), lambda layer: layer.type.lower(),
                style_of=lambda layer: layer_style(layer.type)),
    replace(BY_KEY["name"], column=replace(BY_KEY["name"].column, min_width=_NAME_CELLS)),
    LayerColumn(words("precision", "prec", 9, 3), "Precision of inputs, then of outputs.",
                _precision, lambda layer: layer.precision,
                style_of=lambda layer: precision_style(layer.precision)),
    LayerColumn(numbers("time", "ms", 9, 0), "Mean time a pass.",
                BY_KEY["time"].text, BY_KEY["time"].value),
    BY_KEY["percent"],
    BY_KEY["heat"],
    LayerColumn(numbers("median", "median", 8, 9), "Median time a pass, ms.",
                lambda layer: fmt.milliseconds(_number(layer, "median_ms")),
                lambda layer: _number(layer, "median_ms"), "dim", shown=False),
    _sized("footprint", "bytes", 8, 4, "Weights, inputs and outputs together."),
    _sized("weights_bytes", "weights", 8, 7, "Weights and biases."),
    _sized("io_bytes", "in+out", 8, 9, "Inputs and outputs."),
    LayerColumn(words("layer_type", "layer type", 18, 8), "The layer type in the file.",
                lambda layer: _text(layer.details.get("layer_type")),
                lambda layer: _text(layer.details.get("layer_type")).lower() or None, "dim",
                shown=False),
    BY_KEY["output"],
    LayerColumn(words("tactic", "tactic", 34, 8, "end", 16), "The kernel that was chosen.",
                _tactic, lambda layer: _tactic(layer).lower() or None, "dim"),
    LayerColumn(words("nodes", "ONNX nodes", None, 7, "end", 20),
                "What the layer computes; ~ where a rule found it.", _nodes,
                BY_KEY["nodes"].value, "link"),
)  # fmt: skip


def telling(layers: Sequence[Layer]) -> tuple[str, ...]:
    """Return the usual columns without those that are empty for every layer."""
    silent = {
        column.key
        for column in COLUMNS
        if column.key not in ("index", "name", "heat")
        and all(column.value(layer) is None for layer in layers)
    }
    if not any(_tactic(layer) for layer in layers):
        silent.add("tactic")
    if not any(layer.nodes for layer in layers):
        silent.add("nodes")
    if "time" in silent:
        silent |= {"percent", "heat"}
    if not any(layer.precision for layer in layers):
        silent |= {"precision", "output", "type"}
    if not any(_number(layer, "weights_bytes") for layer in layers):
        silent.add("weights_bytes")
    return tuple(column.key for column in COLUMNS if column.shown and column.key not in silent)


def _formats(layer: Layer) -> Iterable[str]:
    return (*layer.input_types, *layer.output_types)


PLAN_COLUMNS = ColumnSet(
    COLUMNS,
    telling,
    ("layer", "type", "precision", "node", "scope", "op", "layer_type", "tactic"),
    "words all must match · type:conv · prec:int8 · tactic:xmma · ms>0.1 · bytes>1e6",
    {
        "ms": "time", "time": "time", "%": "percent", "percent": "percent",
        "bytes": "footprint", "weights": "weights_bytes", "findings": "findings",
    },
    {
        "tactic": lambda layer: (_tactic(layer),),
        "kind": lambda layer: (_text(layer.details.get("layer_type")),),
        "out": lambda layer: (_text(layer.details.get("output_precision")),),
        "origin": lambda layer: (_text(layer.details.get("origin")),),
        "format": _formats,
    },
    "The file has no layers.",
    fitted=True,
)  # fmt: skip
"""Of an engine."""
