"""Small sets of files of an engine: a residual block in int8 with what TREx writes beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support import models

HOSTILE = "/blk/Conv [bold]\x1b[31m\u202e畳み込み"
_FORMATS = {
    "fp32": "Row major linear FP32",
    "int8": "Thirty-two wide channel vectorized row major Int8 format",
    "fp16": "Row major linear FP16 format",
}


def tensor(name: str, of: str = "int8", dims: tuple[int, ...] = (8, 64, 28, 28)) -> dict[str, Any]:
    return {
        "Name": name, "Location": "Device", "Dimensions": list(dims),
        "Format/Datatype": _FORMATS[of],
    }  # fmt: skip


def layer(name: str, kind: str, inputs: list[Any], outputs: list[Any], **more: Any) -> Any:
    return {
        "Name": name, "LayerType": kind, "ParameterType": kind, "Inputs": inputs,
        "Outputs": outputs, "TacticName": "", "TacticValue": "0x0", **more,
    }  # fmt: skip


_CONV = {
    "Kernel": [3, 3], "Stride": [1, 1], "Dilation": [1, 1], "PrePadding": [1, 1],
    "PostPadding": [1, 1], "OutMaps": 64, "Groups": 1, "Weights": {"Type": "Int8", "Count": 36864},
    "Bias": {"Type": "Float", "Count": 64},
}  # fmt: skip


def layers(hostile: bool = False) -> list[Any]:
    """Return a quantization, two convolutions with a skip, a copy to another type, a pooling."""
    second = HOSTILE if hostile else "/block/conv2/Conv + /block/add/Add"
    return [
        layer("/quant/QuantizeLinear", "Reformat", [tensor("x", "fp32")], [tensor("q")],
              Origin="QDQ"),
        layer("/block/conv1/Conv", "Convolution", [tensor("q")], [tensor("a")],
              TacticName="sm80_xmma_fprop_int8", Metadata="[ONNX Layer: /block/conv1/Conv]",
              **_CONV),
        layer(second, "Convolution", [tensor("a"), tensor("q")], [tensor("b", "fp16")],
              TacticName="sm80_xmma_fprop_int8_half", **_CONV),
        layer("Reformatting CopyNode for Input Tensor 0 to /pool/GlobalAveragePool", "Reformat",
              [tensor("b", "fp16")], [tensor("c", "fp32")], Origin="REFORMAT"),
        layer("/pool/GlobalAveragePool", "Pooling", [tensor("c", "fp32")],
              [tensor("y", "fp32", (8, 64, 1, 1))]),
    ]  # fmt: skip


TIMES = (0.02, 0.1, 0.2, 0.03, 0.05)
"""Milliseconds of the layers."""


def write_engine(
    folder: Path,
    *,
    profile: bool = True,
    timing: bool = False,
    names_only: bool = False,
    hostile: bool = False,
    count: int = 1,
) -> Path:
    """Write ``tiny.engine.graph.json`` and what else is asked for, and return its path.

    With `names_only` as without detailed profiling verbosity; `hostile` gives a layer a name with
    markup, an escape and wide letters; the layers come `count` times one after another.
    """
    found = layers(hostile)
    for time in range(1, count):
        for one in layers():
            text = json.dumps(one).replace("/block/", f"/block.{time}/")
            found.append(json.loads(text))
    path = folder / "tiny.engine.graph.json"
    shown = [one["Name"] for one in found] if names_only else found
    path.write_text(json.dumps({"Layers": shown, "Bindings": ["x", "y"]}))
    if profile:
        rows = [
            {"name": one["Name"], "timeMs": 10 * time, "averageMs": time, "medianMs": time,
             "percentage": round(100 * time / sum(TIMES) / count, 6)}
            for one, time in zip(found, TIMES * count, strict=True)
        ]  # fmt: skip
        (folder / "tiny.engine.profile.json").write_text(json.dumps([{"count": 10}, *rows]))
    if timing:
        _write_timing(folder)
    return path


def _write_timing(folder: Path) -> None:
    runs = []
    for run in range(40):
        start, length = run * 1.0, 0.4 + run % 7 / 100
        runs.append({
            "startEnqMs": start, "endEnqMs": start + 0.05, "startH2dMs": start,
            "endH2dMs": start, "startComputeMs": start, "endComputeMs": start + length,
            "startD2hMs": start, "endD2hMs": start, "h2dMs": 0.0, "computeMs": length,
            "d2hMs": 0.0, "latencyMs": length,
        })  # fmt: skip
    (folder / "tiny.engine.timing.json").write_text(json.dumps(runs))
    device = {"device_information": {"Selected Device": "NVIDIA A100 80GB PCIe"}}
    (folder / "tiny.engine.profile.metadata.json").write_text(json.dumps(device))


ONNX = """<ir_version: 8, opset_import: ["" : 17]>
tiny (float[8,64,28,28] x, float[64,64,3,3] w) => (float[8,64,1,1] y)
{
  ["/block/conv1/Conv"] a = Conv <pads = [1, 1, 1, 1]> (x, w)
  ["/block/conv2/Conv"] b = Conv <pads = [1, 1, 1, 1]> (a, w)
  ["/block/add/Add"] c = Add (b, a)
  ["/pool/GlobalAveragePool"] y = GlobalAveragePool (c)
}
"""


def write_model(folder: Path) -> Path:
    """Write the ONNX model that the engine was built from, beside it, and return its path."""
    return models.write(folder, ONNX, "tiny.onnx")


LOG = """&&&& RUNNING TensorRT.trtexec [TensorRT v101601] # trtexec --onnx=tiny.onnx --fp16
[07/07/2026-02:10:45] [I] === Device Information ===
[07/07/2026-02:10:45] [I] Selected Device: NVIDIA H100 PCIe
[07/07/2026-02:10:45] [W] [TRT] Make sure output z has Int64 binding.
[07/07/2026-02:10:46] [I] === Performance summary ===
[07/07/2026-02:10:46] [I] Throughput: 15374.3 qps
[07/07/2026-02:10:46] [I] Latency: min = 0.041 ms, max = 0.149 ms, mean = 0.0441 ms, \
median = 0.044 ms, percentile(90%) = 0.045 ms, percentile(95%) = 0.046 ms, percentile(99%) = 0.05 ms
[07/07/2026-02:10:46] [E] Error[2]: \x1b[31m[bold]no\u202e tactic
&&&& PASSED TensorRT.trtexec [TensorRT v101601] # trtexec --onnx=tiny.onnx --fp16
"""
"""A log with a warning, and an error that wants to be markup and a terminal escape."""
