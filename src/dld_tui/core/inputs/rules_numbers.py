"""Operators whose results are followed by value: shapes are computed from shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from dld_tui.core.errors import DldError
from dld_tui.core.inputs.known import (
    MOST_NUMBERS,
    UNKNOWN,
    Attributes,
    Dims,
    Known,
    Number,
    Rule,
    lacks,
    only,
    plain,
    product,
)

if TYPE_CHECKING:
    from dld_tui.core.inputs.propagation import Propagation


_MOST_CLASSES = 1 << 16


def _copied(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    one = i[0]
    return [Known(one.dims, one.values(), one.source, one.most)]


def _cast(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    one, to = i[0], a.number("to", 0)
    numbers = one.values()
    if numbers is not None and to in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
        numbers = tuple(None if n is None else _integer(n) for n in numbers)
    elif numbers is not None and to == onnx.TensorProto.BOOL:
        numbers = tuple(None if n is None else n != 0 for n in numbers)
    elif numbers is not None and to in (1, 10, 11):
        numbers = tuple(None if n is None else n * 1.0 for n in numbers)
    return [Known(one.dims, numbers, one.source, one.most)]


def _integer(value: Number) -> Number:
    return np.trunc(value).astype(np.int64) if isinstance(value, np.ndarray) else int(value)


def _reduced(dims: Dims, axes: Sequence[int] | None, keep: bool) -> Dims:
    chosen = range(len(dims)) if not axes else [axis % len(dims) for axis in axes]
    if keep:
        return tuple(1 if at in chosen else dim for at, dim in enumerate(dims))
    return tuple(dim for at, dim in enumerate(dims) if at not in chosen)


def _reduce(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    axes = a.numbers("axes")
    if axes is None and len(i) > 1 and i[1] is not UNKNOWN:
        values = i[1].values()
        if values is None:
            return []
        axes = [int(value) for value in values]
    if i[0].dims is None or (not axes and a.number("noop_with_empty_axes", 0)):
        return [Known(i[0].dims)]
    numbers = None
    listed = i[0].values()
    if listed is not None and len(i[0].dims) == 1 and not lacks(listed):
        if a.node.op_type == "ReduceProd":
            numbers = (product(listed),)
        elif a.node.op_type == "ReduceSum":
            numbers = (sum(listed),)
        elif a.node.op_type in ("ReduceMax", "ReduceMin") and len(listed) == 1:
            numbers = (listed[0],)
    return [Known(_reduced(i[0].dims, axes, bool(a.number("keepdims", 1))), numbers)]


def _arg(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    if i[0].dims is None:
        return []
    return [Known(_reduced(i[0].dims, [a.number("axis", 0)], bool(a.number("keepdims", 1))))]


def _divided(x: Number, y: Number) -> Number:
    whole = all(isinstance(n, (int, np.integer)) or getattr(n, "dtype", None) == np.int64
                for n in (x, y))  # fmt: skip
    if whole:
        if not isinstance(y, np.ndarray) and y == 0:
            return None
        return np.sign(x) * np.sign(y) * (abs(x) // np.maximum(abs(y), 1))
    return None if not isinstance(y, np.ndarray) and y == 0 else x / y


_ARITHMETIC: dict[str, Callable[[Number, Number], Number]] = {
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Max": np.maximum,
    "Min": np.minimum,
    "Pow": lambda x, y: x**y,
    "Mod": lambda x, y: x % y,
    "Equal": lambda x, y: x == y,
    "Greater": lambda x, y: x > y,
    "GreaterOrEqual": lambda x, y: x >= y,
    "Less": lambda x, y: x < y,
    "LessOrEqual": lambda x, y: x <= y,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Div": _divided,
}


def _elementwise(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = p.broadcast(*(one.dims for one in i))
    kind = a.node.op_type
    numbers = None
    combine = _ARITHMETIC.get(kind)
    if combine is not None and len(i) == 2 and dims is not None and len(dims) <= 1:
        one, other = i[0].values(), i[1].values()
        if one is not None and other is not None and 1 in (len(one), len(other)):
            many = max(len(one), len(other))
            pairs = zip(one * (many // len(one)) if len(one) == 1 else one,
                        other * (many // len(other)) if len(other) == 1 else other,
                        strict=False)  # fmt: skip
            numbers = tuple(
                None if x is None or y is None else plain(combine(x, y)) for x, y in pairs
            )
        elif one is not None and other is not None and len(one) == len(other):
            numbers = tuple(
                None if x is None or y is None else plain(combine(x, y))
                for x, y in zip(one, other, strict=True)
            )
    if kind == "Equal" and len(i) == 2:
        for value, constant in ((i[0], i[1]), (i[1], i[0])):
            compared = only(constant.values())
            if value.source is not None and (classes := _classes(constant)):
                p.bound(Known(source=value.source), classes)
            if value.source is not None and compared is not None and constant.source is None:
                p.compared.setdefault(value.source[0], []).append(compared)
    return [Known(dims, numbers, _shifted(kind, i), _most(kind, i))]


def _classes(constant: Known) -> int | None:
    """Return how many classes are compared with, where a constant lists them, as in a one-hot."""
    tensor = constant.tensor
    if tensor is None or not 1 < tensor.element_count <= _MOST_CLASSES:
        return None
    try:
        listed = tensor.read().reshape(-1)
    except (DldError, ValueError):
        return None
    is_counted = listed.dtype.kind in "iu" and int(listed.min()) >= 0
    return int(listed.max()) + 1 if is_counted else None


def _shifted(kind: str, i: list[Known]) -> tuple[str, int] | None:
    """Return where elements come from that a constant is added to."""
    if kind not in ("Add", "Sub") or len(i) != 2:
        return None
    for value, constant, sign in ((i[0], i[1], 1 if kind == "Add" else -1), (i[1], i[0], 1)):
        number = only(constant.values())
        if value.source is not None and isinstance(number, int) and constant.source is None:
            name, added = value.source
            return (name, added + sign * number) if kind == "Add" or value is i[0] else None
    return None


def _most(kind: str, i: list[Known]) -> Number:
    if kind == "Add" and len(i) == 2:
        mosts = [one.most if one.most is not None else only(one.values()) for one in i]
        if not lacks(mosts) and any(one.most is not None for one in i):
            return mosts[0] + mosts[1]
    return None


def _where(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = p.broadcast(*(one.dims for one in i))
    listed = [one.values() for one in i]
    numbers = None
    if dims is not None and len(dims) <= 1 and all(one is not None for one in listed):
        many = max(len(one) for one in listed if one is not None)
        rows = [one * many if len(one) == 1 else one for one in listed if one is not None]
        if all(len(row) == many for row in rows):
            numbers = tuple(
                None if lacks((c, x, y)) else plain(np.where(c, x, y)[()])
                for c, x, y in zip(*rows, strict=True)
            )
    return [Known(dims, numbers)]


def _not(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    numbers = i[0].values()
    if numbers is not None:
        numbers = tuple(None if n is None else plain(np.logical_not(n)) for n in numbers)
    return [Known(i[0].dims, numbers)]


def _rounded(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    how: Any = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.round, "Neg": np.negative,
           "Sqrt": np.sqrt, "Abs": np.abs}[a.node.op_type]  # fmt: skip
    numbers = i[0].values()
    if numbers is not None:
        numbers = tuple(None if n is None else plain(how(n)) for n in numbers)
    return [Known(i[0].dims, numbers)]


def _shape(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    if dims is None:
        return []
    part = dims[a.number("start", 0) : a.number("end", len(dims))]
    return [Known((len(part),), tuple(part))]


def _size(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    return [Known((), (None if i[0].dims is None else product(i[0].dims),))]


def _constant(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    return [a.constant()]


def _constant_of_shape(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    sizes = i[0].values()
    if sizes is None:
        rank = i[0].dims[0] if i[0].dims else None
        return [Known((None,) * rank if isinstance(rank, int) else None)]
    numbers = None
    count = None if lacks(sizes) else only((product(sizes),))
    if len(sizes) <= 1 and isinstance(count, int) and 0 <= count <= MOST_NUMBERS:
        values = a.constant().values() if a.node.proto.attribute else (0.0,)
        value = values[0] if values else 0.0
        numbers = (value,) * count
    return [Known(tuple(sizes), numbers)]


def _range(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    start, limit, delta = (None if one.values() is None else one.values()[0] for one in i)  # type: ignore[index]
    if start is None or limit is None or delta is None:
        return [Known((None,))]
    if isinstance(delta, np.ndarray) or not delta:
        return [Known((None,))]
    count = np.maximum(np.ceil((limit - start) / delta), 0)
    count = count.astype(np.int64) if isinstance(count, np.ndarray) else int(count)
    numbers = None
    if isinstance(count, int) and count <= MOST_NUMBERS and not isinstance(start, np.ndarray):
        numbers = tuple(start + at * delta for at in range(count))
    return [Known((count,), numbers, None, limit - 1 if delta > 0 else None)]


def _cumulated(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    """CumSum: of ones, it counts to the length."""
    axis = i[1].values() if len(i) > 1 else None
    dims = i[0].dims
    most = dims[int(axis[0])] if dims and axis and isinstance(axis[0], int) else None
    return [Known(dims, None, None, most)]


def _non_zero(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    return [Known((None if i[0].dims is None else len(i[0].dims), None))]


NUMBER_RULES: dict[str, Rule] = {
    "Constant": _constant, "Identity": _copied, "Cast": _cast, "Shape": _shape, "Size": _size,
    "ConstantOfShape": _constant_of_shape, "Range": _range, "Where": _where, "Not": _not,
    "ArgMax": _arg, "ArgMin": _arg, "CumSum": _cumulated, "NonZero": _non_zero,
    **dict.fromkeys(("Floor", "Ceil", "Round", "Neg", "Sqrt", "Abs"), _rounded),
    **dict.fromkeys((*_ARITHMETIC, "Sum", "Mean", "Xor", "PRelu", "BitShift", "BitwiseAnd",
                     "BitwiseOr", "BitwiseXor"), _elementwise),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                     "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"), _reduce),
}  # fmt: skip
"""By operator."""
