"""Operators that compute element by element, that make constants, and numbers of shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dld_tui.core.files import protos as onnx
from dld_tui.core.model.operators.categories import BROADCASTING
from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.size import (
    UNKNOWN,
    Polynomial,
    Size,
    at_least,
    both,
    chosen,
    either,
    equal,
    maximum,
    minimum,
    number_of,
    plain,
    product,
    rounded,
    truncated,
)
from dld_tui.core.model.shapes.value import MOST_ELEMENTS, NOTHING, Value, scalar, vector

_T = onnx.TensorProto
_INTEGERS = frozenset((_T.INT64, _T.INT32, _T.INT16, _T.INT8))
_FLOATS = frozenset((_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16))


def same(c: Call) -> Sequence[Value]:
    """Return results with the shape of the first input."""
    return [Value(c.dims())] * c.outputs


def copied(c: Call) -> Sequence[Value]:
    """Return the first input."""
    value = c.input(0)
    return [Value(value.dims, value.values(), value.source, value.upper_bound, None, value.items,
                  value.is_sequence)]  # fmt: skip


def _cast(c: Call) -> Sequence[Value]:
    value, to = c.input(0), c.number("to", 0)
    numbers = value.values()
    if numbers is not None:
        numbers = tuple(_converted(number, to) for number in numbers)
    return [Value(value.dims, numbers, value.source, value.upper_bound)]


def _cast_like(c: Call) -> Sequence[Value]:
    return [Value(c.dims())]


def _converted(number: Size, to: int) -> Size:
    if number is UNKNOWN or isinstance(number, (str, bytes)):
        return UNKNOWN
    if to in _INTEGERS:
        if isinstance(number, Polynomial):
            return rounded(number, "Trunc")
        if isinstance(number, np.ndarray):
            return np.trunc(number).astype(np.int64)
        if not math.isfinite(number) or (to != _T.INT64 and abs(number) >= 1 << 31):
            return UNKNOWN
        return int(number)
    if to == _T.BOOL:
        return _logical_not(_tristate(equal(number, 0)))
    return number * 1.0 if to in _FLOATS else UNKNOWN


def _tristate(holds: Any) -> Size:
    return UNKNOWN if holds is None else plain(holds)


def _logical_not(truth: Size) -> Size:
    return UNKNOWN if truth is UNKNOWN else plain(np.logical_not(truth))


def _is_whole(number: Size) -> bool:
    if isinstance(number, Polynomial):
        return number.is_whole
    return isinstance(number, (int, np.integer)) or getattr(number, "dtype", None) == np.int64


def _divided(x: Size, y: Size) -> Size:
    if x is UNKNOWN or y is UNKNOWN:
        return UNKNOWN
    if _is_whole(x) and _is_whole(y):
        return truncated(x, y)
    return UNKNOWN if number_of(y) == 0 else x / y


def _remainder(x: Size, y: Size) -> Size:
    return UNKNOWN if number_of(y) == 0 else x % y


def _power(x: Size, y: Size) -> Size:
    """Return a power; UNKNOWN where ONNX does not define it, or 64 bits do not hold it."""
    if isinstance(y, float) and y.is_integer():
        y = int(y)
    if _is_whole(x) and (isinstance(y, float) or (isinstance(y, int) and y < 0)):
        return UNKNOWN
    if not (isinstance(x, (int, float)) and isinstance(y, (int, float))):
        return x**y
    power = np.float64(x) ** y  # Python raises for 0.0 ** -1, and leaves the reals for -2.0 ** 0.5
    if isinstance(x, float):
        return plain(power)
    return x**y if abs(power) < 1 << 63 else UNKNOWN


def _or_none(truth: Size) -> Any:
    return None if truth is UNKNOWN else truth


_ARITHMETIC: dict[str, Callable[[Size, Size], Size]] = {
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Max": maximum,
    "Min": minimum,
    "Pow": _power,
    "Mod": _remainder,
    "Equal": lambda x, y: _tristate(equal(x, y)),
    "Greater": lambda x, y: _logical_not(_tristate(at_least(y, x))),
    "GreaterOrEqual": lambda x, y: _tristate(at_least(x, y)),
    "Less": lambda x, y: _logical_not(_tristate(at_least(x, y))),
    "LessOrEqual": lambda x, y: _tristate(at_least(y, x)),
    "And": lambda x, y: _tristate(both(_or_none(x), _or_none(y))),
    "Or": lambda x, y: _tristate(either(_or_none(x), _or_none(y))),
    "Div": _divided,
}


def _combined(values: Sequence[Value], combine: Callable[..., Size]) -> tuple[Size, ...] | None:
    """Return the elements of a result whose inputs are broadcast, where they are few and known."""
    if any(value.elements is None and value.tensor is None for value in values):
        return None
    listed = [value.values() for value in values]
    if any(value is None for value in listed):
        return None
    rows = [row for row in listed if row is not None]
    length = max(map(len, rows))
    if not all(map(len, rows)) or length > MOST_ELEMENTS:
        return None
    if all(value.dims is not None and len(value.dims) <= 1 for value in values) or length == 1:
        if any(len(row) not in (1, length) for row in rows):
            return None
        spread = [row * length if len(row) == 1 else row for row in rows]
        return tuple(combine(*numbers) for numbers in zip(*spread, strict=True))
    arrays = [value.array() for value in values]
    if any(array is None for array in arrays):
        return None
    spread_arrays = np.broadcast_arrays(*[array for array in arrays if array is not None])
    if spread_arrays[0].size > MOST_ELEMENTS:
        return None
    return tuple(
        combine(*numbers)
        for numbers in zip(*(array.reshape(-1) for array in spread_arrays), strict=True)
    )


def broadcast(c: Call) -> Sequence[Value]:
    """Return a result of inputs that are broadcast."""
    inputs = c.inputs
    if (
        c.version < 7
        and c.operator in _ARITHMETIC
        and len(inputs) == 2
        and c.number("broadcast", 0)
    ):
        dims = inputs[0].dims  # what is in the second one is stretched over this
    else:
        dims = c.demands.broadcast(*(value.dims for value in inputs))
    combine = _ARITHMETIC.get(c.operator)
    numbers = None
    if combine is not None and len(inputs) == 2 and not (
        c.operator == "Mod" and c.number("fmod", 0)
    ):  # fmt: skip
        numbers = _combined(inputs, combine)
    return [Value(dims, numbers, _shifted(c), _upper_bound(c))]


def _shifted(c: Call) -> tuple[str, int] | None:
    """Return where elements come from that a constant is added to."""
    if c.operator not in ("Add", "Sub") or len(c.inputs) != 2:
        return None
    first, second = c.inputs
    for value, constant, sign in (
        (first, second, 1 if c.operator == "Add" else -1),
        (second, first, 1),
    ):
        if value.source is None or constant.source is not None:
            continue
        values = constant.values()
        number = number_of(values[0]) if values is not None and len(values) == 1 else None
        if isinstance(number, int):
            name, added = value.source
            is_moved = c.operator == "Add" or value is first
            return (name, added + sign * number) if is_moved else None
    return None


def _upper_bound(c: Call) -> Size | None:
    if c.operator != "Add" or len(c.inputs) != 2:
        return None
    if all(value.upper_bound is None for value in c.inputs):
        return None
    bounds = [
        value.upper_bound if value.upper_bound is not None else c.element(at)
        for at, value in enumerate(c.inputs)
    ]
    return bounds[0] + bounds[1]


def _where(c: Call) -> Sequence[Value]:
    dims = c.demands.broadcast(*(value.dims for value in c.inputs))
    return [Value(dims, _combined(c.inputs, chosen))]


def _one_number(how: Callable[[Size], Size]) -> Callable[[Call], Sequence[Value]]:
    """Return the rule of an operator with one input whose elements are followed."""

    def rule(c: Call) -> Sequence[Value]:
        numbers = c.values(0)
        if numbers is not None:
            numbers = tuple(number if number is UNKNOWN else how(number) for number in numbers)
        return [Value(c.dims(), numbers)]

    return rule


def _whole_number(how: str, function: Any) -> Callable[[Size], Size]:
    def rule(number: Size) -> Size:
        if isinstance(number, Polynomial):
            return rounded(number, how) * 1.0
        return plain(function(number))

    return rule


def _absolute(number: Size) -> Size:
    if isinstance(number, Polynomial):
        return number if at_least(number, 0) is True else UNKNOWN
    return plain(np.abs(number))


def _number(function: Any) -> Callable[[Size], Size]:
    def rule(number: Size) -> Size:
        return UNKNOWN if isinstance(number, Polynomial) else plain(function(number))

    return rule


def _clip(c: Call) -> Sequence[Value]:
    numbers = c.values(0)
    if numbers is None or len(numbers) > MOST_ELEMENTS or c.attribute("min") or c.attribute("max"):
        return [Value(c.dims())]
    if c.has(1):
        low = c.element(1)
        numbers = tuple(maximum(number, low) for number in numbers)
    if c.has(2):
        high = c.element(2)
        numbers = tuple(minimum(number, high) for number in numbers)
    return [Value(c.dims(), numbers)]


def _shape(c: Call) -> Sequence[Value]:
    dims = c.dims()
    if dims is None:
        return [Value((UNKNOWN,))]
    return [vector(dims[c.number("start", 0) : c.number("end", len(dims))])]


def _size(c: Call) -> Sequence[Value]:
    dims = c.dims()
    return [scalar(UNKNOWN if dims is None else product(dims))]


def _constant(c: Call) -> Sequence[Value]:
    return [c.constant()]


def of_sizes(c: Call, at: int) -> tuple[Size, ...] | None:
    """Return a shape that is given by an input, where at least its length is known."""
    sizes = c.values(at)
    if sizes is not None:
        return sizes
    dims = c.dims(at)
    rank = number_of(dims[0]) if dims is not None and len(dims) == 1 else None
    return None if rank is None or rank > MOST_ELEMENTS else (UNKNOWN,) * int(rank)


def _constant_of_shape(c: Call) -> Sequence[Value]:
    sizes = of_sizes(c, 0)
    if sizes is None:
        return [NOTHING]
    count = number_of(product(sizes))
    numbers = None
    if count is not None and 0 <= count <= MOST_ELEMENTS and all(
        isinstance(size, int) for size in sizes
    ):  # fmt: skip
        proto = c.attribute("value")
        listed = (0.0,) if proto is None else c.value_of(proto).values()
        numbers = listed[:1] * count if listed else None
    return [Value(sizes, numbers)]


def _range(c: Call) -> Sequence[Value]:
    start, limit = c.element(0), c.element(1)
    delta = c.element(2) if c.has(2) else 1
    step = number_of(delta)
    if start is UNKNOWN or limit is UNKNOWN or not step:
        return [Value((UNKNOWN,))]
    length = limit - start
    if all(isinstance(part, (int, Polynomial)) for part in (start, limit, step)):
        count = maximum(-(-length // step), 0)
    elif isinstance(length, Polynomial):
        count = maximum(rounded(length / step, "Ceil"), 0)
    else:
        count = np.maximum(np.ceil(length / step), 0)
        count = count.astype(np.int64) if isinstance(count, np.ndarray) else int(count)
    numbers = None
    if isinstance(count, int) and count <= MOST_ELEMENTS and not isinstance(start, np.ndarray):
        numbers = tuple(start + at * step for at in range(count))
    return [Value((count,), numbers, None, limit - 1 if step > 0 else None)]


def _cumulated(c: Call) -> Sequence[Value]:
    """CumSum: of ones, it counts to the length."""
    axis, dims = number_of(c.element(1)), c.dims()
    upper_bound = dims[int(axis)] if dims and axis is not None else None
    numbers = c.values(0)
    if dims is None or len(dims) != 1 or numbers is None or (
        c.number("exclusive", 0) or c.number("reverse", 0) or c.operator != "CumSum"
    ):  # fmt: skip
        return [Value(dims, None, None, upper_bound)]
    total: Size = 0
    sums = []
    for number in numbers:
        total = total + number
        sums.append(total)
    return [Value(dims, tuple(sums), None, upper_bound)]


def _eye_like(c: Call) -> Sequence[Value]:
    return [Value(c.dims())]


def _dynamic_quantize(c: Call) -> Sequence[Value]:
    return [Value(c.dims()), Value(()), Value(())]


def _scaled(c: Call) -> Sequence[Value]:
    """QuantizeLinear and DequantizeLinear: a scale for all, for each of an axis, or for blocks."""
    dims, scale, zeros = c.dims(), c.dims(1), c.dims(2)
    axis, block = c.number("axis", 1), c.number("block_size", 0)
    if scale and dims and -len(dims) <= axis < len(dims) and (block or scale != (1,)):
        wanted = [*dims] if block else [dims[axis]]
        size = dims[axis]
        if block:
            wanted[axis] = -(-size // block) if isinstance(size, int) else UNKNOWN
        what = f"blocks of {block} along" if block else "each of"
        for sizes in (scale, zeros if zeros is not None else scale):
            c.demands.require(len(sizes) == len(wanted), f"the scales are for {what} axis {axis}")
            for actual, expected in zip(sizes, wanted, strict=False):
                c.demands.equal(actual, expected, f"there is one scale for {what} axis {axis}")
    return [Value(dims)]


def _two_alike(c: Call) -> Sequence[Value]:
    """Dropout, and others whose results all have the shape of the input."""
    return [Value(c.dims()), Value(c.dims())]


_ONE_TO_ONE = (
    "Acos", "Acosh", "Affine", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "BitCast",
    "BitwiseNot", "Celu", "Cos", "Cosh", "CumProd", "Elu", "Erf", "Exp",
    "Gelu", "HardSigmoid", "HardSwish", "Hardmax", "ImageScaler", "IsInf",
    "IsNaN", "LRN", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization",
    "MeanVarianceNormalization", "MemcpyFromHost", "MemcpyToHost", "Mish", "ParametricSoftplus",
    "RandomNormalLike", "RandomUniformLike", "Reciprocal", "RegexFullMatch",
    "ReverseSequence", "Scale", "ScaledTanh", "Scatter", "ScatterElements", "Selu",
    "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "SwiGLU",
    "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
)  # fmt: skip
"""Operators whose results have the shape of the first input."""

STANDARD: dict[str, Callable[[Call], Sequence[Value]]] = {
    "Constant": _constant, "Identity": copied, "Cast": _cast, "CastLike": _cast_like,
    "Shape": _shape, "Size": _size, "ConstantOfShape": _constant_of_shape, "Range": _range,
    "Where": _where, "CumSum": _cumulated, "EyeLike": _eye_like, "Clip": _clip,
    "Not": _one_number(_logical_not), "Abs": _one_number(_absolute),
    "Neg": _one_number(lambda number: -number),
    "Relu": _one_number(lambda number: maximum(number, 0)),
    "Floor": _one_number(_whole_number("Floor", np.floor)),
    "Ceil": _one_number(_whole_number("Ceil", np.ceil)),
    "Round": _one_number(_number(np.round)), "Sqrt": _one_number(_number(np.sqrt)),
    "DynamicQuantizeLinear": _dynamic_quantize, "Dropout": _two_alike,
    "QuantizeLinear": _scaled, "DequantizeLinear": _scaled,
    **dict.fromkeys(sorted(BROADCASTING - {"Where"}), broadcast),
    **dict.fromkeys(_ONE_TO_ONE, same),
}  # fmt: skip
"""By operator of ai.onnx."""


def _quantized_pair(c: Call) -> Sequence[Value]:
    """QLinearAdd and the like: each of two operands has a scale and a zero point."""
    return [Value(c.demands.broadcast(c.dims(0), c.dims(3)))]


def _quantized_where(c: Call) -> Sequence[Value]:
    """QLinearWhere: condition, then two operands, each with a scale and a zero point."""
    return [Value(c.demands.broadcast(c.dims(0), c.dims(1), c.dims(4)))]


CONTRIB: dict[str, Callable[[Call], Sequence[Value]]] = {
    "Range": _range, "QLinearAdd": _quantized_pair, "QLinearMul": _quantized_pair,
    "QLinearWhere": _quantized_where, "LinearAttentionGate": same, "EngramGate": same,
    **dict.fromkeys((
        "BiasAdd", "BiasDropout", "BiasGelu", "BiasSoftmax", "BranchwiseRMSNorm",
        "DequantizeLinear", "FastGelu", "GatedAdd", "GatedRMSNorm", "Gelu", "GroupNorm",
        "HyperConnectionPostMix", "Inverse", "MRotaryEmbedding", "MoE", "MurmurHash3",
        "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QMoE", "QuantizeLinear",
        "QuickGelu", "SampleOp", "ScaledSiLU", "SwiGLU", "Trilu",
    ), same),
}  # fmt: skip
"""By operator of com.microsoft."""
