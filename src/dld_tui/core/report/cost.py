"""What a layer costs: its time on the GPU where that is known, else its own time.

A launch is asynchronous: what a processor takes to launch a layer says little about its work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dld_tui.core.report.records import Layer

_HOST = "CPUExecutionProvider"
_DEVICE_PROVIDERS = ("CUDA", "Tensorrt", "TensorRT", "ROCM", "MIGraphX", "NvTensorRTRTX")
ELEMENT_BITS = {
    "float": 32, "float32": 32, "float16": 16, "bfloat16": 16, "double": 64, "float64": 64,
    "int64": 64, "uint64": 64, "int32": 32, "uint32": 32, "int16": 16, "uint16": 16, "int8": 8,
    "uint8": 8, "bool": 8, "float8e4m3fn": 8, "float8e4m3fnuz": 8, "float8e5m2": 8,
    "float8e5m2fnuz": 8, "int4": 4, "uint4": 4, "float4e2m1": 4, "complex64": 64,
    "complex128": 128,
}  # fmt: skip


def has_gpu_times(layers: Sequence[Layer]) -> bool:
    """Return whether the time on a GPU is known of any layer."""
    return any(layer.gpu_time_ms is not None for layer in layers)


def is_launched(layer: Layer) -> bool:
    """Tell whether what is timed of a layer is its launch: it ran on a device by itself."""
    return layer.gpu_time_ms is not None or any(
        word in (layer.provider or "") for word in _DEVICE_PROVIDERS
    )


def priced(layers: Sequence[Layer]) -> Sequence[Layer]:
    """Return the layers with what they cost as `time_ms`, and `percent` of the sum of that.

    With times of a GPU a layer costs its kernels, and one that ran on the processor its own time;
    a layer without kernels costs nothing then. Without, nothing is changed.
    """
    if not has_gpu_times(layers):
        return layers
    costs = [_cost(layer) for layer in layers]
    total = math.fsum(cost or 0.0 for cost in costs)
    return [
        replace(
            layer,
            time_ms=cost,
            percent=None if cost is None or total <= 0 else 100 * cost / total,
        )
        for layer, cost in zip(layers, costs, strict=True)
    ]


def shared_by_cost(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Return the layers with `percent` of what they cost together; times are as they were."""
    return tuple(
        replace(layer, percent=cost.percent)
        for layer, cost in zip(layers, priced(layers), strict=True)
    )


def costs_on_host(layer: Layer) -> bool:
    """Tell whether a layer costs its own time although kernels of others are known."""
    return layer.gpu_time_ms is None and layer.provider == _HOST


def _cost(layer: Layer) -> float | None:
    return layer.time_ms if costs_on_host(layer) else layer.gpu_time_ms


def output_bytes(layer: Layer) -> int | None:
    """Return the size of a layer's outputs: as the backend says, else of known shapes and types."""
    told = layer.details.get("output_bytes")
    if isinstance(told, int) and not isinstance(told, bool) and told > 0:
        return told
    if not layer.output_dims or len(layer.output_dims) != len(layer.output_types):
        return _of_first(layer)
    bits = 0
    for dims, kind in zip(layer.output_dims, layer.output_types, strict=True):
        found = _bits(dims, kind)
        if found is None:
            return None
        bits += found
    return math.ceil(bits / 8)


def _of_first(layer: Layer) -> int | None:
    if len(layer.output_dims) != 1 or layer.precision is None:
        return None
    bits = _bits(layer.output_dims[0], layer.precision)
    return None if bits is None else math.ceil(bits / 8)


def _bits(dims: tuple[int | str | None, ...] | None, kind: str) -> int | None:
    each = ELEMENT_BITS.get(kind)
    if each is None or dims is None:
        return None
    count = 1
    for dim in dims:
        if not isinstance(dim, int) or dim < 0:
            return None
        count *= dim
    return count * each
