"""How near a converted model is to the original, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dld_tui.core import fmt
from dld_tui.core.accuracy.rows import figure, signal_text
from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.text import clip, visible

_LISTED = 12


def values_lines(values: Mapping[str, Any]) -> list[str]:
    """Return lines on the ``values`` of a conversion's result. Fit for a terminal.

    Args:
        values: As :mod:`dld_tui.backends.verification` has them.
    """
    if values["skipped"]:
        return [f"values were not compared: {visible(values['skipped'])}"]
    lines = _repaired(values["repaired"])
    errors = {name: TensorError.from_json(error) for name, error in values["outputs"].items()}
    lines += [f"tried with {visible(line)}" for line in values.get("guess", ())]
    if values["is_good"]:
        if errors:
            name, worst = max(errors.items(), key=lambda item: item[1].noise)
            fed = "random inputs" if values.get("inputs", "random") == "random" else "the inputs"
            lines.append(
                f"values are near the original's on {fed}; worst output {_output(name, worst)}"
            )
        return lines
    for name, output in values["outputs"].items():
        if output["problem"]:
            problem = visible(output["problem"])
            lines.append(f"WRONG VALUES: output {_output(name, errors[name])}: {problem}")
    if (first := values["first"]) is not None:
        lines.append(f"  first at {_node(first)}: {_short(first['reason'], 200)}")
    if values.get("advice"):
        lines.append(f"  {visible(values['advice'])}")
    return lines


def is_wrong(values: object) -> bool:
    """Return whether the values of a result were compared and are not near enough."""
    if not isinstance(values, Mapping):
        return False
    known = cast("Mapping[str, Any]", values)
    return not known["skipped"] and not known["is_good"]


def _repaired(nodes: list[Mapping[str, Any]]) -> list[str]:
    if not nodes:
        return []
    lines = [f"{fmt.plural(len(nodes), 'node')} left as they were for the values:"]
    lines += [f"  {_node(one)}: {_short(one['reason'], 120)}" for one in nodes[:_LISTED]]
    if len(nodes) > _LISTED:
        lines.append(f"  and {fmt.count(len(nodes) - _LISTED)} more")
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
