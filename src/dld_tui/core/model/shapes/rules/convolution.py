"""Convolutions, poolings, resizing, regions, and what else slides or samples over places."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.rules.elementwise import of_sizes
from dld_tui.core.model.shapes.size import (
    UNKNOWN,
    Polynomial,
    Size,
    at_least,
    chosen,
    maximum,
    number_of,
    plain,
    product,
    rounded,
)
from dld_tui.core.model.shapes.value import NOTHING, Dims, Value

_CHANNELS = "the channels of the data and of the weights are equal"
_CONVOLUTIONS = frozenset(("Conv", "ConvInteger", "QLinearConv", "FusedConv", "DeformConv"))
_ROOM = "the data with its padding is as large as the window"


def _window(c: Call, dims: Dims, kernel: Sequence[Size], *, ceil: bool = False) -> list[Size]:
    """Return the sizes of the places after a convolution or a pooling."""
    rank = len(kernel)
    strides = c.numbers("strides") or [1] * rank
    dilations = c.numbers("dilations") or [1] * rank
    pads = c.numbers("pads") or [0] * (2 * rank)
    how = c.text("auto_pad", "NOTSET")
    sizes: list[Size] = []
    for at, size in enumerate(dims):
        stride = strides[at]
        if how.startswith("SAME"):
            # Where a pooling is dilated, ONNX Runtime and onnx differ.
            is_told = c.operator in _CONVOLUTIONS or dilations[at] == 1
            sizes.append(-(-size // stride) if is_told else UNKNOWN)
            continue
        reach = (kernel[at] - 1) * dilations[at] + 1
        before, after = (0, 0) if how == "VALID" else (pads[at], pads[at + rank])
        room = size + (before + after) - reach
        c.demands.at_least(room, 0, _ROOM)
        if not ceil or stride == 1:
            sizes.append(room // stride + 1)
            continue
        count = -(-room // stride) + 1
        # The last window begins within the data or the padding before it.
        is_inside = at_least(size + before, (count - 1) * stride + 1)
        sizes.append(chosen(is_inside, count, count - 1))
    return sizes


def _weights(c: Call) -> int:
    return 3 if c.operator in ("QLinearConv",) else 1


def _conv(c: Call) -> Sequence[Value]:
    dims, shape = c.dims(0), c.dims(_weights(c))
    kernel: Sequence[Size] | None = c.numbers("kernel_shape")
    if dims is None or (shape is None and kernel is None):
        rank = len(shape) if shape is not None else None if dims is None else len(dims)
        return [Value(None if rank is None else (UNKNOWN,) * rank)]
    if shape is None:
        shape = (UNKNOWN, UNKNOWN, *(kernel or ()))
    channels = shape[1] * c.number("group", 1)
    if c.number("channels_last", 0):
        c.demands.equal(dims[-1], channels, _CHANNELS)
        return [Value((dims[0], *_window(c, dims[1:-1], shape[2:]), shape[0]))]
    c.demands.equal(dims[1], channels, _CHANNELS)
    return [Value((dims[0], shape[0], *_window(c, dims[2:], shape[2:])))]


def _deformed_conv(c: Call) -> Sequence[Value]:
    dims, shape = c.dims(0), c.dims(1)
    if dims is None or shape is None:
        return [NOTHING]
    return [Value((dims[0], shape[0], *_window(c, dims[2:], shape[2:])))]


def _conv_transpose(c: Call) -> Sequence[Value]:
    dims, shape = c.dims(0), c.dims(1)
    if dims is None or shape is None:
        return [NOTHING]
    c.demands.equal(dims[1], shape[0], _CHANNELS)
    rank = len(dims) - 2
    strides = c.numbers("strides") or [1] * rank
    dilations = c.numbers("dilations") or [1] * rank
    pads: Sequence[Size] | None = c.numbers("pads") or [0] * (2 * rank)
    if c.operator == "ConvTransposeWithDynamicPads" and c.has(2):
        pads = of_sizes(c, 2)
    extra = c.numbers("output_padding") or [0] * rank
    fixed = c.numbers("output_shape")
    how = c.text("auto_pad", "NOTSET")
    sizes: list[Size] = []
    for at, size in enumerate(dims[2:]):
        if fixed:
            sizes.append(fixed[at] if len(fixed) == rank else fixed[at + 2])
        elif pads is None:
            sizes.append(UNKNOWN)
        else:
            reach = (shape[at + 2] - 1) * dilations[at] + 1
            padding = 0 if how == "VALID" else pads[at] + pads[at + rank]
            if how.startswith("SAME"):
                padding = maximum(reach + extra[at] - strides[at], 0)
            sizes.append(strides[at] * (size - 1) + extra[at] + reach - padding)
    return [Value((dims[0], shape[1] * c.number("group", 1), *sizes))]


def _pool(c: Call) -> Sequence[Value]:
    dims, kernel = c.dims(0), c.numbers("kernel_shape")
    if dims is None or kernel is None:
        return [Value(None if dims is None else (*dims[:2], *(UNKNOWN,) * (len(dims) - 2)))] * (
            c.outputs
        )
    ceil = bool(c.number("ceil_mode", 0))
    if c.number("channels_last", 0) or c.operator == "NhwcMaxPool":
        places = _window(c, dims[1:-1], kernel, ceil=ceil)
        return [Value((dims[0], *places, dims[-1]))] * c.outputs
    return [Value((*dims[:2], *_window(c, dims[2:], kernel, ceil=ceil)))] * c.outputs


def _global_pool(c: Call) -> Sequence[Value]:
    dims = c.dims()
    if dims is None:
        return [NOTHING]
    ones = (1,) * (len(dims) - 2)
    if c.number("channels_last", 0):
        return [Value((dims[0], *ones, dims[-1]))]
    return [Value((*dims[:2], *ones))]


def _unpool(c: Call) -> Sequence[Value]:
    dims, kernel = c.dims(0), c.numbers("kernel_shape")
    if c.has(2):
        return [Value(of_sizes(c, 2))]
    if dims is None or kernel is None:
        return [NOTHING]
    rank = len(kernel)
    strides, pads = c.numbers("strides") or [1] * rank, c.numbers("pads") or [0] * (2 * rank)
    return [Value((*dims[:2], *(
        (size - 1) * strides[at] - (pads[at] + pads[at + rank]) + kernel[at]
        for at, size in enumerate(dims[2:])
    )))]  # fmt: skip


def _columns(c: Call) -> Sequence[Value]:
    """Col2Im: columns of blocks, the sizes of the image and of a block."""
    dims, image, block = c.dims(0), of_sizes(c, 1), of_sizes(c, 2)
    if dims is None or image is None:
        return [NOTHING]
    channels = UNKNOWN if block is None else _whole_part(dims[1], product(block))
    return [Value((dims[0], channels, *image))]


def _whole_part(size: Size, part: Size) -> Size:
    return UNKNOWN if number_of(part) == 0 else size // part


def scaled(size: Size, scale: Size) -> Size:
    """Return a size times a scale, rounded down, in the arithmetic of ONNX Runtime."""
    factor = number_of(scale)
    if factor is None:
        return UNKNOWN if not isinstance(scale, Polynomial) else rounded(scale * size, "Floor")
    if isinstance(size, (int, np.ndarray)):
        product_ = np.asarray(size).astype(np.float32) * np.float32(factor)
        return plain(np.floor(product_).astype(np.int64)[()])
    if isinstance(size, Polynomial):
        return rounded(size * float(np.float32(factor)), "Floor") if factor != 1 else size
    return UNKNOWN


def _resize(c: Call) -> Sequence[Value]:
    dims = c.dims()
    if dims is None:
        known = of_sizes(c, 3) if c.has(3) and not c.numbers("axes") else None
        return [Value(known)]
    axes = [axis % len(dims) for axis in c.numbers("axes") or range(len(dims))]
    sizes = of_sizes(c, 3) if c.has(3) else None
    scales = _scales(c)
    if sizes is not None and len(sizes) == len(axes):
        return [Value(_resized(c, dims, axes, sizes))]
    resized = list(dims)
    for at, axis in enumerate(axes):
        is_told = scales is not None and len(scales) == len(axes)
        resized[axis] = scaled(dims[axis], scales[at]) if is_told and scales else UNKNOWN
        _avoid_empty(c, resized[axis])
    return [Value(tuple(resized))]


def _avoid_empty(c: Call, size: Size) -> None:
    """Prefer candidates for which something is left; ONNX Runtime also takes the others."""
    if isinstance(size, np.ndarray):
        c.demands.at_least(size, 1, "a resized dimension is 1 or more")


def _scales(c: Call) -> Sequence[Size] | None:
    at = 1 if c.operator == "Upsample" or c.version < 11 else 2
    if c.version == 0 and c.operator == "Resize":
        at = 1 if len(c.inputs) == 2 else 2
    if c.has(at):
        return c.values(at) or None
    listed = c.attribute("scales")
    if listed is not None:
        return tuple(listed.floats)
    height, width = c.attribute("height_scale"), c.attribute("width_scale")
    if height is not None and width is not None:
        return (1.0, 1.0, height.f, width.f)
    return None


def _resized(c: Call, dims: Dims, axes: Sequence[int], sizes: Sequence[Size]) -> Dims:
    """Return the sizes that are given; with a policy, those of the same proportions."""
    policy, resized = c.text("keep_aspect_ratio_policy", "stretch"), list(dims)
    if policy == "stretch":
        for axis, size in zip(axes, sizes, strict=True):
            resized[axis] = size
            _avoid_empty(c, size)
        return tuple(resized)
    known = [
        (number_of(size), number_of(dims[axis])) for axis, size in zip(axes, sizes, strict=True)
    ]
    ratios = [size / before for size, before in known if size is not None and before]
    for axis, (_, before) in zip(axes, known, strict=True):
        resized[axis] = UNKNOWN
        if len(ratios) == len(axes) and before is not None:
            factor = np.float32(min(ratios) if policy == "not_larger" else max(ratios))
            resized[axis] = int(np.floor(np.float32(before) * factor + np.float32(0.5)))
    return tuple(resized)


def _grid_sample(c: Call) -> Sequence[Value]:
    dims, grid = c.dims(0), c.dims(1)
    if dims is None or grid is None:
        return [NOTHING]
    batch = c.demands.equal(dims[0], grid[0], "there is one grid for each image")
    return [Value((batch, dims[1], *grid[1:-1]))]


def _grid(c: Call) -> Sequence[Value]:
    """AffineGrid: matrices, and the size of the data that the grid is for."""
    theta, size = c.dims(0), of_sizes(c, 1)
    if size is None:
        return [NOTHING]
    batch = size[0] if theta is None or size[0] is not UNKNOWN else theta[0]
    return [Value((batch, *size[2:], len(size) - 2))]


def _roi_pool(c: Call) -> Sequence[Value]:
    dims, rois, shape = c.dims(0), c.dims(1), c.numbers("pooled_shape")
    if rois is None or shape is None:
        return [NOTHING]
    return [Value((rois[0], UNKNOWN if dims is None else dims[1], *shape))]


def _region_align(c: Call) -> Sequence[Value]:
    dims, rois, batches = c.dims(0), c.dims(1), c.dims(2)
    if dims is None or rois is None:
        return [NOTHING]
    c.demands.bound(c.input(2), dims[0])
    if batches:
        c.demands.equal(rois[0], batches[0], "each region has an image")
    return [Value((rois[0], dims[1], c.number("output_height", 1), c.number("output_width", 1)))]


def _crop_and_resize(c: Call) -> Sequence[Value]:
    dims, rois, size = c.dims(0), c.dims(1), of_sizes(c, 3)
    if rois is None or size is None:
        return [NOTHING]
    return [Value((rois[0], UNKNOWN if dims is None else dims[1], *size))]


def _image(c: Call) -> Sequence[Value]:
    return [Value((UNKNOWN, UNKNOWN, 1 if c.text("pixel_format", "RGB") == "Grayscale" else 3))]


def _signal_window(c: Call) -> Sequence[Value]:
    return [Value((c.element(0),))]


def _mel_weights(c: Call) -> Sequence[Value]:
    return [Value((c.element(1) // 2 + 1, c.element(0)))]


def _transform(c: Call) -> Sequence[Value]:
    """DFT: along one axis; one half of it where the data is real, and back."""
    dims = c.dims()
    if dims is None:
        return [NOTHING]
    if c.version >= 20:
        axis = number_of(c.element(2)) if c.has(2) else -2
    else:
        axis = c.number("axis", 1)
    is_half, back = c.number("onesided", 0), c.number("inverse", 0)
    if axis is None:
        return [Value((*(UNKNOWN,) * (len(dims) - 1), 1 if is_half and back else 2))]
    at = int(axis) % len(dims)
    length = c.element(1) if c.has(1) else dims[at]
    sizes = [*dims[:-1], 2]
    sizes[at] = length
    if is_half and back:
        sizes[at] = length if c.has(1) else (dims[at] - 1) * 2
        sizes[-1] = 1
    elif is_half:
        sizes[at] = length // 2 + 1
    return [Value(tuple(sizes))]


def _short_transform(c: Call) -> Sequence[Value]:
    """STFT: signal, step, window, length of a frame."""
    dims, window = c.dims(0), c.dims(2)
    step, length = c.element(1), c.element(3) if c.has(3) else UNKNOWN
    if length is UNKNOWN and window:
        length = window[0]
    if dims is None or len(dims) < 2:
        return [Value((UNKNOWN, UNKNOWN, UNKNOWN, 2))]
    frames = UNKNOWN if number_of(step) in (None, 0) else (dims[1] - length) // step + 1
    bins = length // 2 + 1 if c.number("onesided", 1) else length
    return [Value((dims[0], frames, bins, 2))]


def _causal_convolution(c: Call) -> Sequence[Value]:
    """CausalConvWithState of one dimension: input, weights, bias, past state."""
    dims, weights = c.dims(0), c.dims(1)
    if dims is None or weights is None or len(dims) != 3 or c.number("channels_last", 0):
        return [Value(dims)]
    c.demands.equal(dims[1], weights[0], _CHANNELS)
    length = (weights[-1] - 1) * c.number("dilation", 1)
    return [Value(dims), state((*dims[:2], length), c)]


def state(dims: Dims, c: Call) -> Value:
    """Return what is carried to the next call; with a window, that of the last tokens."""
    return NOTHING if c.number("state_window", 0) else Value(dims)


STANDARD: dict[str, Callable[[Call], Sequence[Value]]] = {
    "Conv": _conv, "ConvInteger": _conv, "QLinearConv": _conv, "ConvTranspose": _conv_transpose,
    "DeformConv": _deformed_conv, "MaxUnpool": _unpool, "Col2Im": _columns,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), _global_pool),
    "Resize": _resize, "Upsample": _resize, "GridSample": _grid_sample, "AffineGrid": _grid,
    "MaxRoiPool": _roi_pool, "RoiAlign": _region_align, "ImageDecoder": _image,
    "CausalConvWithState": _causal_convolution,
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _signal_window),
    "MelWeightMatrix": _mel_weights, "DFT": _transform, "STFT": _short_transform,
}  # fmt: skip
"""By operator of ai.onnx."""

CONTRIB: dict[str, Callable[[Call], Sequence[Value]]] = {
    "FusedConv": _conv, "NhwcFusedConv": _conv, "QLinearConv": _conv, "NhwcMaxPool": _pool,
    "QLinearAveragePool": _pool, "MaxpoolWithMask": _pool,
    "QLinearGlobalAveragePool": _global_pool, "GridSample": _grid_sample,
    "ConvTransposeWithDynamicPads": _conv_transpose, "CropAndResize": _crop_and_resize,
    "CausalConvWithState": _causal_convolution,
}  # fmt: skip
"""By operator of com.microsoft."""
