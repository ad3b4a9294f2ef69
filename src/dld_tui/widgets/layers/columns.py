"""The columns of the layer table: what each shows and how it sorts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.report.groups import GROUPINGS, has_gpu_times
from dld_tui.core.report.layer_table import shape_text
from dld_tui.core.report.records import Dims, Layer
from dld_tui.core.text import cell_width, visible
from dld_tui.widgets.lists.table_view import Column

SortValue: TypeAlias = "float | str | None"
"""None sorts last in both directions."""


@dataclass(frozen=True)
class LayerColumn:
    """One column of the layer table."""

    column: Column
    help: str
    text: Callable[[Layer], str]
    """Visible text."""
    value: Callable[[Layer], SortValue]
    style: str = ""
    """Style class of its text."""
    shown: bool = True
    """Part of the table that a new user sees."""
    style_of: Callable[[Layer], str] | None = None
    """Style class of one cell, where it depends on the layer."""

    @property
    def key(self) -> str:
        """What the column is known by."""
        return self.column.key


def short_provider(provider: str | None) -> str:
    """Return providers without the words that all of them share, e.g. ``CUDA, CPU``."""
    return fmt.UNKNOWN if not provider else visible(provider.replace("ExecutionProvider", ""))


_SHORT_TYPES = {
    "float": "fp32", "float32": "fp32", "float16": "fp16", "double": "fp64", "float64": "fp64",
    "bfloat16": "bf16", "float8e4m3fn": "fp8", "float8e5m2": "fp8", "float4e2m1": "fp4",
}  # fmt: skip
_BADGES = ("fp32", "fp16", "bf16", "int8", "fp8", "int4")


def short_precision(precision: str | None) -> str:
    """Return a precision as people say it, e.g. ``fp16``."""
    return fmt.UNKNOWN if not precision else _SHORT_TYPES.get(precision, visible(precision))


def precision_style(precision: str | None) -> str:
    """Return the style class of a precision's badge."""
    short = short_precision(precision)
    return f"prec-{short}" if short in _BADGES else "prec-other"


def shapes(dims: Iterable[Dims]) -> str:
    """Return shapes in trtexec's form, separated by spaces."""
    return visible("  ".join(shape_text(one) for one in dims)) or fmt.UNKNOWN


def node_names(layer: Layer) -> str:
    """Return the ONNX nodes of a layer; ``~`` before those that a rule found."""
    if not layer.nodes:
        return fmt.UNKNOWN
    guess = "~" if layer.confidence == "rule" else ""
    more = f"  +{len(layer.nodes) - 1}" if len(layer.nodes) > 1 else ""
    return guess + visible(layer.nodes[0].label) + more


def runs(layer: Layer) -> str:
    """Return the mean number of runs a pass, whole when it is."""
    count = layer.count
    if count is None:
        return fmt.UNKNOWN
    return f"{count:.0f}" if count == int(count) else f"{count:.1f}"


def numbers(key: str, title: str, width: int, priority: int) -> Column:
    """Return a column of numbers, the largest first."""
    return Column(key, title, width, "right", priority=priority, descending=True)


def words(
    key: str, title: str, width: int | None, priority: int, keep: str = "start", least: int = 12
) -> Column:
    """Return a column of text; it takes what the others leave when `width` is None."""
    return Column(key, title, width, min_width=least, priority=priority, keep=keep)


COLUMNS: tuple[LayerColumn, ...] = (
    LayerColumn(Column("index", "#", 5, "right", priority=5), "Order of execution.",
                lambda layer: str(layer.index), lambda layer: layer.index, "dim"),
    LayerColumn(words("type", "type", 18, 1, "middle"), "The backend's layer type.",
                lambda layer: visible(layer.type), lambda layer: layer.type.lower()),
    LayerColumn(words("name", "name", None, 0, "end", 20), "The backend's layer name.",
                lambda layer: visible(layer.name), lambda layer: layer.name.lower()),
    LayerColumn(numbers("time", "ms", 9, 0), "Median self time a pass.",
                lambda layer: fmt.milliseconds(layer.time_ms), lambda layer: layer.time_ms),
    LayerColumn(numbers("percent", "%", 5, 0), "Of what all layers cost.",
                lambda layer: fmt.percent(layer.percent), lambda layer: layer.percent),
    LayerColumn(Column("heat", "", 10, priority=2, descending=True, sortable=False),
                "The cost as a bar; full is the costliest layer.",
                lambda layer: "", lambda layer: layer.time_ms),
    LayerColumn(numbers("gpu_time", "gpu ms", 9, 1), "Its kernels on the GPU, summed, a pass.",
                lambda layer: fmt.milliseconds(layer.gpu_time_ms),
                lambda layer: layer.gpu_time_ms),
    LayerColumn(numbers("gpu_percent", "gpu %", 6, 2), "Of the time of all kernels on the GPU.",
                lambda layer: "", lambda layer: layer.gpu_time_ms),
    LayerColumn(numbers("of_pass", "% pass", 7, 6), "Of the full pass, end to end.",
                lambda layer: "", lambda layer: layer.time_ms, shown=False),
    LayerColumn(numbers("min", "min", 8, 7), "The fastest pass, ms.",
                lambda layer: fmt.milliseconds(layer.min_ms), lambda layer: layer.min_ms, "dim"),
    LayerColumn(numbers("max", "max", 8, 7), "The slowest pass, ms.",
                lambda layer: fmt.milliseconds(layer.max_ms), lambda layer: layer.max_ms, "dim"),
    LayerColumn(numbers("mean", "mean", 8, 8), "Mean of the passes in which it ran, ms.",
                lambda layer: fmt.milliseconds(layer.mean_ms), lambda layer: layer.mean_ms, "dim",
                shown=False),
    LayerColumn(numbers("count", "runs", 5, 8), "Runs a pass; above 1 in a loop.", runs,
                lambda layer: layer.count, "dim"),
    LayerColumn(numbers("passes", "passes", 6, 8), "In how many passes it ran.",
                lambda layer: fmt.count(layer.passes), lambda layer: layer.passes, "dim",
                shown=False),
    LayerColumn(words("provider", "provider", 9, 4), "The execution provider.",
                lambda layer: short_provider(layer.provider),
                lambda layer: (layer.provider or "").lower() or None, "dim"),
    LayerColumn(words("precision", "prec", 6, 3), "Type of the first output.",
                lambda layer: short_precision(layer.precision), lambda layer: layer.precision),
    LayerColumn(words("input", "input shapes", 26, 9), "Shapes of the inputs.",
                lambda layer: shapes(layer.input_dims),
                lambda layer: shapes(layer.input_dims), "dim", shown=False),
    LayerColumn(words("output", "output shapes", 18, 9), "Shapes of the outputs.",
                lambda layer: shapes(layer.output_dims),
                lambda layer: shapes(layer.output_dims), "dim"),
    LayerColumn(words("nodes", "ONNX nodes", None, 6, "end", 20),
                "What the layer computes; ~ means found by a rule.", node_names,
                lambda layer: layer.nodes[0].label.lower() if layer.nodes else None, "link"),
)  # fmt: skip

COMPUTED = ("heat", "gpu_percent", "of_pass")
"""Columns whose text needs more than the layer: `LayerSource` has it."""
BY_KEY = {column.key: column for column in COLUMNS}
DEFAULT_KEYS = tuple(column.key for column in COLUMNS if column.shown)


def telling_keys(layers: Sequence[Layer]) -> tuple[str, ...]:
    """Return the usual columns without those that say the same of every layer."""
    silent = set()
    if len({layer.provider for layer in layers}) < 2:
        silent.add("provider")
    if not has_gpu_times(layers):
        silent |= {"gpu_time", "gpu_percent"}
    if all(layer.count in (None, 1.0) for layer in layers):
        silent.add("count")
    if not any(layer.nodes for layer in layers):
        silent.add("nodes")
    return tuple(key for key in DEFAULT_KEYS if key not in silent)


@dataclass(frozen=True)
class ColumnSet:
    """What a table of layers can show, and what its filter and its groups know."""

    columns: tuple[LayerColumn, ...]
    telling: Callable[[Sequence[Layer]], tuple[str, ...]]
    """Returns the keys of the columns to begin with, which say something of these layers."""
    groupings: tuple[str, ...]
    """What the grouping key cycles through; ``layer`` is the plain table."""
    filter_help: str
    limits: Mapping[str, str]
    """A name before ``<`` or ``>`` in a filter, to the key of the column that it compares."""
    places: Mapping[str, Callable[[Layer], Iterable[str]]] = field(default_factory=dict)
    """A name before ``:`` in a filter, to the texts in which it looks, besides the usual ones."""
    none: str = "No layer was measured in this report."
    fitted: bool = False
    """Columns are only as wide as what stands in them: names get the room."""

    @cached_property
    def by_key(self) -> Mapping[str, LayerColumn]:
        """The columns by their keys, in order."""
        return {column.key: column for column in self.columns}

    @cached_property
    def default_keys(self) -> tuple[str, ...]:
        """The columns that a new user sees."""
        return tuple(column.key for column in self.columns if column.shown)


_MOST_FITTED = 2_000
"""Layers whose texts are looked at for the width of columns."""
_SORT_MARK = 1


def fitted_column(column: LayerColumn, layers: Sequence[Layer]) -> Column:
    """Return a column as wide as its title and its texts, and no wider than it was."""
    width = column.column.width
    if width is None or not column.column.title or not layers or len(layers) > _MOST_FITTED:
        return column.column
    longest = max(cell_width(column.text(layer)) for layer in layers)
    return replace(
        column.column, width=min(width, max(longest, len(column.column.title) + _SORT_MARK))
    )


REPORT_COLUMNS = ColumnSet(
    COLUMNS,
    telling_keys,
    ("layer", *(by for by in GROUPINGS if by != "layer")),
    "words all must match · type:Conv · node:enc · provider:CPU · ms>0.1 · %>5",
    {
        "ms": "time", "time": "time", "%": "percent", "percent": "percent", "gpu": "gpu_time",
        "min": "min", "max": "max", "mean": "mean", "runs": "count", "count": "count",
        "passes": "passes",
    },
)  # fmt: skip
"""Of a profile report."""


def group_columns(by: str, on_gpu: bool = False) -> tuple[Column, ...]:
    """Return the columns of the table of groups; `on_gpu` adds their time on the GPU."""
    gpu = (numbers("gpu_time", "gpu ms", 9, 0),) if on_gpu else ()
    return (
        Column("key", by, keep="end", min_width=16),
        numbers("time", "ms", 9, 0),
        numbers("percent", "%", 5, 0),
        *gpu,
        Column("heat", "", 16, priority=2, sortable=False),
        numbers("count", "count", 7, 1),
    )
