"""What to look at first where a GPU took part: launches, copies, fallback, precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.report.cost import has_gpu_times, is_launched, priced
from dld_tui.core.report.gpu_summary import GpuSummary, gpu_summary
from dld_tui.core.report.records import Layer
from dld_tui.core.text import clip, visible

if TYPE_CHECKING:
    from dld_tui.core.report.reader import Report

_CPU = "CPUExecutionProvider"
_IDLE_PERCENT = 30.0
_SLOWED = 1.10
"""From here on, what a timeline draws is not what the model does without records."""
_QUICKER = 0.98
"""Records slow passes down: below this, something else changed between the two."""
_SHORT_KERNEL_US = 20.0
_COPY_PERCENT = 20.0
_ATTRIBUTED_PERCENT = 90.0
_NAMED_LAYERS = 3
_WORTH_PERCENT = 20.0
"""Layers in full precision below this share would not make the model faster."""
_FULL_PRECISION = ("float", "float32", "fp32")
_TENSOR_TYPES = ("conv", "gemm", "matmul", "attention", "einsum")
"""Parts of the names of layer types that have kernels for lower precision everywhere."""
_NAME_CELLS = 40
_GRAPH_OPTIONS = "--io-binding --provider-option enable_cuda_graph=1"
CUDA_GRAPH = "cuda_graph"
"""The row of the table ``report`` of which true says that passes replayed a CUDA graph."""


def gpu_lines(report: Report) -> list[str]:
    """Return how busy the GPU was, and what holds it up or was not measured."""
    found = gpu_summary(report)
    busy = [] if found is None else [busy_line(found), *speed_lines(found), *_doubts(report, found)]
    return [*busy, *_absent(report)]


def gpu_doubts(report: Report) -> list[str]:
    """Return what holds the GPU up, and what was not measured."""
    found = gpu_summary(report)
    if found is None:
        return _absent(report)
    slowed = speed_lines(found) if (found.slowed_by or 0.0) > _SLOWED else []
    return [*_doubts(report, found), *slowed, *_absent(report)]


def _absent(report: Report) -> list[str]:
    lines = []
    if report.gpu_absent is not None:
        lines.append(f"GPU not measured: {visible(report.gpu_absent)}")
    absent = [counter for counter in report.counters if counter.absent is not None]
    if absent:
        reasons = dict.fromkeys(visible(counter.absent or "") for counter in absent)
        names = ", ".join(visible(counter.title) for counter in absent)
        lines.append(f"Counters not measured: {clip(names, 80)}: {'; '.join(reasons)}")
    return lines


def busy_line(found: GpuSummary) -> str:
    """Return how busy the GPU is in a pass; gaps only of passes at true speed."""
    copies = (
        f", copies {_ms(found.copy_us)} ms ({fmt.size(found.copied_bytes)})" if found.copies else ""
    )
    gaps = f", launch gaps {_ms(found.gaps_us)} ms" if found.true_speed else ""
    slowed = "" if found.true_speed else ", with profiling on: its gaps are not the model's"
    return (
        f"GPU busy {_ms(found.busy_us)} ms of {_ms(found.length_us)}"
        f" ({fmt.percent(found.busy_percent)} %) with {found.kernels:,} kernels{gaps}{copies}"
        f"{slowed}."
    )


def speed_lines(found: GpuSummary) -> list[str]:
    """Return what recording kernels did to the passes that the work is read from."""
    slowed = found.slowed_by
    if slowed is None:
        return []
    did = "Kernel records slowed the passes" if slowed >= 1 else "Passes with kernel records took"
    line = (
        f"{did} {factor(slowed)}: {_ms(found.recorded_us)} ms in"
        f" {fmt.plural(found.passes, 'pass', 'passes')} against {_ms(found.length_us)} ms without"
        " records, which busy time and gaps are of"
    )
    if slowed < _QUICKER:
        line += "; the machine was not steady"
    elif slowed > _SLOWED:
        line += "; the gaps that the timeline draws are wider than the model's"
    return [f"{line}."]


def factor(ratio: float) -> str:
    """Return a ratio of two times as people read it: ``x1.13``."""
    return f"x{ratio:.2f}"


def _doubts(report: Report, found: GpuSummary) -> list[str]:
    lines = []
    short = found.median_kernel_us < _SHORT_KERNEL_US
    if found.true_speed and found.gap_percent > _IDLE_PERCENT and found.kernels and short:
        graph = "" if report.facts.get(CUDA_GRAPH) else f" CUDA graphs ({_GRAPH_OPTIONS}),"
        lines.append(
            f"Launch-bound: the GPU waits {found.gap_percent:.0f} % of the pass, profiling apart,"
            f" and half of its kernels are shorter than {found.median_kernel_us:.1f} µs;{graph}"
            " larger batches or fewer nodes help."
        )
    exposed = 100 * found.exposed_copy_us / found.length_us if found.length_us > 0 else 0.0
    if exposed > _COPY_PERCENT:
        lines.append(
            f"Copy-bound: {exposed:.0f} % of the pass only copies run; bind inputs and outputs to"
            " the GPU, or pin their memory."
        )
    known = found.attributed_percent
    # Where positions are not those of the profiled run, a note of the run says so.
    unlike = found.true_speed and known == 0 and has_gpu_times(report.layers)
    if known is not None and known < _ATTRIBUTED_PERCENT and report.layers and not unlike:
        lines.append(f"{known:.0f} % of kernel time is attributed to layers; the rest is unnamed.")
    return lines


def fallback_lines(report: Report) -> list[str]:
    """Return the layers that ran on the CPU although another provider was there."""
    groups = report.groups("provider")
    cpu = next((group for group in groups if group.key == _CPU), None)
    if len(groups) < 2 or cpu is None:
        return []
    layers = sorted(
        (layer for layer in report.layers if layer.provider == _CPU),
        key=lambda layer: -(layer.time_ms or 0.0),
    )
    named = ", ".join(_named(layer) for layer in layers[:_NAMED_LAYERS])
    more = f" and {len(layers) - _NAMED_LAYERS:,} more" if len(layers) > _NAMED_LAYERS else ""
    return [
        f"Fallback: {cpu.count:,} of {len(report.layers):,} layers ran on the CPU"
        f" ({fmt.percent(cpu.percent)} % of layer time): {named}{more}."
    ]


def precision_lines(report: Report) -> list[str]:
    """Return the layers on a GPU in full precision that would gain from a lower one.

    Nothing where only launches were timed: these say little of what the layers cost.
    """
    if not has_gpu_times(report.layers) and any(map(is_launched, report.layers)):
        return []
    times = {layer.index: layer.time_ms or 0.0 for layer in priced(report.layers)}
    total = sum(times.values())
    gaining = [layer for layer in report.layers if _gains(layer)]
    share = 100 * sum(times[layer.index] for layer in gaining) / total if total > 0 else 0.0
    if share < _WORTH_PERCENT:
        return []
    top = sorted(gaining, key=lambda layer: -times[layer.index])[:_NAMED_LAYERS]
    return [
        f"{fmt.plural(len(gaining), 'layer')} of MatMul or Conv in fp32"
        f" {'takes' if len(gaining) == 1 else 'take'} {share:.0f} % of the time and would gain from"
        " fp16 or bf16:"
        f" {', '.join(_named(layer) for layer in top)}"
        f"{' and others' if len(gaining) > _NAMED_LAYERS else ''}."
    ]


def _gains(layer: Layer) -> bool:
    on_gpu = layer.provider not in (None, _CPU) or layer.gpu_time_ms is not None
    kind = layer.type.lower()
    full = layer.precision in _FULL_PRECISION
    return on_gpu and full and any(part in kind for part in _TENSOR_TYPES)


def _named(layer: Layer) -> str:
    return f"{visible(layer.type)} {clip(visible(layer.name), _NAME_CELLS, keep='end')}"


def _ms(time_us: float) -> str:
    return fmt.milliseconds(time_us / 1000)
