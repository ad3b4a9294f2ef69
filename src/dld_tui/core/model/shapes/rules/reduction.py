"""Operators that take dimensions away or choose along them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.size import UNKNOWN, Size, maximum, minimum, number_of, product
from dld_tui.core.model.shapes.value import NOTHING, Dims, Value


def _reduced(dims: Dims, axes: Sequence[int], *, keep: bool) -> Dims:
    chosen = {axis % len(dims) for axis in axes} if dims else set()
    if keep:
        return tuple(1 if at in chosen else dim for at, dim in enumerate(dims))
    return tuple(dim for at, dim in enumerate(dims) if at not in chosen)


def _reduce(c: Call) -> Sequence[Value]:
    dims, axes, keep = c.dims(), c.numbers("axes"), bool(c.number("keepdims", 1))
    if axes is None and c.has(1):
        axes = c.whole(1)
        if axes is None:
            if dims is None or not keep:
                return [NOTHING]
            return [Value((UNKNOWN,) * len(dims))]
    if dims is None:
        return [Value(()) if not axes and not keep and not c.number("noop_with_empty_axes", 0)
                else NOTHING]  # fmt: skip
    if not axes and c.number("noop_with_empty_axes", 0):
        return [Value(dims)]
    chosen = axes or range(len(dims))
    result_dims = _reduced(dims, chosen, keep=keep)
    numbers = None
    listed = c.values(0)
    if listed and len(dims) == 1:
        numbers = _of_all(c.operator, listed)
    return [Value(result_dims, numbers)]


def _of_all(operator: str, listed: tuple[Size, ...]) -> tuple[Size, ...] | None:
    if operator == "ReduceProd":
        return (product(listed),)
    if operator == "ReduceSum":
        return (sum(listed),)
    if operator == "ReduceMax":
        return (reduce(maximum, listed),)
    if operator == "ReduceMin":
        return (reduce(minimum, listed),)
    return None


def _arg(c: Call) -> Sequence[Value]:
    dims = c.dims()
    if dims is None:
        return [NOTHING]
    return [Value(_reduced(dims, [c.number("axis", 0)], keep=bool(c.number("keepdims", 1))))]


def _top(c: Call) -> Sequence[Value]:
    dims = c.dims()
    if dims is None:
        return [NOTHING]
    axis = c.number("axis", -1) % len(dims)
    count: Size = c.element(1) if c.version >= 10 or c.has(1) else c.number("k", 1)
    c.demands.at_least(dims[axis], count, "there are as many elements along the axis as TopK takes")
    return [Value((*dims[:axis], count, *dims[axis + 1 :]))] * 2


def _non_zero(c: Call) -> Sequence[Value]:
    dims, listed = c.dims(), c.array_of(0)
    if dims is None:
        return [Value((UNKNOWN, UNKNOWN))]
    if listed is not None:
        places = listed.nonzero()
        return [Value((len(dims), len(places[0])), tuple(int(at) for row in places for at in row))]
    return [Value((len(dims) or 1, UNKNOWN))]


def _compress(c: Call) -> Sequence[Value]:
    """Compress: how many are taken depends on the elements of the condition."""
    listed = c.whole(1)
    count: Size = UNKNOWN if listed is None else sum(map(bool, listed))
    dims = c.dims()
    if c.attribute("axis") is None:
        return [Value((count,))]
    if dims is None:
        return [NOTHING]
    axis = c.number("axis", 0) % len(dims)
    return [Value((*dims[:axis], count, *dims[axis + 1 :]))]


def _unique(c: Call) -> Sequence[Value]:
    dims = c.dims()
    if c.attribute("axis") is None:
        result_dims: Dims | None = (UNKNOWN,)
    elif dims is None:
        result_dims = None
    else:
        axis = c.number("axis", 0) % len(dims)
        result_dims = (*dims[:axis], UNKNOWN, *dims[axis + 1 :])
    whole: Size = UNKNOWN
    if dims is not None:
        whole = product(dims) if c.attribute("axis") is None else dims[c.number("axis", 0)]
    return [Value(result_dims), Value((UNKNOWN,)), Value((whole,)), Value((UNKNOWN,))]


def _suppressed(c: Call) -> Sequence[Value]:
    """NonMaxSuppression: three indexes for each box that is selected."""
    return [Value((UNKNOWN, 3))]


def _drawn(c: Call) -> Sequence[Value]:
    dims = c.dims()
    return [Value((UNKNOWN if dims is None else dims[0], c.number("sample_size", 1)))]


def _loss(c: Call) -> Sequence[Value]:
    """NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss; the latter returns scores, too."""
    scores, labels = c.dims(0), c.dims(1)
    loss: Dims | None = ()
    if c.text("reduction", "mean") == "none":
        loss = labels
        if loss is None and scores is not None:
            loss = (scores[0], *scores[2:])
    return [Value(loss), Value(scores)]


def _one_hot(c: Call) -> Sequence[Value]:
    dims, depth = c.dims(), c.element(1)
    depth = number_of(depth) if isinstance(depth, float) else depth
    depth = int(depth) if isinstance(depth, float) else depth
    c.demands.bound(c.input(0), depth)
    if dims is None:
        return [NOTHING]
    axis = c.number("axis", -1)
    at = axis if axis >= 0 else axis + len(dims) + 1
    return [Value((*dims[:at], depth, *dims[at:]))]


STANDARD: dict[str, Callable[[Call], Sequence[Value]]] = {
    "ArgMax": _arg, "ArgMin": _arg, "TopK": _top, "NonZero": _non_zero, "Compress": _compress,
    "Unique": _unique, "NonMaxSuppression": _suppressed, "Multinomial": _drawn,
    "NegativeLogLikelihoodLoss": _loss, "SoftmaxCrossEntropyLoss": _loss, "OneHot": _one_hot,
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                     "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"), _reduce),
}  # fmt: skip
"""By operator of ai.onnx."""


def _counted_unique(c: Call) -> Sequence[Value]:
    dims = c.dims()
    return [Value((UNKNOWN,)), Value((UNKNOWN if dims is None else dims[0],)), Value((UNKNOWN,))]


def _warped(c: Call) -> Sequence[Value]:
    return [Value((2, UNKNOWN))]


CONTRIB: dict[str, Callable[[Call], Sequence[Value]]] = {
    "Unique": _counted_unique, "DynamicTimeWarping": _warped, "ReduceSumInteger": _reduce,
}  # fmt: skip
"""By operator of com.microsoft."""
