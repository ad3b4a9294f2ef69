"""How near a float16 model is to the float32 one, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.accuracy.rows import figure, signal_text
from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.text import clip, visible

_LISTED = 12


def values_lines(values: Mapping[str, Any], library: str = "own") -> list[str]:
    """Return lines on the `values` of the activity ``convert_fp16``. Fit for a terminal.

    Args:
        values: See there.
        library: What has converted the model.
    """
    if values["skipped"]:
        return [f"values were not compared: {visible(values['skipped'])}"]
    lines = _repaired(values["repaired"])
    errors = {name: TensorError.from_json(one) for name, one in values["outputs"].items()}
    if values["is_good"]:
        if errors:
            name, worst = max(errors.items(), key=lambda item: item[1].noise)
            lines.append(f"values are near those in float32; worst output {_output(name, worst)}")
        return lines
    for name, one in values["outputs"].items():
        if one["problem"]:
            lines.append(f"WRONG VALUES: output {_output(name, errors[name])}: {one['problem']}")
    if (first := values["first"]) is not None:
        lines.append(f"  first at {_node(first)}: {_short(first['reason'], 200)}")
        lines.append(f"  {_way_out(first, library)}")
    return lines


def is_wrong(values: Mapping[str, Any]) -> bool:
    """Return whether the values were compared and are not near enough."""
    return not values["skipped"] and not values["is_good"]


def _way_out(first: Mapping[str, Any], library: str) -> str:
    others = (
        "--repair keeps all such nodes in float32, and dld accuracy MODEL --search fp16 finds the"
        " fewest"
    )
    blocked = (
        f"--node-block {_short(first['node'], 80)} or --op-block {_short(first['op_type'], 40)}"
        " keeps it in float32"
    )
    if library == "polygraphy":  # it has no block lists
        return f"with --library own, {blocked}; there, {others}"
    if library != "own":
        return f"{blocked}; with --library own, {others}"
    return f"{blocked}; {others}"


def _repaired(nodes: list[Mapping[str, Any]]) -> list[str]:
    if not nodes:
        return []
    lines = [f"{fmt.plural(len(nodes), 'node')} kept in float32 for the values:"]
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
