"""Comparison of engines only: tactics, precisions and their benefit, inserted layers.

NVIDIA/TensorRT#4711 asks why an fp8 engine is hardly faster than an fp16 one. Three figures of each
engine answer it: the time of its convolutions and matrix products, that of layers which only
convert or quantize tensors, and the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from dld_tui.core.compare.matching import is_conversion
from dld_tui.core.compare.records import ComparisonRow, Subject
from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.layer_table import short_precision
from dld_tui.core.report.records import Layer

if TYPE_CHECKING:
    from dld_tui.core.compare.rows import MeasuredLayers

_MOST_NAMES = 3
_TACTIC_VALUE = re.compile(r"-?\d+|0[xX][\da-fA-F]+")
"""A number in place of the name of a kernel, which says nothing across engines."""


@dataclass(frozen=True)
class Mismatch:
    """A row whose layers differ in precision or tactic from those of the base. Untrusted text."""

    node: str
    """The ONNX nodes of the row, or its layer where none are known."""
    row: ComparisonRow
    precision: tuple[str, ...]
    """One a report; of several layers all, ``fp16 + fp32``. Empty when unknown."""
    tactic: tuple[str, ...]
    """One a report: of the longest layer; the first one without times."""

    @property
    def what(self) -> str:
        """``precision``, ``tactic`` or both."""
        kinds = (("precision", self.precision), ("tactic", self.tactic))
        return " and ".join(kind for kind, values in kinds if _differ(values))


def any_engine(subjects: Iterable[Subject]) -> bool:
    """Return whether one of the subjects is an engine rather than a report."""
    return any(
        layer.engine is not None and layer.engine.engine_layer is not None
        for subject in subjects
        for layer in subject.layers
    )


def find_mismatches(
    subjects: Sequence[Subject], sides: Sequence[MeasuredLayers], rows: Iterable[ComparisonRow]
) -> list[Mismatch]:
    """Return the rows of layers whose precisions or tactics are not the same.

    Args:
        subjects: The reports.
        sides: Their times.
        rows: By layer; rows of one report only are left out.
    """
    mismatches = []
    for row in rows:
        if sum(bool(cell.layers) for cell in row.cells) < 2:
            continue
        layers = [
            [subject.layers[index] for index in cell.layers]
            for subject, cell in zip(subjects, row.cells, strict=True)
        ]
        precisions = tuple(map(_precision, layers))
        tactics = tuple(_tactic(side, own) for side, own in zip(sides, layers, strict=True))
        if _differ(precisions) or _differ(tactics):
            mismatches.append(Mismatch(_nodes(layers) or row.key, row, precisions, tactics))
    return mismatches


def _differ(values: Iterable[str]) -> bool:
    return len({value for value in values if value}) > 1


def _precision(layers: Sequence[Layer]) -> str:
    names = {short_precision(layer.precision) for layer in layers if layer.precision}
    return " + ".join(sorted(names))


def _tactic(side: MeasuredLayers, layers: Sequence[Layer]) -> str:
    longest = sorted(layers, key=lambda layer: -(side.layer_ms[layer.index] or 0.0))
    names = (layer.engine.tactic for layer in longest if layer.engine)
    return next((name for name in names if name and not _TACTIC_VALUE.fullmatch(name)), "")


def _nodes(layers: Sequence[Sequence[Layer]]) -> str:
    """Return the nodes of the first report that knows some."""
    for own in layers:
        names = list(dict.fromkeys(link.label for layer in own for link in layer.nodes))
        if names:
            return " + ".join(names[:_MOST_NAMES]) + (" + …" if len(names) > _MOST_NAMES else "")
    return ""


def _is_inserted(layer: Layer) -> bool:
    return (layer.engine is not None and layer.engine.inserted) or is_conversion(layer)


HEAVY, CONVERTING, OTHER = "products", "conversions", "rest"
WORK: Mapping[str, str] = {
    HEAVY: "convolutions and products",
    CONVERTING: "conversions and Q/DQ",
    OTHER: "all else",
}
"""The kinds of work, and their display names."""
FEW_BITS = ("fp4", "int4", "fp8", "int8", "uint8")
_HEAVY = re.compile(r"conv(?!ert)|gemm|matrix_?multipl|matmul|fullyconnected", re.IGNORECASE)
_QUANTIZING = re.compile(r"quantize|^scale$|^cast$", re.IGNORECASE)
_UNKNOWN = "unknown"


@dataclass
class PrecisionFigures:
    """What one engine computes in. Times are milliseconds, None without a profile."""

    counts: dict[str, int] = field(default_factory=dict)
    """Layers by precision, the most frequent first."""
    times: dict[str, float] = field(default_factory=dict)
    work_ms: dict[str, float] = field(default_factory=dict)
    """By the keys of :data:`WORK`."""
    inserted: int = 0
    """Layers that the backend put between those of the model: they change a type or format only."""
    inserted_ms: float = 0.0
    main: str = ""
    """The precision in which its convolutions and products spend most time; without times the most
    frequent one of them."""
    timed: bool = False


def kind_of_work(layer: Layer) -> str:
    """Return the kind of work of an engine layer: a key of :data:`WORK`."""
    kinds = (layer.type, layer.engine.layer_type if layer.engine else "")
    if any(map(_HEAVY.search, kinds)):
        return HEAVY
    if _is_inserted(layer):
        return CONVERTING
    quantizes = any(map(_QUANTIZING.search, kinds)) or (
        bool(layer.nodes) and all("QuantizeLinear" in link.op_type for link in layer.nodes)
    )
    return CONVERTING if quantizes or layer.type == "Reformat" else OTHER


def precision_figures(subject: Subject, side: MeasuredLayers) -> PrecisionFigures:
    """Return what one engine computes in."""
    figures = PrecisionFigures(timed=side.timed)
    heavy: dict[str, tuple[float, int]] = {}
    for layer in subject.layers:
        precision = short_precision(layer.precision) if layer.precision else _UNKNOWN
        time_ms = side.layer_ms[layer.index] or 0.0
        work = kind_of_work(layer)
        figures.counts[precision] = figures.counts.get(precision, 0) + 1
        figures.times[precision] = figures.times.get(precision, 0.0) + time_ms
        figures.work_ms[work] = figures.work_ms.get(work, 0.0) + time_ms
        if _is_inserted(layer):
            figures.inserted += 1
            figures.inserted_ms += time_ms
        if work == HEAVY and layer.precision:
            before = heavy.get(precision, (0.0, 0))
            heavy[precision] = (before[0] + time_ms, before[1] + 1)
    figures.counts = dict(sorted(figures.counts.items(), key=lambda item: -item[1]))
    figures.main = max(heavy, key=lambda name: heavy[name], default="")
    return figures


def counts_text(figures: PrecisionFigures) -> str:
    """Return the layers by precision, e.g. ``21 int8, 12 fp16``."""
    return ", ".join(f"{count:,} {name}" for name, count in figures.counts.items())
