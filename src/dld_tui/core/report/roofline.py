"""The roofline of measured layers: how close they come to the limits of a machine.

The roofline of Williams, Waterman and Patterson (2009): a layer takes at least the time of its
operations at the peak of their type, and at least that of its bytes at the bandwidth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.files import protos as onnx
from dld_tui.core.machine.kernel_names import Roof, roof_of
from dld_tui.core.model.cost.call_shapes import Shape, elements
from dld_tui.core.model.cost.operators import PRODUCTS, operator, parts_read, work
from dld_tui.core.model.operators.categories import INT8_PRODUCTS
from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.size import Count, byte_count
from dld_tui.core.model.shapes.value import Value
from dld_tui.core.report.groups import HOST, has_gpu_times, is_launched
from dld_tui.core.report.records import Cost, Layer
from dld_tui.core.statistics import share_percent
from dld_tui.core.types import ELEMENT_BITS, SHORT_DTYPES

if TYPE_CHECKING:
    from dld_tui.core.machine.peaks import Peaks
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.report.formats.ort_profile import Kernel
    from dld_tui.core.report.records import Dims


Limiter: TypeAlias = Literal["compute", "memory", "launch", "overhead"]
_ROOFS = ("compute", "memory")
_INT8_LEVEL = 4
MOST_OF_ROOF = 1.05
"""A figure above this part of a roof is none: the roof is too low, or is not that of the layer."""
_NEAR = 0.1
"""A layer that reaches less of both its roofs is limited by neither."""
_LAUNCHES = 8
"""A layer that takes less than this many empty layers, and twice its least time, is limited by its
launch."""
_PEAK_TYPES = {**SHORT_DTYPES, "uint8": "int8"}
"""What a peak is named after, by element type."""


def with_roof(
    cost: Cost,
    types: Sequence[str],
    peaks: Peaks,
    node: NodeKind | None = None,
    kernel: str = "",
) -> Cost:
    """Return the cost of a layer with its least time under a roofline, and its limit.

    Args:
        cost: With its operations and bytes; without one of them, it stays as it is.
        types: Of its inputs: the first one selects the peak.
        peaks: Of the device that it ran on.
        node: Which operator it is, where that may select another peak.
        kernel: What computes it on a GPU, whose name tells how; empty if unknown.
    """
    flops, moved = cost.flops, cost.moved_bytes
    if flops is None or moved is None:
        return cost
    roof = _roof(_PEAK_TYPES.get(types[0], types[0]) if types else "", peaks, node, kernel)
    if roof is None:
        return cost
    compute_s, memory_s = flops / roof.flops, moved / peaks.bandwidth_of(moved)
    return replace(
        cost,
        roof_ms=1000 * max(compute_s, memory_s),
        bound="compute" if compute_s > memory_s else "memory",
        peak=roof.name,
        launch_ms=peaks.launch_ms,
    )


class NodeKind(NamedTuple):
    """What decides the type in which a node computes, besides its first input."""

    op_type: str
    accuracy_level: int = 0
    """That of a product with packed weights: 4 is int8."""


def multiplies_integers(node: NodeKind) -> bool:
    """Return whether a product multiplies integers, though its first input may have floats."""
    return node.op_type in INT8_PRODUCTS or node.accuracy_level == _INT8_LEVEL


def _roof(kind: str, peaks: Peaks, node: NodeKind | None, kernel: str) -> Roof | None:
    """Return the peak that limits a node with a first input of a type; None without any."""
    if node is not None and node.op_type in PRODUCTS:
        kind = "int8" if multiplies_integers(node) else kind
        if roof := roof_of(kernel, kind, peaks):
            return roof
    known = (name for name in (kind, "fp32") if peaks.flops.get(name))
    return next((Roof(name, peaks.flops[name]) for name in known), None)


def measured_ms(layer: Layer) -> float | None:
    """Return the time of one run of a layer, on a GPU that of its kernels; None if unknown.

    The time that a device provider reports without kernels is that of the launch.
    """
    ms = layer.gpu_time_ms
    if ms is None and not is_launched(layer):
        ms = layer.time_ms
    return None if not ms else ms / (layer.count or 1.0)


def per_second(layer: Layer, work: float | None) -> float | None:
    """Return the rate of a layer per second; None if its work or time is unknown."""
    ms = measured_ms(layer)
    return None if work is None or ms is None else work / ms * 1000


def roof_ms_of(layer: Layer) -> float | None:
    """Return the least time of one run of a layer; None if unknown."""
    return layer.cost and layer.cost.roof_ms


def roof_percent(layer: Layer) -> float | None:
    """Return the least time of a layer as a percentage of its time; None if unknown.

    Also None for a layer that is faster: then the measured roof is too low.
    """
    ms = measured_ms(layer)
    roof_ms = roof_ms_of(layer)
    if roof_ms is None or ms is None or is_above_roof(layer):
        return None
    return share_percent(roof_ms, ms)


def limiter(layer: Layer) -> Limiter | None:
    """Return what limits a layer; None where it is not known.

    One that is far below both roofs is limited by neither, but by overhead: of its kernel, of
    threads, of how it reads its data.
    """
    ms, cost = measured_ms(layer), layer.cost
    if ms is None or cost is None or cost.roof_ms is None or is_above_roof(layer):
        return None
    return limit_of(cost.bound, cost.roof_ms, ms, cost.launch_ms or 0.0)


def limit_of(bound: str | None, least_ms: float, ms: float, launch_ms: float) -> Limiter:
    """Return what limits a layer that takes `ms`; times in milliseconds.

    Args:
        bound: Which of the roofs is the lower one: ``compute`` or ``memory``.
        least_ms: Its time at this roof.
        ms: Its time.
        launch_ms: The time of an empty layer on the device.
    """
    if least_ms < ms / 2 and ms < _LAUNCHES * launch_ms:
        return "launch"
    if least_ms < _NEAR * ms:
        return "overhead"
    return "compute" if bound == "compute" else "memory"


def with_reached_roofs(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Return layers with roofs that are no lower than what layers on the CPU reached.

    Its peaks are measured, maybe while other programs ran: a layer that was faster measured them
    better. What it computes counts for layers of the same type, what it moves for those that move
    no more, as a cache may have held it.
    """
    known = _on_cpu(layers)
    rates = reached_rates(layers)
    higher: dict[int, Cost] = {}
    bandwidth = 0.0
    for index, cost, ms in sorted(known, key=lambda one: -(one[1].moved_bytes or 0.0)):
        bandwidth = max(bandwidth, (cost.moved_bytes or 0.0) / ms)
        reached, work = rates[cost.peak] / 1000, cost.flops or 0.0
        if cost.bound != "compute":
            reached, work = bandwidth, cost.moved_bytes or 0.0
        if reached and work / reached < (cost.roof_ms or 0.0):
            higher[index] = replace(cost, roof_ms=work / reached)
    return tuple(
        replace(layer, cost=higher[layer.index]) if layer.index in higher else layer
        for layer in layers
    )


def reached_rates(layers: Sequence[Layer]) -> dict[str, float]:
    """Return the most operations per second that layers on the CPU reached, by type."""
    rates: dict[str, float] = {}
    for _, cost, ms in _on_cpu(layers):
        rates[cost.peak] = max(rates.get(cost.peak, 0.0), 1000 * (cost.flops or 0.0) / ms)
    return rates


def with_reached_peaks(peaks: Peaks, layers: Sequence[Layer]) -> Peaks:
    """Return the peaks of the CPU, or what layers on it reached where that is more."""
    rates, known = reached_rates(layers), _on_cpu(layers)
    moved = (
        1000 * (cost.moved_bytes or 0.0) / ms for _, cost, ms in known if cost.bound != "compute"
    )
    most = max(moved, default=0.0)
    # Memory or a cache: the fastest level that is known, so that no layer is above it.
    caches = [replace(one, bandwidth=max(one.bandwidth, most)) for one in peaks.caches[:1]]
    return replace(
        peaks,
        flops={kind: max(rate, rates.get(kind, 0.0)) for kind, rate in peaks.flops.items()},
        bandwidth=peaks.bandwidth if caches else max(peaks.bandwidth, most),
        caches=(*caches, *peaks.caches[1:]),
    )


def _on_cpu(layers: Sequence[Layer]) -> list[tuple[int, Cost, float]]:
    """Return the layers on the CPU that have a roof: their index, cost and time."""
    return [
        (layer.index, layer.cost, ms)
        for layer in layers
        if layer.provider == HOST
        and layer.cost is not None
        and layer.cost.roof_ms
        and (ms := measured_ms(layer))
    ]


def main_layers(layers: Sequence[Layer]) -> Sequence[Layer]:
    """Return the layers of the device that computes a model: those on a GPU, if any are."""
    return [layer for layer in layers if is_launched(layer)] or layers


def roofline_text(layers: Sequence[Layer]) -> str:
    """Return what limits the layers together, each on its device; empty where nothing is known."""
    if any(map(is_launched, layers)) and not has_gpu_times(layers):
        return ""  # the few that ran on the CPU say nothing of the others
    times = [(layer, (measured_ms(layer) or 0.0) * (layer.count or 1.0)) for layer in layers]
    whole = sum(ms for _, ms in times)
    if not whole:
        return ""
    known = [
        (limit, ms, (roof_ms_of(layer) or 0.0) * (layer.count or 1.0))
        for layer, ms in times
        if (limit := limiter(layer)) is not None
    ]
    return limits_text(known, whole)


def limits_text(layers: Iterable[tuple[Limiter, float, float]], whole_ms: float) -> str:
    """Return what limits layers together; empty where that is known of none.

    Args:
        layers: What limits a layer, its time and its least time in milliseconds; those that are
            not known are left out.
        whole_ms: The time of all layers.
    """
    by: dict[str, tuple[float, float]] = {}
    for limit, ms, least_ms in layers:
        spent, least = by.get(limit, (0.0, 0.0))
        by[limit] = spent + ms, least + least_ms
    covered = sum(spent for spent, _ in by.values())
    if not covered:
        return ""
    words = sorted(by, key=lambda word: -by[word][0])
    shares = fmt.whole_percents([by[word][0] for word in words], whole_ms)
    parts = [
        f"{word} {share} %{_of_limit(*by[word]) if word in _ROOFS else ''}"
        for word, share in zip(words, shares, strict=True)
    ]
    text = ", ".join(parts)
    if covered < 0.9995 * whole_ms:  # by layers whose limit is known
        text += f"; {fmt.percent(share_percent(covered, whole_ms))} % of the time is covered"
    return text


def _of_limit(ms: float, least_ms: float) -> str:
    share = share_percent(least_ms, ms)
    return "" if share is None else f" (at {fmt.whole_percent(share)} % of the limit)"


def is_above_roof(layer: Layer) -> bool:
    """Return whether a layer is faster than its roof allows: then it is not its roof."""
    ms, least = measured_ms(layer), roof_ms_of(layer)
    return ms is not None and least is not None and least > MOST_OF_ROOF * ms


def node_kind(op_type: str, node: Node | None) -> NodeKind:
    """Return what of a kernel selects its peak; `node` as in :func:`kernel_cost`."""
    level = node.attribute("accuracy_level") if node is not None else None
    is_level = level is not None and isinstance(level.value, int)
    return NodeKind(op_type, level.value if level is not None and is_level else 0)


def kernel_cost(kernel: Kernel, node: Node | None) -> Cost:
    """Return the cost of a kernel with the operations and bytes of one run, as far as known.

    Args:
        kernel: The kernel with its shapes and types.
        node: The node of the optimised model, or one of the model with its attributes; None
            where it is unknown.
    """
    domain = node.domain if node is not None and node.op_type == kernel.op_type else ""
    counted = operator(domain, kernel.op_type)
    if counted.is_view:
        return replace(kernel.cost, flops=0, moved_bytes=0)
    inputs = _inputs(kernel, node)
    outputs = list(map(_known, kernel.output_dims, kernel.output_types))
    read, written = (
        [None if tensor is None else tensor[0] for tensor in side] for side in (inputs, outputs)
    )

    proto = onnx.NodeProto(op_type=kernel.op_type, domain=domain)
    proto.input.extend("" if shape is None else "tensor" for shape in read)
    if node is not None:
        proto.attribute.extend(node.proto.attribute)
    call = Call(proto, list(map(Value, read)), results=list(map(Value, written)))
    moved = flops = None
    sizes = [[_size(tensor) for tensor in side if tensor is not None] for side in (inputs, outputs)]
    if outputs and not any(None in side for side in sizes):
        taken, given = ([size for size in side if size is not None] for side in sizes)
        if counted.selects and taken:
            taken[0] = sum(given)
        skipped = 0
        for at, (rows, whole) in parts_read(call).items():
            tensor = inputs[at]
            size = None if tensor is None else _size(tensor)
            if size is not None and isinstance(rows, int):
                skipped += size - rows * size // whole
        moved = sum(taken) - skipped + sum(given)

    macs: Count | None = 0
    operations: Count | None = 0 if counted.is_known else None
    if counted.rule is not None:
        macs, operations = work(counted.rule, call)
    elif counted.per_input or counted.per_output:
        first = (read if counted.per_input else written)[:1]
        count = elements(first[0]) if first and first[0] is not None else None
        operations = None if count is None else count * (counted.per_input or counted.per_output)
    if isinstance(macs, int) and isinstance(operations, int):
        flops = 2 * macs + operations
    return replace(kernel.cost, flops=flops, moved_bytes=moved)


_Input: TypeAlias = "tuple[Shape | None, str]"
"""The shape and type of an input or output of a kernel."""


def _known(dims: Dims, dtype: str) -> _Input:
    sizes = [size for size in dims or () if isinstance(size, int) and size >= 0]
    return (None if dims is None or len(sizes) < len(dims) else tuple(sizes)), dtype


def _inputs(kernel: Kernel, node: Node | None) -> list[_Input | None]:
    """Return the inputs of a kernel by index.

    A profile leaves out missing inputs, and weights that were packed in advance.
    """
    recorded: list[_Input | None] = list(map(_known, kernel.input_dims, kernel.input_types))
    if node is None or len(recorded) >= len(node.inputs):
        return recorded
    left = deque(recorded)
    inputs: list[_Input | None] = []
    for name in node.inputs:
        stored = node.scope.resolve(name) if name else None
        tensor = stored.scope.initializer(name) if stored and stored.kind == "initializer" else None
        if tensor is not None and (not left or left[0] != (tensor.shape, tensor.dtype)):
            inputs.append((tensor.shape, tensor.dtype))
        else:
            inputs.append(left.popleft() if name and left else None)
    return inputs


def _size(tensor: _Input) -> int | None:
    shape, dtype = tensor
    bits = ELEMENT_BITS.get(dtype)
    if shape is None or bits is None:
        return None
    count = byte_count(elements(shape), bits)
    return count if isinstance(count, int) else None
