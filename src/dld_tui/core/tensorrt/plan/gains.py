"""How much time a finding of an engine plan could save at most, and what that is computed from.

The bounds come from the profile: layers that become free save their share of the time; layers that
stay save what they take beyond their time at the roofline. What a change brings is between nothing
and that, so the lower end is 0. Without times there is no range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.machine.peaks import FP16_SUMS, Peaks
from dld_tui.core.statistics import share_percent
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan
from dld_tui.core.tensorrt.plan.layer_work import layer_roof, macs, peaks_of

_SHARE = "the share of these layers"
_WITHOUT = frozenset({"names-only", "dynamic-shapes", "mean-above-median", "unsteady-times"})
"""Rules about the measurement or the file: to follow them saves no time."""
_FP32 = "runs-in-fp32"
_ROOFLINES = {
    "conv-channels-unaligned": "the time of these layers beyond their roofline",
    _FP32: "the time of these layers beyond their roofline in fp16",
}
"""Rules about layers that compute the same afterwards, and what bounds them. Advice of others may
change the type or the work, and with it the roofline."""


@dataclass(frozen=True)
class GainRange:
    """How much less time the engine takes after a change."""

    percent: tuple[float, float]
    """At least and at most, of the time of all layers or of an inference."""
    source: str
    """What it is computed from, for people."""


def gain_text(gain: GainRange) -> str:
    """Return a range for people: what it is at most, and what that is computed from."""
    low, high = gain.percent
    least = fmt.percent(low) if low else "0"
    return f"saves {least} to {fmt.percent(high)} % of the time ({gain.source})"


def gain_of_layers(rule: str, layers: Iterable[EngineLayer], plan: EnginePlan) -> GainRange | None:
    """Return the range of a finding about layers; None without their times.

    Args:
        rule: Of the finding.
        layers: Those that its advice changes, each once.
        plan: Their plan.
    """
    timed = [layer for layer in layers if layer.percent is not None]
    if not timed or rule in _WITHOUT or any(layer.dla is not None for layer in timed):
        return None  # no file says how long the GPU would need for a part of the DLA
    share = min(100.0, sum(layer.percent or 0.0 for layer in timed))
    peaks, source = peaks_of(plan.device), _ROOFLINES.get(rule)
    if peaks is None or source is None:
        return GainRange((0.0, share), _SHARE)
    beyond = [_share_beyond_roofline(layer, peaks, is_halved=rule == _FP32) for layer in timed]
    return GainRange((0.0, min(share, sum(beyond))), source)


def _share_beyond_roofline(layer: EngineLayer, peaks: Peaks, *, is_halved: bool) -> float:
    """Return the part of a layer's share that it takes beyond the roofline; all if not known.

    Args:
        layer: With a share.
        peaks: Of the device.
        is_halved: Whether a layer of fp32 is held against fp16, with half of the bytes.
    """
    percent, size, count = layer.percent or 0.0, layer.footprint, macs(layer)
    halved = max(peaks.flops.get("fp16", 0.0), peaks.flops.get(FP16_SUMS, 0.0))
    roof = layer_roof(layer, peaks)
    ops = halved if is_halved else None if roof is None else roof.flops
    if not layer.time_ms or not size or not ops:
        return percent
    least_s = max(2 * (count or 0) / ops, size / (2 if is_halved else 1) / peaks.bandwidth)
    return percent * max(0.0, 1 - 1000 * least_s / layer.time_ms)


def gain_of_inferences(rule: str, plan: EnginePlan) -> GainRange | None:
    """Return the range of a finding about whole inferences, from their timing."""
    timing = plan.timing
    if timing is None or timing.compute is None or rule in _WITHOUT:
        return None
    compute = timing.compute.median
    if rule == "launch-bound" and timing.enqueue is not None:
        # The launches end with the work at best, and the work is what its layers take.
        whole = max(timing.enqueue.median, compute)
        least = min(compute, compute if plan.total_ms is None else plan.total_ms)
        if whole <= 0 or least >= whole:
            return None
        source = "the time of the layers" if least < compute else "the time on the GPU"
        return GainRange((0.0, 100 * (1 - least / whole)), f"{source} against that of an inference")
    copies: Mapping[str, float] = {
        name: 0.0 if copied is None else copied.median
        for name, copied in (("h2d-bound", timing.h2d), ("d2h-bound", timing.d2h))
    }
    whole = compute + sum(copies.values())
    share = share_percent(copies.get(rule), whole)
    if share is None:
        return None
    source = "the share of these copies in an inference"
    return GainRange((0.0, share), source)
