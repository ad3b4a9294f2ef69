"""An engine plan as something to compare with others, and with profile reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from dld_tui.core.compare.records import KIND, MEANS, Subject
from dld_tui.core.errors import InputError
from dld_tui.core.files.recognise import MAGICS, FileKind, recognise
from dld_tui.core.files.source import Source
from dld_tui.core.report.groups import UNKNOWN, layer_type
from dld_tui.core.report.layer_table import layer_names
from dld_tui.core.report.records import (
    Confidence,
    Cost,
    EngineFacts,
    Layer,
    NodeLink,
    SharedBy,
)
from dld_tui.core.tensorrt.plan.mapping import LayerNodes, elements_of, map_plan, shares_of
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, Foreign

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan
    from dld_tui.core.tensorrt.plan.lint import PlanFinding


_PLANS = frozenset({FileKind.ENGINE_LAYERS, FileKind.ENGINE_METADATA, FileKind.TRTEXEC_LOG})
_ARCHIVE = b"PK\x03\x04"
_DATABASE = b"SQLi"
_CONFIDENCE: Mapping[str, Confidence] = {"exact": "name", "likely": "rule", "guess": "rule"}
_SETTINGS = ("build_options", "inference_options", "model_options", "reporting_options")
_NAMES = ("Device", "device", "Name", "name", "Selected Device")


def is_plan(path: Path) -> bool:
    """Return whether a file is read as an engine plan: layer information, a set of files, a log.

    Raises:
        InputError: The file cannot be read, or is of an unknown kind.
    """
    source = Source.open(path)
    try:
        head = source.read(0, min(4, source.size))
    finally:
        source.close()
    if head == _DATABASE:
        return False  # a report, whole or not
    return head == _ARCHIVE or head in MAGICS or recognise(path) in _PLANS


def open_plan_subject(path: Path, document: Document | None = None) -> Subject:
    """Read an engine plan, with the files of its set beside it.

    Args:
        path: As for :func:`~dld_tui.core.tensorrt.plan.reader.open_plan`.
        document: The model that it was built from, to match the ONNX nodes.

    Raises:
        InputError: A file cannot be read, or has no layers.
    """
    plan = open_plan(path)
    if not plan.layers:
        raise InputError("there are no layers to compare", where=str(path))
    return plan_subject(plan, map_plan(plan, document), document)


def plan_subject(
    plan: EnginePlan, mapping: Mapping[int, LayerNodes], document: Document | None = None
) -> Subject:
    """Return a plan as the subject of a comparison.

    Args:
        mapping: From :func:`~dld_tui.core.tensorrt.plan.mapping.map_plan`.
        document: The model of the mapping, if any.
    """
    timed = any(layer.time_ms is not None for layer in plan.layers)
    path = document.path if document is not None else None
    device = next((plan.device[name] for name in _NAMES if plan.device.get(name)), None)
    return Subject(
        title=plan.title,
        path=plan.path,
        layers=layer_records(plan, mapping),
        latencies_ms=_latencies(plan),
        facts={
            "status": "complete",
            "network": PurePath(plan.model_path.replace("\\", "/")).name or plan.title,
            "backend": "TensorRT",
            "execution_provider": None,
            "device": device,
            "created": None,
            KIND: MEANS if timed else None,
        },
        model={"path": str(path)} if path is not None else {},
        settings={**_settings(plan), **_shapes(plan)},
        environment={name: value for name, value in plan.device.items() if name not in _NAMES},
    )


def _latencies(plan: EnginePlan) -> tuple[float, ...]:
    """Return the timed inferences; of a summary, only its median."""
    timing = plan.timing
    if timing is None:
        return ()
    known = timing.series.get("latency", ())
    if known:
        return tuple(known)
    return (timing.latency.median,) if timing.latency is not None else ()


def _shapes(plan: EnginePlan) -> Mapping[str, JSON]:
    """Return the dimensions of the engine's inputs, as reports have them; nothing when unknown."""
    inputs = [tensor for tensor in plan.bindings if tensor.mode == "input"]
    if not inputs or any(tensor.elements is None for tensor in inputs):
        return {}
    return {"input_shapes": {tensor.name: list(tensor.dims or ()) for tensor in inputs}}


def _settings(plan: EnginePlan) -> Foreign:
    settings: dict[str, JSON] = {}
    for section in _SETTINGS:
        options = plan.metadata.get(section)
        if isinstance(options, dict):
            settings |= options
    return settings


def _layer(at: int, layer: EngineLayer, nodes: LayerNodes, findings: int | None) -> Layer:
    links, shared_by = _links(layer, nodes)
    return Layer(
        name=layer.name,
        type=layer.kind or UNKNOWN,
        input_dims=tuple(tensor.dims for tensor in layer.inputs),
        output_dims=tuple(tensor.dims for tensor in layer.outputs),
        precision=layer.precision or None,
        input_types=tuple(tensor.dtype for tensor in layer.inputs),
        output_types=tuple(tensor.dtype for tensor in layer.outputs),
        nodes=links,
        confidence=_CONFIDENCE.get(nodes.confidence, "none"),
        cost=_cost(layer),
        engine=_facts(layer, nodes, findings),
        shared_by=shared_by,
        index=at,
        time_ms=layer.time_ms,
        percent=layer.percent,
        mean_ms=layer.time_ms,
        count=1.0 if layer.time_ms is not None else None,
    )


def _links(layer: EngineLayer, nodes: LayerNodes) -> tuple[tuple[NodeLink, ...], SharedBy | None]:
    """Return the nodes of a layer, and how its time is shared over several."""
    if not nodes.nodes:
        return (), None
    confidence = _CONFIDENCE.get(nodes.confidence, "none")
    shares, rule = shares_of(nodes.nodes, elements_of(layer))
    links = tuple(
        NodeLink(
            ref.scope,
            ref.ref,
            ref.name,
            ref.op_type or layer_type(ref.name),
            confidence,
            shares.get(ref, 0.0),
            ref.calls,
        )
        for ref in nodes.nodes
    )
    return links, rule if len(links) > 1 else None


def _facts(layer: EngineLayer, nodes: LayerNodes, findings: int | None) -> EngineFacts:
    return EngineFacts(
        engine_layer=layer.index,
        layer_type=layer.type,
        output_precision=layer.output_precision,
        tactic=layer.tactic or layer.tactic_value,
        origin=layer.origin,
        stream=layer.stream,
        inserted=nodes.inserted and layer.dla is None,
        mapping=nodes.how,
        mapping_confidence=nodes.confidence,
        findings=findings,
        footprint=layer.footprint,
        weights_bytes=layer.known_weights,
        io_bytes=layer.io_bytes,
        median_ms=layer.median_ms,
    )


def _cost(layer: EngineLayer) -> Cost | None:
    sizes = [tensor.bytes for tensor in layer.outputs]
    known = [size for size in sizes if size is not None]
    return Cost(output_bytes=sum(known)) if known and len(known) == len(sizes) else None


def layer_records(
    plan: EnginePlan,
    mapping: Mapping[int, LayerNodes],
    findings: Iterable[PlanFinding] | None = None,
) -> list[Layer]:
    """Return a record for each of ``plan.layers``; ``Layer.index`` is its index there.

    The time is the mean of a pass, as in the plan and in trtexec's own percentages.

    Args:
        plan: The engine.
        mapping: The ONNX nodes by the layers' own index.
        findings: Those of the lint, to count them by layer.
    """
    counts = None if findings is None else Counter(finding.layer for finding in findings)
    return [
        _layer(
            at,
            layer,
            mapping.get(layer.index, LayerNodes()),
            None if counts is None else counts[layer.index],
        )
        for at, layer in enumerate(plan.layers)
    ]


def shown_names(plan: EnginePlan, records: Iterable[Layer]) -> dict[int, str]:
    """Return what people call the layers of a plan, fit for a terminal, by `EngineLayer.index`.

    Args:
        plan: The plan.
        records: From :func:`layer_records`.
    """
    names = {layer.index: visible(layer.name) for layer in plan.all_layers}
    records = [*records]
    own = (plan.layers[record.index].index for record in records)
    return names | dict(zip(own, layer_names(records), strict=True))
