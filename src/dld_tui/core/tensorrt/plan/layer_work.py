"""The work of a layer, from its shapes, and its roofline: multiply-accumulates and bytes.

A convolution counts as the matrix product that implicit GEMM computes: M = N * P * Q,
N = K / groups, K = C / groups * R * S, once for each group.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.foreign import dims_of, first, number_of, whole_of
from dld_tui.core.machine.kernel_names import Roof, roof_of
from dld_tui.core.machine.peaks import Peaks, gpu_peaks
from dld_tui.core.report.roofline import MOST_OF_ROOF, Limiter, limit_of
from dld_tui.core.tensorrt.plan.engine_plan import BITS, EngineLayer, EnginePlan, EngineTensor
from dld_tui.core.tensorrt.plan.file_set import device_name
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
    """The dimensions of a convolution."""

    batch: int
    channels: int
    out_channels: int
    kernel: tuple[int, ...]
    groups: int
    out_dims: tuple[int, ...]
    """Spatial dimensions of the convolution's own output, before a fused pooling."""
    transposed: bool
    macs: int

    @property
    def gemm(self) -> Gemm:
        """The product that implicit GEMM computes."""
        m = self.batch * math.prod(self.out_dims)
        k = self.channels // self.groups * math.prod(self.kernel)
        return Gemm(self.groups, m, self.out_channels // self.groups, k)


def is_convolution(layer: EngineLayer) -> bool:
    """Return whether a layer is a convolution or deconvolution, fused with others or not."""
    return _kind_of(layer.type, layer.subtype) == "convolution"


def is_product(layer: EngineLayer) -> bool:
    """Return whether a layer is a matrix product."""
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
    """Return the multiply-accumulates of a layer; None for other kinds and unknown shapes."""
    if is_convolution(layer):
        conv = convolution(layer)
        return conv.macs if conv else None
    product = gemm(layer)
    return product.macs if product else None


def arithmetic_intensity(layer: EngineLayer) -> float | None:
    """Return multiply-accumulates per byte moved; None if either is unknown."""
    count, size = macs(layer), layer.footprint
    return count / size if count is not None and size else None


def convolution(layer: EngineLayer) -> Convolution | None:
    """Return the dimensions of a convolution; None if its shapes are unknown."""
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
    return _plausible(
        Convolution(batch, channels, out_channels, kernel, groups, out_dims, transposed, count)
    )


def _plausible(conv: Convolution) -> Convolution | None:
    return conv if 0 <= conv.macs < _LARGEST else None


def _fused(layer: EngineLayer) -> bool:
    """Return whether the layer includes a pooling, so that its output is not the convolution's."""
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
    """Return an attribute of a convolution, also of one inside a ``ConvActPool``."""
    attributes = layer.attributes
    return attributes[name] if name in attributes else attributes.get(f"Conv{name}")


def gemm(layer: EngineLayer) -> Gemm | None:
    """Return the matrix product of a layer, a convolution included; None if unknown."""
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
    """The known dimensions of a matrix product; None is dynamic or unknown."""

    batch: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None


def gemm_dims(layer: EngineLayer) -> GemmDims:
    """Return the dimensions of the product of a layer; of a convolution, by implicit GEMM.

    N and K of a convolution with dynamic sizes follow from its kernel and channels.
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
    that the second operand has, too; the last one is tried first. Where the second operand is not
    listed, as in products of Myelin, it is weights: K is then the inner dimension of one row.
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
    """Return the dimensions of the second factor; None when the file does not list it.

    A bias or a residual listed as an input is not a factor: a bias has a single row, a residual the
    dimensions of the result.
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


_MOST_TAPS = 1 << 16


def with_traffic(layer: EngineLayer) -> EngineLayer:
    """Return a layer with the bytes of its first input that it does not read.

    A window that moves further than it is wide skips what is between; what selects reads what it
    writes.
    """
    first = layer.inputs[0] if layer.inputs else None
    if first is None or not first.dims or not first.bytes or not first.elements:
        return layer
    read = first.elements
    if not {"Slice", "Gather"}.isdisjoint((layer.type, layer.subtype)):
        written = layer.outputs[0].elements if layer.outputs else None
        read = read if written is None else min(read, written)
    else:
        for size, touched in _touched(layer, first.dims):
            read = read // size * touched
    return (
        layer
        if read >= first.elements
        else dataclasses.replace(
            layer, unread_bytes=first.bytes - first.bytes * read // first.elements
        )
    )


def _touched(layer: EngineLayer, dims: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the size of each axis that a window moves over, and how many places it touches."""
    is_pooling = layer.subtype == "Pooling" or "Pooling" in layer.type
    if not (is_convolution(layer) or is_pooling):
        return
    if _DECONVOLUTION.search(f"{layer.type} {layer.subtype}"):
        return
    window = dims_of(
        layer.attributes.get("WindowSize") if is_pooling else attribute(layer, "Kernel")
    )
    stride = dims_of(attribute(layer, "Stride"))
    if not window or not stride or len(stride) != len(window) or len(dims) != len(window) + 2:
        return
    before = dims_of(attribute(layer, "PrePadding")) or (0,) * len(window)
    after = dims_of(attribute(layer, "PostPadding")) or (0,) * len(window)
    dilation = dims_of(attribute(layer, "Dilation")) or (1,) * len(window)
    if {len(before), len(after), len(dilation)} != {len(window)}:
        return
    axes = zip(dims[2:], window, stride, dilation, before, after, strict=True)
    for size, width, by, step, pre, post in axes:
        reach = step * (width - 1) + 1
        count = (size + pre + post - reach) // by + 1 if by > 1 else 0
        if 0 < count * width <= _MOST_TAPS and size > 0:
            places = {at * by + tap * step - pre for at in range(count) for tap in range(width)}
            yield size, sum(0 <= place < size for place in places)


def with_weights(layer: EngineLayer) -> EngineLayer:
    """Return a convolution or product with its weights, estimated where the file lists none.

    The estimate is K x N elements in the type of the layer's input, whatever the batch. A layer
    with unknown shapes has weights of unknown size.
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
    """Return the dimensions of the first tensor if all are known."""
    dims = tensors[0].dims if tensors else None
    return dims if dims is not None and all(dim >= 0 for dim in dims) else None


@dataclass(frozen=True)
class Placement:
    """The position of a layer under the roofline."""

    bound: Limiter
    """Its limit: ``compute`` or ``memory``, the lower of its roofs; ``launch`` or ``overhead``
    if it is far below both."""
    attainable: float
    """The most operations per second at this layer's intensity; bytes per second for a layer
    without products."""
    efficiency: float | None
    """The achieved share of that, 0 to 1; None without a time."""


def peaks_of(device: Mapping[str, JSON]) -> Peaks | None:
    """Return the peaks of a device; None when it is not in the table.

    The bandwidth is computed where the metadata has the bus width and clock of the memory.
    """
    peaks = gpu_peaks(device_name(device))
    bandwidth = computed_bandwidth(device)
    if peaks is None or bandwidth is None:
        return peaks
    return dataclasses.replace(peaks, bandwidth=bandwidth * 1e9)


def layer_roof(layer: EngineLayer, peaks: Peaks) -> Roof | None:
    """Return the peak of its tactic; None when it is unknown."""
    return roof_of(layer.tactic, layer.precision, peaks)


def computed_bandwidth(device: Mapping[str, JSON]) -> float | None:
    """Return 10^9 bytes per second from bus width and clock, two transfers per cycle, or None."""
    width = number_of(first(device, "Memory Bus Width", "GLOBAL_MEMORY_BUS_WIDTH"))
    ghz = number_of(first(device, "Memory Clock Rate", "Application Memory Clock Rate"))
    if ghz is None:
        khz = number_of(device.get("MEMORY_CLOCK_RATE"))
        ghz = khz / 1e6 if khz is not None else None
    if width is None or ghz is None or not 0 < width < 1e6 or not 0 < ghz < 1e3:
        return None
    return width / 8 * ghz * 2


def placement(layer: EngineLayer, peaks: Peaks) -> Placement | None:
    """Return the position of a layer under the roofline; None if its shapes are unknown.

    Also None for a layer that is faster than it allows: its data came from a cache, or the files
    name another device.
    """
    size = layer.footprint
    if not size:
        return None
    count = macs(layer)
    if not count:
        return _placed("memory", peaks.bandwidth, size, layer.time_ms, peaks.launch_ms)
    roof = layer_roof(layer, peaks)
    if roof is None:
        return None
    by_memory = 2 * count / size * peaks.bandwidth
    is_compute = roof.flops <= by_memory
    return _placed(
        "compute" if is_compute else "memory", min(roof.flops, by_memory), 2 * count,
        layer.time_ms, peaks.launch_ms,
    )  # fmt: skip


def points_under_roofs(
    layers: Iterable[EngineLayer], peaks: Peaks
) -> tuple[list[tuple[EngineLayer, float, float]], dict[str, float]]:
    """Return what is known of layers for a roofline, and the roofs.

    Of each layer the operations per byte moved and per second, where a multiply-accumulate is two;
    of each type its peak.
    """
    points, roofs = [], dict[str, float]()
    for layer in layers:
        count, size = macs(layer), layer.footprint
        if count and size and layer.time_ms:
            points.append((layer, 2 * count / size, 2000 * count / layer.time_ms))
            roof = layer_roof(layer, peaks)
            if roof is not None:
                roofs[roof.name] = roof.flops
    return points, dict(sorted(roofs.items()))


def _placed(
    bound: Limiter, per_second: float, work: float, time_ms: float | None, launch_ms: float
) -> Placement | None:
    if not time_ms:
        return Placement(bound, per_second, None)
    share = work / (time_ms / 1000) / per_second
    if share > MOST_OF_ROOF:
        return None
    return Placement(limit_of(bound, share * time_ms, time_ms, launch_ms), per_second, share)


def above_roof(layers: Iterable[EngineLayer], device: Mapping[str, JSON]) -> str:
    """Return how many layers are faster than the roofline allows, in a sentence; empty if none."""
    peaks = peaks_of(device)
    if peaks is None:
        return ""
    count = sum(
        placement(layer, peaks) is None
        and placement(dataclasses.replace(layer, time_ms=None), peaks) is not None
        for layer in layers
    )
    if not count:
        return ""
    return (
        f"{fmt.plural(count, 'layer')} {'is' if count == 1 else 'are'} faster than the roofline of"
        f" {peaks.device} allows, as from its cache: no share of it is shown for"
        f" {'it' if count == 1 else 'them'}"
    )


def unknown_device(plan: EnginePlan) -> str:
    """Return why there is no roofline, without a full stop; empty if there is one."""
    if peaks_of(plan.device) is not None:
        return ""
    name = device_name(plan.device)
    if not name:
        return "no roofline: the files do not say which device this is"
    return f"no roofline: the peaks of {name} are not in the table"
