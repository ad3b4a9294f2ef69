"""What a layer of an engine is, by its type, name and nodes; the links between layers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.report.groups import is_copy_name
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan
from dld_tui.core.tensorrt.plan.layer_work import is_convolution, is_product

if TYPE_CHECKING:
    from dld_tui.core.tensorrt.plan.mapping import LayerNodes

FLOATS = frozenset({"fp32", "fp16", "bf16"})
QUANTIZED = {"int8": 16, "uint8": 16, "fp8": 16, "int4": 32, "fp4": 32}
"""Types of few bits, and how many channels a Tensor Core instruction takes of them."""
CHANNELS = 8
"""The same for all other types."""
_SOFTMAX = re.compile(r"soft_?max|MaxrSubExpSum|MaxSubExpSum", re.IGNORECASE)
_FUSED_ATTENTION = re.compile(r"mha|flash|attention|fused_multihead", re.IGNORECASE)
_MYELIN_ATTENTION = re.compile(r"^_+(?:myl_)?(?:gemm_)?(?:f?mha|attention)_", re.IGNORECASE)
"""Names that Myelin gives, not those of ONNX nodes, which may well contain ``attention``."""
_SHAPE_TYPES = frozenset({"Shape", "shape_call", "ShapeHostToDeviceCopy", "ShapeDeviceToHost"})
_SHAPE_KERNEL = re.compile(r"__my[le]_?(?:Cast|Shape)+_")
_QUANTIZERS = ("Quantize", "DynamicQuantize")
_DEQUANTIZERS = ("Dequantize",)


def is_depthwise(layer: EngineLayer) -> bool:
    """Return whether a convolution has one group per channel."""
    if "Depthwise" in layer.type:
        return True
    groups, maps = layer.attributes.get("Groups"), layer.attributes.get("OutMaps")
    return isinstance(groups, int) and groups > 1 and groups == maps


def is_kernel_generated(layer: EngineLayer) -> bool:
    """Return whether the kernel is from the compiler of fused parts."""
    return layer.type == "kgen"


def is_reformat(layer: EngineLayer) -> bool:
    """Return whether a layer only changes format or type: one that waits for a DLA does not."""
    return layer.kind == "Reformat"


def is_copy(layer: EngineLayer) -> bool:
    """Return whether TensorRT inserted a layer to copy a tensor for another layer."""
    return is_copy_name(layer.name)


def is_slice(layer: EngineLayer) -> bool:
    """Return whether a layer takes a part of a tensor, or pads it."""
    return layer.type == "Slice" or layer.subtype == "Slice"


def is_shape_work(layer: EngineLayer) -> bool:
    """Return whether a layer works on shapes or only casts."""
    kinds = (layer.type, layer.subtype)
    if any(kind in _SHAPE_TYPES or kind == "Cast" for kind in kinds):
        return True
    return is_kernel_generated(layer) and _SHAPE_KERNEL.match(layer.name) is not None


def is_softmax(layer: EngineLayer, nodes: LayerNodes | None) -> bool:
    """Return whether a layer is a softmax that is not fused with matrix products."""
    if is_product(layer) or is_fused_attention(layer):
        return False
    if layer.subtype == "SoftMax" or "SoftMax" in layer.type:
        return True
    if nodes is not None and any(ref.op_type == "Softmax" for ref in nodes.nodes):
        return True
    return _SOFTMAX.search(f"{layer.name} {layer.metadata}"[:8000]) is not None


def is_fused_attention(layer: EngineLayer) -> bool:
    """Return whether a layer computes an attention as one kernel."""
    return (
        _FUSED_ATTENTION.search(f"{layer.type} {layer.subtype} {layer.tactic}") is not None
        or _MYELIN_ATTENTION.search(layer.name) is not None
    )


def quantizing(layer: EngineLayer, nodes: LayerNodes | None) -> str:
    """Return ``Quantize`` or ``Dequantize`` for a layer that does only this, else nothing."""
    of, to = in_dtype(layer), out_dtype(layer)
    if (of in QUANTIZED) == (to in QUANTIZED) or not of or not to:
        return ""
    role = "Dequantize" if of in QUANTIZED else "Quantize"
    kinds = (layer.type, layer.subtype)
    if any(kind in (*_QUANTIZERS, *_DEQUANTIZERS, "Scale") for kind in kinds):
        return role
    if is_reformat(layer):
        # A build log has no origin, only the node's own name.
        named = not layer.origin and "quantizelinear" in layer.name.lower()
        return role if layer.origin.upper() == "QDQ" or (named and not is_copy(layer)) else ""
    if is_kernel_generated(layer) and nodes is not None and nodes.nodes:
        names = [ref.op_type or ref.name for ref in nodes.nodes]
        return role if all("quantize" in name.lower() for name in names) else ""
    return ""


def in_dtype(layer: EngineLayer) -> str:
    """Return the type of the first input; empty if there is none."""
    return layer.inputs[0].dtype if layer.inputs else ""


def out_dtype(layer: EngineLayer) -> str:
    """Return the type of the first output; empty if there is none."""
    return layer.outputs[0].dtype if layer.outputs else ""


def channels(layer: EngineLayer) -> tuple[int, int] | None:
    """Return the channels that go in and come out of a convolution; None when unknown."""
    counts = []
    for tensors in (layer.inputs, layer.outputs):
        dims = tensors[0].dims if tensors else None
        if dims is None or len(dims) < 3 or dims[1] <= 0:
            return None
        counts.append(dims[1])
    return counts[0], counts[1]


_MOST_STEPS = 64
_MOST_LINKS = 8
"""Layers that are followed from one tensor."""


class Links:
    """The layers that write and read each tensor; layers go by their place in ``plan.layers``."""

    def __init__(self, plan: EnginePlan) -> None:
        self.layers = plan.layers
        self._makers: dict[str, list[int]] = {}
        self._readers: dict[str, list[int]] = {}
        for place, layer in enumerate(plan.layers):
            for tensor in layer.outputs:
                self._makers.setdefault(tensor.name, []).append(place)
            for tensor in layer.inputs:
                for name in tensor.source_names:
                    self._readers.setdefault(name, []).append(place)
        self._ends = {
            mode: {tensor.name for tensor in plan.bindings if tensor.mode == mode}
            for mode in ("input", "output")
        }
        # A log's table of layers has no bindings: they are the tensors without a writer or reader.
        self._ends["input"] = self._ends["input"] or self._readers.keys() - self._makers.keys()
        self._ends["output"] = self._ends["output"] or self._makers.keys() - self._readers.keys()

    def before(self, place: int) -> list[int]:
        """Return the layers that write the inputs of a layer."""
        names = (name for tensor in self.layers[place].inputs for name in tensor.source_names)
        return [maker for name in names for maker in self._makers.get(name, ())[:_MOST_LINKS]]

    def after(self, place: int) -> list[int]:
        """Return the layers that read the outputs of a layer."""
        names = (tensor.name for tensor in self.layers[place].outputs)
        return [reader for name in names for reader in self._readers.get(name, ())[:_MOST_LINKS]]

    def is_at_input(self, place: int) -> bool:
        """Return whether a layer reads an input of the engine, without a heavy layer in between."""
        return self._is_at_end(place, self.before, "input")

    def is_at_output(self, place: int) -> bool:
        """Return whether the output of a layer reaches an engine output, but no heavy layer."""
        return self._is_at_end(place, self.after, "output")

    def _is_at_end(self, start: int, step: Callable[[int], list[int]], mode: str) -> bool:
        ends = self._ends[mode]
        seen, waiting = {start}, [start]
        reached = False
        while waiting:
            place = waiting.pop()
            layer = self.layers[place]
            if place != start and is_heavy(layer):
                return False
            names = self._names(layer, mode)
            reached |= not ends.isdisjoint(names)
            for other in step(place):
                if other not in seen:
                    if len(seen) >= _MOST_STEPS:
                        return False
                    seen.add(other)
                    waiting.append(other)
        return reached

    @staticmethod
    def _names(layer: EngineLayer, mode: str) -> Sequence[str]:
        if mode == "output":
            return [tensor.name for tensor in layer.outputs]
        return [name for tensor in layer.inputs for name in tensor.source_names]

    def way_to_product(
        self, start: int, step: Callable[[int], list[int]], max_steps: int
    ) -> list[int]:
        """Return a shortest path to a matrix product that is at most `max_steps` layers away.

        The product comes last; empty if there is none.
        """
        came_from, ring = {start: start}, [start]
        for _ in range(max_steps):
            following: list[int] = []
            for place in ring:
                for other in step(place):
                    if other not in came_from:
                        came_from[other] = place
                        following.append(other)
            ring = following
            for other in ring:
                if is_product(self.layers[other]):
                    way = [other]
                    while came_from[way[-1]] != start:
                        way.append(came_from[way[-1]])
                    return way[::-1]
            if len(came_from) > _MOST_STEPS:
                break
        return []


def is_heavy(layer: EngineLayer) -> bool:
    """Return whether a layer is a convolution or a matrix product."""
    return is_convolution(layer) or is_product(layer)
