"""What probably costs time in an engine plan, and how to fix it.

Each rule reports only what the files prove. One cause makes one finding: a layer that only
quantizes is not also a conversion, a kernel on CUDA cores for lack of channels is not also reported
for the channels, and a layer's share of the time is part of its finding.

Rules are about one layer, several layers together (attention among them), or whole
inferences: launches, copies, clocks; these need the timing of the engine.
docs/reference/engine-lint.md lists them with their sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.foreign import text_of
from dld_tui.core.machine.kernel_names import on_tensor_cores
from dld_tui.core.model.rewrite import command_of
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.core.report.dla import DlaKind
from dld_tui.core.report.enqueueing import is_launch_bound
from dld_tui.core.statistics import TRUSTED_COV_PERCENT
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan
from dld_tui.core.tensorrt.plan.gains import GainRange, gain_of_inferences, gain_of_layers
from dld_tui.core.tensorrt.plan.layer_kinds import (
    CHANNELS,
    FLOATS,
    QUANTIZED,
    Links,
    channels,
    in_dtype,
    is_depthwise,
    is_heavy,
    is_kernel_generated,
    is_reformat,
    is_shape_work,
    is_slice,
    is_softmax,
    out_dtype,
    quantizing,
)
from dld_tui.core.tensorrt.plan.layer_work import gemm_dims, is_convolution, is_product
from dld_tui.core.tensorrt.plan.trtexec_log import is_cuda_graph_option

if TYPE_CHECKING:
    from dld_tui.core.tensorrt.plan.engine_plan import TimingSummary
    from dld_tui.core.tensorrt.plan.mapping import LayerNodes

LEVELS = ("warning", "note")
"""Levels of findings, the worst first."""


@dataclass(frozen=True)
class PlanFinding:
    """One hazard of one layer, or of the whole engine."""

    layer: int | None
    """`EngineLayer.index`; None when it is about the whole engine."""
    rule: str
    """The rule's id, as in docs/reference/engine-lint.md."""
    level: str
    """One of `LEVELS`."""
    hazard: str
    """The problem. May contain untrusted text."""
    mitigation: str
    """What to do about it."""
    percent: float | None
    """Its share of the time of all layers, 0 to 100; None without a profile."""
    layers: tuple[int, ...] = ()
    """The layers that a finding about the whole engine is of."""
    rules: tuple[str, ...] = ()
    """Rules of ``dld rewrite`` that do that to the ONNX model where they find places."""
    gain: GainRange | None = None
    """How much less time the engine could take; None without times, and where none is saved."""

    @property
    def concerned(self) -> tuple[int, ...]:
        """All layers that it is about, each once, the one that it is called by first."""
        own = () if self.layer is None else (self.layer,)
        return tuple(dict.fromkeys((*own, *self.layers)))


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one rule and level."""

    rule: str
    level: str
    findings: tuple[PlanFinding, ...]
    layers: tuple[EngineLayer, ...]
    """The layers that they are about, those that take longest first; each once."""
    percent: float | None
    """Share of the time of these layers; None without a profile."""
    gain: GainRange | None = None
    """How much less time the engine could take if all findings are followed."""

    @property
    def hazards(self) -> list[str]:
        """The problems, one sentence each, the most frequent first, with their counts. Foreign."""
        concerned: dict[str, set[int]] = {}
        for finding in self.findings:
            concerned.setdefault(finding.hazard, set()).update(finding.concerned)
        ordered = sorted(concerned.items(), key=lambda item: -len(item[1]))
        if len(self.findings) == 1:
            return [ordered[0][0]]
        return [
            f"{hazard} ({fmt.plural(len(layers), 'layer')})" if len(layers) > 1 else hazard
            for hazard, layers in ordered
        ]

    @property
    def mitigations(self) -> list[str]:
        """What to do, each once."""
        return list(
            dict.fromkeys(finding.mitigation for finding in self.findings if finding.mitigation)
        )


def grouped(plan: EnginePlan, findings: Sequence[PlanFinding]) -> list[FindingGroup]:
    """Return findings by rule and level: warnings first, then by the share of the time."""
    layers = {layer.index: layer for layer in (*plan.all_layers, *plan.layers)}
    by_rule: dict[tuple[str, str], list[PlanFinding]] = {}
    for finding in findings:
        by_rule.setdefault((finding.rule, finding.level), []).append(finding)
    groups = [_group(same, layers) for same in by_rule.values()]
    return sorted(groups, key=lambda group: (LEVELS.index(group.level), -(group.percent or 0.0)))


def _group(same: Sequence[PlanFinding], layers: Mapping[int, EngineLayer]) -> FindingGroup:
    indices: dict[int, None] = {}
    for finding in same:
        indices.update(dict.fromkeys(finding.concerned))
    involved = sorted(
        (layers[index] for index in indices if index in layers),
        key=lambda layer: -(layer.percent or 0.0),
    )
    percents = [layer.percent for layer in involved if layer.percent is not None]
    share = sum(percents) if percents else None
    return FindingGroup(
        same[0].rule, same[0].level, tuple(same), tuple(involved), share, _joined_gain(same, share)
    )


def _joined_gain(same: Sequence[PlanFinding], share: float | None) -> GainRange | None:
    """Return the range of several findings: those about the same layers save them once.

    Args:
        same: The findings.
        share: Of the time, of all their layers.
    """
    gains = {
        (finding.layer, finding.layers): finding.gain
        for finding in same
        if finding.gain is not None
    }
    if not gains:
        return None
    bounds = [gain.percent[1] for gain in gains.values()]
    # One that is above the share is of more layers than the findings name, as of an attention.
    limit = 100.0 if share is None or max(bounds) > share else share
    sources = dict.fromkeys(gain.source for gain in gains.values())
    return GainRange((0.0, min(limit, sum(bounds))), "; ".join(sources))


LONG_PERCENT = 10.0
NOTABLE_PERCENT = 5.0
GEMM_PERCENT = 5.0
PADDED_PERCENT = 10.0
"""Work on padding from which channels are worth a finding."""
_FEW_CHANNELS = 32
_SEVERAL, _TIMES_MEAN = 5, 2.0
"""How much longer than the mean a long layer takes, among several: each of ten has 10 %."""

_Message: TypeAlias = "tuple[str, str, str, str]"
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
    quantizable = {reader for readers in float_outputs.values() for reader in readers}
    timed = sum(layer.percent is not None for layer in links.layers)
    for place, layer in enumerate(links.layers):
        findings = [
            _layer_finding(layer, *text) for rule in _RULES for text in rule(layer, links, place)
        ]
        if place in float_outputs:
            findings.append(_float_output(links, place, float_outputs[place]))
        role = roles.get(place, "")
        if role and place not in quantizable:
            findings = [
                finding for finding in findings if not finding.rule.endswith("-converts-type")
            ]
            findings += _unfused(links, place, role)
        elif place in quantizable:
            findings = []
        yield from findings
        if not findings and place not in quantizable:
            yield from _long(layer, timed)


def _layer_finding(
    layer: EngineLayer, rule: str, level: str, hazard: str, advice: str
) -> PlanFinding:
    rules = _REWRITES.get(rule, ()) if level == "warning" else ()
    advice += f" ({command_of(rules)})" if rules else ""
    return PlanFinding(layer.index, rule, level, hazard, advice, layer.percent, rules=rules)


def _writes_floats(layer: EngineLayer) -> bool:
    return is_convolution(layer) and in_dtype(layer) in QUANTIZED and out_dtype(layer) in FLOATS


_RESIDUAL = ("qdq-residual",)


def _float_output(links: Links, place: int, quantizers: list[int]) -> PlanFinding:
    layer = links.layers[place]
    involved = [layer, *(links.layers[other] for other in dict.fromkeys(quantizers))]
    hazard = f"A convolution in {in_dtype(layer)} writes {out_dtype(layer)}"
    if quantizers:
        noun = fmt.plural(len(involved) - 1, "Quantize layer")
        hazard += f", and {noun} {'reads' if len(involved) == 2 else 'read'} it"
    percents = [neighbour.percent for neighbour in involved if neighbour.percent is not None]
    return PlanFinding(
        layer.index,
        "quantized-conv-float-output",
        "warning",
        hazard,
        "Quantize its result, at a residual connection both inputs of the Add: float outputs take"
        f" two to four times the memory traffic ({command_of(_RESIDUAL)})",
        sum(percents) if percents else None,
        tuple(neighbour.index for neighbour in involved) if quantizers else (),
        _RESIDUAL,
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
    yield _layer_finding(layer, f"unfused-{role.lower()}", level, hazard, advice)


_WHY_UNFUSED = {
    "Quantize": "Find out why it is not fused with the layer before it",
    "Dequantize": (
        "Find out why it is not fused with the layer after it: quantize that layer, too, or move"
        " the pair to where the type has to change"
    ),
}
_REWRITES = {
    "conv-channels-unaligned": ("channels",),
    "unfused-quantize": ("qdq-pooling", "qdq-scales"),
    "unfused-dequantize": ("qdq-weights",),
}
"""Rules of ``dld rewrite`` that fix a warning about a layer."""


def _is_vector(layer: EngineLayer) -> bool:
    """Return whether a product is of a vector: it is limited by reading its weights."""
    dims = gemm_dims(layer)
    return dims.m == 1 or dims.n == 1


def _convolution_off_tensor_cores(
    layer: EngineLayer, links: Links, place: int
) -> Iterator[_Message]:
    if not is_convolution(layer) or layer.precision in ("fp32", "", "int32", "bool"):
        return
    if on_tensor_cores(layer.tactic) is not False or _is_vector(layer):
        return
    advice = "Look for another tactic: other channel counts, another precision, a newer TensorRT"
    counts = channels(layer)
    multiple = QUANTIZED.get(layer.precision, CHANNELS)
    if is_depthwise(layer):
        advice = (
            "A depthwise convolution has too little work for each channel; a plain or grouped"
            " convolution may be faster"
        )
    elif counts is not None and counts[0] < _FEW_CHANNELS:
        advice = f"With only {counts[0]} input channels Tensor Cores may not be of use"
    elif counts is not None and any(count % multiple for count in counts):
        advice = (
            f"Its {counts[0]:,} input and {counts[1]:,} output channels are not multiples of"
            f" {multiple}, in which Tensor Cores take {layer.precision}"
        )
    hazard = f"A convolution in {layer.precision} does not use Tensor Cores, by its tactic's name"
    yield "conv-off-tensor-cores", "warning", hazard, advice


def _unaligned_channels(layer: EngineLayer, links: Links, place: int) -> Iterator[_Message]:
    counts = channels(layer) if is_convolution(layer) else None
    if counts is None or is_depthwise(layer) or layer.precision in ("fp32", "", "int32", "bool"):
        return
    uses = on_tensor_cores(layer.tactic)
    multiple = QUANTIZED.get(layer.precision, CHANNELS)
    if uses is False or all(count % multiple == 0 for count in counts) or _is_vector(layer):
        return
    # Images have a fixed number of channels, and classifiers of classes.
    ends = (links.is_at_input(place), links.is_at_output(place))
    padded = 1.0
    for count, is_fixed in zip(counts, ends, strict=True):
        if not is_fixed:
            padded *= -(-count // multiple) * multiple / count
    percent = 100 * (padded - 1)
    if percent < PADDED_PERCENT:
        return
    kernel = "its kernel pads" if uses else "a kernel on Tensor Cores would pad"
    yield (
        "conv-channels-unaligned",
        "warning" if uses else "note",
        f"A convolution in {layer.precision} has {counts[0]:,} input and {counts[1]:,} output"
        f" channels: {kernel} them to multiples of {multiple}, which is {percent:.0f} % more work",
        f"Make the channels a multiple of {multiple}, padding them where that is cheaper",
    )


def _gemm_off_tensor_cores(layer: EngineLayer, links: Links, place: int) -> Iterator[_Message]:
    if not is_product(layer) or (layer.percent or 0.0) < GEMM_PERCENT or _is_vector(layer):
        return
    if on_tensor_cores(layer.tactic) is False:
        advice = "Use fp16, bf16, fp8 or int8, with dimensions that are multiples of 8 or 16"
        if layer.precision == "fp32":
            advice = f"Allow TF32 or a lower precision. {advice}"
        hazard = f"A matrix product in {layer.precision or 'an unknown type'}"
        yield (
            "gemm-off-tensor-cores", "warning",
            f"{hazard} does not use Tensor Cores, by its tactic's name", advice,
        )  # fmt: skip


def _converting(layer: EngineLayer, links: Links, place: int) -> Iterator[_Message]:
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


_WITHOUT_DLA = "Compare with an engine in which the GPU does that part (without --useDLACore)"


def _long(layer: EngineLayer, timed: int) -> Iterator[PlanFinding]:
    percent = layer.percent or 0.0
    usual = _TIMES_MEAN * 100 / timed if timed >= _SEVERAL else 0.0
    if percent < max(NOTABLE_PERCENT, usual):
        return
    level = "warning" if percent >= LONG_PERCENT else "note"
    hazard = f"This layer takes {fmt.percent(percent)} % of the time of all layers"
    advice = "Start here: a faster type, a smaller shape, or another operator pays most"
    if layer.dla is DlaKind.WAIT:
        return  # told of all of them together
    if layer.dla is not None:
        what = "A part on the DLA" if layer.dla is DlaKind.PART else "A copy for the DLA"
        hazard = f"{what} takes {fmt.percent(percent)} % of the time of all layers"
        advice = _WITHOUT_DLA
    elif is_reformat(layer):
        advice = "It only changes a format: see which of the layers around it asks for another one"
    elif layer.kind == "ForeignNode" or "{ForeignNode[" in layer.name:
        advice = (
            "It computes many nodes: build with --profilingVerbosity=detailed to see them one by"
            " one"
        )
    yield PlanFinding(layer.index, "long-layer", level, hazard, advice, layer.percent)


_Rule: TypeAlias = "Callable[[EngineLayer, Links, int], Iterator[_Message]]"
_RULES: tuple[_Rule, ...] = (
    _convolution_off_tensor_cores,
    _unaligned_channels,
    _converting,
    _gemm_off_tensor_cores,
)

GENERATED_PERCENT = 25.0
SHAPE_PERCENT = 3.0
LAYOUT_PERCENT = 5.0
SHORT_MS = 0.005
SHORT_COUNT = 20
SHORT_PERCENT = 20.0
FP32_SHARE = 0.95
MEAN_OVER_MEDIAN = 1.2
"""The means of all layers together against their medians."""
DYNAMIC_SHARE = 0.5
_NEAR = 4
"""Layers between a matrix product and the softmax of the same attention, at most."""

_Nodes = Mapping[int, "LayerNodes"]


def plan_findings(plan: EnginePlan, links: Links, nodes: _Nodes) -> Iterator[PlanFinding]:
    """Yield the findings about many layers."""
    if plan.names_only:
        yield PlanFinding(
            None, "names-only", "note", "The file has only the names of the layers",
            "Build the engine again with --profilingVerbosity=detailed", None,
        )  # fmt: skip
    yield from _together(
        plan, is_kernel_generated, GENERATED_PERCENT, "generated-kernels",
        "Kernels that the compiler of fused parts made",
        "Look at what they compute: pointwise chains between matrix products can often be avoided,"
        " or fused into them in another order",
    )  # fmt: skip
    yield from _together(
        plan, is_shape_work, SHAPE_PERCENT, "shape-and-cast",
        "Layers that work on shapes or only cast",
        "Fix dimensions that do not change, fold constants, and remove Casts from the model",
        ("shapes", "casts", "cast-chains"),
    )  # fmt: skip
    yield from _waiting(plan)
    yield from _layouts(plan)
    yield from _short(plan)
    yield from _attention(plan, links, nodes)
    yield from _all_fp32(plan)
    yield from _slow_passes(plan)
    yield from _dynamic(plan)


def _percent(layers: Sequence[EngineLayer]) -> float:
    return sum(layer.percent or 0.0 for layer in layers)


def _indices(layers: Sequence[EngineLayer]) -> tuple[int, ...]:
    """Return the layers of a finding, those that take longest first."""
    ordered = sorted(layers, key=lambda layer: -(layer.percent or 0.0))
    return tuple(layer.index for layer in ordered)


def _together(
    plan: EnginePlan,
    chosen: Callable[[EngineLayer], bool],
    least: float,
    rule: str,
    subject: str,
    mitigation: str,
    rules: tuple[str, ...] = (),
) -> Iterator[PlanFinding]:
    layers = [layer for layer in plan.layers if layer.percent is not None and chosen(layer)]
    percent = _percent(layers)
    if layers and percent >= least:
        hazard = f"{subject} take {fmt.percent(percent)} % of the time ({_count(layers)})"
        advice = f"{mitigation} ({command_of(rules)})" if rules else mitigation
        indices = _indices(layers)
        yield PlanFinding(None, rule, "warning", hazard, advice, percent, indices, rules)


def _waiting(plan: EnginePlan) -> Iterator[PlanFinding]:
    """The rows in which the GPU waits for a DLA, whatever they are called."""
    layers = [
        layer for layer in plan.layers if layer.dla is DlaKind.WAIT and layer.percent is not None
    ]
    percent = _percent(layers)
    if percent >= NOTABLE_PERCENT:
        yield PlanFinding(
            None,
            "dla-wait",
            "warning" if percent >= LONG_PERCENT else "note",
            f"The GPU waits for the DLA during {fmt.percent(percent)} % of the time"
            f" ({_count(layers)})",
            "The work of the DLA is in these rows, whatever they are called, and not in the row of"
            f" its part. {_WITHOUT_DLA}",
            percent,
            _indices(layers),
        )


def _layouts(plan: EnginePlan) -> Iterator[PlanFinding]:
    """Layers that only change a memory format; of names only, the type may change as well."""
    layers = [
        layer
        for layer in plan.layers
        if layer.percent is not None
        and is_reformat(layer)
        and (in_dtype(layer) == out_dtype(layer) or plan.names_only)
    ]
    percent = _percent(layers)
    if len(layers) < 2 or percent < LAYOUT_PERCENT:
        return
    noun = "format or type" if plan.names_only else "memory format"
    pairs = Counter(
        (layer.inputs[0].format, layer.outputs[0].format)
        for layer in layers
        if layer.inputs and layer.outputs and layer.inputs[0].format != layer.outputs[0].format
    )
    usual = ""
    if pairs:
        (of, to), count = pairs.most_common(1)[0]
        usual = f"; {count} of them from {of!r} to {to!r}"
    yield PlanFinding(
        None,
        "layout-conversions",
        "warning",
        f"Layers that only change a {noun} take {fmt.percent(percent)} % of the time"
        f" ({_count(layers)}{usual})",
        "Find the layers that ask for another format than their neighbours: often a plugin, a"
        " pooling or a slice between convolutions, or inputs and outputs of the engine (trtexec"
        " --inputIOFormats)",
        percent,
        _indices(layers),
    )


def _short(plan: EnginePlan) -> Iterator[PlanFinding]:
    short = [
        layer for layer in plan.layers if layer.time_ms is not None and 0 < layer.time_ms < SHORT_MS
    ]
    percent = _percent(short)
    if len(short) >= SHORT_COUNT and percent >= SHORT_PERCENT:
        graph = "" if uses_cuda_graph(plan) else "a CUDA graph, "
        yield PlanFinding(
            None,
            "many-short-layers",
            "warning",
            f"{_count(short)} of less than 5 µs take {fmt.percent(percent)} % of the time together",
            f"Launching them costs about as much as their work: use {graph}a larger batch, or"
            " operators that fuse",
            percent,
            _indices(short),
        )


def uses_cuda_graph(plan: EnginePlan) -> bool:
    """Return whether the inferences were measured with a CUDA graph, if the files say so."""
    options = plan.metadata.get("inference_options")
    if not isinstance(options, dict):
        return False
    return any(
        is_cuda_graph_option(key) and text_of(value).lower().startswith("enabled")
        for key, value in options.items()
    )


def _all_fp32(plan: EnginePlan) -> Iterator[PlanFinding]:
    heavy = [layer for layer in plan.layers if is_heavy(layer) and layer.precision]
    slow = [layer for layer in heavy if layer.precision == "fp32"]
    if not heavy or len(slow) < FP32_SHARE * len(heavy):
        return
    on_cores = sum("tf32" in layer.tactic.lower() for layer in slow)
    tf32 = f", {on_cores:,} of them on Tensor Cores as TF32" if on_cores else ""
    options = plan.metadata.get("build_options")
    precision_option = text_of(options.get("Precision")) if isinstance(options, dict) else ""
    allowed = [name for name in ("FP16", "BF16", "INT8", "FP8") if name in precision_option.upper()]
    advice = (
        "Allow a lower precision in the build; in a strongly typed network, the types of the model"
        " decide"
    )
    if allowed:
        advice = (
            f"The build allowed {' and '.join(allowed)}, but the builder chose FP32: it was faster,"
            " or there is no other kernel for these layers. A verbose build log shows which"
        )
    yield PlanFinding(
        None,
        "runs-in-fp32",
        "note",
        f"{len(slow):,} of {len(heavy):,} convolutions and matrix products work in fp32{tf32}",
        advice,
        _percent(slow) if plan.total_ms is not None else None,
        _indices(slow),
    )


def _slow_passes(plan: EnginePlan) -> Iterator[PlanFinding]:
    both = [
        (layer, layer.time_ms, layer.median_ms)
        for layer in plan.layers
        if layer.time_ms is not None and layer.median_ms
    ]
    mean = sum(time for _, time, _ in both)
    median = sum(time for _, _, time in both)
    if not median or mean < MEAN_OVER_MEDIAN * median:
        return
    unsteady = [layer for layer, time, usual in both if time >= MEAN_OVER_MEDIAN * usual]
    unsteady.sort(key=lambda layer: (layer.median_ms or 0.0) - (layer.time_ms or 0.0))
    yield PlanFinding(
        None,
        "mean-above-median",
        "warning",
        f"The means of the layers add up to {fmt.milliseconds(mean)} ms, their medians to"
        f" {fmt.milliseconds(median)} ms: some passes took far longer than most",
        "Trust the medians. Warm up longer, leave the GPU to this run alone and profile again",
        _percent(unsteady),
        tuple(layer.index for layer in unsteady),
    )


def _dynamic(plan: EnginePlan) -> Iterator[PlanFinding]:
    shaped = [layer for layer in plan.layers if layer.inputs or layer.outputs]
    dynamic = [layer for layer in shaped if any(map(_is_dynamic, _dims(layer)))]
    if not dynamic or len(dynamic) < DYNAMIC_SHARE * len(shaped):
        return
    yield PlanFinding(
        None,
        "dynamic-shapes",
        "note",
        f"{_count(dynamic)} of {len(plan.layers):,} have dimensions without a value: their bytes,"
        " MACs and place under the roofline are not known",
        "Export the layer information of a run with shapes (trtexec --loadEngine=ENGINE"
        " --shapes=INPUT:DIMS --exportLayerInfo=FILE), or set the input shapes of the execution"
        " context that the inspector is given",
        None,
        _indices(dynamic),
    )


def _dims(layer: EngineLayer) -> Iterator[tuple[int, ...]]:
    for tensor in (*layer.inputs, *layer.outputs):
        if tensor.dims is not None:
            yield tensor.dims


def _is_dynamic(dims: tuple[int, ...]) -> bool:
    return any(dim < 0 for dim in dims)


def _count(layers: Sequence[EngineLayer]) -> str:
    return fmt.plural(len(layers), "layer")


def unfused_attention(plan: EnginePlan, links: Links, nodes: _Nodes, place: int) -> list[int]:
    """Return the indices from one product over a softmax to the next; empty for other layers.

    For an engine of which only names are known, the softmax only.
    """
    if not is_softmax(plan.layers[place], nodes.get(plan.layers[place].index)):
        return []
    if plan.names_only:
        around = (
            plan.layers[max(place - _NEAR, 0) : place], plan.layers[place + 1 : place + 1 + _NEAR]
        )  # fmt: skip
        return [place] if all(map(_named_product, around)) else []
    before = links.way_to_product(place, links.before, _NEAR)
    after = links.way_to_product(place, links.after, _NEAR)
    return [*before[::-1], place, *after] if before and after else []


def _attention(plan: EnginePlan, links: Links, nodes: _Nodes) -> Iterator[PlanFinding]:
    for place, layer in enumerate(plan.layers):
        if unfused_attention(plan, links, nodes, place):
            by_names = ", by the order of the names" if plan.names_only else ""
            yield PlanFinding(
                layer.index,
                "attention-not-fused",
                "warning",
                "A softmax between two matrix products is a layer of its own: this attention is not"
                f" fused into one kernel{by_names}",
                "Keep to the pattern that TensorRT fuses: MatMul, scale, mask, Softmax, MatMul, in"
                " fp16, bf16 or fp8; export the attention without other operators in between",
                layer.percent,
            )


def _named_product(layers: Sequence[EngineLayer]) -> bool:
    """Return whether one of some layers, of which only names are known, is a matrix product."""
    return any(
        word in ("MatMul", "Einsum", "MatrixMultiply")
        for layer in layers
        for word in layer.kind.split(" + ")
    )


STEADY, OUTLIER = 1.05, 1.5
"""Of the median: most inferences are below the one, and a few beyond the other."""


def timing_findings(plan: EnginePlan) -> Iterator[PlanFinding]:
    """Yield the findings about the timing of a plan; none without a timing."""
    timing = plan.timing
    if timing is None:
        return
    launch = _launch(timing, uses_cuda_graph(plan))
    for rule, hazard, mitigation in (*launch, *_copies(timing), *_clocks(timing)):
        yield PlanFinding(None, rule, "warning", hazard, mitigation, None)


def _launch(timing: TimingSummary, has_graph: bool) -> Iterator[tuple[str, str, str]]:
    if timing.enqueue is None or timing.compute is None or timing.compute.median <= 0:
        return
    if is_launch_bound(timing.enqueue.median, timing.compute.median):
        graph = "" if has_graph else "a CUDA graph, "
        yield (
            "launch-bound",
            f"Enqueueing takes {_figure(timing.enqueue.median)} ms where the GPU takes"
            f" {_figure(timing.compute.median)} ms: the host can hardly keep the GPU busy",
            f"Use {graph}a larger batch, or several inferences at a time",
        )


def _figure(milliseconds: float) -> str:
    return fmt.milliseconds(milliseconds, digits=4)


def _copies(timing: TimingSummary) -> Iterator[tuple[str, str, str]]:
    if timing.compute is None:
        return
    for rule, copied, direction in (
        ("h2d-bound", timing.h2d, "to the GPU"),
        ("d2h-bound", timing.d2h, "from the GPU"),
    ):
        if copied is not None and copied.median > 0 and copied.median >= timing.compute.median:
            yield (
                rule,
                f"Copying {direction} takes {_figure(copied.median)} ms, the work itself"
                f" {_figure(timing.compute.median)} ms",
                "Use pinned memory, smaller types at the border of the network, or keep the data on"
                " the GPU; copies can run beside the work of another inference",
            )


def _clocks(timing: TimingSummary) -> Iterator[tuple[str, str, str]]:
    measured = timing.compute or timing.latency
    varies = measured.cov_percent if measured is not None else None
    if measured is None or varies is None or varies <= TRUSTED_COV_PERCENT:
        return
    hazard = (
        f"Times vary by {fmt.percent(varies)} % from inference to inference (standard deviation"
        " over mean)"
    )
    steady = measured.p90 is not None and measured.p90 <= STEADY * measured.median
    if steady and measured.max > OUTLIER * measured.median:
        yield (
            "unsteady-times",
            f"{hazard}: nine of ten take {_figure(measured.p90 or 0.0)} ms or less, the longest"
            f" {_figure(measured.max)} ms",
            "A few inferences were held up, as by another program on the GPU or a busy host: take"
            " the median, and measure again with the machine left alone",
        )
        return
    yield (
        "unsteady-times",
        hazard,
        "Lock the clocks (nvidia-smi -lgc) and leave the GPU to this run alone, then measure again",
    )


def findings(
    plan: EnginePlan, mapping: Mapping[int, LayerNodes] | None = None
) -> list[PlanFinding]:
    """Return all findings: warnings first, then by their share of the time.

    Args:
        plan: The engine. Without a profile the rules about time say nothing.
        mapping: Which ONNX nodes the layers compute, where that is known: some rules see more.
    """
    nodes = mapping or {}
    with collector_paused():
        links = Links(plan)
        unsorted = [
            *timing_findings(plan),
            *plan_findings(plan, links, nodes),
            *layer_findings(links, nodes),
        ]
        return sorted(_with_gains(unsorted, plan, links, nodes), key=_rank)


def _with_gains(
    unsorted: Sequence[PlanFinding], plan: EnginePlan, links: Links, nodes: _Nodes
) -> Iterator[PlanFinding]:
    layers = {layer.index: layer for layer in (*plan.all_layers, *plan.layers)}
    places = {layer.index: place for place, layer in enumerate(plan.layers)}
    for finding in unsorted:
        own = () if finding.layer is None else (finding.layer,)
        concerned = dict.fromkeys((*own, *finding.layers))
        if finding.rule == "attention-not-fused" and finding.layer in places:
            # One kernel replaces the products, too.
            around = unfused_attention(plan, links, nodes, places[finding.layer])
            concerned |= dict.fromkeys(plan.layers[place].index for place in around)
        if concerned:
            gain = gain_of_layers(
                finding.rule, (layers[index] for index in concerned if index in layers), plan
            )
        else:
            gain = gain_of_inferences(finding.rule, plan)
        yield finding if gain is None else replace(finding, gain=gain)


def _rank(finding: PlanFinding) -> tuple[int, bool, float, int]:
    return (
        LEVELS.index(finding.level),
        finding.layer is not None and finding.percent is None,
        -(finding.percent or 0.0),
        -1 if finding.layer is None else finding.layer,
    )


__all__ = ["LEVELS", "PlanFinding", "findings"]
