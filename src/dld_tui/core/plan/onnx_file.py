"""A plan as an ONNX file, for programs that draw such files: a node a layer, nothing to run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.files.writer import write_bytes
from dld_tui.core.plan.macs import macs
from dld_tui.core.text import visible

if TYPE_CHECKING:
    import onnx

    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EngineLayer, EnginePlan, EngineTensor

DOMAIN = "tensorrt.engine"
_IR_VERSION, _OPSET = 10, 21
_TYPES = {
    "int64": "INT64", "fp32": "FLOAT", "int32": "INT32", "fp16": "FLOAT16", "bf16": "BFLOAT16",
    "fp8": "FLOAT8E4M3FN", "e8m0": "UINT8", "int8": "INT8", "uint8": "UINT8", "bool": "BOOL",
    "fp4": "UINT4", "int4": "INT4",
}  # fmt: skip
"""ONNX's types by ours; those that no viewer knows yet stand as one of their size."""
_NOT_A_WORD = re.compile(r"\W+")


def plan_model(plan: EnginePlan, mapping: Mapping[int, LayerNodes]) -> onnx.ModelProto:
    """Return a model whose nodes are the layers, in their order, with what is known as attributes.

    A name that is written again gets a number, as a value of ONNX is made once. Names are as they
    are shown, as not every text of a file can be one of ONNX.

    Args:
        plan: The engine.
        mapping: The ONNX nodes of its layers, by index.
    """
    from onnx import helper

    now: dict[str, str] = {}
    made: set[str] = set()

    def write(tensor: EngineTensor) -> onnx.ValueInfoProto:
        shown = visible(tensor.name)
        name, number = shown, 1
        while name in made:
            number += 1
            name = f"{shown} ({number})"
        made.add(name)
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
    told = {info.name for info in outputs}
    graph = helper.make_graph(
        nodes, visible(plan.title) or "engine", outer, outputs,
        value_info=[info for info in infos if info.name not in told],
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
