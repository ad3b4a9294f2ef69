"""Which inputs of a decoder are its cache, and the outputs that they come back from.

The operators that read the past and write the present say so first, then names, then types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.document.value_types import ValueType
from dld_tui.core.inputs.roles import CACHE_WORDS, words_of
from dld_tui.core.inputs.shapes import is_fixed

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope

_OPERATORS = {
    "GroupQueryAttention": {3: 1, 4: 2},
    "Attention": {4: 1, 5: 2},
    "MultiHeadAttention": {6: 1, 7: 2},
    "DecoderMaskedMultiHeadAttention": {5: 1, 6: 2},
}
"""Where an operator takes the past, and where it gives the present."""
_VIEWS = ("Identity", "Cast", "Transpose")
_RENAMED = (
    ("past_key_values", "present"), ("past_key_values", "present_key_values"), ("past", "present"),
    ("_in", "_out"), ("in_", "out_"), ("cache", "new_cache"), ("cache", "cache_out"),
    ("cache", "updated_cache"), ("state", "stateN"),
)  # fmt: skip
_FLOATS = ("float32", "float16", "bfloat16", "float8e4m3fn", "int8", "uint8")


@dataclass(frozen=True)
class CachePair:
    """An input that holds what a decoder has seen, and the output with what is new added."""

    past: str
    present: str
    axis: int
    """Along which they grow."""


def cache_pairs(document: Document) -> list[CachePair]:
    """Return the pairs of a model, in the order of its inputs; none where it has no cache."""
    main = document.main
    outputs = dict.fromkeys(main.outputs)
    defaults = main.named("initializer")
    found: dict[str, CachePair] = {}
    left: list[tuple[str, ValueType]] = []
    for name in main.inputs:
        known = main.value_type(name)
        if name in defaults or known is None or len(known.dims or ()) not in (3, 4, 5):
            continue
        if known.dtype not in _FLOATS or known.container:
            continue
        made = _by_operator(main, name, outputs) or _by_name(name, outputs)
        pair = None if made is None else _pair(main, name, *made)
        if pair is None:
            left.append((name, known))
        elif pair.present in outputs:
            found[name] = pair
            del outputs[pair.present]
    found |= {one.past: one for one in _by_type(main, left, [*outputs])}
    return [found[name] for name in main.inputs if name in found]


def _by_operator(main: Scope, name: str, outputs: dict[str, None]) -> tuple[str, int | None] | None:
    """Return what an attention or a Concat makes of a past, and along which axis."""
    for value in _seen_through(main, name):
        for node in main.consumers(value):
            axis = None
            if node.op_type == "Concat":
                made, axis = node.outputs[0], _axis(node)
                if not main.consumers(made) and not CACHE_WORDS & set(words_of(name)):
                    continue  # nothing attends to it
            else:
                places = _OPERATORS.get(node.op_type, {})
                used = (
                    places[at]
                    for at, one in enumerate(node.inputs)
                    if one == value and at in places
                )
                at = next(used, len(node.outputs))
                made = node.outputs[at] if at < len(node.outputs) else ""
            for one in _seen_through(main, made) if made else ():
                if one in outputs:
                    return one, axis
    return None


def _axis(node: Node) -> int | None:
    found = node.attribute("axis")
    return found.value if found is not None and isinstance(found.value, int) else None


def _seen_through(main: Scope, name: str) -> Iterator[str]:
    """Yield a value, and what is made of it by moving or converting it, to a depth of 3."""
    level = [name]
    for _ in range(3):
        yield from level
        users = [node for value in level for node in main.consumers(value)]
        level = [node.outputs[0] for node in users if node.op_type in _VIEWS]


def _by_name(name: str, outputs: dict[str, None]) -> tuple[str, None] | None:
    for before, after in _RENAMED:
        if before in name and name.replace(before, after, 1) in outputs:
            return name.replace(before, after, 1), None
    return None


def _pair(main: Scope, past: str, present: str, axis: int | None = None) -> CachePair | None:
    """Return a pair whose shapes go together; None for one that does not grow, as of a state."""
    before, after = main.value_type(past), main.value_type(present)
    dims = None if before is None else before.dims
    if (
        before is None
        or dims is None
        or (after is not None and after.dtype not in ("", before.dtype))
    ):
        return None
    grown = None if after is None else after.dims
    if grown is None or len(grown) != len(dims):
        grown = (None,) * len(dims)
    growing = [
        at for at in range(1, len(dims))
        if dims[at] != grown[at] or not (is_fixed(dims[at]) or isinstance(dims[at], str))
    ]  # fmt: skip
    if any(
        is_fixed(dims[at]) and is_fixed(grown[at]) and dims[at] != grown[at] for at in growing[1:]
    ):
        return None
    growing = [at for at in growing if not (is_fixed(dims[at]) and not is_fixed(grown[at]))]
    if axis is not None:
        axis %= len(dims)
        return CachePair(past, present, axis) if axis in growing or not growing else None
    if growing:
        return CachePair(past, present, len(dims) - 2 if len(dims) - 2 in growing else growing[0])
    is_cache = bool(CACHE_WORDS & set(words_of(past)))
    return CachePair(past, present, len(dims) - 2) if is_cache and len(dims) >= 4 else None


def _by_type(
    main: Scope, left: list[tuple[str, ValueType]], outputs: list[str]
) -> Iterator[CachePair]:
    """Pair what is left by types, in their order, where both sides have as many of a kind."""
    kinds: dict[tuple[object, ...], list[str]] = {}
    for name, known in left:
        if len(known.dims or ()) == 4 and set(words_of(name)) & (
            CACHE_WORDS | {"key", "value", "k", "v"}
        ):
            kinds.setdefault(_kind(known), []).append(name)
    given: dict[tuple[object, ...], list[str]] = {}
    for name in outputs:
        made = main.value_type(name)
        if made is not None:
            given.setdefault(_kind(made), []).append(name)
    for kind, names in kinds.items():
        if len(given.get(kind, ())) == len(names):
            for past, present in zip(names, given[kind], strict=True):
                pair = _pair(main, past, present)
                if pair is not None:
                    yield pair


def _kind(known: ValueType) -> tuple[object, ...]:
    return (known.dtype, *((dim if is_fixed(dim) else None) for dim in known.dims or ()))
