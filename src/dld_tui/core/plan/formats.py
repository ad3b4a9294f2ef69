"""Types of elements in the words of TensorRT's files: short, long, and of every version."""

from __future__ import annotations

import re
from functools import lru_cache

_TYPES = {
    "fp32": "fp32", "float": "fp32", "float32": "fp32",
    "fp16": "fp16", "half": "fp16", "float16": "fp16",
    "bf16": "bf16", "bfloat16": "bf16",
    "fp8": "fp8", "float8": "fp8", "float8e4m3fn": "fp8", "e4m3": "fp8",
    "fp4": "fp4", "float4": "fp4", "float4e2m1fn": "fp4", "e2m1": "fp4",
    "e8m0": "e8m0",
    "int64": "int64", "int32": "int32", "int8": "int8", "int4": "int4",
    "uint8": "uint8", "bool": "bool", "boolean": "bool",
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")


@lru_cache(maxsize=1024)
def dtype_of(phrase: str) -> str:
    """Return the type in a phrase, e.g. ``fp16`` of ``Channel major FP16 format where …``.

    Empty when there is none that is known, as in ``N/A due to dynamic shapes``.
    """
    for word in _WORD.findall(phrase[:400]):
        lower = word.lower()
        found = _TYPES.get(lower) or (_TYPES.get(lower[1:]) if lower.startswith("k") else None)
        if found:
            return found
    return ""


_WIDE = {"two": 2, "four": 4, "eight": 8, "sixteen": 16, "thirty-two": 32}
_VECTOR = re.compile(r"\b(two|four|eight|sixteen|thirty-two) wide channel", re.IGNORECASE)
_MULTIPLE = re.compile(r"channel % (\d{1,3}) == 0")


@lru_cache(maxsize=1024)
def layout_of(phrase: str) -> str:
    """Return the memory format in a phrase as TensorRT's enumeration names it, e.g. ``CHW32``.

    Empty when the phrase tells but a type, as those of TensorRT 10 do.
    """
    small = phrase[:400].lower()
    if "row major linear" in small or small.startswith("linear"):
        return "LINEAR"
    vector = _VECTOR.search(phrase[:400])
    if vector:
        deep = "CDHW" if "3d" in small or "cdhw" in small else "CHW"
        return f"{deep}{_WIDE[vector[1].lower()]}"
    if "dla" in small:
        return "DLA_HWC4" if "image" in small else "DLA_LINEAR"
    if "channel major" in small:
        multiple = _MULTIPLE.search(phrase[:400])
        return f"HWC{multiple[1]}" if multiple and multiple[1] != "1" else "HWC"
    return ""
