"""Multiply-accumulates of a layer, by its shapes: convolutions and matrix products.

A convolution is seen as the matrix product that implicit GEMM computes: M = N * P * Q,
N = K / groups, K = C / groups * R * S, once for each group.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from functools import lru_cache

from dld_tui.core.tensorrt.plan.engine_plan import BITS, EngineLayer, EngineTensor
from dld_tui.core.tensorrt.plan.json_text import dims_of, whole_of
from dld_tui.core.types import JSON

_CONVOLUTION = re.compile(r"Convolution|ConvActPool")
_DECONVOLUTION = re.compile(r"Deconvolution")
_PRODUCT = re.compile(r"gemm|matrix_?multipl|matmul|fullyconnected", re.IGNORECASE)
_MYELIN_GEMM = "gemm"
_LARGEST = 1 << 50


@dataclass(frozen=True)
class Gemm:
    """A matrix product (M, K) x (K, N), `batch` times."""

    batch: int
    m: int
    n: int
    k: int

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.batch * self.m * self.n * self.k


@dataclass(frozen=True)
class Convolution:
    """What a convolution computes."""

    batch: int
    channels: int
    out_channels: int
    kernel: tuple[int, ...]
    groups: int
    out_dims: tuple[int, ...]
    """Spatial dimensions of what the convolution itself makes, before a pooling fused to it."""
    transposed: bool
    macs: int

    @property
    def gemm(self) -> Gemm:
        """The product that implicit GEMM computes."""
        m = self.batch * math.prod(self.out_dims)
        k = self.channels // self.groups * math.prod(self.kernel)
        return Gemm(self.groups, m, self.out_channels // self.groups, k)


def is_convolution(layer: EngineLayer) -> bool:
    """Tell whether a layer is a convolution, fused with others or not, or a deconvolution."""
    return _kind_of(layer.type, layer.subtype) == "convolution"


def is_product(layer: EngineLayer) -> bool:
    """Tell whether a layer is a matrix product."""
    return _kind_of(layer.type, layer.subtype) == "product"


@lru_cache(maxsize=4096)
def _kind_of(layer_type: str, parameter_type: str) -> str:
    for text in (parameter_type, layer_type):
        if _CONVOLUTION.search(text) or _DECONVOLUTION.search(text):
            return "convolution"
    for text in (parameter_type, layer_type):
        if _PRODUCT.search(text):
            return "product"
    return ""


def macs(layer: EngineLayer) -> int | None:
    """Return the multiply-accumulates of a layer; None when it is of another kind or not known."""
    if is_convolution(layer):
        conv = convolution(layer)
        return conv.macs if conv else None
    product = gemm(layer)
    return product.macs if product else None


def arithmetic_intensity(layer: EngineLayer) -> float | None:
    """Return multiply-accumulates a byte moved; None when one of them is not known."""
    count, size = macs(layer), layer.footprint
    return count / size if count is not None and size else None


def convolution(layer: EngineLayer) -> Convolution | None:
    """Return what a convolution computes; None when its shapes are not known."""
    read, written = _known(layer.inputs), _known(layer.outputs)
    kernel = dims_of(attribute(layer, "Kernel"))
    if read is None or written is None or not kernel or len(read) != len(kernel) + 2:
        return None
    groups = whole_of(attribute(layer, "Groups")) or 1
    out_channels = whole_of(attribute(layer, "OutMaps")) or written[1]
    batch, channels, *spatial = read
    if min(groups, out_channels, *kernel) < 1:
        return None
    transposed = _DECONVOLUTION.search(f"{layer.type} {layer.subtype}") is not None
    out_dims = _out_dims(layer, tuple(spatial), kernel) if _fused(layer) else written[2:]
    if out_dims is None or len(out_dims) != len(kernel):
        return None
    positions = math.prod(spatial) if transposed else math.prod(out_dims)
    count = batch * positions * out_channels * channels * math.prod(kernel) // groups
    return _sane(
        Convolution(batch, channels, out_channels, kernel, groups, out_dims, transposed, count)
    )


def _sane(conv: Convolution) -> Convolution | None:
    return conv if 0 <= conv.macs < _LARGEST else None


def _fused(layer: EngineLayer) -> bool:
    """Tell whether a pooling follows inside, so that the output is not the convolution's."""
    return "PoolingWindowSize" in layer.attributes


def _out_dims(
    layer: EngineLayer, spatial: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[int, ...] | None:
    ones = (1,) * len(kernel)
    zeros = (0,) * len(kernel)
    before = dims_of(attribute(layer, "PrePadding")) or zeros
    after = dims_of(attribute(layer, "PostPadding")) or zeros
    stride = dims_of(attribute(layer, "Stride")) or ones
    dilation = dims_of(attribute(layer, "Dilation")) or ones
    if {len(before), len(after), len(stride), len(dilation)} != {len(kernel)} or min(stride) < 1:
        return None
    return tuple(
        (size + pre + post - step * (width - 1) - 1) // by + 1
        for size, pre, post, step, width, by in zip(
            spatial, before, after, dilation, kernel, stride, strict=True
        )
    )


def attribute(layer: EngineLayer, name: str) -> JSON:
    """Return a property of a convolution, that of the one inside a ``ConvActPool``, too."""
    attributes = layer.attributes
    return attributes[name] if name in attributes else attributes.get(f"Conv{name}")


def gemm(layer: EngineLayer) -> Gemm | None:
    """Return the matrix product of a layer, a convolution's too; None when it is not known."""
    if is_convolution(layer):
        conv = convolution(layer)
        return conv.gemm if conv else None
    dims = gemm_dims(layer)
    if dims.batch is None or dims.m is None or dims.n is None or dims.k is None:
        return None
    product = Gemm(dims.batch, dims.m, dims.n, dims.k)
    return product if 0 < product.macs < _LARGEST else None


@dataclass(frozen=True)
class GemmDims:
    """What is known of a matrix product; None is dynamic or unknown."""

    batch: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None


def gemm_dims(layer: EngineLayer) -> GemmDims:
    """Return the dimensions of the product of a layer, a convolution's by implicit GEMM.

    Of a convolution N and K are known by its kernel and channels when its size is dynamic.
    """
    if is_convolution(layer):
        return _convolution_dims(layer)
    if not is_product(layer) or not layer.inputs or not layer.outputs:
        return GemmDims()
    first, written = layer.inputs[0].dims, layer.outputs[0].dims
    if not first or not written:
        return GemmDims()
    *batch, m, n = written if len(written) > 1 else (1, *written)
    k = _inner_dim(layer, first, written)
    return GemmDims(
        math.prod(batch) if min(batch, default=1) >= 0 else None,
        *(value if value is not None and value >= 0 else None for value in (m, n, k)),
    )


def _convolution_dims(layer: EngineLayer) -> GemmDims:
    whole = convolution(layer)
    if whole is not None:
        product = whole.gemm
        return GemmDims(product.batch, product.m, product.n, product.k)
    out_channels = whole_of(attribute(layer, "OutMaps"))
    if out_channels is None:
        return GemmDims()
    groups = whole_of(attribute(layer, "Groups")) or 1
    kernel = dims_of(attribute(layer, "Kernel"))
    read = layer.inputs[0].dims if layer.inputs else None
    channels = read[1] if read and kernel and len(read) == len(kernel) + 2 else -1
    if groups < 1 or (kernel and min(kernel) < 1):
        return GemmDims()
    return GemmDims(
        batch=groups,
        n=out_channels // groups if out_channels > 0 else None,
        k=channels // groups * math.prod(kernel) if kernel and channels > 0 else None,
    )


def _inner_dim(layer: EngineLayer, first: tuple[int, ...], written: tuple[int, ...]) -> int | None:
    """Return K.

    The inspector does not say which operand is transposed: K is a dimension of the first input
    that the second operand has too, its last one first. Where the second operand is not listed, as
    in products of Myelin, it is weights: then K is what one row of the result is made of.
    """
    second = _second_operand(layer, written)
    if second is not None:
        for dim in (first[-1], *first[-2:-1]):
            if dim in second[-2:]:
                return dim
        return first[-1]
    m, n = (1, *written)[-2:]
    if len(first) > 1 and first[-1] == n and first[-2] not in (m, 1) and first[:-2] == written[:-2]:
        return first[-2]  # weights times input
    if first[:-1] == written[:-1]:
        return first[-1]
    if first.count(-1) != written.count(-1):
        return first[-1]
    rows = math.prod(abs(dim) for dim in written[:-1])
    elements = math.prod(map(abs, first))
    return elements // rows if rows and elements % rows == 0 else first[-1]


def _second_operand(layer: EngineLayer, written: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the dimensions of the other factor; None when the file does not list it.

    A bias or a residual that is listed as an input is none: the one has a single row, the other
    the dimensions of the result.
    """
    first = layer.inputs[0].dims or ()
    for tensor in (*layer.inputs[1:], *layer.constants):
        dims = tensor.dims
        if not dims or len(dims) < 2 or (dims == written and layer.type == _MYELIN_GEMM):
            continue
        shared = {dim for dim in first[-2:] if dim != 1} & set(dims[-2:])
        if shared or set(first[-2:]) == {1}:
            return dims
    return None


# --- weights that the file does not list ---------------------------------------------------------


def with_weights(layer: EngineLayer) -> EngineLayer:
    """Return a convolution or product with its weights, estimated where the file lists none.

    The estimate is by shapes, in the type of the layer's input: K x N once, in spite of a batch. A
    layer whose shapes do not tell them has weights of unknown size.
    """
    convolves = is_convolution(layer)
    if layer.weights_bytes or layer.weights_from != "file" or not (convolves or is_product(layer)):
        return layer
    if convolves and whole_of(layer.attributes.get("HasDynamicFilter")):
        return layer
    written = layer.outputs[0].dims if layer.outputs else None
    if not convolves and layer.inputs and written and _second_operand(layer, written) is not None:
        return layer
    dims = gemm_dims(layer)
    bits = BITS.get(layer.precision)
    if dims.n is None or dims.k is None or bits is None:
        return dataclasses.replace(layer, weights_from="unknown")
    count = dims.n * dims.k * (dims.batch or 1 if convolves else 1)
    if count >= _LARGEST:
        return dataclasses.replace(layer, weights_from="unknown")
    size = (count * bits + 7) // 8
    return dataclasses.replace(layer, weights_bytes=size, weights_from="shapes")


def _known(tensors: tuple[EngineTensor, ...]) -> tuple[int, ...] | None:
    """Return the dimensions of the first tensor, when all are known."""
    dims = tensors[0].dims if tensors else None
    return dims if dims is not None and all(dim >= 0 for dim in dims) else None
