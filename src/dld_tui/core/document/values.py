"""Types of values: element type and shape, and the names ONNX users know them by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import onnx

from dld_tui.core import fmt
from dld_tui.core.document.wiretext import set_text, text_of

Dims: TypeAlias = "tuple[int | str | None, ...]"
"""Dimensions: numbers, names of symbolic ones, None where nothing is known."""
PLACEHOLDERS = frozenset({"", "?", "-1", "*", "None", "none", "unknown"})
"""What exporters write as the name of a dimension without one: two of them need not be equal."""

_SHORT = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float64": "f64",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "int4": "i4",
    "int2": "i2",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "uint4": "u4",
    "uint2": "u2",
    "string": "str",
    "complex64": "c64",
    "complex128": "c128",
    "float8e4m3fn": "f8e4m3",
    "float8e4m3fnuz": "f8e4m3uz",
    "float8e5m2": "f8e5m2",
    "float8e5m2fnuz": "f8e5m2uz",
    "float8e8m0": "f8e8m0",
    "float4e2m1": "f4e2m1",
}


_ALIASES = {"float32": "FLOAT", "float64": "DOUBLE", "half": "FLOAT16", "single": "FLOAT",
            "bool_": "BOOL", "str": "STRING",
            "boolean": "BOOL", "fp64": "DOUBLE", "fp32": "FLOAT", "fp16": "FLOAT16",
            "bf16": "BFLOAT16", "f64": "DOUBLE", "f32": "FLOAT", "f16": "FLOAT16"}  # fmt: skip
_NUMBERS: dict[str, int] = dict(onnx.TensorProto.DataType.items())


@lru_cache(maxsize=256)
def dtype_name(data_type: int) -> str:
    """Return the name of a ``TensorProto.DataType``: ``float32``; ``type 99`` if unknown."""
    try:
        name = onnx.TensorProto.DataType.Name(data_type).lower()
    except ValueError:
        return f"type {data_type}"
    return {"float": "float32", "double": "float64"}.get(name, name)


def dtype_number(name: str) -> int | None:
    """Return the ``TensorProto.DataType`` of an element type, or None.

    The names of :func:`dtype_name`, those of ONNX, numpy, ml_dtypes and TensorRT are known, in any
    case. ``float`` is ONNX's, float32.
    """
    plain = name.lower().removeprefix("tensor(").removesuffix(")")
    if plain.startswith(("float8_", "float4_")):  # float8_e4m3fn of ml_dtypes
        plain = plain.replace("_", "")
    proto_name = _ALIASES.get(plain, plain.upper())
    return _NUMBERS.get(proto_name)


@dataclass(frozen=True, slots=True)
class ValueType:
    """What is known of a value's type."""

    dtype: str | None
    """Element type such as ``float32``; None when unknown."""
    dims: Dims | None
    """None when even the rank is unknown."""
    container: str = ""
    """``sequence``, ``optional``, ``map``, ``sparse``, ``opaque``; empty for a plain tensor."""

    @property
    def text(self) -> str:
        """Return e.g. ``float32[N, 3, 224, 224]`` or ``sequence(int64[?])``. Foreign text."""
        return self._text(self.dtype or "?", fmt.shape(self.dims))

    @property
    def short(self) -> str:
        """Return for example ``f32[N,3,224,224]``. Foreign text."""
        dtype = _SHORT.get(self.dtype or "?", self.dtype or "?")
        return self._text(dtype, fmt.shape(self.dims).replace(", ", ","))

    def _text(self, dtype: str, dims: str) -> str:
        if self.container == "opaque":
            return "opaque"
        inner = dtype if dims == "[]" else dtype + dims
        return f"{self.container}({inner})" if self.container else inner


def value_type_of(proto: onnx.TypeProto) -> ValueType | None:
    """Return the type a TypeProto describes, or None when it says nothing."""
    kind = proto.WhichOneof("value")
    if kind is None:
        return None
    if kind == "tensor_type":
        return _tensor_type(proto.tensor_type, "")
    if kind == "sparse_tensor_type":
        return _tensor_type(proto.sparse_tensor_type, "sparse")
    if kind in ("sequence_type", "optional_type"):
        inner = value_type_of(getattr(proto, kind).elem_type)
        container = kind.partition("_")[0]
        if inner is None:
            return ValueType(None, None, container)
        if inner.container:
            container = f"{container}({inner.container}"
            return ValueType(inner.dtype, inner.dims, container + ")")
        return ValueType(inner.dtype, inner.dims, container)
    if kind == "map_type":
        inner = value_type_of(proto.map_type.value_type)
        key = dtype_name(proto.map_type.key_type)
        value = inner.text if inner else "?"
        return ValueType(f"{key} → {value}", (), "map")
    return ValueType(None, None, "opaque")


def _tensor_type(
    proto: onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor, container: str
) -> ValueType:
    dims: Dims | None = None
    if proto.HasField("shape"):
        dims = tuple(
            dim.dim_value if dim.HasField("dim_value") else (text_of(dim.dim_param) or None)
            for dim in proto.shape.dim
        )
    return ValueType(dtype_name(proto.elem_type) if proto.elem_type else None, dims, container)


def type_proto_of(value_type: ValueType) -> onnx.TypeProto | None:
    """Return the TypeProto of a type, or None where the type says too little for one."""
    number = dtype_number(value_type.dtype or "")
    if not number:
        return None
    proto = onnx.TypeProto()
    tensor: onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor
    if value_type.container == "":
        tensor = proto.tensor_type
    elif value_type.container == "sparse":
        tensor = proto.sparse_tensor_type
    elif value_type.container == "sequence":
        tensor = proto.sequence_type.elem_type.tensor_type
    elif value_type.container == "optional":
        tensor = proto.optional_type.elem_type.tensor_type
    else:
        return None
    tensor.elem_type = number
    if value_type.dims is None:
        return proto
    tensor.shape.SetInParent()
    for dim in value_type.dims:
        entry = tensor.shape.dim.add()
        if isinstance(dim, int):
            entry.dim_value = dim
        elif dim:
            set_text(entry, "dim_param", dim)
    return proto
