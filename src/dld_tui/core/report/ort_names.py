"""How ONNX Runtime names the nodes that its optimiser makes: rules from its versions 1.0 to 1.31.

=====================================  ==========================================================
name of the kernel                     what it says
=====================================  ==========================================================
``X_token_12``                         ``X``, made unique
``T_nchwc``, ``T_bn_nchwc``,           makes tensor ``T``, in blocked layout
``T_mul_nchwc``
``X/QuickGeluFusion/``,                node ``X`` and neighbours, fused
``X/MatMulAddFusion``, ``fused X``
``X_quant``, ``X_transformed``         node ``X``, rewritten
``InsertedPrecisionFreeCast_T``        tensor ``T`` in another type
``Conv_12``                            a node without a name, the 12th that is not a Constant
``If_0_then_branch__Inline_0__X``      node ``X`` of a branch that was inlined, since its condition
                                       is known
``_inlfunc_F_token_3_T``               tensor ``T`` of a call of function ``F``, inlined
=====================================  ==========================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

_TOKEN = re.compile(r"_token_\d+$")
_FUSION = re.compile(r"^(.+?)/\w+Fusion/?$")
_INLINED = re.compile(r"^(.+?)_(then_branch|else_branch)__Inline_\d+__(.*)$", re.DOTALL)
_FUNCTION = "_inlfunc_"
_FUNCTION_TOKEN = re.compile(r"^token_\d+_")
_INDEX = re.compile(r"^(.+)_(\d{1,9})$")
_NODE_SUFFIXES = ("_quant", "_transformed")
_NODE_PREFIXES = ("fused ",)
_CAST = "InsertedPrecisionFreeCast_"
_BLOCKED = "_nchwc"


@dataclass(frozen=True)
class Clue:
    """What a name says about the original graph."""

    kind: Literal["node", "tensor", "index"]
    text: str
    """A node's name, a tensor's name, or the decimal number of a node without a name."""
    exact: bool = False
    """True for the name as it is, False for one that a rule made."""


def clues(name: str, op_type: str) -> Iterator[Clue]:
    """Yield what the name of a kernel says, the most certain first."""
    yield Clue("node", name, exact=True)
    whole = _TOKEN.sub("", name)
    for base in dict.fromkeys((name, whole)):
        if base != name:
            yield Clue("node", base)
        if base.endswith(_BLOCKED):
            yield from (Clue("tensor", tensor) for tensor in blocked_tensors(base))
        elif base.startswith(_CAST):
            yield Clue("tensor", base[len(_CAST) :])
        fusion = _FUSION.match(base)
        if fusion is not None:
            yield Clue("node", fusion.group(1))
        for suffix in _NODE_SUFFIXES:
            if base.endswith(suffix):
                yield Clue("node", base[: -len(suffix)])
        for prefix in _NODE_PREFIXES:
            if base.startswith(prefix):
                yield Clue("node", base[len(prefix) :])
        index = _INDEX.match(base)
        if index is not None and index.group(1) == op_type:
            yield Clue("index", index.group(2))


def blocked_tensors(name: str) -> Iterator[str]:
    """Yield the tensors that a node named ``…_nchwc`` may make, the likeliest first."""
    tensor = name[: -len(_BLOCKED)]
    for plain in (tensor, tensor.removeprefix(_CAST)):
        yield plain
        for suffix in ("_bn", "_mul"):
            if plain.endswith(suffix):
                yield plain[: -len(suffix)]


def is_blocked(name: str) -> bool:
    """Return True for the name of a node in blocked layout."""
    return _TOKEN.sub("", name).endswith(_BLOCKED)


def without_cast(tensor: str) -> str:
    """Return a tensor's name before ONNX Runtime changed its type."""
    return tensor.removeprefix(_CAST)


def split_inlined_branch(name: str) -> tuple[str, str, str] | None:
    """Return (If node, attribute, rest of the name) of what came out of a branch, or None."""
    found = _INLINED.match(name)
    return (found.group(1), found.group(2), found.group(3)) if found else None


def split_inlined_function(tensor: str, functions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (function name, tensor name) pairs that an inlined tensor's name may mean."""
    if not tensor.startswith(_FUNCTION):
        return
    rest = tensor[len(_FUNCTION) :]
    for function in sorted(functions, key=len, reverse=True):
        if rest.startswith(f"{function}_"):
            inner = rest[len(function) + 1 :]
            yield function, _FUNCTION_TOKEN.sub("", inner)
            if _FUNCTION_TOKEN.match(inner):
                yield function, inner
