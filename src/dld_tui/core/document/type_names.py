"""Types of values as operator schemas write them, e.g. ``seq(tensor(int64))``, and as people do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

import onnx

from dld_tui.core.document.values import ValueType, dtype_number

_T = onnx.TensorProto
_CONTAINERS = {"sequence": "seq", "optional": "optional"}
_TENSOR = re.compile(r"(sparse_)?tensor\((\w+)\)")
_MOST_NAMED = 6


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
    if kind == "sparse_tensor_type":
        plain = tensor_type(proto.sparse_tensor_type.elem_type)
        return None if plain is None else f"sparse_{plain}"
    if kind in ("sequence_type", "optional_type"):
        inner = type_of_proto(getattr(proto, kind).elem_type)
        return None if inner is None else f"{_CONTAINERS[kind.partition('_')[0]]}({inner})"
    if kind == "map_type":
        key = tensor_type(proto.map_type.key_type)
        inner = type_of_proto(proto.map_type.value_type)
        return None if key is None or inner is None else f"map({key[7:-1]},{inner})"
    return None


@lru_cache(maxsize=1024)
def type_of_value(value: ValueType | None) -> str | None:
    """Return the schemas' name of what is known of a value, None when that is not enough."""
    number = dtype_number(value.dtype) if value is not None and value.dtype else None
    name = tensor_type(number) if number is not None else None
    if value is None or name is None or not value.container:
        return name
    for container in reversed(value.container.rstrip(")").split("(")):
        if container == "sparse":
            name = f"sparse_{name}"
        elif container in _CONTAINERS:
            name = f"{_CONTAINERS[container]}({name})"
        else:
            return None
    return name


def dtype_of(type_name: str) -> str | None:
    """Return the element type of a plain tensor, e.g. ``float32``; None of anything else."""
    found = _TENSOR.fullmatch(type_name)
    return shown(type_name) if found is not None and not found.group(1) else None


def shown(type_name: str) -> str:
    """Return a schema's type for people: ``float32`` for ``tensor(float)``."""
    return _TENSOR.sub(_shown, type_name)


def types_text(types: Sequence[str], most: int = _MOST_NAMED) -> str:
    """Return accepted types for people, the first of many."""
    names = [shown(name) for name in types]
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return ", ".join(names) or "any type"


def _shown(found: re.Match[str]) -> str:
    sparse, name = found.groups()
    dtype = {"float": "float32", "double": "float64"}.get(name, name)
    return f"sparse({dtype})" if sparse else dtype
