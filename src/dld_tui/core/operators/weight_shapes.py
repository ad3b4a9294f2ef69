"""The shape that a weight of an operator most likely has, told by the operator's other inputs.

Only what ONNX's own definitions say is used: where a size is free, such as the number of output
channels, that of the input is offered, which keeps what follows valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Sizes: TypeAlias = "tuple[int | str | None, ...] | None"
"""Dimensions of an input as far as they are known; None when even the rank is not."""
Settings: TypeAlias = "Mapping[str, object]"
"""Attributes by name: numbers and lists of them."""

_CHANNEL_VECTORS = {
    "BatchNormalization": (1, 2, 3, 4), "InstanceNormalization": (1, 2),
    "GroupNormalization": (1, 2),
}  # fmt: skip
"""Inputs that have one element for each channel, axis 1 of the first input."""
_SCALARS = {
    "QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2), "Clip": (1, 2), "OneHot": (1,),
    "ConstantOfShape": (), "Range": (0, 1, 2), "Dropout": (1, 2), "Pad": (2,), "TopK": (),
}  # fmt: skip
_KERNEL = 3
"""Of a convolution whose ``kernel_shape`` is not said."""


def weight_dims(op_type: str, at: int, inputs: Sequence[Sizes], settings: Settings) -> Sizes:
    """Return the most likely dimensions of an input that is to be a new initializer.

    Args:
        op_type: An operator of ai.onnx.
        at: Which input.
        inputs: Dimensions of its inputs.
        settings: The attributes that are set.

    Returns:
        Numbers only; None when nothing tells.
    """
    first = inputs[0] if inputs else None
    channels = _size(first, 1)
    if op_type in ("Conv", "ConvTranspose"):
        return _convolution(op_type, at, inputs, settings)
    if at in _CHANNEL_VECTORS.get(op_type, ()):
        return None if channels is None else (channels,)
    if at in _SCALARS.get(op_type, ()):
        return ()
    if op_type == "MatMul":
        return _matmul(at, inputs)
    if op_type == "Gemm":
        return _gemm(at, inputs, settings)
    if op_type in ("LayerNormalization", "RMSNormalization") and at in (1, 2):
        axis = settings.get("axis", -1)
        return _numbers(first[axis:]) if first and isinstance(axis, int) else None
    if op_type == "PRelu" and at == 1 and first is not None and channels is not None:
        return (channels, *[1] * (len(first) - 2))
    if op_type == "Reshape" and at == 1:
        return (len(first),) if first is not None else None
    others = [sizes for place, sizes in enumerate(inputs) if place != at and sizes]
    if others and op_type in _BROADCAST:
        last = others[0][-1]
        return (last,) if isinstance(last, int) else (1,)
    return None


_BROADCAST = frozenset(
    ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum", "Mod", "Equal", "Less",
     "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor", "Where")
)  # fmt: skip


def _convolution(op_type: str, at: int, inputs: Sequence[Sizes], settings: Settings) -> Sizes:
    first = inputs[0] if inputs else None
    weight = inputs[1] if len(inputs) > 1 else None
    channels, groups = _size(first, 1), settings.get("group", 1)
    if not isinstance(groups, int) or groups < 1:
        groups = 1
    if at == 1:
        if first is None or channels is None:
            return None
        kernel = settings.get("kernel_shape")
        sizes = list(kernel) if isinstance(kernel, (list, tuple)) else [_KERNEL] * (len(first) - 2)
        whole = max(1, channels // groups)
        return (channels, whole, *(int(size) for size in sizes))
    if at == 2:  # one for each output channel
        if op_type == "ConvTranspose":
            size = _size(weight, 1)
            return None if size is None else (size * groups,)
        size = _size(weight, 0)
        return None if size is None else (size,)
    return None


def _matmul(at: int, inputs: Sequence[Sizes]) -> Sizes:
    other = inputs[1 - at] if len(inputs) > 1 - at else None
    if other is None or len(other) < 2:
        return None
    size = _size(other, len(other) - 1 if at == 1 else len(other) - 2)
    return None if size is None else (size, size)


def _gemm(at: int, inputs: Sequence[Sizes], settings: Settings) -> Sizes:
    first = inputs[0] if inputs else None
    second = inputs[1] if len(inputs) > 1 else None
    if at == 1:
        size = _size(first, 0 if settings.get("transA") else 1)
        return None if size is None else (size, size)
    if at == 2:
        size = _size(second, 0 if settings.get("transB") else 1)
        return None if size is None else (size,)
    return None


def _size(sizes: Sizes, axis: int) -> int | None:
    if sizes is None or axis >= len(sizes):
        return None
    size = sizes[axis]
    return size if isinstance(size, int) and size > 0 else None


def _numbers(sizes: Sequence[int | str | None]) -> Sizes:
    found = [size for size in sizes if isinstance(size, int) and size > 0]
    return tuple(found) if len(found) == len(sizes) else None
