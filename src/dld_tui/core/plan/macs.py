"""Multiply-accumulates of a layer, by its shapes: convolutions and matrix products.

A convolution is seen as the matrix product that implicit GEMM computes: M = N * P * Q,
N = K / groups, K = C / groups * R * S, once for each group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dld_tui.core.plan.model import EngineLayer, EngineTensor
from dld_tui.core.plan.values import dims_of, whole_of
from dld_tui.core.types import JSON

_CONVOLUTIONS = frozenset({"Convolution", "ConvActPool", "FusedConvActConvolution"})
_DECONVOLUTIONS = frozenset({"Deconvolution"})
_PRODUCTS = frozenset(
    {"gemm", "MatrixMultiply", "MatrixMultiplication", "FullyConnected", "MatMul", "GEMM"}
)
_LARGEST = 1 << 62


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
    return not _CONVOLUTIONS.isdisjoint({layer.kind, layer.type}) or layer.kind in _DECONVOLUTIONS


def is_product(layer: EngineLayer) -> bool:
    """Tell whether a layer is a matrix product."""
    return not _PRODUCTS.isdisjoint({layer.kind, layer.type})


def macs(layer: EngineLayer) -> int | None:
    """Return the multiply-accumulates of a layer; None when it is of another kind or not known."""
    if is_convolution(layer):
        found = convolution(layer)
        return found.macs if found else None
    product = gemm(layer)
    return product.macs if product else None


def arithmetic_intensity(layer: EngineLayer) -> float | None:
    """Return multiply-accumulates a byte moved; None when one of them is not known."""
    count, size = macs(layer), layer.footprint
    return count / size if count is not None and size else None


def convolution(layer: EngineLayer) -> Convolution | None:
    """Return what a convolution computes; None when its shapes are not known."""
    read, written = _known(layer.inputs), _known(layer.outputs)
    kernel = dims_of(_attribute(layer, "Kernel"))
    if read is None or written is None or not kernel or len(read) != len(kernel) + 2:
        return None
    groups = whole_of(_attribute(layer, "Groups")) or 1
    out_channels = whole_of(_attribute(layer, "OutMaps")) or written[1]
    batch, channels, *spatial = read
    if min(groups, out_channels, *kernel) < 1:
        return None
    transposed = layer.kind in _DECONVOLUTIONS
    out_dims = _out_dims(layer, tuple(spatial), kernel) if _fused(layer) else written[2:]
    if out_dims is None or len(out_dims) != len(kernel):
        return None
    positions = math.prod(spatial) if transposed else math.prod(out_dims)
    count = batch * positions * out_channels * channels * math.prod(kernel) // groups
    return _sane(
        Convolution(batch, channels, out_channels, kernel, groups, out_dims, transposed, count)
    )


def _sane(found: Convolution) -> Convolution | None:
    return found if 0 <= found.macs < _LARGEST else None


def _fused(layer: EngineLayer) -> bool:
    """Tell whether a pooling follows inside, so that the output is not the convolution's."""
    return "PoolingWindowSize" in layer.attributes


def _out_dims(
    layer: EngineLayer, spatial: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[int, ...] | None:
    ones = (1,) * len(kernel)
    zeros = (0,) * len(kernel)
    before = dims_of(_attribute(layer, "PrePadding")) or zeros
    after = dims_of(_attribute(layer, "PostPadding")) or zeros
    stride = dims_of(_attribute(layer, "Stride")) or ones
    dilation = dims_of(_attribute(layer, "Dilation")) or ones
    if {len(before), len(after), len(stride), len(dilation)} != {len(kernel)} or min(stride) < 1:
        return None
    return tuple(
        (size + pre + post - step * (width - 1) - 1) // by + 1
        for size, pre, post, step, width, by in zip(
            spatial, before, after, dilation, kernel, stride, strict=True
        )
    )


def _attribute(layer: EngineLayer, name: str) -> JSON:
    attributes = layer.attributes
    return attributes[name] if name in attributes else attributes.get(f"Conv{name}")


def gemm(layer: EngineLayer) -> Gemm | None:
    """Return the matrix product of a layer, a convolution's too; None when it is not known.

    The inspector does not say which operand is transposed: K is a dimension of the first input
    that is not in the output, its last one first.
    """
    if is_convolution(layer):
        found = convolution(layer)
        return found.gemm if found else None
    if not is_product(layer):
        return None
    first, written = _known(layer.inputs), _known(layer.outputs)
    if not first or not written:
        return None
    *batch, m, n = written if len(written) > 1 else (1, *written)
    second = _known(layer.inputs[1:2])
    k = _shared_dim(first, second, m)
    if k is None:
        return None
    product = Gemm(math.prod(batch), m, n, k)
    return product if 0 < product.macs < _LARGEST else None


def _shared_dim(first: tuple[int, ...], second: tuple[int, ...] | None, m: int) -> int | None:
    candidates = [first[-1], *first[-2:-1]]
    if second:
        for dim in candidates:
            if dim in second[-2:]:
                return dim
    return first[-1] if first[-1] != m or len(first) < 2 or first[-2] == m else first[-2]


def _known(tensors: tuple[EngineTensor, ...]) -> tuple[int, ...] | None:
    """Return the dimensions of the first tensor, when all are known."""
    dims = tensors[0].dims if tensors else None
    return dims if dims is not None and all(dim >= 0 for dim in dims) else None
