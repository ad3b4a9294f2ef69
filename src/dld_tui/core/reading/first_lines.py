"""The answer of a report in about ten lines: what it took, where the time goes, what to do.

Text, HTML and screens show these lines; each figure is in one of them. All text is visible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.reading.story import (
    NextStep,
    next_steps,
    step_command,
    types_of,
)
from dld_tui.core.report.generation import generation_of
from dld_tui.core.report.gpu_kernels import gpu_summary
from dld_tui.core.report.groups import are_launches, costliest, costs_text, has_gpu_times
from dld_tui.core.report.layer_table import layer_names, short_provider
from dld_tui.core.report.measured_figures import (
    activations_peak,
    busy_text,
    figure_of,
    report_inputs,
)
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.report.report import LAYERS_ONLY
from dld_tui.core.report.roofline import roofline_text
from dld_tui.core.report.triage import (
    fallback_lines,
    left_line,
    passes_text,
    slow_first_ms,
)
from dld_tui.core.statistics import TRUSTED_COV_PERCENT, LatencySource, LatencySummary
from dld_tui.core.text import clip, visible
from dld_tui.core.text.names import cut_names

if TYPE_CHECKING:
    from dld_tui.core.report.report import Report

_TYPES = 3
_SLOWEST = 3
_INPUTS = 3
_NAME = 40
_DELAYED = 1.25
"""How much longer a profiled pass takes than an undisturbed one where it is told."""


@dataclass(frozen=True)
class Line:
    """A line with its label."""

    label: str
    """One word, empty for the lines at the top, ``!`` for doubts."""
    text: str


def first_lines(report: Report) -> list[Line]:
    """Return the lines, the answer first."""
    lines = [Line("", headline(report)), Line("", _setting(report))]
    lines += [Line("!", " ".join(sentences)) for sentences in doubts(report)]
    steps = [step for step in next_steps(report) if step.changes or step.settings]
    texts = {
        "Time": _time(report),
        "Slowest": "" if are_launches(report.layers) else _slowest(report.layers),
        "Limit": roofline_text(report.layers),
        "Try": _advice(report, steps),
        "Memory": _memory(report),
        "Report": visible(str(report.path)),
    }
    return lines + [Line(label, text) for label, text in texts.items() if text]


def title(report: Report) -> str:
    """Return the name of the model, or of the file."""
    return visible(report.network or report.path.name)


def headline(report: Report) -> str:
    """Return the model and what it takes."""
    name = title(report)
    ms = fmt.three_digits
    for first in generation_of(report)[:1]:
        return (
            f"{name}   {ms(first.first_token_ms)} ms to the first token"
            f"{between(first.first_tokens_ms)}"
            f"   {first.rate_text} tokens/s{between(first.rates)}"
            f"   (prompt {first.prompt:,}, batch {first.batch:,}; {ms(first.token_ms)} ms a token)"
        )
    latency = report.latency
    if report.properties.get(LAYERS_ONLY):
        return f"{name}   layers sum to {ms(report.measurement.total_ms)} ms"
    if latency is None:
        return f"{name}   nothing was measured"
    count = passes_text(report, latency.count)
    around = f"{', '.join(spread(latency))}; {count}" if latency.count > 1 else count
    rate = f"   {rate_text(latency)}" if latency.throughput else ""
    return f"{name}   {ms(latency.median)} ms {median_title(latency)}{rate}   ({around})"


def brief(report: Report) -> str:
    """Return what the model takes in a few words, and on what."""
    ms = fmt.three_digits
    where = report.execution_provider.removesuffix("ExecutionProvider") or report.backend
    for first in generation_of(report)[:1]:
        text = f"{ms(first.first_token_ms)} ms to the first token, {first.rate_text} tokens/s"
        return f"{text} on {visible(where)}"
    latency = report.latency
    if report.properties.get(LAYERS_ONLY):
        return f"layers sum to {ms(report.measurement.total_ms)} ms on {visible(where)}"
    if latency is None:
        return "nothing was measured"
    how = " with profiling on" if latency.source is LatencySource.PROFILED else ""
    return f"{ms(latency.median)} ms median on {visible(where)}{how}"


def between(values: Sequence[float]) -> str:
    """Return the range of a figure over the repetitions; empty for fewer than two."""
    if len(values) < 2:
        return ""
    return f" ({fmt.three_digits(min(values))} to {fmt.three_digits(max(values))})"


def median_title(latency: LatencySummary) -> str:
    """Return what the big figure is."""
    return f"median{' with profiling on' if latency.source is LatencySource.PROFILED else ''}"


def timed_text(report: Report) -> str:
    """Return what the latency of a report is over, in the plural."""
    for first in generation_of(report)[:1]:
        return "repetitions" if first.repeats_ms else "tokens"
    latency = report.latency
    if latency is not None and latency.source is LatencySource.PROFILED:
        return "profiled passes"
    return "inferences" if report.has_phases else "passes of the latency loop"


def latency_word(report: Report) -> str:
    """Return what each of the times is that the latency of a report is of."""
    return "time of a token" if generation_of(report) else "latency"


def latency_title(report: Report) -> str:
    """Return what charts of the single times show."""
    return f"{latency_word(report)} over the {timed_text(report)}"


def rate_text(latency: LatencySummary) -> str:
    """Return how many passes a second that is."""
    return f"{fmt.three_digits(latency.throughput)} a second"


def spread(latency: LatencySummary) -> list[str]:
    """Return the range of the passes and the percentiles that they support."""
    ms = fmt.three_digits
    percentiles = [f"{name} {ms(value)}" for name, value in latency.supported_percentiles[1:]]
    return [f"{ms(latency.min)} to {ms(latency.max)}", *percentiles]


def _setting(report: Report) -> str:
    """Return what measured it, on what, with which inputs."""
    place = ", ".join(filter(None, (short_provider(report.execution_provider or None)
                                    if report.execution_provider else "",
                                    visible(report.device))))  # fmt: skip
    return " · ".join(filter(None, (visible(report.backend), place, _inputs(report))))


def _inputs(report: Report) -> str:
    inputs = report_inputs(report)
    alike: dict[str, list[str]] = {}
    for one in inputs:
        alike.setdefault(one.shape_text, []).append(clip(visible(one.name), _NAME, keep="middle"))
    texts = [f"{fmt.listed(names, _INPUTS)} {shape}" for shape, names in alike.items()]
    guessed = " (guessed; --shape sets them)" if any(one.why for one in inputs) else ""
    return fmt.listed(texts, _INPUTS) + guessed


def shapes_text(report: Report) -> str:
    """Return the shapes of the inputs without their names; empty where they are unknown."""
    inputs = report_inputs(report)
    shapes = dict.fromkeys(one.shape_text for one in inputs if one.shape)
    guessed = " (guessed)" if shapes and any(one.why for one in inputs) else ""
    return fmt.listed([*shapes], _INPUTS) + guessed


def doubts(report: Report) -> Iterator[Sequence[str]]:
    """Yield what speaks against the figures as sentences, those that belong together at once."""
    if report.status == "partial":
        yield "Partial: the run was stopped or is still going on.", left_line(report)
    yield from ([problem] for problem in report.problems)
    launched = are_launches(report.layers)
    if launched and report.gpu_absent is None:
        yield ["Launches of layers were timed, not their kernels: which take long is not known."]
    latency, parts = report.latency, []
    noisy = latency is not None and latency.count > 1 and latency.cov_percent > TRUSTED_COV_PERCENT
    busy = busy_text(report.environment)
    spread = f": ±{fmt.percent(latency.cov_percent)} %" if latency is not None and noisy else ""
    first_ms = slow_first_ms(report, latency) if latency is not None and noisy else None
    if first_ms is not None:
        took = fmt.three_digits(first_ms)
        parts.append(f"Latency varies{spread}, as the first pass took {took} ms, like a warm-up.")
        noisy, spread = False, ""
    if busy:
        parts.append(f"{busy[0].upper()}{busy[1:]}{spread}.")
    elif noisy:
        parts.append(f"Latency varies{spread}.")
    if report.is_order_certain is False and not launched:
        among = report.measurement.may_be_first
        first = f"{among:,} may be the slowest" if among > 1 else "only the first is"
        parts.append(f"The order of layers is not certain ({first}).")
        parts += ["Measure again when the machine is idle."] if busy or noisy else []
    profiled, whole = report.profiled_latency, report.measurement.pass_ms
    if profiled is not None and whole and profiled.median > _DELAYED * whole:
        parts.append(
            f"Figures of layers are of an undisturbed pass, {fmt.three_digits(whole)} ms where a"
            f" profiled one takes {fmt.three_digits(profiled.median)}."
        )
    if parts:
        yield parts
    if report.gpu_absent is not None:
        yield [f"GPU not measured: {visible(report.gpu_absent)}"]
    yield from ([text] for text in fallback_lines(report))


def _time(report: Report) -> str:
    types, rest = costly_types(report, _TYPES)
    if not types:
        return ""
    figures = report.measurement
    parts = [
        f"{visible(group.key)} {fmt.percent(group.percent)} %"
        f"{'' if group.count == 1 else f' ({group.count:,})'}"
        for group in types
    ]
    if rest:
        parts.append(f"others {fmt.percent(rest)} %")
    kind = costs_text(report.layers) if has_gpu_times(report.layers) else report.wording.rows
    text = f"{'   '.join(parts)}   of {fmt.three_digits(figures.cost_ms)} ms in {kind}"
    if _are_slowed(report):
        text += " with profiling on"
    return ", ".join(filter(None, (text, beside_layers(report))))


def _are_slowed(report: Report) -> bool:
    """Return whether times of layers are no part of the latency, whose passes were faster."""
    latency = report.latency
    if report.has_phases:
        return False
    is_alone = latency is not None and latency.source is LatencySource.LOOP
    return is_alone and not report.is_undistorted and not has_gpu_times(report.layers)


def costly_types(report: Report, most: int) -> tuple[list[Group], float | None]:
    """Return the operators that cost most, and the percentage of the others, if there are any.

    That is what is missing to 100 beside the percentages of the former as they are printed.
    """
    types = [group for group in types_of(report) if group.cost_ms > 0]
    printed = math.fsum(round(group.percent, 1) for group in types[:most])
    return types[:most], max(0.0, 100 - printed) if len(types) > most else None


def beside_layers(report: Report) -> str:
    """Return how long a pass is not in its layers; empty where that is unknown."""
    gpu, between = gpu_summary(report), report.measurement.between_ms
    if gpu is not None and gpu.true_speed:
        return f"the GPU works {fmt.whole_percent(gpu.busy_percent)} % of a pass"
    is_known = report.is_undistorted and between and not has_gpu_times(report.layers)
    return f"{fmt.three_digits(between)} ms between them" if is_known else ""


def _slowest(layers: Sequence[Layer]) -> str:
    top = costliest(layers, _SLOWEST)
    names = cut_names(layer_names(top, layers), _NAME)
    named = (f"{name} {fmt.percent(one.percent)} %" for name, one in zip(names, top, strict=True))
    return "   ".join(named)


def _advice(report: Report, steps: Sequence[NextStep]) -> str:
    if not steps:
        return ""
    return f"{steps[0].line}:  {step_command(report, steps[0])}"


def _memory(report: Report) -> str:
    properties = report.properties
    parts = []
    for key, name in (("peak_memory_bytes", "process"), ("gpu_memory_bytes", "GPU")):
        if (size := figure_of(properties.get(key))) is not None:
            parts.append(f"{fmt.size(round(size))} {name}")
    peak = activations_peak(report.layers)
    if peak is not None:
        parts.append(f"{fmt.size(peak.in_use_bytes)} activations")
    text, load = ", ".join(parts), figure_of(properties.get("load_ms"))
    if load is not None:
        text += f"{'; ' if text else ''}loads in {fmt.duration(load / 1000)}"
    return text


def text_lines(report: Report) -> list[str]:
    """Return the lines as they are printed."""
    lines = first_lines(report)
    width = max(len(line.label) for line in lines) + 2
    texts = []
    for at, line in enumerate(lines):
        if at and lines[at - 1].label in ("", "!") and line.label not in ("", "!"):
            texts.append("")
        if line.label in ("", "!"):
            texts.append(f"{line.label}  {line.text}" if line.label else line.text)
        else:
            texts.append(f"{line.label:<{width}}{line.text}")
    return texts
