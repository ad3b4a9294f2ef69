"""Engine plans for tests, made without files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dld_tui.core.tensorrt.plan.engine_plan import (
    EngineLayer,
    EnginePlan,
    EngineTensor,
    TimingSummary,
)

FORMATS = {"fp32": "Float", "fp16": "Half", "int8": "Int8", "bf16": "BFloat16", "fp8": "FP8"}


def tensor(dtype: str = "fp32", dims: tuple[int, ...] | None = (1, 16, 8, 8)) -> EngineTensor:
    return EngineTensor("t", dims, dtype, FORMATS.get(dtype, dtype), "Device")


def layer(index: int = 0, name: str = "", type: str = "Convolution", **fields: Any) -> EngineLayer:
    """Return a layer; tensors are of 16 channels in the given types."""
    of = fields.pop("of", "fp32")
    to = fields.pop("to", of)
    dims = fields.pop("dims", (1, 16, 8, 8))
    values: dict[str, Any] = {
        "subtype": type, "inputs": (tensor(of, dims),), "outputs": (tensor(to, dims),),
        "constants": (), "tactic": "", "tactic_value": "", "stream": None,
        "metadata": "", "origin": "", "weights_bytes": 0, "attributes": {},
    } | fields  # fmt: skip
    values.setdefault("precision", values["inputs"][0].dtype if values["inputs"] else to)
    values.setdefault("output_precision", values["outputs"][0].dtype if values["outputs"] else of)
    return EngineLayer(index=index, name=name or f"layer{index}", type=type, **values)


def plan(
    layers: Sequence[EngineLayer], timing: TimingSummary | None = None, **fields: Any
) -> EnginePlan:
    """Return a plan; percentages are made of the layers' times."""
    times = [one.time_ms for one in layers if one.time_ms is not None]
    total = sum(times) if times else None
    values: dict[str, Any] = {
        "path": "net.json", "title": "net", "bindings": (), "names_only": False,
        "passes": 10 if times else None, "total_ms": total, "device": {}, "metadata": {},
        "model_path": "", "notes": (), "files": {}, "profile_count": 1,
    } | fields  # fmt: skip
    kept = tuple(layers)
    return EnginePlan(layers=kept, all_layers=kept, timing=timing, **values)


def named(*names: str, metadata: Sequence[str] = ()) -> EnginePlan:
    """Return a plan of layers with these names, and metadata where there is some."""
    texts = [*metadata, *[""] * (len(names) - len(metadata))]
    return plan(
        [layer(i, n, metadata=t) for i, (n, t) in enumerate(zip(names, texts, strict=True))]
    )


def write_layers(path: Path, layers: Sequence[dict[str, Any]]) -> Path:
    """Write layer information as trtexec does; a layer needs only what differs."""
    whole = [_layer(one) for one in layers]
    path.write_text(json.dumps({"Layers": whole, "Bindings": ["in", "out"]}))
    return path


def _layer(fields: dict[str, Any]) -> dict[str, Any]:
    of, to = fields.pop("of", "Float"), fields.pop("to", "")
    default = {"LayerType": "CaskConvolution", "ParameterType": "Convolution", "TacticName": ""}
    return default | {
        "Inputs": [_tensor("in", of)],
        "Outputs": [_tensor("out", to or of)],
    } | fields  # fmt: skip


def _tensor(name: str, form: str) -> dict[str, Any]:
    return {
        "Name": name, "Location": "Device", "Dimensions": [1, 16, 8, 8], "Format/Datatype": form,
    }  # fmt: skip


def write_profile(path: Path, times: Sequence[tuple[str, float]], count: int = 100) -> Path:
    """Write layer times as ``trtexec --exportProfile`` does."""
    total = sum(time for _, time in times)
    rows = [
        {
            "name": name, "timeMs": time * count, "averageMs": time, "medianMs": time,
            "percentage": 100 * time / total,
        }
        for name, time in times
    ]  # fmt: skip
    path.write_text(json.dumps([{"count": count}, *rows]))
    return path
