"""A plan for other programs: one JSON document, a workbook, or an ONNX file.

The workbook has its summary, its findings, and a sheet for each of its tables. The ONNX file has a
node a layer and nothing to run, for programs that draw such files.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.files.writer import write_bytes
from dld_tui.core.machine.peaks import Peaks
from dld_tui.core.model.rewrite import command_of
from dld_tui.core.report.groups import main_node
from dld_tui.core.tables.table import Column, Table, json_of
from dld_tui.core.tensorrt.plan.layer_records import layer_records, shown_names
from dld_tui.core.tensorrt.plan.layer_work import (
    arithmetic_intensity,
    macs,
    peaks_of,
    placement,
    unknown_device,
)
from dld_tui.core.tensorrt.plan.summary import (
    NAMES,
    distribution,
    groups,
    summary_lines,
    summary_of,
)
from dld_tui.core.tensorrt.plan.tables import VIEWS, finding_table, group_table, make_table
from dld_tui.core.text import visible
from dld_tui.core.types import PRECISION_DTYPES

if TYPE_CHECKING:
    import onnx

    from dld_tui.core.tensorrt.plan.engine_plan import (
        EngineLayer,
        EnginePlan,
        EngineTensor,
        TimingSummary,
    )
    from dld_tui.core.tensorrt.plan.lint import PlanFinding
    from dld_tui.core.tensorrt.plan.mapping import LayerNodes
    from dld_tui.core.types import JSON


def plan_json(
    plan: EnginePlan,
    findings: Sequence[PlanFinding] = (),
    mapping: Mapping[int, LayerNodes] | None = None,
    table: Table[Any] | None = None,
) -> dict[str, JSON]:
    """Return the document of ``dld plan --json``. Fields may be added, never renamed.

    Args:
        findings: Those of the lint.
        mapping: The ONNX nodes of the layers.
        table: The requested view or grouping, which becomes ``table``.
    """
    names: JSON = list(plan.notes)
    peaks = peaks_of(plan.device)
    document: dict[str, JSON] = {
        "path": plan.path,
        "title": plan.title,
        "files": dict(plan.files),
        "summary": summary_json(plan),
        "layers": [_layer(layer, plan, mapping or {}) for layer in plan.layers],
        "findings": [finding_json(finding) for finding in findings],
        "bindings": [_tensor(tensor, binding=True) for tensor in plan.bindings],
        "timing_ms": timing_json(plan.timing),
        "roofline": unknown_device(plan) or (None if peaks is None else _peaks_json(peaks)),
        "device": dict(plan.device),
        "metadata": dict(plan.metadata),
        "notes": names,
    }
    if plan.log is not None:
        document["log"] = {
            "command": plan.log.command, "version": plan.log.version, "status": plan.log.status,
            "warnings": list(plan.log.warnings), "errors": list(plan.log.errors),
            "facts": dict(plan.log.figures),
        }  # fmt: skip
    if table is not None:
        document["table"] = {"name": table.name, "rows": [*json_of(table)]}
    return document


def summary_json(plan: EnginePlan) -> dict[str, JSON]:
    """Return the figures of the whole plan."""
    summary = summary_of(plan)
    spread = distribution(plan)
    by_precision: JSON = {group.key: group.count for group in groups(plan, "precision")}
    return {
        "layers": summary.layers,
        "total_ms": summary.total_ms,
        "weights_bytes": summary.weights_bytes,
        "weights_estimated_bytes": summary.weights_estimated,
        "weights_complete": summary.weights_complete,
        "activations_bytes": summary.activations_bytes,
        "activations_complete": summary.activations_complete,
        "unread_bytes": summary.unread_bytes,
        "all_layers": len(plan.all_layers),
        "names_only": plan.names_only,
        "passes": plan.passes,
        "profile_index": plan.profile_index,
        "profile_count": plan.profile_count,
        "model": plan.model_path,
        "layers_by_precision": by_precision,
        "distribution": None if spread is None else dict(dataclasses.asdict(spread)),
    }


def timing_json(timing: TimingSummary | None) -> JSON:
    """Return inference times without the individual ones; None without any."""
    if timing is None:
        return None
    document: dict[str, JSON] = {"source": timing.source, "throughput": timing.throughput}
    for name in ("latency", "compute", "h2d", "d2h", "enqueue"):
        statistics = getattr(timing, name)
        document[name] = None if statistics is None else dict(dataclasses.asdict(statistics))
    return document


def finding_json(finding: PlanFinding) -> JSON:
    """Return a finding."""
    return {
        "layer": finding.layer,
        "rule": finding.rule,
        "level": finding.level,
        "hazard": finding.hazard,
        "mitigation": finding.mitigation,
        "rewrite": command_of(finding.rules) if finding.rules else None,
        "percent": finding.percent,
        "gain_percent": None if finding.gain is None else [*finding.gain.percent],
        "gain_from": None if finding.gain is None else finding.gain.source,
        "layers": list(finding.layers),
    }


def _peaks_json(peaks: Peaks) -> JSON:
    return {
        "device": peaks.device,
        "tflops": {kind: rate / 1e12 for kind, rate in peaks.flops.items()},
        "bandwidth_gbs": peaks.bandwidth / 1e9,
    }


def _layer(layer: EngineLayer, plan: EnginePlan, mapping: Mapping[int, LayerNodes]) -> JSON:
    peaks = peaks_of(plan.device)
    place = placement(layer, peaks) if peaks else None
    nodes = mapping.get(layer.index)
    return {
        "index": layer.index,
        "name": layer.name,
        "type": layer.kind,
        "layer_type": layer.type,
        "parameter_type": layer.subtype,
        "time_ms": layer.time_ms,
        "median_ms": layer.median_ms,
        "percent": layer.percent,
        "precision": layer.precision,
        "output_precision": layer.output_precision,
        "inputs": [_tensor(tensor) for tensor in layer.inputs],
        "outputs": [_tensor(tensor) for tensor in layer.outputs],
        "constants": [_tensor(tensor) for tensor in layer.constants],
        "io_bytes": layer.io_bytes,
        "weights_bytes": layer.weights_bytes,
        "weights_from": layer.weights_source,
        "unread_bytes": layer.unread_bytes,
        "footprint": layer.footprint,
        "macs": macs(layer),
        "arithmetic_intensity": arithmetic_intensity(layer),
        "bound": place.bound if place else None,
        "efficiency": place.efficiency if place else None,
        "tactic": layer.tactic,
        "tactic_value": layer.tactic_value,
        "stream": layer.stream,
        "origin": layer.origin,
        "metadata": layer.metadata,
        "nodes": [node.name for node in nodes.nodes] if nodes else [],
        "main_node": main_node(nodes.nodes).name if nodes and nodes.nodes else None,
        "confidence": nodes.confidence if nodes else "none",
    }


def _tensor(tensor: EngineTensor, binding: bool = False) -> JSON:
    document: dict[str, JSON] = {
        "name": tensor.name,
        "dims": None if tensor.dims is None else list(tensor.dims),
        "dtype": tensor.dtype,
        "format": tensor.format,
        "location": tensor.location,
        "bytes": tensor.bytes,
    }
    if binding:
        document["mode"] = tensor.mode
        document["profiles"] = [[list(dims) for dims in profile] for profile in tensor.profile_dims]
    return document


_GROUPS = ("type", "precision")


def plan_sheets(
    plan: EnginePlan, findings: Sequence[PlanFinding]
) -> Iterator[tuple[str, Table[Any]]]:
    """Yield the sheets of a plan by name; tables without rows are left out."""
    lines = [(line[:NAMES].strip(), line[NAMES:]) for line in summary_lines(plan)]
    lines += [("note", note) for note in plan.notes]
    summary: tuple[Column[tuple[str, str]], ...] = (
        Column("name", "what", itemgetter(0)),
        Column("value", "value", itemgetter(1)),
    )
    yield "Summary", Table(summary, lines)
    names = shown_names(plan, layer_records(plan, {}))
    tables: list[tuple[str, Table[Any]]] = [("Findings", finding_table(plan, findings, names))]
    tables += [(f"By {by}", group_table(plan, by)) for by in _GROUPS]
    tables += [(table.title, table) for table in (make_table(plan, view) for view in VIEWS)]
    yield from ((name, table) for name, table in tables if table.rows)


DOMAIN = "tensorrt.engine"
_IR_VERSION, _OPSET = 10, 21
_TYPES = {
    **{precision: dtype.upper() for precision, dtype in PRECISION_DTYPES.items()},
    **{"fp32": "FLOAT", "e8m0": "UINT8", "fp4": "UINT4"},
}
"""ONNX's types by TensorRT's; those that no viewer knows yet stand as one of their size."""
_NOT_A_WORD = re.compile(r"\W+")


def plan_model(plan: EnginePlan, mapping: Mapping[int, LayerNodes]) -> onnx.ModelProto:
    """Return a model whose nodes are the layers, in order; what is known of them are attributes.

    A tensor that is written again gets a numbered name, as ONNX allows one producer. Names are
    visible text, as not every text of a file is valid in ONNX.

    Args:
        plan: The engine.
        mapping: The ONNX nodes of its layers, by index.
    """
    from onnx import helper

    now: dict[str, str] = {}
    used: set[str] = set()

    def write(tensor: EngineTensor) -> onnx.ValueInfoProto:
        shown = visible(tensor.name)
        name, number = shown, 1
        while name in used:
            number += 1
            name = f"{shown} ({number})"
        used.add(name)
        now[tensor.name] = name
        return _info(tensor, name)

    outer = [write(tensor) for tensor in plan.bindings if tensor.mode == "input"]
    infos, nodes = list["onnx.ValueInfoProto"](), list["onnx.NodeProto"]()
    for layer in plan.layers:
        # Some are of layers that the file does not have.
        outer += [write(tensor) for tensor in layer.inputs if tensor.name not in now]
        reads = [now[tensor.name] for tensor in layer.inputs]
        written = [write(tensor) for tensor in layer.outputs]
        writes = [info.name for info in written]
        infos += written
        nodes.append(_node(layer, reads, writes, mapping.get(layer.index)))
    outputs = [
        _info(tensor, now[tensor.name])
        for tensor in plan.bindings
        if tensor.mode == "output" and tensor.name in now
    ]
    output_names = {info.name for info in outputs}
    graph = helper.make_graph(
        nodes, visible(plan.title) or "engine", outer, outputs,
        value_info=[info for info in infos if info.name not in output_names],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="dld",
        doc_string="The layers of a TensorRT engine, to be looked at: it cannot be run.",
    )  # fmt: skip


def _node(
    layer: EngineLayer, reads: list[str], writes: list[str], nodes: LayerNodes | None
) -> onnx.NodeProto:
    from onnx import helper

    about: dict[str, Any] = {
        "precision": visible(layer.precision),
        "tactic": visible(layer.tactic),
        "time_ms": layer.time_ms,
        "percent": layer.percent,
        "weights_bytes": layer.weights_bytes or None,
        "macs": macs(layer),
        "stream": layer.stream,
        "onnx_nodes": [visible(node.name) for node in nodes.nodes] if nodes is not None else [],
    }
    kind = _NOT_A_WORD.sub("_", layer.kind).strip("_") or "Layer"
    return helper.make_node(
        kind, reads, writes, name=visible(layer.name), domain=DOMAIN,
        **{name: value for name, value in about.items() if value not in (None, "", [])},
    )  # fmt: skip


def _info(tensor: EngineTensor, name: str) -> onnx.ValueInfoProto:
    import onnx

    kind = onnx.TensorProto.DataType.Value(_TYPES.get(tensor.dtype, "UNDEFINED"))
    dims = None if tensor.dims is None else [None if dim < 0 else dim for dim in tensor.dims]
    info = onnx.helper.make_tensor_value_info(name, kind, dims)
    info.doc_string = visible(tensor.format)
    return info


def write_plan_model(
    plan: EnginePlan, mapping: Mapping[int, LayerNodes], path: Path, *, overwrite: bool = False
) -> list[str]:
    """Write a plan as an ONNX file, and return remarks.

    Raises:
        SaveError: It cannot be written.
    """
    data = plan_model(plan, mapping).SerializeToString()
    return write_bytes(path, data, overwrite=overwrite)
