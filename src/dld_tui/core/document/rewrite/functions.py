"""The functions that expressions can call, and the value that stands for "not known"."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_ELEMENTS = 1 << 26
"""Of a tensor that an expression makes."""
_MOST_AXES = 64

TYPED = frozenset(("shape", "dtype", "rank", "split", "joined", "repeated", "sizes", "folded"))
"""Fields of a value that shape inference may have to find."""


class Unknown:
    """What the model does not say."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Function:
    """A function by its usage, which shows its arguments: ``?`` marks optional ones."""

    usage: str
    help: str
    work: Callable[..., Any]
    takes_unknown: bool = False
    """Whether it is asked even where a value is not known."""

    @property
    def most(self) -> int:
        """The most values that it takes."""
        inner = self.usage[self.usage.index("(") + 1 : -1]
        return 100 if "…" in inner else inner.count(",") + 1

    @property
    def least(self) -> int:
        """The fewest values that it takes."""
        return 1 if "…" in self.usage else self.most - self.usage.count("?")


def is_number(value: Any) -> bool:
    """Return whether a value is one number."""
    return isinstance(value, (int, float, np.number))


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value)


def _elementwise(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def work(value: Any) -> Any:
        with np.errstate(all="ignore"):
            result = function(_numbers(value))
        return result if isinstance(value, np.ndarray) else result.item()

    return work


def _close(first: Any, second: Any, tolerance: float = 1e-4) -> bool:
    a, b = _numbers(first).astype(float), _numbers(second).astype(float)
    return bool(np.all(np.abs(a - b) <= tolerance * np.maximum(np.abs(b), 1e-30)))


def _axes(axes: Any) -> list[int]:
    return [int(axis) for axis in np.atleast_1d(_numbers(axes))]


def _is_last(axes: Any, rank: Any) -> Any:
    """Return whether axes are the last ones; a rank that is not known is no trouble for -1."""
    chosen = _axes(axes)
    if all(axis < 0 for axis in chosen):
        return sorted(chosen) == list(range(-len(chosen), 0))
    return sorted(axis % rank for axis in chosen) == list(range(rank - len(chosen), rank))


def _compose(outer: list[int], inner: list[int]) -> list[int]:
    return [inner[axis] for axis in outer]


def _invert(order: list[int]) -> list[int]:
    return [order.index(axis) for axis in range(len(order))]


def _bounded(dims: Any) -> tuple[int, ...]:
    shape = tuple(int(dim) for dim in np.atleast_1d(_numbers(dims)))
    if math.prod(max(dim, 1) for dim in shape) > MOST_ELEMENTS:
        raise ValueError("too many elements")
    return shape


def _cast(value: Any, dtype: str) -> np.ndarray[Any, Any]:
    from dld_tui.core.document.types.value_types import dtype_number

    number = dtype_number(dtype)
    if not number:
        raise ValueError(dtype)
    from onnx import helper

    return _numbers(value).astype(helper.tensor_dtype_to_np_dtype(number))


def _dtype_name(number: int) -> str:
    from dld_tui.core.document.types.value_types import dtype_name

    return dtype_name(number)


def in_bounds(first: Any, second: Any) -> bool:
    """Return whether what two values give when they are broadcast is not too large."""
    shape = np.broadcast_shapes(np.shape(first), np.shape(second))
    return math.prod(shape) <= MOST_ELEMENTS


def _of_each_two(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: function(x, y) if in_bounds(x, y) else UNKNOWN


def _either(first: Any, second: Any) -> Any:
    return second if first is UNKNOWN or first is None else first


def _joined(*tensors: Any) -> Any:
    return np.concatenate([_numbers(tensor) for tensor in tensors], axis=-1)


def _half(tensor: Any) -> Any:
    return tensor[..., : tensor.shape[-1] // 2]


def _repeats(tensor: Any) -> bool:
    size = tensor.shape[-1] // 2
    return bool(np.array_equal(tensor[..., :size], tensor[..., size:]))


def _quantized(x: Any, scale: Any) -> Any:
    return np.clip(np.rint(_numbers(x) / scale), -128, 127).astype(np.int8)


def _maxima(x: Any, axis: int) -> Any:
    """Return the largest sizes along an axis; never 0, so that they can divide."""
    others = tuple(other for other in range(x.ndim) if other != axis % x.ndim)
    peaks = np.abs(x).max(axis=others)
    return np.where(peaks == 0, np.ones_like(peaks), peaks)


def _sums(x: Any) -> Any:
    return x.reshape(x.shape[0], -1).sum(axis=1, dtype=np.float64).astype(x.dtype)


def _clamped(x: Any) -> Any:
    limits = np.iinfo(np.int32)
    return np.clip(_numbers(x), limits.min, limits.max).astype(np.int32)


def _known(x: Any) -> bool:
    return x is not UNKNOWN and x is not None


def _broadcast(first: Any, second: Any) -> Any:
    """Return the broadcast of two shapes; named dimensions are equal only to themselves."""
    longer, shorter = sorted((list(first), list(second)), key=len, reverse=True)
    shorter = [1] * (len(longer) - len(shorter)) + shorter
    result = []
    for long, short in zip(longer, shorter, strict=True):
        if long is UNKNOWN or short is UNKNOWN or (long != short and 1 not in (long, short)):
            return UNKNOWN
        result.append(short if long == 1 else long)
    return result


def _one_open(dims: Any) -> Any:
    """Return dimensions as a Reshape takes them: -1 for the one that is no number."""
    sizes = [dim if isinstance(dim, int) and dim > 0 else -1 for dim in dims]
    return sizes if sizes.count(-1) < 2 else UNKNOWN


def _merged_axes(inner: Any, outer: Any) -> Any:
    """Return the axes that one Unsqueeze adds for two: the outer ones are of the last result."""
    first, last = _axes(inner), _axes(outer)
    if min([*first, *last]) < 0 or max([*first, *last]) > _MOST_AXES:
        return UNKNOWN
    rest = [
        axis for axis in range(len(first) + len(last) + max([*first, *last])) if axis not in last
    ]
    return sorted([*last, *(rest[axis] for axis in first)])


def _padded(pads: Any, more: Any) -> Any:
    """Return the pads of a Conv with those of a Pad before it: of spatial axes, none taken away."""
    spatial, batch = [int(pad) for pad in more], len(more) // 2
    first, last = spatial[2:batch], spatial[batch + 2 :]
    if any([*spatial[:2], *spatial[batch : batch + 2]]) or min([*first, *last]) < 0:
        return UNKNOWN
    zero = [0] * (len(spatial) - 4)
    return [int(a) + b for a, b in zip(pads or zero, [*first, *last], strict=True)]


def _grown(x: Any, axis: int, multiple: int) -> Any:
    """Return a tensor padded with zeros along an axis, up to a multiple of a size."""
    tensor = _numbers(x)
    pads = [(0, 0)] * tensor.ndim
    pads[axis] = (0, -tensor.shape[axis] % multiple)
    _bounded([size + after for size, (_, after) in zip(tensor.shape, pads, strict=True)])
    return np.pad(tensor, pads)


def _functions(*functions: Function) -> dict[str, Function]:
    return {function.usage.partition("(")[0]: function for function in functions}


FUNCTIONS = _functions(
    Function("len(list)", "how many items", len),
    Function("abs(x)", "without the sign", _elementwise(np.abs)),
    Function("sqrt(x)", "the square root", _elementwise(np.sqrt)),
    Function("exp(x)", "e to the power of x", _elementwise(np.exp)),
    Function("log(x)", "the natural logarithm", _elementwise(np.log)),
    Function("min(list)", "the smallest item", lambda x: _numbers(x).min().item()),
    Function("max(list)", "the largest item", lambda x: _numbers(x).max().item()),
    Function("sum(list)", "all items together", lambda x: _numbers(x).sum().item()),
    Function("prod(list)", "the product of the items", lambda x: _numbers(x).prod().item()),
    Function("close(a, b, tolerance?)", "equal within 1e-4 of b, or so much", _close),
    Function("is_last(axes, rank)", "whether axes are the last ones of a rank", _is_last),
    Function("compose(p, q)", "the order of axes of Transpose<p> after Transpose<q>", _compose),
    Function("invert(p)", "the order of axes that takes p back", _invert),
    Function("range(n)", "0 to n - 1", lambda n: list(range(*_bounded(n)))),
    Function("dtype(number)", "the name of an element type, as Cast has it in `to`", _dtype_name),
    Function("cast(x, dtype)", "x in another element type", _cast),
    Function("reshape(x, dims)", "x in another shape", lambda x, d: np.reshape(x, _bounded(d))),
    Function("leading(dims)", "a shape without its last dimension", lambda x: list(x)[:-1]),
    Function("batch(dims)", "a shape without its last two dimensions", lambda x: list(x)[:-2]),
    Function("transpose(x, order?)", "x with its axes in another order", np.transpose),
    Function("either(x, y)", "x, or y where x is not known", _either, takes_unknown=True),
    Function("known(x)", "whether the model says what x is", _known, takes_unknown=True),
    Function("clamped(x)", "x as int32, clamped to its range", _clamped),
    Function("larger(x, y)", "the larger one of each two elements", _of_each_two(np.maximum)),
    Function("smaller(x, y)", "the smaller one of each two elements", _of_each_two(np.minimum)),
    Function("zeros(x)", "a tensor of 0 like x", np.zeros_like),
    Function("broadcast(a, b)", "the broadcast of two shapes", _broadcast),
    Function("one_open(dims)", "dims with -1 for the one that is not a number", _one_open),
    Function("merged(a, b)", "axes of one Unsqueeze for Unsqueeze<b> after <a>", _merged_axes),
    Function("padded(pads, p)", "pads of a Conv with those of a Pad before it", _padded),
    Function("concat(x, …)", "tensors one behind the other in their last axis", _joined),
    Function("half(x)", "the first half of the last axis", _half),
    Function("repeats(x)", "whether the last axis is its first half twice", _repeats),
    Function("maxima(x, axis)", "the largest absolute values along an axis", _maxima),
    Function("sums(x)", "the sum of each item of the first axis", _sums),
    Function("quantized(x, scale)", "x / scale as int8", _quantized),
    Function("grown(x, axis, multiple)", "x with zeros behind it along an axis", _grown),
    Function("full(dims, x)", "a tensor of one number", lambda d, x: np.full(_bounded(d), x)),
)  # fmt: skip
"""By name."""
