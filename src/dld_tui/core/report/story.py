"""What a person would say of a report: a sentence or two, and what may help.

Everything said is a figure of the report, or follows from its figures and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.cost.roofline import limiter
from dld_tui.core.llm.figures import generation_of, generation_story
from dld_tui.core.report.gpu_summary import gpu_summary
from dld_tui.core.report.groups import has_gpu_times, is_launched, priced
from dld_tui.core.report.measured_facts import report_inputs
from dld_tui.core.report.statistics import TRUSTED_COV_PERCENT
from dld_tui.core.report.triage import CUDA_GRAPH, full_precision_percent
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.model import Report
    from dld_tui.core.report.records import Group, Layer

_LOUD_PERCENT = 30.0
"""A type of layer is named when it takes so much of the time."""
_HALF = 0.5
_FEW = 0.25
"""Half of the time in this part of the layers, or less, is worth saying."""
_NAME = 40
_WORTH_PERCENT = 20.0
_BOUNDED_PERCENT = 95.0
"""Above this share, the most that can be gained says nothing."""
_TIDY_PERCENT = 10.0
_TIDIED = frozenset({
    "Shape", "Gather", "Unsqueeze", "Squeeze", "Concat", "Slice", "Cast", "Reshape", "Identity",
    "Transpose", "Constant", "ConstantOfShape", "Expand", "Tile", "Where",
})  # fmt: skip
"""Operators that simplifiers fold or remove where they can."""


def opening(report: Report) -> str:
    """Return how long a run takes, and where the time goes. Fit for a terminal."""
    said = [*generation_story(generation_of(report))] or _latency(report)
    return " ".join([*said, *_places(report)])


def _latency(report: Report) -> list[str]:
    latency = report.latency
    if latency is None or latency.median <= 0:
        return []
    inputs = [one for one in report_inputs(report) if one.shape]
    fed = f" of {clip(visible(inputs[0].name), _NAME)} {inputs[0].shape_text}" if inputs else ""
    if len(inputs) > 1:
        fed += f" and {len(inputs) - 1} more"
    rate = f"{latency.throughput:,.{0 if latency.throughput >= 10 else 1}f} a second"
    spread = f", ± {fmt.percent(latency.cov_percent)} %" if latency.count > 1 else ""
    provider = report.execution_provider.removesuffix("ExecutionProvider")
    place = f", {visible(provider or report.backend)}" if provider or report.backend else ""
    profiled = "" if latency.source == "latency loop" else " with profiling on"
    text = f"{fmt.milliseconds(latency.median)} ms a run{fed}{profiled} ({rate}{spread}){place}."
    return [text]


def _places(report: Report) -> list[str]:
    """Return which type of layer takes most, and how few layers take half."""
    found = []
    types = types_of(report)
    if types and types[0].percent >= _LOUD_PERCENT:
        share = "all" if types[0].percent >= 99.5 else f"{types[0].percent:.0f} %"
        found.append(f"{visible(types[0].key)} is {share} of the layers' time.")
    times = sorted((one.time_ms or 0.0 for one in priced(report.layers)), reverse=True)
    total = sum(times)
    if total > 0 and len(times) > 3:
        few = 1 + sum(part < _HALF * total for part in accumulate(times))
        if few <= _FEW * len(times):
            takes = "layers takes" if few == 1 else "layers take"
            found.append(f"{few} of {len(times):,} {takes} half of it.")
    gpu = gpu_summary(report)
    if gpu is not None and gpu.true_speed:
        found.append(f"The GPU is busy {gpu.busy_percent:.0f} % of a pass.")
    return found


def types_of(report: Report) -> Sequence[Group]:
    """Return the operators of a report by their time, the most first; none without times."""
    return () if _is_launched_only(report) else report.groups("type")


def _is_launched_only(report: Report) -> bool:
    """Return whether only launches were timed: these say little of what the layers cost."""
    return not has_gpu_times(report.layers) and any(map(is_launched, report.layers))


@dataclass(frozen=True)
class Step:
    """Something that may help, which can be tried: see :func:`request_of`."""

    text: str
    """What, for a terminal."""
    basis: str
    """What of the report says so."""
    changes: tuple[str, ...] = ()
    """Ids of :mod:`dld_tui.core.tune.changes`; none where the same is to be measured again."""
    most: float | None = None
    """How many times as fast at most: were that which it is about free."""

    @property
    def line(self) -> str:
        """What, why, and how much it could bring."""
        could = "" if self.most is None else f": 1 to {self.most:.1f} x, were that free"
        return f"{self.text}: {self.basis}{could}"


def request_of(report: Report, step: Step, model: Path) -> tuple[str, dict[str, JSON]]:
    """Return the activity and its settings that try a step and say whether it helped."""
    if not step.changes:
        values = {name: value for name, value in report.settings.items() if name != "output"}
        return "profile_onnxruntime", {**values, "model": str(model)}
    known = report.settings
    provider = known.get("provider") or report.execution_provider.removesuffix("ExecutionProvider")
    values = {"model": str(model), "only": [*step.changes], "provider": provider or "CPU"}
    values |= {name: known[name] for name in ("shape", "inputs", "device_id") if known.get(name)}
    return "tune", values


def next_steps(report: Report) -> list[Step]:
    """Return what the figures say may help, and no more, the surest first."""
    steps = []
    latency = report.latency
    if latency is not None and latency.count > 1 and latency.cov_percent > TRUSTED_COV_PERCENT:
        basis = f"it varies by {fmt.percent(latency.cov_percent)} %, trusted up to"
        steps.append(Step("Measure again", f"{basis} {TRUSTED_COV_PERCENT} %"))
    on_gpu = not report.execution_provider.startswith("CPU") or has_gpu_times(report.layers)
    return [*steps, *(_gpu_steps(report) if on_gpu else []), *_layer_steps(report, on_gpu)]


def _gpu_steps(report: Report) -> list[Step]:
    """Return what helps where the GPU waits."""
    found, steps = gpu_summary(report), []
    if found is None or not found.true_speed or not found.length_us:
        return []
    if found.gap_percent > _WORTH_PERCENT and not report.facts.get(CUDA_GRAPH):
        basis = f"the GPU waits {found.gap_percent:.0f} % of a pass for launches"
        steps.append(Step("CUDA graph", basis, ("cuda-graph",), _most(found.gap_percent)))
    copies = 100 * found.exposed_copy_us / found.length_us
    if copies > _WORTH_PERCENT:
        basis = f"{copies:.0f} % of a pass only copies run"
        steps.append(Step("IO binding", basis, ("io-binding",), _most(copies)))
    return steps


def _layer_steps(report: Report, on_gpu: bool) -> list[Step]:
    """Return what helps the layers that take most."""
    steps = []
    share = full_precision_percent(report, wide_weights=not on_gpu)
    if share >= _WORTH_PERCENT:
        basis = f"{share:.0f} % of the time is MatMul and Conv in fp32"
        text, changes = ("fp16", ("fp16",)) if on_gpu else ("int8", ("int8-dynamic", "int8"))
        steps.append(Step(text, basis, changes, _most(share)))
    if _is_launched_only(report):
        return steps
    small = _share(report, lambda layer: limiter(layer) == "launch")
    if small >= _WORTH_PERCENT and not on_gpu:
        basis = f"{small:.0f} % of the time are layers too small for many threads"
        steps.append(
            Step("other threads", basis, ("threads-1", "blocks", "no-spinning"), _most(small))
        )
    tidy = _share(report, lambda layer: layer.type in _TIDIED)
    if tidy >= _TIDY_PERCENT:
        basis = f"{tidy:.0f} % of the time only moves or reshapes values"
        steps.append(Step("simplify", basis, ("simplified",), _most(tidy)))
    return steps


def _most(percent: float) -> float | None:
    """Return the most that can be gained where so much of the time may be free."""
    return 100 / (100 - percent) if percent < _BOUNDED_PERCENT else None


def _share(report: Report, wanted: Callable[[Layer], bool]) -> float:
    """Return which part of the layers' time those take that are wanted, in percent."""
    layers = priced(report.layers)
    total = sum(one.time_ms or 0.0 for one in layers)
    found = sum(one.time_ms or 0.0 for one in layers if wanted(one))
    return 100 * found / total if total > 0 else 0.0


@dataclass(frozen=True)
class Story:
    """What a person would say of a report."""

    opening: str
    steps: tuple[Step, ...]


def story_of(report: Report) -> Story:
    """Return what a person would say of a report, and what may help."""
    return Story(opening(report), tuple(next_steps(report)))
