"""Types of values as operator schemas write them: ``tensor(float)``, ``seq(tensor(int64))``."""

from __future__ import annotations

from functools import cache, lru_cache

import onnx

from dld_tui.core.document.values import ValueType, dtype_name, dtype_number

_T = onnx.TensorProto
_CONTAINERS = {"sequence": "seq", "optional": "optional"}


@cache
def tensor_type(data_type: int) -> str | None:
    """Return the schemas' name of a tensor of a ``TensorProto.DataType``; None for unknown."""
    if data_type == _T.UNDEFINED:
        return None
    try:
        return f"tensor({_T.DataType.Name(data_type).lower()})"
    except ValueError:
        return None


def type_of_proto(proto: onnx.TypeProto) -> str | None:
    """Return the schemas' name of a declared type, None when it does not say enough."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return tensor_type(proto.tensor_type.elem_type)
    if kind in ("sequence_type", "optional_type"):
        inner = type_of_proto(getattr(proto, kind).elem_type)
        return None if inner is None else f"{_CONTAINERS[kind.partition('_')[0]]}({inner})"
    if kind == "map_type":
        key = tensor_type(proto.map_type.key_type)
        inner = type_of_proto(proto.map_type.value_type)
        return None if key is None or inner is None else f"map({key[7:-1]},{inner})"
    return None


@lru_cache(maxsize=1024)
def type_of_value(value: ValueType) -> str | None:
    """Return the schemas' name of an inferred type, None when it does not say enough."""
    number = dtype_number(value.dtype) if value.dtype else None
    inner = tensor_type(number) if number is not None else None
    if inner is None or not value.container:
        return inner
    container = _CONTAINERS.get(value.container)
    return f"{container}({inner})" if container else None


def shown(type_name: str) -> str:
    """Return a schema's type for people: ``float32`` for ``tensor(float)``."""
    if type_name.count("(") != 1 or not type_name.startswith("tensor("):
        return type_name
    return dtype_name(_T.DataType.Value(type_name[7:-1].upper()))
