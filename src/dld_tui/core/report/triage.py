"""What is known of a report besides its first lines, as lines of text, including its GPU part.

What the first lines say, in :mod:`~dld_tui.core.reading.first_lines`, is not said again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.report.formats.ort_profile import may_hold_others
from dld_tui.core.report.generation import generation_of
from dld_tui.core.report.gpu_kernels import GpuSummary, gpu_summary
from dld_tui.core.report.groups import (
    COPY_TYPES,
    HOST,
    group_layers,
    has_gpu_times,
    is_launched,
    is_split,
)
from dld_tui.core.report.layer_table import layer_names
from dld_tui.core.report.measured_figures import busy_text
from dld_tui.core.report.records import Layer, Program, program_of
from dld_tui.core.report.report import LAYERS_ONLY
from dld_tui.core.statistics import (
    FEW_FOR_P99,
    LatencySource,
    LatencySummary,
    share_percent,
    summarise,
)
from dld_tui.core.text import clip, visible
from dld_tui.core.text.names import cut_names

if TYPE_CHECKING:
    from dld_tui.core.report.report import Report

_IDLE_PERCENT = 30.0
_SLOWED = 1.10
"""Above this ratio, a drawn timeline differs from a run without recording."""
_QUICKER = 0.98
"""Records slow passes down: below this, something else changed between the two."""
_SHORT_KERNEL_US = 20.0
_COPY_PERCENT = 20.0
_ATTRIBUTED_PERCENT = 90.0
_NAMED_LAYERS = 3
_FULL_PRECISION = ("float", "float32", "fp32")
_NARROW_WEIGHTS = ("nbits", "bnb4")
"""Parts of the names of layer types whose weights have few bits already."""
_TENSOR_TYPES = ("conv", "gemm", "matmul", "attention", "einsum")
"""Parts of the names of layer types that have kernels for lower precision everywhere."""
_NAME_CELLS = 40
_GRAPH_OPTIONS = "--io-binding --provider-option enable_cuda_graph=1"
CUDA_GRAPH = "cuda_graph"
"""The property of a report that is true when passes replayed a CUDA graph."""


def _absent(report: Report) -> list[str]:
    absent = [counter for counter in report.counters if counter.absent is not None]
    if not absent:
        return []
    reasons = dict.fromkeys(visible(counter.absent or "") for counter in absent)
    names = ", ".join(visible(counter.title) for counter in absent)
    return [f"Counters not measured: {clip(names, 80)}: {'; '.join(reasons)}"]


def busy_line(summary: GpuSummary) -> str:
    """Return the GPU utilisation of a pass; gaps only of passes at true speed."""
    copies = f", copies {_ms(summary.copy_us)} ms ({summary.copied_text})" if summary.copies else ""
    gaps = f", launch gaps {_ms(summary.gaps_us)} ms" if summary.true_speed else ""
    kernels = fmt.plural(summary.kernels, "kernel")
    slowed = "" if summary.true_speed else ", with profiling on: its gaps are not the model's"
    return (
        f"GPU busy {_ms(summary.busy_us)} ms of {_ms(summary.length_us)}"
        f" ({fmt.whole_percent(summary.busy_percent)} %) with {kernels}{gaps}{copies}"
        f"{slowed}."
    )


def speed_lines(summary: GpuSummary) -> list[str]:
    """Return what recording kernels did to the passes that the work is read from."""
    slowed = summary.slowed_by
    if slowed is None:
        return []
    line = (
        f"Passes with kernel records took {factor(slowed)} as long:"
        f" {_ms(summary.recorded_us)} ms in {fmt.plural(summary.passes, 'pass', 'passes')} against"
        f" {_ms(summary.length_us)} ms without records, to which busy time and gaps refer"
    )
    if slowed < _QUICKER:
        line += "; the machine was not steady"
    elif slowed > _SLOWED:
        line += "; the gaps that the timeline draws are wider than the model's"
    return [f"{line}."]


def factor(ratio: float) -> str:
    """Return a ratio of two times as people read it: ``1.13×``."""
    return f"{ratio:.2f}×"


def _doubts(report: Report, summary: GpuSummary) -> list[str]:
    lines = []
    short = summary.median_kernel_us < _SHORT_KERNEL_US
    waited = fmt.whole_percent(summary.gap_percent)
    waits = summary.true_speed and summary.gap_percent > _IDLE_PERCENT and summary.kernels
    if waits and is_split(report.layers):
        on_cpu = sum(layer.provider == HOST for layer in report.layers)
        copies = sum(layer.type in COPY_TYPES for layer in report.layers)
        lines.append(
            f"Interrupted: without profiling overhead, the GPU waits {waited} % of the pass, in"
            f" which {fmt.plural(on_cpu, 'layer runs', 'layers run')} on the CPU and"
            f" {fmt.plural(copies, 'node copies', 'nodes copy')} between the two; ONNX Runtime"
            " captures no CUDA graph of it."
        )
    elif waits and short:
        graph = "" if report.properties.get(CUDA_GRAPH) else f" CUDA graphs ({_GRAPH_OPTIONS}),"
        lines.append(
            f"Launch-bound: without profiling overhead, the GPU waits {waited} % of the pass,"
            " and half of its kernels are shorter than"
            f" {summary.median_kernel_us:.1f} µs;{graph} larger batches or fewer nodes help."
        )
    exposed = summary.exposed_copy_percent
    if exposed > _COPY_PERCENT:
        lines.append(
            f"Copy-bound: {fmt.whole_percent(exposed)} % of the pass is copies alone; bind inputs"
            " and outputs to the GPU, or pin their memory."
        )
    known = summary.attributed_percent
    # If positions differ from those of the profiled run, a note of the run says so.
    unlike = summary.true_speed and known == 0 and has_gpu_times(report.layers)
    if known is not None and known < _ATTRIBUTED_PERCENT and report.layers and not unlike:
        named = fmt.whole_percent(known)
        lines.append(f"{named} % of kernel time is attributed to layers; the rest is unnamed.")
    return lines


def fallback_lines(report: Report) -> list[str]:
    """Return the layers that ran on the CPU although another provider was there."""
    groups = report.groups("provider")
    cpu = next((group for group in groups if group.key == HOST), None)
    if len(groups) < 2 or cpu is None:
        return []
    layers = sorted(
        (layer for layer in report.layers if layer.provider == HOST),
        key=lambda layer: -(layer.time_ms or 0.0),
    )
    named = fmt.listed(_named(layers, report.layers), _NAMED_LAYERS)
    whole = report.measurement.pass_ms if report.is_undistorted else None
    part = f" ({fmt.percent(share_percent(cpu.time_ms, whole))} % of a pass)" if whole else ""
    return [
        f"Fallback: {cpu.count:,} of {len(report.layers):,} layers ran on the CPU{part}: {named}."
    ]


def is_full_precision(layer: Layer, *, convolutions: bool, narrow_weights: bool) -> bool:
    """Return whether a layer is a product in fp32, for which other types have faster kernels.

    Args:
        layer: The layer.
        convolutions: Include convolutions.
        narrow_weights: Include layers with quantized weights; they compute in fp32.
    """
    kind = layer.type.lower()
    return (
        layer.precision in _FULL_PRECISION
        and any(part in kind for part in _TENSOR_TYPES)
        and (convolutions or "conv" not in kind)
        and (narrow_weights or not any(part in kind for part in _NARROW_WEIGHTS))
    )


_QUANTIZABLE = frozenset({"MatMul", "FusedMatMul", "Gemm", "FusedGemm", "Attention"})


def is_quantizable(layer: Layer) -> bool:
    """Return whether dynamic quantization applies to a layer: to a product with a weight.

    A product of two activations stays in float. ONNX Runtime reports no shape of a weight that it
    packed, and counts the bytes of one that it did not.
    """
    matrices = sum(len(dims or ()) > 1 for dims in layer.input_dims)
    has_weight = matrices == 1 or bool(layer.cost and layer.cost.parameter_bytes)
    return layer.type in _QUANTIZABLE and (has_weight or not layer.input_dims)


def _named(layers: Sequence[Layer], among: Sequence[Layer]) -> list[str]:
    names = cut_names(layer_names(layers, among), _NAME_CELLS)
    return [f"{visible(layer.type)} {name}" for layer, name in zip(layers, names, strict=True)]


def _ms(time_us: float) -> str:
    return fmt.milliseconds(time_us / 1000)


_SLOWED_PERCENT = 10.0
_UNEXPLAINED_PERCENT = 15.0
_JOINED_PERCENT = 95.0
_CONTROL_FLOW_PERCENT = 10.0
_PARALLEL_PERCENT = 1.0
_NOISY_COV_PERCENT = 20.0
"""Above this variation a slower run says little of profiling."""


def notes_of(report: Report) -> list[Note]:
    """Return the notes beside the figures: doubts, those of the run, and what the rest sums to."""
    doubts, figures, summary = _trust_lines(report), _layer_lines(report), gpu_summary(report)
    if summary is not None:
        doubts += _doubts(report, summary)
        figures += [busy_line(summary), *speed_lines(summary)]
    return [
        *(Note(NoteKind.WARNING, line) for line in (*doubts, *_absent(report))),
        *report.notes,
        *(Note(NoteKind.INFO, line) for line in (*figures, *sum_lines(report))),
    ]


def left_line(report: Report) -> str:
    """Return the results of a stopped run."""
    loop, passes = len(report.latencies), len(report.counted_passes)
    timed = fmt.plural(loop, "timed inference") if loop else "no timed inference"
    profiled = fmt.plural(passes, "profiled pass", "profiled passes") if passes else "no layers"
    return f"It left {timed} and {profiled}; figures are of these."


def passes_text(report: Report, count: int) -> str:
    """Return a number of passes, in the words of the report."""
    whole = report.wording.whole
    return fmt.plural(count, whole, f"{whole}es" if whole == "pass" else None)


def _trust_lines(report: Report) -> list[str]:
    latency = report.latency
    if latency is None:
        return []
    few = f"{passes_text(report, latency.count)} are too few for p99; run {FEW_FOR_P99}"
    is_few = 1 < latency.count < FEW_FOR_P99 and not generation_of(report)
    lines = [f"{few} or more."] if is_few else []
    return lines + _profiling_lines(report, latency)


def slow_first_ms(report: Report, latency: LatencySummary) -> float | None:
    """Return what the first pass took if it alone makes the latency vary, as a warm-up does."""
    values = report.latency_samples
    rest = summarise(values[1:])
    if rest is not None and rest.cov_percent < latency.cov_percent / 2 and values[0] > rest.max:
        return values[0]
    return None


def _profiling_lines(report: Report, latency: LatencySummary) -> list[str]:
    profiled = report.profiled_latency
    if profiled is None or latency.source is not LatencySource.LOOP or latency.median <= 0:
        return []
    slower = 100 * (profiled.median / latency.median - 1)
    if slower <= _SLOWED_PERCENT:
        return []
    varies = max(latency.cov_percent, profiled.cov_percent) > _NOISY_COV_PERCENT
    noisy = varies or bool(busy_text(report.environment))
    cause = "The profiled run is slower by" if noisy else "Profiling slows the model down by"
    doubt = ", because of profiling or of other programs" if noisy else ""
    return [
        f"{cause} {slower:.0f} %{doubt} (median {fmt.milliseconds(profiled.median)} ms):"
        f" {_trusted(report)}."
    ]


def _trusted(report: Report) -> str:
    """Return which times of a profiled run that was slow can be trusted."""
    if not has_gpu_times(report.layers):
        return "the shares of layers are more reliable than their times"
    alone = {pass_.index for pass_ in report.kernel_passes}
    if alone and report.gpu_passes <= alone:
        return "only launch times come from that run, kernel times do not"
    return "kernel times are reliable, the gaps between kernels are not"


def _order_lines(report: Report) -> list[str]:
    """Return whether there are too few passes to tell the order of layers."""
    from dld_tui.core.report.measurement import MIN_PASSES

    measurement = report.measurement
    timed = sum(bool(layer.cost_ms) for layer in report.layers)
    is_told = report.is_order_certain is not None
    if is_told or timed < 2 or report.properties.get(LAYERS_ONLY) or report.has_phases:
        return []
    samples = measurement.own if measurement.gpu is None else measurement.gpu
    passes = 0 if samples is None else samples.passes
    return [
        f"{fmt.plural(passes, 'profiled pass', 'profiled passes')}: too few to tell whether"
        f" noise could reorder the layers; run {MIN_PASSES} or more."
    ]


def _layer_lines(report: Report) -> list[str]:
    timed = [layer for layer in report.layers if layer.cost_ms is not None]
    if not timed:
        return ["No layer was timed."]
    types = group_layers(timed, "type")
    lines = [f"Times of {report.wording.rows} are {report.wording.figures}."]
    lines += _order_lines(report)
    control_flow = sum(group.percent for group in types if may_hold_others(group.key))
    if control_flow > _CONTROL_FLOW_PERCENT:
        lines.append(
            f"{fmt.percent(control_flow)} % is the own time of If, Loop and Scan: time spent"
            " around their bodies."
        )
    return lines


def coverage_lines(report: Report) -> list[str]:
    """Return how much of a pass the layers cover, and the rest."""
    figures = report.measurement
    total, whole = figures.total_ms, figures.pass_ms
    if figures.own is None:
        return []
    if report.properties.get(LAYERS_ONLY):
        return [f"Layers sum to {fmt.milliseconds(total)} ms."]
    launched = any(map(is_launched, report.layers))
    rows = "Launches" if launched else report.wording.rows.capitalize()
    covered, rest = figures.covered_percent, figures.between_percent
    if whole is None or covered is None or rest is None:
        return []
    line = (
        f"{rows} sum to {fmt.milliseconds(total)} of {fmt.milliseconds(whole)} ms"
        f" ({fmt.percent(covered)} % of an undisturbed {report.wording.whole}"
        f"{'' if report.has_phases else ' of the profiled run'})"
    )
    if rest > _UNEXPLAINED_PERCENT and report.is_undistorted and not launched:
        line += f"; {fmt.whole_percent(rest)} % is between the layers: dispatch, copies, waiting"
    if covered > 100 - rest + _PARALLEL_PERCENT:
        line += "; layers ran in parallel"
    return [f"{line}."]


def sum_lines(report: Report) -> list[str]:
    """Return what the layers sum to, on the GPU, of a pass, and joined to nodes."""
    lines = coverage_lines(report)
    if has_gpu_times(report.layers):
        kernels = sum(layer.gpu_time_ms or 0.0 for layer in report.layers)
        lines.insert(0, f"Kernels of the layers sum to {fmt.milliseconds(kernels)} ms on the GPU.")
    joined = report.joined_percent
    linked = any(layer.nodes for layer in report.layers)
    if linked and joined is not None and joined < _JOINED_PERCENT:
        advice = "; save the optimised model with the run to map more"
        of_onnxruntime = program_of(report.backend) is Program.ONNX_RUNTIME
        lines.append(
            f"{fmt.percent(joined)} % of layer time is mapped to ONNX nodes"
            f"{advice if of_onnxruntime else ''}."
        )
    return lines
