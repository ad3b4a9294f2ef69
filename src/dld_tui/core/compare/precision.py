"""Whether another precision pays: what the engines compute in, and where that gains and costs.

NVIDIA/TensorRT#4711 asks why an engine in fp8 is hardly faster than one in fp16. The answer is in
three figures of each engine: the time of its convolutions and matrix products, that of what only
converts or quantizes tensors, and the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.compare.engines import INSERTED
from dld_tui.core.compare.matching import is_conversion
from dld_tui.core.compare.model import Comparable, label
from dld_tui.core.compare.text import signed
from dld_tui.core.report.records import Layer

if TYPE_CHECKING:
    from dld_tui.core.compare.comparison import Comparison
    from dld_tui.core.compare.measured import Measured

HEAVY, CONVERTING, OTHER = "products", "conversions", "rest"
WORK: Mapping[str, str] = {
    HEAVY: "convolutions and products",
    CONVERTING: "conversions and Q/DQ",
    OTHER: "all else",
}
"""The kinds of work, and what they are called."""
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
    work_counts: dict[str, int] = field(default_factory=dict)
    main: str = ""
    """The precision in which its convolutions and products spend most time; without times the most
    frequent one of them."""
    timed: bool = False


def kind_of_work(layer: Layer) -> str:
    """Return what a layer of an engine does: a key of :data:`WORK`."""
    kinds = (layer.type, str(layer.details.get("layer_type") or ""))
    if any(map(_HEAVY.search, kinds)):
        return HEAVY
    if layer.details.get(INSERTED) is True or is_conversion(layer):
        return CONVERTING
    quantizes = any(map(_QUANTIZING.search, kinds)) or (
        bool(layer.nodes) and all("QuantizeLinear" in link.op_type for link in layer.nodes)
    )
    return CONVERTING if quantizes or layer.type == "Reformat" else OTHER


def precision_figures(subject: Comparable, side: Measured) -> PrecisionFigures:
    """Return what one engine computes in."""
    found = PrecisionFigures(timed=side.timed)
    heavy: dict[str, tuple[float, int]] = {}
    for layer in subject.layers:
        precision, time_ms = layer.precision or _UNKNOWN, side.medians[layer.index] or 0.0
        work = kind_of_work(layer)
        found.counts[precision] = found.counts.get(precision, 0) + 1
        found.times[precision] = found.times.get(precision, 0.0) + time_ms
        found.work_counts[work] = found.work_counts.get(work, 0) + 1
        found.work_ms[work] = found.work_ms.get(work, 0.0) + time_ms
        if work == HEAVY and layer.precision:
            before = heavy.get(precision, (0.0, 0))
            heavy[precision] = (before[0] + time_ms, before[1] + 1)
    found.counts = dict(sorted(found.counts.items(), key=lambda item: -item[1]))
    found.main = max(heavy, key=lambda name: heavy[name], default="")
    return found


def counts_text(figures: PrecisionFigures) -> str:
    """Return the layers by precision, e.g. ``21 int8, 12 fp16``."""
    return ", ".join(f"{count:,} {name}" for name, count in figures.counts.items())


def answers(comparison: Comparison, index: int) -> list[str]:
    """Return which of an engine and the base is faster, by which precision, and what spoils it.

    Empty where no precision is known.
    """
    there, here = comparison.precisions[comparison.base], comparison.precisions[index]
    if not comparison.of_engines or not there.main or not here.main:
        return []
    names = [label(comparison.base), label(index)]
    factor = comparison.speed_up(index)
    if factor is None:
        found = [f"{names[1]} computes mainly in {here.main}, {names[0]} in {there.main}."]
    elif there.main == here.main:
        found = [
            f"{names[1]} {_verdict(factor)} {names[0]}, both mainly in {here.main}"
            f" ({comparison.speed_up_source})."
        ]
    else:
        found = [
            f"{here.main} against {there.main}: {names[1]}, mainly in {here.main},"
            f" {_verdict(factor)} {names[0]}, mainly in {there.main}"
            f" ({comparison.speed_up_source})."
        ]
    if there.timed and here.timed:
        found += _why(there, here, names)
    return found


def precision_lines(comparison: Comparison, index: int) -> Iterator[str]:
    """Yield what an engine against the base says of their precisions: an answer, then its parts."""
    there, here = comparison.precisions[comparison.base], comparison.precisions[index]
    told = answers(comparison, index)
    if not told:
        return
    yield told[0]
    names = [label(comparison.base), label(index)]
    counts = f"{names[0]} {counts_text(there)}; {names[1]} {counts_text(here)}"
    yield f"Layers by precision: {counts}."
    if there.timed and here.timed:
        parts = [
            f"{title} {signed(here.work_ms.get(work, 0.0) - there.work_ms.get(work, 0.0))} ms"
            for work, title in WORK.items()
        ]
        yield f"The layers of {names[1]} against those of {names[0]}: {', '.join(parts)}."
        yield from told[1:]


def _why(there: PrecisionFigures, here: PrecisionFigures, names: Sequence[str]) -> Iterator[str]:
    """Say what eats up the gain of few bits."""
    gain = there.work_ms.get(HEAVY, 0.0) - here.work_ms.get(HEAVY, 0.0)
    extra = here.work_ms.get(CONVERTING, 0.0) - there.work_ms.get(CONVERTING, 0.0)
    if here.main not in FEW_BITS or there.main in FEW_BITS:
        return
    if gain > 0 and extra > _NOTABLE * gain:
        yield (
            f"Converting and quantizing takes back {fmt.percent(100 * extra / gain)} % of what"
            f" {here.main} gains in {names[1]}."
        )
    elif gain <= 0:
        yield f"Its convolutions and products are no faster in {here.main} than in {there.main}."


_NOTABLE = 0.1
_EQUAL = 0.02


def _verdict(factor: float) -> str:
    if abs(factor - 1) < _EQUAL:
        return "is as fast as"
    if factor < 1:
        return f"takes {1 / factor:.2f} times as long as"
    return f"is {factor:.2f} times as fast as"
