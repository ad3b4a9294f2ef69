"""The figures of an engine plan from its raw JSON, slowly and plainly, without the product.

Only what the files of TensorRT 8 say in full is understood: no dynamic dimensions, no constants, no
Myelin. Bytes of an element are read off the words of ``Format/Datatype``.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

SIZES = {"FP32": 4, "FP16": 2, "Int8": 1, "Int32": 4}
WEIGHT_SIZES = {"Float": 4, "Half": 2, "Int8": 1, "Int32": 4}
NAMES = {"FP32": "fp32", "FP16": "fp16", "Int8": "int8", "Int32": "int32"}

# Dense peaks in 10^12 operations a second: the data sheet of the A100, and "NVIDIA Ampere GA102 GPU
# Architecture", which has fp16 products with sums in fp16 apart.
PEAKS = {
    "NVIDIA A100 80GB PCIe": {
        "fp32": 19.5, "tf32": 156.0, "fp16": 312.0, "fp16 sums": 312.0, "int8": 624.0,
    },
    "NVIDIA GeForce RTX 3090": {
        "fp32": 35.6, "tf32": 35.5, "fp16": 71.0, "fp16 sums": 142.0, "int8": 284.0,
    },
}  # fmt: skip


def type_word(tensor: dict[str, Any]) -> str:
    [word] = [word for word in SIZES if word in tensor["Format/Datatype"]]
    return word


def tensor_bytes(tensor: dict[str, Any]) -> int:
    size = SIZES[type_word(tensor)]
    for dim in tensor["Dimensions"]:
        size *= dim
    return size


def weights_bytes(layer: dict[str, Any]) -> int:
    total = 0
    for key in ("Weights", "Bias", "ConvWeights", "ConvBias", "Scale", "Shift", "Power"):
        value = layer.get(key)
        if isinstance(value, dict) and value.get("Count"):
            total += value["Count"] * WEIGHT_SIZES[value["Type"]]
    return total


def product(layer: dict[str, Any]) -> tuple[int, int, int, int] | None:
    """Return (groups, M, N, K) of the matrix product that a convolution is; None for others."""
    kind = layer.get("ParameterType")
    if kind not in ("Convolution", "ConvActPool"):
        return None
    prefix = "Conv" if kind == "ConvActPool" else ""
    kernel, maps = layer[prefix + "Kernel"], layer[prefix + "OutMaps"]
    groups = layer[prefix + "Groups"]
    batch, channels, *size = layer["Inputs"][0]["Dimensions"]
    if kind == "Convolution":
        positions = math.prod(layer["Outputs"][0]["Dimensions"][2:])
    else:  # a pooling follows, so the layer's output is smaller than the convolution's
        positions = 1
        for axis, length in enumerate(size):
            padded = length + layer["ConvPrePadding"][axis] + layer["ConvPostPadding"][axis]
            reach = layer["ConvDilation"][axis] * (kernel[axis] - 1) + 1
            positions *= (padded - reach) // layer["ConvStride"][axis] + 1
    return groups, batch * positions, maps // groups, channels // groups * math.prod(kernel)


def unread_bytes(layer: dict[str, Any]) -> int:
    """Return the bytes of the first input that no window of a convolution or pooling touches."""
    if layer.get("ParameterType") not in ("Convolution", "Pooling"):
        return 0
    window, stride = layer.get("Kernel") or layer["WindowSize"], layer["Stride"]
    batch, channels, *size = layer["Inputs"][0]["Dimensions"]
    places: int = batch * channels
    for axis, length in enumerate(size):
        touched = set()
        step = (layer.get("Dilation") or [1] * len(size))[axis]
        start = -layer["PrePadding"][axis]
        end = length + layer["PostPadding"][axis]
        while start + step * (window[axis] - 1) < end:
            touched |= {start + step * tap for tap in range(window[axis])}
            start += stride[axis]
        places *= len(touched & set(range(length)))
    return tensor_bytes(layer["Inputs"][0]) - places * SIZES[type_word(layer["Inputs"][0])]


def percentile(values: list[float], percent: float) -> float:
    """Return trtexec's percentile: the longest times are left out, the next one is it."""
    import struct

    def single(value: float) -> float:
        return float(struct.unpack("f", struct.pack("f", value))[0])

    share = single(1.0 - single(single(percent) / 100.0))
    excluded = int(single(share * len(values)))
    return sorted(values)[len(values) - 1 - excluded]


def layers_of(graph: Path, profile: Path, device: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a record a layer, NoOps left out, with every figure that the product shows."""
    rows = json.loads(profile.read_text())[1:]
    total = sum(row["averageMs"] for row in rows)
    bandwidth = device["Memory Bus Width"] / 8 * device["Memory Clock Rate"] * 2
    waiting = list(rows)
    found = []
    for index, layer in enumerate(json.loads(graph.read_text())["Layers"]):
        row = next(row for row in waiting if row["name"] == layer["Name"])
        waiting.remove(row)
        if layer["LayerType"] == "NoOp":
            continue
        time_ms = row["averageMs"]
        inputs = [tensor_bytes(tensor) for tensor in layer["Inputs"]]
        outputs = [tensor_bytes(tensor) for tensor in layer["Outputs"]]
        weights = weights_bytes(layer)
        moved = sum(inputs) - unread_bytes(layer) + sum(outputs) + weights
        shape = product(layer)
        macs = None if shape is None else math.prod(shape)
        precision = NAMES[type_word(layer["Inputs"][0])]
        roof = bandwidth * 1e9
        bound, share = "memory", moved / (time_ms / 1000) / roof if time_ms else None
        if macs is not None:
            by_memory = 2 * macs / moved * roof
            tactic = layer.get("TacticName", "")
            computes = precision
            if precision == "fp32" and ("_tf32f32_" in tactic or not tactic):
                computes = "tf32"
            adds_in_fp32 = "_f16f32_" in tactic or re.search(r"_s\d+(cudnn|gemm)", tactic)
            if precision == "fp16" and not adds_in_fp32:
                computes = "fp16 sums"
            peak = PEAKS[device["Selected Device"]][computes] * 1e12
            if "winograd" in tactic:  # 36 products for 144
                peak *= 4
            bound = "compute" if peak <= by_memory else "memory"
            share = 2 * macs / (time_ms / 1000) / min(peak, by_memory) if time_ms else None
        if share is not None and share < 0.5 and time_ms < 8 * 0.003:  # of launches of 3 µs
            bound = "launch"
        elif share is not None and share < 0.1:
            bound = "overhead"
        found.append(
            {
                "index": index,
                "name": layer["Name"],
                "type": layer.get("ParameterType") or layer["LayerType"],
                "time_ms": time_ms,
                "percent": 100 * time_ms / total,
                "precision": precision,
                "output_precision": NAMES[type_word(layer["Outputs"][0])],
                "io_bytes": sum(inputs) + sum(outputs),
                "weights_bytes": weights,
                "footprint": moved,
                "macs": macs,
                "arithmetic_intensity": None if macs is None else macs / moved,
                "gemm": shape,
                "bound": bound,
                "efficiency": share,
                "gb_per_s": moved / time_ms / 1e6 if time_ms else None,
                "tmacs_per_s": macs / time_ms / 1e9 if macs is not None and time_ms else None,
            }
        )
    assert not waiting
    return found


def timing_of(path: Path, warm_up_ms: float) -> dict[str, dict[str, float]]:
    """Return the statistics of each kind of time, of the inferences after the warm-up."""
    rows = [row for row in json.loads(path.read_text()) if row["startComputeMs"] >= warm_up_ms]
    found = {}
    for name, key in (
        ("latency", "latencyMs"), ("compute", "computeMs"), ("h2d", "h2dMs"), ("d2h", "d2hMs"),
    ):  # fmt: skip
        values = sorted(row[key] for row in rows)
        middle = len(values) // 2
        median = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
        mean = sum(values) / len(values)
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
        found[name] = {
            "min": values[0], "max": values[-1], "mean": mean, "median": median,
            "p90": percentile(values, 90), "p95": percentile(values, 95),
            "p99": percentile(values, 99), "count": len(values),
            "cov_percent": 100 * spread / mean if mean else 0.0,
        }  # fmt: skip
    return found
