"""The result of any conversion, for people: figures before and after, values, latency, notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.accuracy.result import figure, signal_text
from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.codec import decode
from dld_tui.core.conversion.opset import conversion_lines
from dld_tui.core.document.document import Document
from dld_tui.core.document.summary import summarise
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.text import clip, visible

_LISTED = 12
"""Operators that a summary names."""


@dataclass(frozen=True)
class ModelFigures:
    """What a conversion changes of a model, in numbers."""

    nodes: int
    """Of all scopes."""
    operators: dict[str, int]
    """Nodes by operator."""
    initializers: int
    weight_bytes: int
    """Of initializers and Constant nodes."""
    external_bytes: int
    """In data files."""
    weights_by_type: dict[str, int]
    """Bytes by element type, the most first."""
    functions: int
    opsets: dict[str, int]
    """Versions by domain."""


def figures(document: Document) -> ModelFigures:
    """Return nodes, weights, operators and element types of a model."""
    summary = summarise(document)
    weights: Counter[str] = Counter()
    for scope in document.scopes():
        for tensor in scope.initializers:
            if tensor.location != "none":
                weights[tensor.dtype] += tensor.nbytes or 0
        for node in scope.nodes_of_type("Constant"):
            for attribute in node.proto.attribute:
                if attribute.HasField("t"):
                    tensor = Tensor(attribute.t, document)
                    weights[tensor.dtype] += tensor.nbytes or 0
    return ModelFigures(
        nodes=summary.nodes_total,
        operators=dict(summary.op_types),
        initializers=summary.initializers,
        weight_bytes=sum(weights.values()),
        external_bytes=summary.external_bytes,
        weights_by_type=dict(weights.most_common()),
        functions=len(summary.functions),
        opsets=dict(summary.opsets),
    )


def summary_lines(before: ModelFigures, after: ModelFigures) -> list[str]:
    """Return what the figures of two models say of a conversion. Fit for a terminal."""
    lines = [
        _line("nodes", before.nodes, after.nodes),
        _line("initializers", before.initializers, after.initializers),
        _sizes("weights", before.weight_bytes, after.weight_bytes),
    ]
    if before.external_bytes or after.external_bytes:
        lines.append(_sizes("  external", before.external_bytes, after.external_bytes))
    types = before.weights_by_type, after.weights_by_type
    for dtype in dict.fromkeys([*types[0], *types[1]]):
        lines.append(_sizes(f"  {dtype}", types[0].get(dtype, 0), types[1].get(dtype, 0)))
    if before.functions or after.functions:
        lines.append(_line("functions", before.functions, after.functions))
    return lines + _operators(before, after)


def _operators(before: ModelFigures, after: ModelFigures) -> list[str]:
    one, two = Counter(before.operators), Counter(after.operators)
    changed = [
        (abs(two[name] - one[name]), name) for name in {*one, *two} if one[name] != two[name]
    ]
    changed.sort(key=lambda item: (-item[0], item[1]))
    lines = [
        _line(f"  {clip(visible(name), 24)}", one[name], two[name]) for _, name in changed[:_LISTED]
    ]
    if len(changed) > _LISTED:
        lines.append(f"  and {fmt.plural(len(changed) - _LISTED, 'operator')} more")
    return ["operators that became more or fewer:", *lines] if lines else []


def _line(what: str, before: int, after: int) -> str:
    change = "" if before == after else f"  ({after - before:+,})"
    return f"{what:<26} {fmt.count(before):>12} → {fmt.count(after)}{change}"


def _sizes(what: str, before: int, after: int) -> str:
    return f"{what:<26} {fmt.size(before):>12} → {fmt.size(after)}"


_LISTED_OUTPUTS = 12
_NOISY = 10 ** (-10 / 20)
"""The noise from which values are not called near: that of 10 dB."""


def values_lines(values: Mapping[str, Any]) -> list[str]:
    """Return lines on the ``values`` of a conversion's result. Fit for a terminal.

    Args:
        values: As :mod:`dld_tui.backends.conversion.verification` has them.
    """
    if values["skipped"]:
        return [f"values were not compared: {visible(values['skipped'])}"]
    errors = {name: decode(TensorError, error) for name, error in values["outputs"].items()}
    lines = list(_near(values, errors) if values["is_good"] else _wrong(values, errors))
    lines += [f"tried with {visible(line)}" for line in values.get("guess", ())]
    return lines + _repaired(values["repaired"])


def _wrong(values: Mapping[str, Any], errors: Mapping[str, TensorError]) -> Iterator[str]:
    for name, output in values["outputs"].items():
        if output["problem"]:
            problem = visible(output["problem"])
            yield f"WRONG VALUES: output {_output(name, errors[name])}: {problem}"
    if (first := values["first"]) is not None:
        yield f"  first at {_node(first)}: {_short(first['reason'], 200)}"
    if values.get("advice"):
        yield f"  {visible(values['advice'])}"


def _near(values: Mapping[str, Any], errors: Mapping[str, TensorError]) -> Iterator[str]:
    if not errors:
        return
    name, worst = max(errors.items(), key=lambda item: item[1].noise)
    fed = "random inputs" if values.get("inputs", "random") == "random" else "the inputs"
    near = f"values are near the original's on {fed}"
    if worst.noise > _NOISY:  # a tolerance of each element can be above small values themselves
        near = f"values are within the tolerance on {fed}, with noise of {worst.noise:.0%}"
    yield f"{near}; worst output {_output(name, worst)}"


def is_wrong(values: object) -> bool:
    """Return whether the values of a result were compared and are not near enough."""
    if not isinstance(values, Mapping):
        return False
    return not values["skipped"] and not values["is_good"]


def _repaired(nodes: list[Mapping[str, Any]]) -> list[str]:
    if not nodes:
        return []
    were = "they were" if nodes[1:] else "it was"
    lines = [f"{fmt.plural(len(nodes), 'node')} left as {were} for the values:"]
    lines += [f"  {_node(node)}: {_short(node['reason'], 120)}" for node in nodes[:_LISTED_OUTPUTS]]
    if len(nodes) > _LISTED_OUTPUTS:
        lines.append(f"  and {fmt.count(len(nodes) - _LISTED_OUTPUTS)} more")
    return lines


def _output(name: str, error: TensorError) -> str:
    noise = signal_text(error)
    ratio = "" if not noise else ", exact" if noise == "same" else f", signal to noise {noise} dB"
    off = figure(error.max_abs)
    return f"{_short(name, 60)}{f' is off by at most {off}' if off else ''}{ratio}"


def _node(one: Mapping[str, Any]) -> str:
    return f"{visible(one['op_type'])} {_short(one['node'], 80)}"


def _short(text: str, width: int) -> str:
    return clip(visible(text), width, keep="middle")


_LISTED_LOSSES = 12


def loss_lines(losses: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return lines on weights that lose something, those out of range first. Fit for a terminal."""
    if not losses:
        return []

    ordered = sorted(losses, key=lambda loss: -(loss["overflow"] + loss["underflow"]))
    lines = [f"{fmt.plural(len(losses), 'weight')} would be rounded:"]
    for one in ordered[:_LISTED_LOSSES]:
        counts = [
            f"{fmt.count(one[key])} {text}"
            for key, text in (
                ("overflow", "too large"), ("underflow", "to zero"), ("rounded", "rounded")
            )
            if one[key]
        ]  # fmt: skip
        name = clip(visible(str(one["name"])), 50, keep="middle")
        lines.append(f"  {name}: {', '.join(counts)}; largest error {one['max_error']:.3g}")
    if len(ordered) > _LISTED_LOSSES:
        lines.append(f"  and {fmt.count(len(ordered) - _LISTED_LOSSES)} more")
    return lines


_NAMED = 4
"""Inputs that share a dimension, which are named."""
_CHANGED = 10
"""Nodes with constants that held an old size, which are named."""
_LISTED_LINES = 5
"""Weights out of range that are named when not all are asked for."""


def report_lines(result: Mapping[str, Any]) -> list[str]:
    """Return lines on what a conversion did, what counts most first. Fit for a terminal.

    Args:
        result: What the activity gives.
    """
    lines = conversion_lines(result) if "unconverted" in result else []
    if "values" in result:
        lines += values_lines(result["values"])
    lines += _latency_lines(result.get("latency_ms"))
    if "before" in result:
        before, after = (decode(ModelFigures, result[side]) for side in ("before", "after"))
        lines += summary_lines(before, after)
    lines += _dimension_lines(result)
    lines += [f"note: {visible(str(note))}" for note in result.get("notes", [])]
    if "library" in result:
        lines += _half_lines(result)
    elif "losses" in result:
        lines += loss_lines(result["losses"])
    return lines


def _dimension_lines(result: Mapping[str, Any]) -> Iterator[str]:
    for dimension in result.get("dimensions", []):
        axes = list(dimension["axes"].items())
        places = [f"{clip(visible(name), 40)} axis {axis}" for name, axis in axes[:_NAMED]]
        if len(axes) > _NAMED:
            places.append(f"{len(axes) - _NAMED} more")
        before = "dynamic" if dimension["from"] is None else visible(str(dimension["from"]))
        yield f"{', '.join(places)}: {before} → {visible(str(dimension['to']))}"
    changed = result.get("changed", []) if "dimensions" in result else []
    for line in changed[:_CHANGED]:
        yield f"  {visible(str(line))}"
    if len(changed) > _CHANGED:
        yield f"  and {fmt.plural(len(changed) - _CHANGED, 'more node')}"


def _latency_lines(latency: Mapping[str, float] | None) -> Iterator[str]:
    if latency is None:
        return
    before, after = latency["before"], latency["after"]
    text = "no difference beyond the noise"
    if latency["is_clear"] and 0 < after < before:
        text = f"{before / after:.3g} times as fast"
    elif latency["is_clear"] and before:
        text = f"{after / before:.3g} times as long"
    yield f"{'latency on this CPU':<26} {before:>9.3g} ms → {after:.3g} ms  ({text})"


def _half_lines(result: Mapping[str, Any]) -> list[str]:
    lines = []
    dtype = str(result.get("to", "float16"))
    if "nodes" in result:
        nodes, casts, weights = (result[key] for key in ("nodes", "casts", "weights"))
        lines.append(
            f"{fmt.plural(nodes, 'node')} in {dtype}, {fmt.plural(weights, 'weight')} converted,"
            f" {fmt.plural(max(casts, 0), 'cast')} added"
        )
        for reason, count in result["kept"].items():
            lines.append(f"  kept {fmt.plural(count, 'node')}: {clip(visible(reason), 100)}")
        if inlined := result["inlined"]:
            lines.append(f"  {fmt.plural(inlined, 'function call')} inlined")
    losses = result["losses"]
    all_losses = bool(result.get("range_check"))
    if losses:
        lines.append(f"{fmt.plural(len(losses), 'weight')} with values out of {dtype}'s range:")
    for loss in losses if all_losses else losses[:_LISTED_LINES]:
        lines.append(
            f"  {clip(visible(str(loss['name'])), 60, keep='middle')}:"
            f" {fmt.count(loss['overflow'])} too large and"
            f" {fmt.count(loss['underflow'])} too small of {fmt.count(loss['count'])};"
            f" largest {loss['largest']:.3g}"
        )
    if len(losses) > _LISTED_LINES and not all_losses:
        lines.append(f"  and {len(losses) - _LISTED_LINES} more: --range-check lists all")
    return lines
