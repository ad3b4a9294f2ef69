"""The time of layers by type, ONNX node, operator, scope or precision."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import nlargest
from typing import Protocol, TypeAlias, TypeVar

from dld_tui.core.model.operators.categories import category_of, main_rank, onnx_operators
from dld_tui.core.report.dla import kind_of_name
from dld_tui.core.report.records import Group, Layer, NodeLink
from dld_tui.core.statistics import share_percent
from dld_tui.core.types import ELEMENT_BITS

HOST = "CPUExecutionProvider"
COPY_TYPES = ("MemcpyFromHost", "MemcpyToHost")
"""Nodes that ONNX Runtime adds where values go from the CPU to a device, or back."""
_DEVICE_PROVIDERS = ("CUDA", "Tensorrt", "TensorRT", "ROCM", "MIGraphX", "NvTensorRTRTX")


def has_gpu_times(layers: Sequence[Layer]) -> bool:
    """Return whether the time on a GPU is known of any layer."""
    return any(layer.gpu_time_ms is not None for layer in layers)


def is_launched(layer: Layer) -> bool:
    """Return whether the measured time of a layer is its launch only, as it ran on a device."""
    return layer.gpu_time_ms is not None or launches(layer.provider)


def launches(provider: str | None) -> bool:
    """Return whether a provider times where it launches its layers, not what they take."""
    return any(word in (provider or "") for word in _DEVICE_PROVIDERS)


def are_launches(layers: Sequence[Layer]) -> bool:
    """Return whether only launches were timed: these say little of what the layers cost."""
    return not has_gpu_times(layers) and any(map(is_launched, layers))


def time_title(layers: Sequence[Layer]) -> str:
    """Return what the own times of layers are, as the title of a column in milliseconds."""
    if not launches_are_timed(layers):
        return "time ms"
    timed = [layer for layer in layers if layer.time_ms is not None]
    are_all = not has_gpu_times(layers) and all(map(is_launched, timed))
    return "launch ms" if are_all else "CPU ms"


def launches_are_timed(layers: Sequence[Layer]) -> bool:
    """Return whether own times are of the CPU, which launches what runs on a GPU."""
    timed = [layer for layer in layers if layer.time_ms is not None]
    return has_gpu_times(layers) or are_launches(timed)


def is_split(layers: Sequence[Layer]) -> bool:
    """Return whether layers on the CPU, with copies to and from it, interrupt those on a GPU.

    ONNX Runtime captures no CUDA graph of these. Layers that work out shapes on the CPU have no
    copies, and do not hinder it.
    """
    return has_gpu_times(layers) and any(layer.type in COPY_TYPES for layer in layers)


def costs_text(layers: Sequence[Layer]) -> str:
    """Return what the costs of layers with GPU times are times of."""
    on_cpu = any(layer.provider == HOST and layer.cost_ms for layer in layers)
    return "kernels and layers on the CPU" if on_cpu else "kernels"


def priced(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Return the layers with the percentages of what they cost, and which cost no kernel.

    With GPU times, the cost of a layer is its kernels, or its own time if it ran on the CPU; a
    layer without kernels then costs nothing. Without GPU times, it is its own time.
    """
    if has_gpu_times(layers):
        layers = [
            replace(layer, without_kernels=layer.gpu_time_ms is None and layer.provider != HOST)
            for layer in layers
        ]
    total = math.fsum(layer.cost_ms or 0.0 for layer in layers)
    return tuple(
        layer
        if (percent := share_percent(layer.cost_ms, total)) == layer.percent
        else replace(layer, percent=percent)
        for layer in layers
    )


def output_bytes(layer: Layer) -> int | None:
    """Return the size of a layer's outputs: as the backend says, else of known shapes and types."""
    stored = layer.cost and layer.cost.output_bytes
    if stored:
        return round(stored)
    if not layer.output_dims or len(layer.output_dims) != len(layer.output_types):
        return _of_first(layer)
    bits = 0
    for dims, kind in zip(layer.output_dims, layer.output_types, strict=True):
        tensor_bits = _bits(dims, kind)
        if tensor_bits is None:
            return None
        bits += tensor_bits
    return math.ceil(bits / 8)


def _of_first(layer: Layer) -> int | None:
    if len(layer.output_dims) != 1 or layer.precision is None:
        return None
    bits = _bits(layer.output_dims[0], layer.precision)
    return None if bits is None else math.ceil(bits / 8)


def _bits(dims: tuple[int | str | None, ...] | None, kind: str) -> int | None:
    element_bits = ELEMENT_BITS.get(kind)
    if element_bits is None or dims is None:
        return None
    count = 1
    for dim in dims:
        if not isinstance(dim, int) or dim < 0:
            return None
        count *= dim
    return count * element_bits


def costliest(layers: Iterable[Layer], count: int) -> list[Layer]:
    """Return the layers that cost most; those that cost nothing are left out."""
    return nlargest(count, (one for one in layers if one.cost_ms), lambda one: one.cost_ms or 0.0)


GROUPINGS = ("layer", "type", "node", "op", "scope", "provider", "precision")

NO_NODE = "(no ONNX node)"
"""The key of the time that no ONNX node is known for."""
NO_SCOPE = "(no name scope)"
UNKNOWN = "(unknown)"

_Part: TypeAlias = "tuple[str, float, bool]"
"""(key, share of the layer's time, whether the share is an estimate)."""


def group_layers(layers: Iterable[Layer], by: str, whole: Sequence[Layer] = ()) -> list[Group]:
    """Return the groups, the costliest first. `by` is one of `GROUPINGS`, or a text of an engine.

    By ``node``, ``op`` and ``scope``, the time of a layer is distributed over its ONNX nodes by
    `NodeLink.share`, and marked as an estimate. The figures of a group are the sums of those of
    its layers, so all groups sum to 100 %.

    Args:
        layers: The layers to group.
        by: The key.
        whole: The base of the percentages, where that is more than `layers`.
    """
    members: dict[str, list[tuple[Layer, float, bool]]] = {}
    layers = list(layers)
    for layer in layers:
        for key, share, estimated in parts(layer, by):
            members.setdefault(key, []).append((layer, share, estimated))
    total = math.fsum(layer.cost_ms or 0.0 for layer in whole or layers)
    groups = [_group(key, found, total) for key, found in members.items()]
    return sorted(groups, key=lambda group: (-group.cost_ms, group.key))


def _group(key: str, members: Sequence[tuple[Layer, float, bool]], total_ms: float) -> Group:
    gpu = [part * ms for layer, part, _ in members if (ms := layer.gpu_time_ms) is not None]
    cost_ms = sum(part * (layer.cost_ms or 0.0) for layer, part, _ in members)
    return Group(
        key=key,
        count=len(members),
        time_ms=sum(part * (layer.time_ms or 0.0) for layer, part, _ in members),
        percent=share_percent(cost_ms, total_ms) or 0.0,
        estimate=any(estimated for _, _, estimated in members),
        gpu_time_ms=sum(gpu) if gpu else None,
        cost_ms=cost_ms,
        is_timed=any(layer.cost_ms is not None for layer, _, _ in members),
    )


def parts(layer: Layer, by: str) -> Iterator[_Part]:
    """Yield the groups that a layer belongs to, and how much of it to each; the shares sum to 1."""
    if by in ("node", "op", "scope"):
        if not layer.nodes:
            yield NO_NODE, 1.0, False
        # Nodes of one layer in the same scope need no sharing between them.
        keys = [_node_key(link, by) for link in layer.nodes]
        for key in dict.fromkeys(keys):
            part = sum(
                link.share for link, other in zip(layer.nodes, keys, strict=True) if other == key
            )
            yield key, part, len(set(keys)) > 1
    elif by == "layer":
        yield layer.name, 1.0, False
    elif by == "type":
        yield layer.type, 1.0, False
    elif by == "provider":
        yield layer.provider or UNKNOWN, 1.0, False
    elif by == "precision":
        yield layer.precision or UNKNOWN, 1.0, False
    else:
        yield getattr(layer.engine, by, "") or UNKNOWN, 1.0, False


_Node = TypeVar("_Node", bound="_HasOperator")


class _HasOperator(Protocol):
    @property
    def op_type(self) -> str: ...

    @property
    def name(self) -> str: ...


def main_node(nodes: Sequence[_Node]) -> _Node:
    """Return the node that a layer is called by: the first of its main operator.

    Args:
        nodes: One at least; without an operator where that is not known, as no model is.
    """
    if len(nodes) == 1:
        return nodes[0]
    return max(nodes, key=lambda node: main_rank(node.op_type or layer_type(node.name)))


def _node_key(link: NodeLink, by: str) -> str:
    if by == "node":
        return link.label
    return link.op_type if by == "op" else name_scope(link)


def name_scope(link: NodeLink) -> str:
    """Return the scope that a node's name says, e.g. ``/layer1/layer1.0``, within its subgraph."""
    scope = link.name.rpartition("/")[0]
    parts = (*link.scope, scope) if scope else link.scope
    return " › ".join(parts) or NO_SCOPE


MYELIN = "Myelin"
_FORMS = (
    (re.compile(r"Reformatting CopyNode|\breformatter \d+$|copy$"), "Reformat"),
    (re.compile(r"^\{ForeignNode\["), "ForeignNode"),
    (re.compile(r"^\[trainStation", re.IGNORECASE), "TrainStation"),
    (re.compile(r"^__my[le]"), MYELIN),
)
_INSERTED_COPY = re.compile(r"Reformatting CopyNode|reformatter")


def is_copy_name(name: str) -> bool:
    """Return whether TensorRT named a layer that it inserted to copy a tensor for another one."""
    return _INSERTED_COPY.search(name) is not None


_COMPILED = re.compile(r"_myl\d+(?:_\d+)*$")
"""The suffix of a node that Myelin computes on its own."""
_SEPARATORS = re.compile(r" \+ | \|\| |[(){}\[\],;|]")
_ENDING = re.compile(r"(?:[_:-]+(?:\d+|output|input))+$")
_BESIDE = re.compile(
    r"(?:copied_)?(?P<of>unsqueeze|squeeze|reshape|shuffle|transpose)_(?:node_)?"
    r"(?:after|before|between)_"
)
"""Layers that TensorRT inserts next to a node."""
_UNNAMED = re.compile(r"\(Unnamed Layer\* \d+\) \[(?P<of>\w+)\]")
_MOST = 4
_LONGEST = 4000

# PyTorch and TensorFlow name nodes after operators of their own.
_WORDS = {name.lower(): name for name in onnx_operators()} | {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), "Conv"),
    **dict.fromkeys(("convtranspose2d", "deconv", "deconvolution"), "ConvTranspose"),
    **dict.fromkeys(("maxpool1d", "maxpool2d", "maxpool3d"), "MaxPool"),
    **dict.fromkeys(("avgpool", "avgpool1d", "avgpool2d", "avgpool3d"), "AveragePool"),
    **dict.fromkeys(("batchnorm", "batchnorm2d"), "BatchNormalization"),
    "linear": "Gemm", "layernorm": "LayerNormalization",
    # tf2onnx names what it quantizes so.
    "quantlinearnode": "QuantizeLinear", "dequantlinearnode": "DequantizeLinear",
}  # fmt: skip


@lru_cache(maxsize=16_384)
def layer_type(name: str) -> str:
    """Return a type, e.g. ``Conv + Relu``: the ONNX operators in the name, or the layer's form."""
    on_dla = kind_of_name(name)
    if on_dla is not None:
        return on_dla
    name = name[:_LONGEST]
    for form, title in _FORMS:
        if form.search(name):
            return title
    operators = dict.fromkeys(filter(None, map(_operator, _SEPARATORS.split(name))))
    if not operators:  # nothing but what TensorRT put in
        beside = (*_BESIDE.finditer(name), *_UNNAMED.finditer(name))
        operators = dict.fromkeys(match["of"].capitalize() for match in beside)
    words = list(operators)
    if not words and _COMPILED.search(name):
        return MYELIN
    return " + ".join(words[:_MOST]) + (" + …" if len(words) > _MOST else "") if words else UNKNOWN


def _operator(part: str) -> str:
    """Return the operator that a part of a name is, but for its path and number; else nothing."""
    word = _ENDING.sub("", _COMPILED.sub("", part.strip()).rpartition("/")[2])
    if not word:
        return ""
    if category_of(word) != "custom":
        return word
    small = word.removeprefix("node_").lower()
    return _WORDS.get(small) or _WORDS.get(small.replace("_", ""), "")
