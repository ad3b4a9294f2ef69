"""Reports to compare, made in memory: no file is needed to say what two runs took."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dld_tui.core.compare.records import Subject
from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.statistics import undisturbed

Times = Sequence[float]


def timed(
    name: str, times_ms: Times | float, nodes: Sequence[str] = (), type: str = "Conv", **more: Any
) -> tuple[Layer, Times]:
    """Return a layer that computes some ONNX nodes, with its milliseconds in each pass."""
    links = tuple(
        NodeLink((), node, node, more.pop("op", type), share=1 / len(nodes)) for node in nodes
    )
    times = [times_ms] * 10 if isinstance(times_ms, (int, float)) else list(times_ms)
    known = sorted(time for time in times if not np.isnan(time))
    time_ms = undisturbed(known) * len(known) / len(times) if known else None
    layer = Layer(name, type, nodes=links, time_ms=time_ms, **more)
    return layer, times


def subject(
    *layers: tuple[Layer, Times],
    title: str = "a.dldprof",
    latencies: Sequence[float] = (),
    by_pass: bool = True,
    **more: Any,
) -> Subject:
    """Return a report of some layers; without `by_pass` only their figures are known."""
    numbered = [replaced(layer, index) for index, (layer, _) in enumerate(layers)]
    times = np.array([list(times) for _, times in layers], dtype=np.float64)
    passes = [float(np.nansum(column)) for column in times.T] if by_pass and layers else []
    return Subject(
        title,
        f"/reports/{title}",
        numbered,
        times if by_pass and layers else None,
        latencies_ms=latencies,
        profiled_ms=passes,
        **more,
    )


def replaced(layer: Layer, index: int) -> Layer:
    """Return a layer with its number."""
    fields: Mapping[str, Any] = vars(layer)
    return Layer(**{**fields, "index": index})


def noisy(middle: float, seed: int, count: int = 50, spread: float = 0.05) -> list[float]:
    """Return times about a middle, as a busy machine makes them."""
    dice = random.Random(seed)
    return [middle * (1 + dice.gauss(0, spread)) for _ in range(count)]
