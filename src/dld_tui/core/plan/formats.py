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
