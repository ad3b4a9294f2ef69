"""Rules that many kernels share, most of them as patterns of shapes.

A pattern says what the dimensions of each input must be: a number, a name, whose dimensions must
all be the same, or ``_`` for any; ``*NAME`` at the end stands for all that follow, ``*`` for
any. An empty part allows everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

from onnx import TensorProto

from dld_tui.core.checks.calls import Call, Dims
from dld_tui.core.checks.operands import (
    VALUE,
    Said,
    differ,
    dims_text,
    wrong,
)

Rule: TypeAlias = Callable[[Call], Said]


def shapes(pattern: str) -> Rule:
    """Return the rule that the inputs of a call have these dimensions."""
    wanted = [part.split() for part in pattern.split("|")]

    def check(call: Call) -> Said:
        yield from compared([call.dims(index) for index in range(len(wanted))], wanted, {})

    return check


def compared(
    found: Iterable[Dims | None], wanted: list[list[str]], known: dict[str, int | Dims]
) -> Said:
    """Yield the first dimensions that are not as wanted; what names stand for gets known."""
    for index, (dims, tokens) in enumerate(zip(found, wanted, strict=True)):
        if dims is None or not tokens:
            continue
        rest = tokens[-1] if tokens[-1].startswith("*") else None
        names = tokens[:-1] if rest is not None else tokens
        fits = len(dims) == len(names) or (rest is not None and len(dims) > len(names))
        for name, dim in zip(names, dims, strict=False):
            size = int(name) if name.isdecimal() else known.get(name)
            if name != "_" and size is None and dim is not None:
                known[name] = dim
            fits = fits and not (isinstance(size, int) and differ(size, dim))
        if fits and rest not in (None, "*"):
            tail, before = dims[len(names) :], known.setdefault(str(rest), dims[len(names) :])
            assert isinstance(before, tuple)
            fits = len(tail) == len(before) and not any(map(differ, tail, before))
        if not fits:
            yield wrong(f"Input {index} is {dims_text(dims)}, it must be {_text(tokens, known)}")
            return


def _text(tokens: list[str], known: dict[str, int | Dims]) -> str:
    parts: list[str] = []
    for token in tokens:
        value = known.get(token, token)
        if isinstance(value, tuple):
            parts += ["?" if dim is None else str(dim) for dim in value]
        else:
            parts.append("?" if value == "_" else "…" if str(value) == "*" else str(value))
    return f"[{', '.join(parts)}]"


def single(*indexes: int, ranks: int = 64) -> Rule:
    """Return the rule that inputs have one element, and a rank of `ranks` at most."""

    def check(call: Call) -> Said:
        for index in indexes:
            dims = call.dims(index)
            if dims is None or None in dims:
                continue
            if math.prod(dim or 0 for dim in dims) != 1 or len(dims) > ranks:
                yield wrong(f"Input {index} is {dims_text(dims)}, it must have one element")

    return check


def positive(*indexes: int, least: int = 1) -> Rule:
    """Return the rule that the elements of inputs are above 0, or 0 and above."""

    def check(call: Call) -> Said:
        for index in indexes:
            value = call.value(index)
            found = min(value.ravel().tolist(), default=1) if value is not None else 1
            if isinstance(found, int | float) and (found < 0 or (found == 0 and least > 0)):
                yield wrong(f"Input {index} has {found}, all must be positive")

    return check


def axis_of(call: Call, rank: int, default: int = 0) -> int | None:
    """Return the attribute axis, counted from 0; None where it is outside of the rank."""
    axis = call.attribute("axis", default)
    return axis % rank if isinstance(axis, int) and -rank <= axis < rank else None


def in_range(call: Call, index: int, size: int | None, *, negative: bool = True) -> Said:
    """Yield where the elements of an input are no indices of so many elements."""
    value = call.value(index)
    if size is None or value is None or value.dtype.kind not in "iu" or not value.size:
        return
    least, most = int(value.min()), int(value.max())
    if most >= size or least < (-size if negative else 0):
        yield wrong(f"Index {most if most >= size else least} is outside of {size} elements")


def needs(name: str) -> Rule:
    """Return the rule that an attribute is there, which ONNX leaves open."""

    def check(call: Call) -> Said:
        if call.attribute(name) is None:
            yield VALUE, f"Attribute {name} is needed"

    return check


def element_type(name: str) -> Rule:
    """Return the rule that an attribute is an element type; only 32 bits are looked at."""

    def check(call: Call) -> Said:
        kind = call.attribute(name)
        if isinstance(kind, int) and kind % (1 << 32) == TensorProto.UNDEFINED:
            yield VALUE, f"Attribute {name} is {kind}, which is no element type"

    return check
