"""The advice of a report. What it says is a figure of the report, or follows from its figures."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.operators.categories import REARRANGING
from dld_tui.core.report.generation import generation_of, sharing_gain
from dld_tui.core.report.gpu_kernels import GpuSummary, gpu_summary
from dld_tui.core.report.groups import HOST, are_launches, has_gpu_times, is_split
from dld_tui.core.report.measured_figures import busy_text
from dld_tui.core.report.records import NOTHING_KNOWN, Program, program_of
from dld_tui.core.report.roofline import roof_percent
from dld_tui.core.report.schema import COMMAND
from dld_tui.core.report.triage import CUDA_GRAPH, is_full_precision, is_quantizable
from dld_tui.core.statistics import (
    TRUSTED_COV_PERCENT,
    LatencySource,
    LatencySummary,
    share_percent,
)
from dld_tui.core.text import visible
from dld_tui.core.tune.changes import (
    CHANGES,
    FP16_HELD_UP,
    MEASURED,
    RULES_OF,
    Gains,
    measured_gains,
)
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.records import Group, Layer
    from dld_tui.core.report.report import Report


_WORTH_PERCENT = 20.0
_BOUNDED_PERCENT = 95.0
"""Above this share, the most that can be gained says nothing."""
_TIDY_PERCENT = 10.0
_TIDIED = frozenset({
    *REARRANGING, "Shape", "Gather", "Concat", "Slice", "Cast", "Constant", "ConstantOfShape",
    "Expand", "Tile", "Where",
})  # fmt: skip
"""Operators that simplifiers fold or remove where they can."""


def types_of(report: Report) -> Sequence[Group]:
    """Return the operators of a report by their time, the most first; none without times."""
    return () if are_launches(report.layers) else report.groups("type")


@dataclass(frozen=True)
class NextStep:
    """Something that may help, which can be tried: see :func:`request_of`."""

    text: str
    """What, for a terminal."""
    basis: str
    """The reason in the report."""
    changes: tuple[str, ...] = ()
    """Ids of :mod:`dld_tui.core.tune.changes`; none where the same is to be measured again."""
    rules: tuple[str, ...] = ()
    """Rules of ``dld rewrite`` that make the change; they can be looked at in the model first."""
    most: float | None = None
    """The largest speedup of a pass as it runs without profiling, waits included."""
    layers: tuple[int, ...] = ()
    """Indices of the layers concerned; none if it is about the run."""
    settings: Mapping[str, JSON] = field(default_factory=dict)
    """Settings of the same activity that make the change."""
    first: bool = False
    """Whether what comes after it can bring little before."""
    least: float = 1.0
    """The least speedup to expect, where no models were measured with the change."""

    @property
    def gains(self) -> Gains | None:
        """What models gained by it; None if none were measured, or only by a part of it."""
        is_known = len(self.changes) <= 1
        return measured_gains((*self.changes, *self.rules)) if is_known else None

    @property
    def gain_percent(self) -> tuple[float, float] | None:
        """How much less time a run may take: from what models gained to the most."""
        gains = self.gains
        if self.most is None and gains is None:
            return None
        least, most = (gains.least, gains.most) if gains else (self.least, math.inf)
        # Rules can find nothing to change.
        least, most = min(least, 1.0) if self.rules else least, min(most, self.most or math.inf)
        # This model may have less to gain than any that was measured.
        return _less_percent(min(least, most)), _less_percent(most)

    @property
    def line(self) -> str:
        """What, why, and how much it could bring."""
        return f"{self.text}: {self.about}"

    @property
    def speedup_text(self) -> str:
        """How much it could bring; empty where nothing is known."""
        speedups = [] if self.most is None else [f"at most {self.most:.2f}× end to end"]
        gains = self.gains
        if gains is not None:
            speedups.append(f"measured {gains.text}")
        return ", ".join(speedups)

    @property
    def about(self) -> str:
        """Why, and how much it could bring."""
        return f"{self.basis}; speedup {self.speedup_text}" if self.speedup_text else self.basis

    @property
    def expected_percent(self) -> float:
        """The middle of what it may bring, to sort advice by; half of a bound alone."""
        return sum(self.gain_percent or (0.0, 0.0)) / 2

    @property
    def is_worth_trying(self) -> bool:
        """Whether more of its measured speedups are gains than losses, as far as is known."""
        gains = self.gains
        return gains is None or gains.least * gains.most > 1


def _less_percent(factor: float) -> float:
    return 100 * (1 - 1 / factor)


def step_command(report: Report, step: NextStep) -> str:
    """Return the command that makes a change, or measures whether it helps. Fit for a terminal."""
    path = report.model.get("path")
    model = shlex.quote(visible(str(path or "MODEL")))
    if step.rules:
        out = f"{Path(str(path)).stem}.rewritten.onnx" if path else "OUT"
        return " ".join(["dld", "rewrite", model, *step.rules, "-o", shlex.quote(visible(out))])
    return trial_command(report, step)


def step_commands(report: Report, step: NextStep) -> list[str]:
    """Return the command that makes a change, and the one that measures whether it helps."""
    return [*dict.fromkeys((step_command(report, step), trial_command(report, step)))]


def trial_command(report: Report, step: NextStep) -> str:
    """Return the command that measures whether a step helps. Fit for a terminal."""
    model = shlex.quote(visible(str(report.model.get("path") or "MODEL")))
    if not step.changes and not step.settings and (again := _same_command(report)):
        return again
    activity, values = request_of(report, step, Path())
    words = ["dld", *activity.split("_"), model]
    if activity == "tune":
        words += ["--only", ",".join(step.changes)]
    for name, setting in step.settings.items():
        words.append(f"--{name.replace('_', '-')}")
        words += [] if setting is True else [shlex.quote(visible(str(setting)))]
    for name in ("prompt", "decode", "batch", "provider", "shape", "inputs", "device_id"):
        value = values.get(name)
        for item in value if isinstance(value, list) else [value]:
            if item not in (None, "", 0, "CPU"):
                words += [f"--{name.replace('_', '-')}", shlex.quote(visible(str(item)))]
    return " ".join(words)


def _same_command(report: Report) -> str:
    """Return the command that made a report; empty where none is advised. Fit for a terminal.

    Its words are foreign: those of another program, or that could write a file or run code that
    the user did not choose, are not advised.
    """
    words = report.properties.get(COMMAND)
    texts = [word for word in words if isinstance(word, str)] if isinstance(words, list) else []
    entries = [value for option, value in pairwise(texts) if option in _ENTRIES]
    is_harmless = (
        texts == words
        and tuple(texts[:3]) in _PROFILES
        and not any(word in _REFUSED or _UNUSUAL.match(word) for word in texts)
        and all(map(_SWITCH.fullmatch, entries))
    )
    return shlex.join(map(visible, texts)) if is_harmless else ""


_PROFILES = {("dld", "profile", "onnxruntime"), ("dld", "profile", "tensorrt")}
_REFUSED = frozenset({
    "--force", "--trust",
    # that write
    "--output", "--optimized-model", "--save-engine", "--saveEngine", "--layer-info",
    "--exportLayerInfo", "--log", "--save-tactics", "--timing-cache", "--timingCacheFile",
    "--load-timing-cache", "--save-timing-cache",
    # whose code is run
    "--custom-op-library", "--plugins", "--ep-library", "--library", "--staticPlugins",
    "--dynamic-plugins", "--setPluginsToSerialize",
})  # fmt: skip
"""Options of profiles that a report does not choose."""
_UNUSUAL = re.compile(r"-[A-Za-z]|--[A-Za-z-]+=")
"""Options as :func:`dld_tui.core.params.command_words` does not write them, such as ``-oFILE``."""
_ENTRIES = {"--provider-option", "--provider-options", "--session-config"}
_SWITCH = re.compile(r"[\w.]+=(-?\d+(\.\d+)?|true|false)", re.IGNORECASE | re.ASCII)
"""Entries whose value is no name: others may name a file to write or a library."""


def advice_json(report: Report) -> list[JSON]:
    """Return what may help, as the documents of ``dld report --json`` have it."""
    layers = {layer.index: layer for layer in report.layers}
    advice: list[JSON] = []
    for step in next_steps(report):
        nodes = dict.fromkeys(
            link.node for index in step.layers for link in layers[index].nodes if link.share
        )
        gain = step.gain_percent
        advice.append({
            "what": step.text, "why": step.basis, "nodes": [*nodes],
            "gain_percent": None if gain is None else [*gain],
            "changes": [*step.changes], "rules": [*step.rules],
            "command": step_command(report, step),
        })  # fmt: skip
    return advice


def request_of(report: Report, step: NextStep, model: Path) -> tuple[str, dict[str, JSON]]:
    """Return the activity and its settings that try a step and say whether it helped."""
    if generation_of(report):
        values = {name: report.settings[name] for name in _OF_DECODERS if name in report.settings}
        return "profile_llm", {**values, "model": str(model), **step.settings}
    is_engine = program_of(report.backend) is Program.TENSORRT
    provider = report.settings.get("provider") or _provider(report)
    if is_engine and step.changes:
        return "convert_fp16", {"model": str(model)}
    if not step.changes:
        values = {name: value for name, value in report.settings.items() if name != "output"}
        if is_engine:
            return "profile_tensorrt", {**values, "model": str(model), **step.settings}
        return "profile_onnxruntime", {
            "provider": provider, **values, "model": str(model), **step.settings,
        }  # fmt: skip
    known = report.settings
    values = {"model": str(model), "only": [*step.changes], "provider": provider}
    values |= {name: known[name] for name in ("shape", "inputs", "device_id") if known.get(name)}
    return "tune", values


_OF_DECODERS = (
    "prompt", "decode", "batch", "iterations", "provider", "shared_buffer", "threads", "device_id",
    "provider_option", "session_config", "seed",
)  # fmt: skip
"""Settings that the next measurement of a decoder keeps."""


def next_steps(report: Report) -> list[NextStep]:
    """Return the advice that the figures support, the most certain first."""
    steps = []
    latency = report.latency
    if latency is not None and latency.count > 1 and latency.cov_percent > TRUSTED_COV_PERCENT:
        basis = f"latency varies by {fmt.percent(latency.cov_percent)} %, above"
        busy = busy_text(report.environment)
        cause = f"; {busy}" if busy else ""
        steps.append(NextStep("Measure again", f"{basis} {TRUSTED_COV_PERCENT} %{cause}"))
    if generation_of(report):  # what makes one pass faster is not tried by generating tokens
        return [*_decoder_steps(report), *steps]
    if program_of(report.backend) is Program.TENSORRT:
        return [*steps, *_engine_steps(report)]
    on_gpu = not report.execution_provider.startswith("CPU") or has_gpu_times(report.layers)
    changes = [*(_gpu_steps(report) if on_gpu else []), *_layer_steps(report, on_gpu)]
    worth = [step for step in changes if step.is_worth_trying and _can_try(step, report)]
    return [*steps, *sorted(worth, key=lambda step: (not step.first, -step.expected_percent))]


def _provider(report: Report) -> str:
    """Return the short name of the execution provider that comes first."""
    return report.execution_provider.removesuffix("ExecutionProvider") or "CPU"


def _can_try(step: NextStep, report: Report) -> bool:
    """Return whether all changes of a step are there for the execution provider."""
    provider = _provider(report)
    changes = (change for change in CHANGES if change.id in step.changes)
    return all(not one.providers or provider in one.providers for one in changes)


_STRONGLY_TYPED = 11
"""The version of TensorRT from which an engine has the types of its model."""
_VERSION = re.compile(r"TensorRT (\d+)\.")


def _engine_steps(report: Report) -> list[NextStep]:
    """Return what makes an engine faster: built or converted for another type."""
    share, layers = _share(
        report, lambda layer: is_full_precision(layer, convolutions=True, narrow_weights=False)
    )
    if share < _WORTH_PERCENT or not report.model.get("path"):
        return []
    version = _VERSION.match(report.backend)
    is_typed = version is not None and int(version[1]) >= _STRONGLY_TYPED
    basis = f"{fmt.whole_percent(share)} % of the time is MatMul and Conv in fp32"
    if is_typed:
        return [NextStep("convert to fp16", basis, ("fp16",), layers=layers)]
    return [NextStep("build with fp16", basis, layers=layers, settings={"fp16": True})]


def _decoder_steps(report: Report) -> list[NextStep]:
    """Return what helps a decoder, by what was measured in the same run."""
    gain = sharing_gain(report)
    if gain is None:
        return []
    settings: dict[str, JSON] = {"shared_buffer": "on"}
    busy = busy_text(report.environment)
    basis = f"{gain.text}; not certain, as {busy}" if busy else gain.text
    return [NextStep("One buffer for past and present KV cache", basis, settings=settings)]


def _gpu_steps(report: Report) -> list[NextStep]:
    """Return what helps where the GPU waits."""
    summary, steps = gpu_summary(report), []
    if summary is None or not summary.true_speed or not summary.length_us:
        return []
    if _is_held_up(report, summary) and not is_split(report.layers):
        basis = f"the GPU waits {fmt.whole_percent(summary.gap_percent)} % of a pass for launches"
        most = _without_launches(report, summary, 0.0)
        steps.append(NextStep("CUDA graph", basis, ("cuda-graph",), most=most, first=True))
    copies = summary.exposed_copy_percent
    if copies > _WORTH_PERCENT:
        basis = f"{fmt.whole_percent(copies)} % of a pass is copies alone"
        steps.append(NextStep("IO binding", basis, ("io-binding",), most=_most(copies)))
    return steps


def _layer_steps(report: Report, on_gpu: bool) -> list[NextStep]:
    """Return what helps the layers that take most."""
    steps: list[NextStep] = []
    if are_launches(report.layers):
        return steps
    # On a CPU a Conv gains nothing from scales that are worked out while it runs.
    products = "MatMul and Conv" if on_gpu else "MatMul with weights"
    share, full = _share(
        report,
        lambda layer: (
            is_full_precision(layer, convolutions=on_gpu, narrow_weights=on_gpu)
            and (layer.provider != HOST if on_gpu else is_quantizable(layer))
        ),
    )
    if share >= _WORTH_PERCENT:
        basis = f"{fmt.whole_percent(share)} % of the time is {products} in fp32"
        text, change = ("fp16", "fp16") if on_gpu else ("int8", "int8-dynamic")
        saved = _saved_ms(report, full, text)
        summary = gpu_summary(report)
        if summary is None or not _is_held_up(report, summary):
            most = _speedup(saved, _pass_ms(report))
            steps.append(NextStep(text, basis, (change,), most=most, layers=full))
        elif not is_split(report.layers):
            basis += f", and the GPU waits for launches: alone {text} was {FP16_HELD_UP.text}"
            most = _without_launches(report, summary, saved)
            steps.append(NextStep(
                f"{text} with a CUDA graph", basis, ("cuda-graph", change), most=most,
                layers=full, least=MEASURED["cuda-graph"].least,
            ))  # fmt: skip
    tidy, _ = _share_of(report, _TIDIED)
    if tidy >= _TIDY_PERCENT:
        basis = f"{fmt.whole_percent(tidy)} % of the time only moves or reshapes values"
        # This share is no bound: what is simplified lets ONNX Runtime choose other kernels, too. It
        # names no layers: which of them a simplifier removes is only known from its result.
        steps.append(NextStep("simplify", basis, ("simplified",)))
    return [*steps, *_fusions(report)]


def _without_launches(report: Report, summary: GpuSummary, saved_ms: float) -> float | None:
    """Return the largest speedup of a pass whose GPU waits for no launch, and works less.

    How long a pass waits depends on the host: a slow pass has the most to gain.
    """
    working_ms = (summary.length_us - summary.gaps_us) / 1000
    undisturbed = _undisturbed(report)
    slow_ms = max(_pass_ms(report), undisturbed.p90 if undisturbed is not None else 0.0)
    return _speedup(slow_ms - working_ms + saved_ms, slow_ms)


_FUSED_PERCENT = 3.0
_NEAR = 4
"""Layers between a softmax and the products around it."""
_GELU = frozenset({"Add", "Cast", "Div", "Mul", "Sqrt"})
_NORMALIZATION = _GELU | {"Pow", "Reciprocal", "Sub"}
_FUSIONS: tuple[tuple[str, str, frozenset[str], str], ...] = (
    ("GELU in one operator", "Erf", _GELU, "fused-gelu"),
    ("normalization in one operator", "ReduceMean", _NORMALIZATION, "fused-normalization"),
)
"""What ONNX Runtime has one operator for, a part that only this has, others of its parts, and the
change that makes it."""


def _fusions(report: Report) -> Iterator[NextStep]:
    """Yield operators that ONNX Runtime's own optimizer left unfused."""
    if program_of(report.backend) is not Program.ONNX_RUNTIME:
        return
    inner, around = _between_products(report.layers)
    share, layers = _share(report, lambda layer: layer.index in inner)
    if share >= _FUSED_PERCENT:
        basis = f"{fmt.whole_percent(share)} % of the time is Softmax between two products"
        whole = around | {layer.index for layer in report.layers if layer.type in REARRANGING}
        yield _fusion(report, "attention in one operator", basis, "fused-attention", layers, whole)
    for text, part, others, change in _FUSIONS:
        share, layers = _share_of(report, frozenset({part}))
        if share >= _FUSED_PERCENT:
            basis = f"{fmt.whole_percent(share)} % of the time is {part}"
            yield _fusion(report, text, basis, change, layers, _near(report.layers, part, others))


def _fusion(
    report: Report, text: str, basis: str, change: str, layers: tuple[int, ...], whole: set[int]
) -> NextStep:
    """Return the advice to fuse layers; at most it saves these and what is around them."""
    saved = [layer for layer in report.layers if layer.index in whole]
    share = sum(layer.percent or 0.0 for layer in saved)
    most = _speedup(sum(layer.cost_ms or 0.0 for layer in saved), _pass_ms(report))
    if len(saved) > len(layers):
        basis += f", {fmt.whole_percent(share)} % with what is around it"
    return NextStep(text, basis, (change,), RULES_OF[change], most=most, layers=layers)


def _between_products(layers: Sequence[Layer]) -> tuple[set[int], set[int]]:
    """Return the indices of softmaxes with a product right before and right behind them.

    And those of all layers from the one product to the other.
    """
    product = [layer.type in ("MatMul", "FusedMatMul") for layer in layers]
    inner: set[int] = set()
    around: set[int] = set()
    for at, layer in enumerate(layers):
        before = [i for i in range(max(at - _NEAR, 0), at) if product[i]]
        after = [i for i in range(at + 1, min(at + 1 + _NEAR, len(layers))) if product[i]]
        if layer.type == "Softmax" and before and after:
            inner.add(layer.index)
            around |= {layers[i].index for i in range(before[-1], after[0] + 1)}
    return inner, around


def _near(layers: Sequence[Layer], part: str, others: frozenset[str]) -> set[int]:
    """Return the indices of layers of a type, and of others next to them."""
    places = [at for at, layer in enumerate(layers) if layer.type == part]
    return {
        layers[i].index
        for at in places
        for i in range(max(at - _NEAR, 0), min(at + _NEAR + 1, len(layers)))
        if i == at or layers[i].type in others
    }


def _most(percent: float) -> float | None:
    """Return the largest speedup if this share of the time became free."""
    return 100 / (100 - percent) if percent < _BOUNDED_PERCENT else None


def _speedup(saved_ms: float, whole_ms: float) -> float | None:
    """Return the speedup of a pass of which some time is saved; None where that is no bound."""
    percent = share_percent(saved_ms, whole_ms)
    return None if percent is None else _most(percent)


def _undisturbed(report: Report) -> LatencySummary | None:
    """Return the latency of passes without profiling, None where there were none."""
    latency = report.latency
    return latency if latency is not None and latency.source is LatencySource.LOOP else None


def _pass_ms(report: Report) -> float:
    """Return the length of a pass that what layers cost is a part of, without profiling.

    Where only profiled passes are known that were slower, the layers alone: a bound by these is
    higher, and so holds for the model, too.
    """
    summary, undisturbed = gpu_summary(report), _undisturbed(report)
    if summary is not None and has_gpu_times(report.layers):
        return undisturbed.median if undisturbed is not None else summary.length_us / 1000
    figures = report.measurement
    whole = figures.pass_ms if report.is_undistorted else None
    return max(whole or 0.0, figures.cost_ms)


def _saved_ms(report: Report, layers: Sequence[int], kind: str) -> float:
    """Return what some layers in fp32 take longer than the device needs in another type.

    By its own peaks: a layer that computes takes at least the part of the time that the peaks of
    the types have, one that moves data that to which its data shrink. In int8 it may come nearer to
    its roof, too. A kernel in fp16 does not, as its overhead stays: the GPU's work alone was 1.07×,
    1.18× and 1.48× as fast in ResNet-50, ViT and a decoder on an H200, where the peaks allow 2×.
    One without a roof may be free.
    """
    by_index = {layer.index: layer for layer in report.layers}
    saved = 0.0
    for index in layers:
        layer = by_index[index]
        ms, roof = layer.cost_ms or 0.0, roof_percent(layer)
        peaks = report.roofs.get(layer.provider or "")
        cost = layer.cost or NOTHING_KNOWN
        own, other = (peaks and peaks.flops.get(name) for name in (cost.peak, kind))
        if roof is None or not own or not other:
            saved += ms
            continue
        part = min(own / other if cost.bound == "compute" else _NARROWER[kind], 1.0)
        saved += ms * (1 - (part if kind == "fp16" else part * roof / 100))
    return saved


_NARROWER = {"int8": 1 / 4, "fp16": 1 / 2}
"""The part of the bytes of fp32 that another type has."""


def _is_held_up(report: Report, summary: GpuSummary) -> bool:
    """Return whether launches hold up the GPU, which a CUDA graph would help against."""
    waits = summary.true_speed and summary.gap_percent > _WORTH_PERCENT
    return waits and not report.properties.get(CUDA_GRAPH)


def _share_of(report: Report, types: frozenset[str]) -> tuple[float, tuple[int, ...]]:
    return _share(report, lambda layer: layer.type in types)


def _share(report: Report, wanted: Callable[[Layer], bool]) -> tuple[float, tuple[int, ...]]:
    """Return how many percent of the layers' time those take that are wanted, and which."""
    chosen = [layer for layer in report.layers if wanted(layer)]
    return sum(layer.percent or 0.0 for layer in chosen), tuple(layer.index for layer in chosen)
