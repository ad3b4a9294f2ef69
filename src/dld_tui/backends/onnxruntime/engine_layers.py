"""Layers of the engines inside ONNX Runtime's TensorRT providers.

ONNX Runtime's profile has one event for each engine. TensorRT itself names its layers on the CPU
while it launches them (NVTX; by default with the names of layers alone), so a kernel belongs to the
layer in whose range it was launched. Written to the documented ranges, without a TensorRT at hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.errors import InputError
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.report.gpu_kernels import NamedRange, PassSpan, spans_of_ranges
from dld_tui.core.report.groups import layer_type
from dld_tui.core.report.records import Layer
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.report.store import ReportWriter

PROVIDERS = ("Tensorrt", "NvTensorRTRTX")
_AROUND = re.compile(r"(?:TensorRT:)?ExecutionContext::\w+")
"""Ranges around all layers of an engine."""


def add_engine_layers(
    writer: ReportWriter,
    spans: Sequence[PassSpan],
    layers: Sequence[Layer],
    ranges: Sequence[NamedRange],
    origin_ns: int,
    document: Document,
) -> tuple[list[PassSpan], list[Layer]]:
    """Add the layers of engines to a report, and to the layers of its passes.

    Args:
        writer: Of the report, which has `layers`.
        spans: The passes, with ONNX Runtime's layers.
        layers: Of ONNX Runtime.
        ranges: What libraries named on the CPU in these passes.
        origin_ns: The zero of the clock of `spans`.
        document: The model, whose nodes the engines compute.

    Returns:
        The passes with all layers, and the added layers.
    """
    engines = {at for at, layer in enumerate(layers) if layer.provider in PROVIDERS}
    if not engines:
        return [*spans], []
    names = next(filter(None, (_names(span, engines, ranges, origin_ns) for span in spans)), [])
    if not names:
        writer.note("Kernels of an engine count for it as a whole: TensorRT named no layers.")
        return [*spans], []
    provider = layers[min(engines)].provider
    added = [replace(record, provider=provider) for record in _records(names, document)]
    numbers = [writer.add_layer(layer) for layer in added]
    inner = spans_of_ranges(spans, ranges, [*zip(names, numbers, strict=True)], origin_ns)
    writer.note(
        f"{fmt.plural(len(added), 'layer')} of {fmt.plural(len(engines), 'engine')} have the"
        " kernels that TensorRT launched for them; ONNX Runtime times an engine as a whole."
    )
    merged = [
        PassSpan(span.index, span.start_us, span.duration_us, [*span.layers, *more.layers])
        for span, more in zip(spans, inner, strict=True)
    ]
    return merged, added


def _names(
    span: PassSpan, engines: set[int], ranges: Sequence[NamedRange], origin_ns: int
) -> list[str]:
    """Return the names of the layers of engines in a pass, in the order in which they began."""
    inside = [
        named
        for named in ranges
        if not _AROUND.fullmatch(named.name)
        for layer in span.layers
        if layer.layer in engines
        and layer.start_us <= (named.start_ns - origin_ns) / 1000
        and (named.end_ns - origin_ns) / 1000 <= layer.start_us + layer.duration_us
    ]
    return [named.name for named in sorted(inside, key=lambda named: named.start_ns)]


def _records(names: Sequence[str], document: Document) -> list[Layer]:
    """Return a layer for each name, with the nodes that it tells."""
    with temporary_folder("engine") as folder:
        path = folder / "engine.trt.json"
        path.write_text(json.dumps({"Layers": [*names]}), encoding="utf-8", errors="replace")
        try:
            plan = open_plan(path, beside=False)
        except InputError:
            return [Layer(name, layer_type(name)) for name in names]
    records = {layer.name: layer for layer in layer_records(plan, map_plan(plan, document))}
    return [records.get(name) or Layer(name, layer_type(name)) for name in names]
