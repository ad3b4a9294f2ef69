"""Types, and names of operator sets, that several packages share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from dld_tui.core.dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import TypeIs

JSON: TypeAlias = "None | bool | int | float | str | list[JSON] | dict[str, JSON]"
"""A value that ``json`` can write and read back."""

Foreign: TypeAlias = Mapping[str, JSON]
"""An object as another program wrote it: nothing in it is checked, and nothing of it is changed."""

PlainValues: TypeAlias = "dict[str, str | int | float | bool | None | list[JSON]]"
"""What a machine, a device or a run is: plain values by name, and lists of these."""


class TextEnum(str, Enum):
    """A state with the word that JSON and people see. Compare members, never their words."""

    __str__ = str.__str__
    __hash__ = str.__hash__  # equal to its word, also as a key


@dataclass(frozen=True)
class NodePlace:
    """A node of a model file, for a program; scopes and references as edits name them."""

    model: str | None
    scope: tuple[str, ...]
    node: str
    name: str = ""
    op_type: str = ""


ProgressCallback: TypeAlias = Callable[[int, int], None]
"""Called with (done, total), in bytes or items; total is 0 when unknown."""

CancelCheck: TypeAlias = Callable[[], bool]
"""Returns True when the work should stop; the worker then raises CancelledError."""

ELEMENT_BITS: Mapping[str, int] = {
    "complex128": 128,
    **dict.fromkeys(("double", "float64", "int64", "uint64", "complex64"), 64),
    **dict.fromkeys(("float", "float32", "int32", "uint32"), 32),
    **dict.fromkeys(("float16", "bfloat16", "int16", "uint16"), 16),
    **dict.fromkeys(("bool", "int8", "uint8", "float8e8m0"), 8),
    **dict.fromkeys(("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"), 8),
    **dict.fromkeys(("float6e2m3", "float6e3m2"), 6),
    **dict.fromkeys(("int4", "uint4", "float4e2m1"), 4),
    **dict.fromkeys(("int2", "uint2"), 2),
}
"""The bits of an element, by type as ONNX names it in small letters, or NumPy. Those of less than 8
are packed without regard to bytes."""

FLOATS = ("float32", "float16", "bfloat16", "float64")
"""The floating point types that operators compute in, without those of 8 bits and less."""

_SPELLINGS = {
    "float32": "f32 fp32 float single", "float16": "f16 fp16 half", "bfloat16": "bf16",
    "float64": "f64 fp64 double", "int64": "i64 int long", "int32": "i32", "int16": "i16 short",
    "int8": "i8", "int4": "i4", "int2": "i2", "uint64": "u64", "uint32": "u32", "uint16": "u16",
    "uint8": "u8 byte", "uint4": "u4", "uint2": "u2", "bool": "bool bool_ boolean",
    "string": "str object", "complex64": "c64", "complex128": "c128",
    "float8e4m3fn": "f8e4m3 fp8 f8 float8 e4m3", "float8e4m3fnuz": "f8e4m3uz",
    "float8e5m2": "f8e5m2 e5m2", "float8e5m2fnuz": "f8e5m2uz",
    "float8e8m0": "f8e8m0 float8e8m0fnu e8m0", "float6e2m3": "f6e2m3 float6e2m3fn",
    "float6e3m2": "f6e3m2 float6e3m2fn", "float4e2m1": "f4e2m1 float4e2m1fn fp4 float4 e2m1",
}  # fmt: skip
SHORT_WORDS: Mapping[str, str] = {dtype: words.split()[0] for dtype, words in _SPELLINGS.items()}
"""The short words of element types beside shapes: ``f32[1, 3]``."""
DTYPES: Mapping[str, str] = {
    word: dtype for dtype, words in _SPELLINGS.items() for word in (dtype, *words.split())
}
"""Element types by every spelling that is read, in small letters: the names of ONNX, NumPy,
ml_dtypes and TensorRT, and all words that are shown."""


def dtype_spelled(name: str) -> str:
    """Return an element type in the program's own spelling, from any spelling in any case.

    ``float`` is ONNX's, float32. What is no type comes back in small letters.
    """
    plain = name.lower().removeprefix("tensor(").removesuffix(")")
    if plain.startswith(("float8_", "float6_", "float4_")):  # float8_e4m3fn of ml_dtypes
        plain = plain.replace("_", "")
    return DTYPES.get(plain, plain)


_STYLES = {
    "float32": "prec-fp32", "float16": "prec-fp16", "bfloat16": "prec-bf16",
    **dict.fromkeys(("int8", "uint8"), "prec-int8"),
    **dict.fromkeys(("float8e4m3fn", "float8e4m3fnuz", "float8e5m2"), "prec-fp8"),
    **dict.fromkeys(("float8e5m2fnuz", "float8e8m0"), "prec-fp8"),
    **dict.fromkeys(("int4", "uint4", "float4e2m1", "int2", "uint2"), "prec-int4"),
    **dict.fromkeys(("int64", "int32", "int16", "uint64", "uint32", "uint16", "bool"), "dim"),
}  # fmt: skip


def precision_style(dtype: str | None) -> str:
    """Return the style class of an element type, in any spelling; ``faint`` of none."""
    return _STYLES.get(dtype_spelled(dtype), "prec-other") if dtype else "faint"


PRECISION_DTYPES: Mapping[str, str] = {
    "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "float8e4m3fn",
    "fp4": "float4e2m1", "e8m0": "float8e8m0", "int64": "int64", "int32": "int32", "int8": "int8",
    "int4": "int4", "uint8": "uint8", "bool": "bool",
}  # fmt: skip
"""TensorRT's types, in its short words, by element type."""

SHORT_DTYPES: Mapping[str, str] = {
    **{dtype: precision for precision, dtype in PRECISION_DTYPES.items()},
    "float": "fp32", "double": "fp64", "float64": "fp64", "float8e5m2": "fp8",
}  # fmt: skip
"""The short words of element types."""

ENGINE_SUFFIXES = (".engine", ".plan", ".trt")
"""How the names of engines end."""

FIRST_IR_WITH_IMPORTS = 3
"""The version of the format in which models began to say which operators they use."""
SCAN_SINCE = 9
"""The opset from which on Scan has no batch, and no lengths of sequences as its first input."""


def plain_domain(domain: str) -> str:
    """Return a domain with ``ai.onnx``, which is another name of the default one, as ``""``."""
    return "" if domain == "ai.onnx" else domain


def is_array(value: object) -> TypeIs[np.ndarray[Any, Any]]:
    """Return whether a value is a NumPy array, without importing NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)
