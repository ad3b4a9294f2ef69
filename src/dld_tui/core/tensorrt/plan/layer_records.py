"""The layers of an engine plan as records, as profile reports have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.report.groups import UNKNOWN, layer_type
from dld_tui.core.report.layer_table import layer_names
from dld_tui.core.report.records import (
    Confidence,
    Cost,
    Layer,
    LayerInformation,
    NodeLink,
    SharedBy,
)
from dld_tui.core.tensorrt.plan.mapping import LayerNodes, elements_of, shares_of
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan
    from dld_tui.core.tensorrt.plan.lint import PlanFinding


_CONFIDENCE: Mapping[str, Confidence] = {"exact": "name", "likely": "rule", "guess": "rule"}


def _layer(at: int, layer: EngineLayer, nodes: LayerNodes, findings: Sequence[str] | None) -> Layer:
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


def _facts(
    layer: EngineLayer, nodes: LayerNodes, findings: Sequence[str] | None
) -> LayerInformation:
    """Return what the files say of a layer; `findings` are their levels."""
    return LayerInformation(
        engine_layer=layer.index,
        layer_type=layer.type,
        output_precision=layer.output_precision,
        tactic=layer.tactic or layer.tactic_value,
        origin=layer.origin,
        stream=layer.stream,
        inserted=nodes.inserted and layer.dla is None,
        mapping=nodes.how,
        mapping_confidence=nodes.confidence,
        findings=None if findings is None else len(findings),
        is_warned="warning" in (findings or ()),
        footprint=layer.footprint,
        weights_bytes=layer.known_weights,
        io_bytes=layer.io_bytes,
        unread_bytes=layer.unread_bytes,
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
        findings: Those of the lint, to count them by layer that they are about.
    """
    levels: dict[int, list[str]] = {}
    for finding in findings or ():
        for index in finding.concerned:
            levels.setdefault(index, []).append(finding.level)
    known = findings is not None
    return [
        _layer(
            at,
            layer,
            mapping.get(layer.index, LayerNodes()),
            levels.get(layer.index, []) if known else None,
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
