"""What the name of a GPU kernel, or of a tactic of TensorRT, says about how it computes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from dld_tui.core.machine.peaks import FP16_SUMS, Peaks

_ON_TENSOR_CORES = re.compile(
    r"imma|hmma|qmma|gmma|utcmma|i88|884|16816|16832|1688|tensorop|tensor\d+x\d+|tf32",
    re.IGNORECASE,
)
_ON_CUDA_CORES = re.compile(
    r"ffma|simt|gemv|dp4a|icudnn_int8x4|scudnn|sgemm|^sm(?:50|52|53|60|61|62)_|^(?:maxwell|pascal)_",
    re.IGNORECASE,
)
_XMMA = re.compile(r"_(?:[a-z]+\d+){2}_(?P<type>tf32|bf16|f16|f32)(?P<sums>f16|f32)_[a-z]+\d+_")
"""The types in a name: ``…_f32f32_tf32f32_f32_…``."""
_XMMA_TYPES = {"tf32": "tf32", "bf16": "bf16", "f16": "fp16", "f32": "fp32"}
_SUMS = re.compile(r"_(?P<sums>[hs])\d{3,}(?:cudnn|gemm)")
"""Older names: ``ampere_h16816cudnn_…`` adds in fp16, ``…_s16816cudnn_…`` in fp32."""
_FEWER = (
    (re.compile(r"sparse|sptensor", re.IGNORECASE), "sparse", 2.0),
    (re.compile(r"winograd", re.IGNORECASE), "Winograd", 4.0),
)
"""Kernels with fewer operations than those that are counted: half of the weights are 0 (NVIDIA
Ampere Architecture whitepaper); F(4x4, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional
Neural Networks" (2015), multiplies 36 times instead of 144."""


@lru_cache(maxsize=4096)
def on_tensor_cores(name: str) -> bool | None:
    """Return whether a kernel uses Tensor Cores, by its name; None if the name proves neither.

    A library's name, such as ``xmma``, proves nothing: it has kernels of both kinds.
    """
    if _ON_CUDA_CORES.search(name):
        return False
    return True if _ON_TENSOR_CORES.search(name) else None


class Roof(NamedTuple):
    """The most operations per second that a kernel can reach."""

    name: str
    """The type that computes, as in :class:`Peaks`, and ``sparse`` or ``Winograd``."""
    flops: float


@lru_cache(maxsize=4096)
def _possible_types(kernel: str, precision: str) -> tuple[str, ...]:
    """Return the types in which a kernel may compute, the likeliest first."""
    named = _XMMA.search(kernel)
    if named is not None:
        kind = _XMMA_TYPES[named["type"]]
        sums_half = named["sums"] == "f16"
    else:
        kind = precision
        older = _SUMS.search(kernel)
        sums_half = older["sums"] == "h" if older else None
        if kind == "fp32":
            uses = on_tensor_cores(kernel)
            return ("tf32",) if uses else ("fp32",) if uses is False else ("fp32", "tf32")
    if kind != "fp16" or sums_half is False:
        return (kind,)
    return (FP16_SUMS, "fp16") if sums_half else ("fp16", FP16_SUMS)


def roof_of(kernel: str, precision: str, peaks: Peaks) -> Roof | None:
    """Return the peak that a kernel is compared with; None when the device's is unknown.

    Where the name leaves several types open, it is that of the fastest: a bound has to be safe.

    Args:
        kernel: Its name, or that of a tactic; empty if unknown.
        precision: The type of its inputs, such as ``fp32``.
        peaks: Of the device.
    """
    kinds = [kind for kind in _possible_types(kernel, precision) if peaks.flops.get(kind)]
    if not kinds:
        return None
    kind = max(kinds, key=lambda one: peaks.flops[one])
    name, rate = kind, peaks.flops[kind]
    for pattern, word, factor in _FEWER:
        if pattern.search(kernel):
            name, rate = f"{name} {word}", rate * factor
    return Roof(name, rate)
