"""Whether the type of a value fits an operator's input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dld_tui.core.operators.schema import Formal

_ONNX_NAMES = {"float32": "float", "float64": "double"}
_MOST_NAMED = 6


def dtype_of(type_name: str) -> str | None:
    """Return the element type of a plain tensor in ONNX notation, else None."""
    if not type_name.startswith("tensor(") or not type_name.endswith(")"):
        return None
    inner = type_name[len("tensor(") : -1]
    names = {short: name for name, short in _ONNX_NAMES.items()}
    return names.get(inner, inner)


def short_type(type_name: str) -> str:
    """Return a type of ONNX notation as this program names it: ``float32`` for tensors."""
    return dtype_of(type_name) or type_name


def types_text(types: Sequence[str], most: int = _MOST_NAMED) -> str:
    """Return accepted types for people, the first of many."""
    names = [short_type(name) for name in types]
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return ", ".join(names) or "any type"


def bound_types(formals: Sequence[Formal | None], types: Sequence[str | None]) -> dict[str, str]:
    """Return what the type names of a signature stand for, given the types of its inputs.

    Args:
        formals: The formal of each input.
        types: The type of each input in ONNX notation, None where it is not known.
    """
    bound: dict[str, str] = {}
    for formal, type_name in zip(formals, types, strict=True):
        if formal is None or type_name is None or not _is_variable(formal):
            continue
        if type_name in formal.types:
            bound.setdefault(formal.type_name, type_name)
    return bound


def mismatch(
    formal: Formal | None, type_name: str | None, bound: Mapping[str, str] | None = None
) -> str | None:
    """Return why a type does not fit an input, or None when it does or when it is not known.

    Args:
        formal: The input.
        type_name: The value's type in ONNX notation.
        bound: What the type names of the signature stand for, from the other inputs.
    """
    if formal is None or type_name is None or not formal.types:
        return None
    if type_name not in formal.types:
        return f"is {short_type(type_name)}; takes {types_text(formal.types)}"
    wanted = (bound or {}).get(formal.type_name) if _is_variable(formal) else None
    if wanted is not None and wanted != type_name:
        return f"is {short_type(type_name)}; {formal.type_name} is {short_type(wanted)}"
    return None


def _is_variable(formal: Formal) -> bool:
    return bool(formal.types) and formal.homogeneous and formal.type_name not in formal.types
