"""Reading the type of a value as people write it: ``float32[N, 3, 224, 224]``."""

from __future__ import annotations

import re

from dld_tui.core.document.values import Dims, ValueType, dtype_number
from dld_tui.core.errors import UsageError

_TYPE = re.compile(r"\s*(?P<dtype>[A-Za-z][\w]*)\s*(?:\[(?P<dims>.*)\])?\s*\Z", re.DOTALL)
_ALIASES = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "fp32": "float32",
    "fp16": "float16", "float": "float32", "double": "float64", "half": "float16", "i64": "int64",
    "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "str": "string",
}  # fmt: skip
_HINT = "Write for example float32[N, 3, 224, 224]; ? for an unknown dimension"


def parse_type(text: str) -> ValueType | None:
    """Return the type that a text means; None for an empty text.

    ``float32[N, 3, ?]`` has a symbolic, a fixed and an unknown dimension, ``float32`` is a scalar,
    and the rank of ``float32[...]`` is unknown. Short names such as ``f32`` are taken, too.

    Raises:
        UsageError: It is no type.
    """
    if not text.strip():
        return None
    match = _TYPE.match(text)
    if match is None:
        raise UsageError("not a type", hint=_HINT)
    name = match["dtype"]
    dtype = _ALIASES.get(name.lower(), name.lower())
    if not dtype_number(dtype):
        raise UsageError(f"there is no element type {name!r}", hint=_HINT)
    return ValueType(dtype, _dims(match["dims"]))


def _dims(text: str | None) -> Dims | None:
    if text is None or not text.strip():
        return ()
    if text.strip() in ("...", "…"):
        return None
    return tuple(_dim(part.strip()) for part in text.split(","))


def _dim(part: str) -> int | str | None:
    if not part:
        raise UsageError("a dimension is missing between two commas", hint=_HINT)
    if part in ("?", "-1"):
        return None
    if re.fullmatch(r"\d+", part, re.ASCII):
        number = int(part)
        if number >= 2**63:
            raise UsageError(f"dimension {part} is out of range")
        return number
    if part[0].isdigit() or part[0] in "-+" or "[" in part or "]" in part:
        raise UsageError(f"{part!r} is not a dimension", hint=_HINT)
    return part


def format_type(value_type: ValueType | None) -> str:
    """Return the text that :func:`parse_type` reads; empty for None and for what is no tensor."""
    if value_type is None or value_type.container or value_type.dtype is None:
        return ""
    return value_type.text.replace("…", "...")
