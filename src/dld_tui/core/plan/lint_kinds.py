"""What kind of work an engine layer does, for the rules."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from dld_tui.core.plan.macs import is_product

if TYPE_CHECKING:
    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EngineLayer

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
_ON_TENSOR_CORES = re.compile(
    r"imma|hmma|qmma|gmma|utcmma|i88|884|16816|16832|1688|tensorop|tensor\d+x\d+|tf32",
    re.IGNORECASE,
)
_ON_CUDA_CORES = re.compile(
    r"ffma|simt|gemv|dp4a|icudnn_int8x4|scudnn|sgemm|^sm(?:50|52|53|60|61|62)_|^(?:maxwell|pascal)_",
    re.IGNORECASE,
)


def is_depthwise(layer: EngineLayer) -> bool:
    """Tell whether a convolution has a group for each channel."""
    if "Depthwise" in layer.type:
        return True
    groups, maps = layer.attributes.get("Groups"), layer.attributes.get("OutMaps")
    return isinstance(groups, int) and groups > 1 and groups == maps


def is_kernel_generated(layer: EngineLayer) -> bool:
    """Tell whether the compiler of fused parts made the kernel."""
    return layer.type == "kgen"


def is_reformat(layer: EngineLayer) -> bool:
    """Tell whether a layer changes format or type only."""
    return "Reformat" in (layer.type, layer.kind)


def is_copy(layer: EngineLayer) -> bool:
    """Tell whether TensorRT put a layer in to copy a tensor for another layer."""
    return "Reformatting CopyNode" in layer.name or "reformatter" in layer.name


def is_slice(layer: EngineLayer) -> bool:
    """Tell whether a layer takes a part of a tensor, or pads it."""
    return layer.type == "Slice" or layer.subtype == "Slice"


def is_shape_work(layer: EngineLayer) -> bool:
    """Tell whether a layer works on shapes or only casts."""
    kinds = (layer.type, layer.subtype)
    if any(kind in _SHAPE_TYPES or kind == "Cast" for kind in kinds):
        return True
    return is_kernel_generated(layer) and _SHAPE_KERNEL.match(layer.name) is not None


def is_softmax(layer: EngineLayer, nodes: LayerNodes | None) -> bool:
    """Tell whether a layer is a softmax, not fused with matrix products."""
    if is_product(layer) or is_fused_attention(layer):
        return False
    if layer.subtype == "SoftMax" or "SoftMax" in layer.type:
        return True
    if nodes is not None and any(ref.op_type == "Softmax" for ref in nodes.nodes):
        return True
    return _SOFTMAX.search(f"{layer.name} {layer.metadata}"[:8000]) is not None


def is_fused_attention(layer: EngineLayer) -> bool:
    """Tell whether a layer computes an attention as one kernel."""
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
        # A build log tells no origin, but the node's own name.
        named = not layer.origin and "quantizelinear" in layer.name.lower()
        return role if layer.origin.upper() == "QDQ" or (named and not is_copy(layer)) else ""
    if is_kernel_generated(layer) and nodes is not None and nodes.nodes:
        names = [ref.op_type or ref.name for ref in nodes.nodes]
        return role if all("quantize" in name.lower() for name in names) else ""
    return ""


def in_dtype(layer: EngineLayer) -> str:
    """Return the type of the first input; empty when there is none."""
    return layer.inputs[0].dtype if layer.inputs else ""


def out_dtype(layer: EngineLayer) -> str:
    """Return the type of the first output; empty when there is none."""
    return layer.outputs[0].dtype if layer.outputs else ""


@lru_cache(maxsize=4096)
def on_tensor_cores(tactic: str) -> bool | None:
    """Tell from a tactic's name whether it uses Tensor Cores; None where the name proves neither.

    A library's name, such as ``xmma``, proves nothing: it has kernels of both kinds.
    """
    if _ON_CUDA_CORES.search(tactic):
        return False
    return True if _ON_TENSOR_CORES.search(tactic) else None


def channels(layer: EngineLayer) -> tuple[int, int] | None:
    """Return the channels that go in and come out of a convolution; None when unknown."""
    found = []
    for tensors in (layer.inputs, layer.outputs):
        dims = tensors[0].dims if tensors else None
        if dims is None or len(dims) < 3 or dims[1] <= 0:
            return None
        found.append(dims[1])
    return found[0], found[1]
