"""Rules about one engine layer.

Each says only what the file proves. What has one cause is one finding: a layer that only quantizes
is no conversion besides, a kernel on CUDA cores for want of channels is not reported for these, and
the share of the time of a layer that has a finding is told there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
from dld_tui.core.plan.macs import gemm_dims, is_convolution, is_product
from dld_tui.core.report.trt_names import DLA, DLA_TRANSFER, DLA_WAIT

if TYPE_CHECKING:
    from dld_tui.core.plan.lint_links import Links
    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EngineLayer

LONG_PERCENT = 10.0
NOTABLE_PERCENT = 5.0
GEMM_PERCENT = 5.0
PADDED_PERCENT = 10.0
"""Work on padding from which channels are worth a finding."""
_FEW_CHANNELS = 32
_SEVERAL, _TIMES_MEAN = 5, 2.0
"""How much longer than the mean a long layer takes, among several: each of ten has 10 %."""

_Said: TypeAlias = "tuple[str, str, str, str]"
"""(rule, level, hazard, mitigation)."""


def layer_findings(links: Links, nodes: Mapping[int, LayerNodes]) -> Iterator[PlanFinding]:
    """Yield the findings about single layers."""
    roles = {
        place: role
        for place, layer in enumerate(links.layers)
        if (role := quantizing(layer, nodes.get(layer.index)))
    }
    float_outputs = {
        place: [reader for reader in links.after(place) if roles.get(reader) == "Quantize"]
        for place, layer in enumerate(links.layers)
        if _writes_floats(layer) and not links.is_at_output(place)
    }
    told = {reader for readers in float_outputs.values() for reader in readers}
    timed = sum(layer.percent is not None for layer in links.layers)
    for place, layer in enumerate(links.layers):
        found = [
            PlanFinding(layer.index, *said, layer.percent)
            for rule in _RULES
            for said in rule(layer, links, place)
        ]
        if place in float_outputs:
            found.append(_float_output(links, place, float_outputs[place]))
        role = roles.get(place, "")
        if role and place not in told:
            found = [one for one in found if not one.rule.endswith("-converts-type")]
            found += _unfused(links, place, role)
        elif place in told:
            found = []
        yield from found
        if not found and place not in told:
            yield from _long(layer, timed)


# --- quantization --------------------------------------------------------------------------------


def _writes_floats(layer: EngineLayer) -> bool:
    return is_convolution(layer) and in_dtype(layer) in QUANTIZED and out_dtype(layer) in FLOATS


def _float_output(links: Links, place: int, quantizers: list[int]) -> PlanFinding:
    layer = links.layers[place]
    involved = [layer, *(links.layers[other] for other in dict.fromkeys(quantizers))]
    hazard = f"A convolution in {in_dtype(layer)} writes {out_dtype(layer)}"
    if quantizers:
        noun = fmt.plural(len(involved) - 1, "Quantize layer")
        hazard += f", and {noun} {'reads' if len(involved) == 2 else 'read'} it"
    percents = [one.percent for one in involved if one.percent is not None]
    return PlanFinding(
        layer.index,
        "quantized-conv-float-output",
        "warning",
        hazard,
        "Quantize its result, at a residual connection both inputs of the Add: float outputs take"
        " two to four times the memory traffic",
        sum(percents) if percents else None,
        tuple(one.index for one in involved) if quantizers else (),
    )


def _unfused(links: Links, place: int, role: str) -> Iterator[PlanFinding]:
    layer = links.layers[place]
    of, to = in_dtype(layer), out_dtype(layer)
    if role == "Dequantize" and links.is_at_output(place):
        return  # what leaves the network is a float
    level, hazard = "warning", f"{role} runs as a layer of its own ({of} to {to})"
    advice = _WHY_UNFUSED[role]
    if role == "Quantize" and links.is_at_input(place):
        level = "note"
        hazard = f"An input of the network is quantized by a layer of its own ({of} to {to})"
        advice = f"It is needed as long as the input is {of}: feed {to} to save it"
    yield PlanFinding(layer.index, f"unfused-{role.lower()}", level, hazard, advice, layer.percent)


_WHY_UNFUSED = {
    "Quantize": "Find out why it is not fused with the layer before it",
    "Dequantize": (
        "Find out why it is not fused with the layer after it: quantize that layer, too, or move"
        " the pair to where the type has to change"
    ),
}


# --- Tensor Cores --------------------------------------------------------------------------------


def _is_vector(layer: EngineLayer) -> bool:
    """Tell whether a product is of a vector: it waits for its weights, whatever computes it."""
    dims = gemm_dims(layer)
    return dims.m == 1 or dims.n == 1


def _convolution_off_tensor_cores(layer: EngineLayer, links: Links, place: int) -> Iterator[_Said]:
    if not is_convolution(layer) or layer.precision in ("fp32", "", "int32", "bool"):
        return
    if on_tensor_cores(layer.tactic) is not False or _is_vector(layer):
        return
    advice = "Look for another tactic: other channel counts, another precision, a newer TensorRT"
    found = channels(layer)
    multiple = QUANTIZED.get(layer.precision, CHANNELS)
    if is_depthwise(layer):
        advice = (
            "A depthwise convolution has too little work for each channel; a plain or grouped"
            " convolution may be faster"
        )
    elif found is not None and found[0] < _FEW_CHANNELS:
        advice = f"With only {found[0]} input channels Tensor Cores may not be of use"
    elif found is not None and any(count % multiple for count in found):
        advice = (
            f"Its {found[0]:,} input and {found[1]:,} output channels are no multiples of"
            f" {multiple}, in which Tensor Cores take {layer.precision}"
        )
    hazard = f"A convolution in {layer.precision} does not use Tensor Cores, by its tactic's name"
    yield "conv-off-tensor-cores", "warning", hazard, advice


def _unaligned_channels(layer: EngineLayer, links: Links, place: int) -> Iterator[_Said]:
    found = channels(layer) if is_convolution(layer) else None
    if found is None or is_depthwise(layer) or layer.precision in ("fp32", "", "int32", "bool"):
        return
    uses = on_tensor_cores(layer.tactic)
    multiple = QUANTIZED.get(layer.precision, CHANNELS)
    if uses is False or all(count % multiple == 0 for count in found) or _is_vector(layer):
        return
    # An image has the channels that it has, and a classifier its classes.
    ends = (links.is_at_input(place), links.is_at_output(place))
    padded = 1.0
    for count, is_fixed in zip(found, ends, strict=True):
        if not is_fixed:
            padded *= -(-count // multiple) * multiple / count
    percent = 100 * (padded - 1)
    if percent < PADDED_PERCENT:
        return
    kernel = "its kernel pads" if uses else "a kernel on Tensor Cores would pad"
    yield (
        "conv-channels-unaligned",
        "warning" if uses else "note",
        f"A convolution in {layer.precision} has {found[0]:,} input and {found[1]:,} output"
        f" channels: {kernel} them to multiples of {multiple}, which is {percent:.0f} % more work",
        f"Make the channels a multiple of {multiple}, padding them where that is cheaper",
    )


def _gemm_off_tensor_cores(layer: EngineLayer, links: Links, place: int) -> Iterator[_Said]:
    if not is_product(layer) or (layer.percent or 0.0) < GEMM_PERCENT or _is_vector(layer):
        return
    if on_tensor_cores(layer.tactic) is False:
        advice = "Use fp16, bf16, fp8 or int8, with dimensions that are multiples of 8 or 16"
        if layer.precision == "fp32":
            advice = f"Allow TF32, or a type of fewer bits. {advice}"
        hazard = f"A matrix product in {layer.precision or 'an unknown type'}"
        yield (
            "gemm-off-tensor-cores", "warning",
            f"{hazard} does not use Tensor Cores, by its tactic's name", advice,
        )  # fmt: skip


# --- conversions, and what takes long ------------------------------------------------------------


def _converting(layer: EngineLayer, links: Links, place: int) -> Iterator[_Said]:
    if not (is_reformat(layer) or is_slice(layer)):
        return
    of, to = in_dtype(layer), out_dtype(layer)
    if not of or not to or of == to:
        return
    level, advice = "warning", "Let the layers on both sides work in the same type"
    if (of in QUANTIZED) != (to in QUANTIZED):
        advice = "Quantize the float operations around it, or keep the whole part in floats"
    elif {of, to} <= FLOATS:
        advice += ", by layer precisions or by Casts in the model"
    name, noun = ("reformat", "Reformat") if is_reformat(layer) else ("slice", "Slice")
    where = ""
    if links.is_at_input(place):
        level, where = "note", " at an input of the network"
        advice = f"Feed {to} (trtexec --inputIOFormats), if what makes the input can"
    elif links.is_at_output(place):
        level, where = "note", " at an output of the network"
        advice = f"Take {of} (trtexec --outputIOFormats), if what reads the output can"
    origin = f" (origin: {layer.origin})" if layer.origin else ""
    yield (
        f"{name}-converts-type",
        level,
        f"A {noun} layer converts {of} to {to}{where}{origin}",
        advice,
    )


def _long(layer: EngineLayer, timed: int) -> Iterator[PlanFinding]:
    percent = layer.percent or 0.0
    usual = _TIMES_MEAN * 100 / timed if timed >= _SEVERAL else 0.0
    if percent < max(NOTABLE_PERCENT, usual):
        return
    level = "warning" if percent >= LONG_PERCENT else "note"
    hazard = f"This layer takes {fmt.percent(percent)} % of the time of all layers"
    advice = "Start here: a faster type, a smaller shape, or another operator pays most"
    if layer.kind in (DLA_TRANSFER, DLA_WAIT):
        hazard = f"A transfer from or to the DLA takes {fmt.percent(percent)} % of the time"
        advice = (
            "The time that the GPU waits for the DLA is most probably in it, and not in the row of"
            " the DLA's own part: compare with an engine in which the GPU does that part"
        )
    elif layer.kind == DLA or layer.type == DLA:
        hazard = f"A part on the DLA takes {fmt.percent(percent)} % of the time of all layers"
        advice = "Compare with an engine in which the GPU does it (without --useDLACore)"
    elif is_reformat(layer):
        advice = "It only changes a format: see which of the layers around it asks for another one"
    elif layer.kind == "ForeignNode" or "{ForeignNode[" in layer.name:
        advice = (
            "It computes many nodes: build with --profilingVerbosity=detailed to see them one by"
            " one"
        )
    yield PlanFinding(layer.index, "long-layer", level, hazard, advice, layer.percent)


_Rule: TypeAlias = "Callable[[EngineLayer, Links, int], Iterator[_Said]]"
_RULES: tuple[_Rule, ...] = (
    _convolution_off_tensor_cores,
    _unaligned_channels,
    _converting,
    _gemm_off_tensor_cores,
)
