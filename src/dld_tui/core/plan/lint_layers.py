"""Rules about one engine layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.plan.lint_kinds import (
    CHANNELS,
    FLOATS,
    QUANTIZED,
    channels,
    in_dtype,
    is_depthwise,
    is_reformat,
    is_slice,
    on_tensor_cores,
    out_dtype,
    quantizing,
)
from dld_tui.core.plan.lint_model import PlanFinding
from dld_tui.core.plan.macs import is_convolution, is_product

if TYPE_CHECKING:
    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EngineLayer

LONG_PERCENT = 10.0
NOTABLE_PERCENT = 5.0
GEMM_PERCENT = 5.0
_FEW_CHANNELS = 32

_Said: TypeAlias = "tuple[str, str, str, str]"
"""(rule, level, hazard, mitigation)."""


def layer_findings(layer: EngineLayer, nodes: LayerNodes | None = None) -> Iterator[PlanFinding]:
    """Yield the findings about one layer."""
    for rule in _RULES:
        for name, level, hazard, mitigation in rule(layer):
            yield PlanFinding(layer.index, name, level, hazard, mitigation, layer.percent)
    role = quantizing(layer, nodes)
    if role:
        hazard = f"{role} runs as a layer of its own ({in_dtype(layer)} to {out_dtype(layer)})"
        yield PlanFinding(
            layer.index, f"unfused-{role.lower()}", "warning", hazard, _WHY_UNFUSED[role],
            layer.percent,
        )  # fmt: skip


_WHY_UNFUSED = {
    "Quantize": (
        "Find out why it is not fused with the layer before it. At an input of the network it is"
        " needed; feed quantized data to save it"
    ),
    "Dequantize": (
        "Find out why it is not fused with the layer after it: quantize that layer, too, or move"
        " the pair to where the type has to change"
    ),
}


def _convolution_off_tensor_cores(layer: EngineLayer) -> Iterator[_Said]:
    if not is_convolution(layer) or layer.precision in ("fp32", "", "int32", "bool"):
        return
    uses = on_tensor_cores(layer.tactic)
    if uses:
        return
    advice = "Look for another tactic: other channel counts, another precision, a newer TensorRT"
    found = channels(layer)
    if is_depthwise(layer):
        advice = (
            "A depthwise convolution has too little work for each channel; a plain or grouped"
            " convolution may be faster"
        )
    elif found is not None and found[0] < _FEW_CHANNELS:
        advice = f"With only {found[0]} input channels Tensor Cores may not be of use"
    hazard = f"A convolution in {layer.precision} does not use Tensor Cores"
    if uses is None:
        hazard = f"No tactic tells that a convolution in {layer.precision} uses Tensor Cores"
    yield "conv-off-tensor-cores", "warning", hazard, advice


def _quantized_convolution_makes_floats(layer: EngineLayer) -> Iterator[_Said]:
    if is_convolution(layer) and in_dtype(layer) in QUANTIZED and out_dtype(layer) in FLOATS:
        yield (
            "quantized-conv-float-output",
            "warning",
            f"A convolution in {in_dtype(layer)} writes {out_dtype(layer)}",
            "Quantize its result: float outputs cost two to four times the memory traffic",
        )


def _unaligned_channels(layer: EngineLayer) -> Iterator[_Said]:
    found = channels(layer) if is_convolution(layer) else None
    if found is None or is_depthwise(layer):
        return
    multiple = QUANTIZED.get(layer.precision, CHANNELS)
    odd = [count for count in found if count % multiple]
    if odd:
        yield (
            "conv-channels-unaligned",
            "warning",
            f"A convolution in {layer.precision or 'an unknown type'} has {found[0]:,} input and"
            f" {found[1]:,} output channels; Tensor Cores take them in steps of {multiple}",
            f"Make the channels a multiple of {multiple}, padding them where that is cheaper",
        )


def _converting(layer: EngineLayer) -> Iterator[_Said]:
    if not (is_reformat(layer) or is_slice(layer)):
        return
    of, to = in_dtype(layer), out_dtype(layer)
    if not of or not to or of == to:
        return
    advice = "Let the layers on both sides work in the same type"
    if (of in QUANTIZED) != (to in QUANTIZED):
        advice = "Quantize the float operations around it, or keep the whole part in floats"
    elif {of, to} <= FLOATS:
        advice += ", by layer precisions or by Casts in the model"
    name, noun = ("reformat", "Reformat") if is_reformat(layer) else ("slice", "Slice")
    origin = f" (origin: {layer.origin})" if layer.origin else ""
    yield (
        f"{name}-converts-type",
        "warning",
        f"A {noun} layer converts {of} to {to}{origin}",
        advice,
    )


def _long(layer: EngineLayer) -> Iterator[_Said]:
    percent = layer.percent or 0.0
    if percent < NOTABLE_PERCENT:
        return
    level = "warning" if percent >= LONG_PERCENT else "note"
    yield (
        "long-layer",
        level,
        f"This layer takes {fmt.percent(percent)} % of the time of all layers",
        "Start here: a faster type, a smaller shape, or another operator pays most",
    )


def _gemm_off_tensor_cores(layer: EngineLayer) -> Iterator[_Said]:
    if not is_product(layer) or (layer.percent or 0.0) < GEMM_PERCENT:
        return
    if on_tensor_cores(layer.tactic) is False:
        advice = "Use fp16, bf16, fp8 or int8, with dimensions that are multiples of 8 or 16"
        if layer.precision == "fp32":
            advice = f"Allow TF32, or a type of fewer bits. {advice}"
        hazard = f"A matrix product in {layer.precision or 'an unknown type'}"
        yield "gemm-off-tensor-cores", "warning", f"{hazard} does not use Tensor Cores", advice


_RULES: tuple[Callable[[EngineLayer], Iterator[_Said]], ...] = (
    _convolution_off_tensor_cores,
    _quantized_convolution_makes_floats,
    _unaligned_channels,
    _converting,
    _long,
    _gemm_off_tensor_cores,
)
