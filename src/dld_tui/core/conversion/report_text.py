"""The result of any conversion, for people: figures before and after, values, latency, notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from dld_tui.core import fmt
from dld_tui.core.conversion.loss_text import loss_lines
from dld_tui.core.conversion.summary import summary_lines
from dld_tui.core.conversion.values_text import values_lines
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_CHANGED = 10
"""Nodes with constants that held an old size, which are named."""
_LISTED = 5
"""Weights out of range that are named when not all are asked for."""


def report_lines(result: Mapping[str, JSON]) -> list[str]:
    """Return lines on what a conversion did. Fit for a terminal.

    Args:
        result: What the activity gives.
    """
    lines: list[str] = []
    if "before" in result:
        before, after = (cast("dict[str, JSON]", result[side]) for side in ("before", "after"))
        lines += summary_lines(before, after)
    lines += _dimension_lines(result)
    lines += [f"note: {visible(str(note))}" for note in cast("list[JSON]", result.get("notes", []))]
    if "library" in result:
        lines += _half_lines(result)
    elif "losses" in result:
        lines += loss_lines(cast("list[dict[str, JSON]]", result["losses"]))
    lines += _latency_lines(cast("Mapping[str, float] | None", result.get("latency_ms")))
    if "values" in result:
        lines += values_lines(cast("dict[str, JSON]", result["values"]))
    return lines


def _dimension_lines(result: Mapping[str, JSON]) -> Iterator[str]:
    for dimension in cast("list[dict[str, JSON]]", result.get("dimensions", [])):
        axes = cast("dict[str, int]", dimension["axes"])
        places = ", ".join(f"{visible(name)} axis {axis}" for name, axis in axes.items())
        before = "dynamic" if dimension["from"] is None else visible(str(dimension["from"]))
        yield f"{clip(places, 60, keep='middle')}: {before} → {visible(str(dimension['to']))}"
    changed = cast("list[JSON]", result.get("changed", [])) if "dimensions" in result else []
    for line in changed[:_CHANGED]:
        yield f"  {visible(str(line))}"
    if len(changed) > _CHANGED:
        yield f"  and {len(changed) - _CHANGED} more nodes"


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


def _half_lines(result: Mapping[str, JSON]) -> list[str]:
    lines = []
    dtype = str(result.get("to", "float16"))
    if "nodes" in result:
        nodes, casts, weights = (cast("int", result[key]) for key in ("nodes", "casts", "weights"))
        lines.append(
            f"{fmt.plural(nodes, 'node')} in {dtype}, {fmt.plural(weights, 'weight')} converted,"
            f" {fmt.plural(max(casts, 0), 'cast')} added"
        )
        for reason, count in cast("dict[str, int]", result["kept"]).items():
            lines.append(f"  kept {fmt.plural(count, 'node')}: {clip(visible(reason), 100)}")
        if inlined := cast("int", result["inlined"]):
            lines.append(f"  {fmt.plural(inlined, 'function call')} inlined")
    losses = cast("list[dict[str, JSON]]", result["losses"])
    all_losses = bool(result.get("range_check"))
    if losses:
        lines.append(f"{fmt.plural(len(losses), 'weight')} with values out of {dtype}'s range:")
    for loss in losses if all_losses else losses[:_LISTED]:
        lines.append(
            f"  {clip(visible(str(loss['name'])), 60, keep='middle')}: of"
            f" {fmt.count(cast('int', loss['count']))}"
            f" {fmt.count(cast('int', loss['overflow']))} too large,"
            f" {fmt.count(cast('int', loss['underflow']))} too small;"
            f" largest {cast('float', loss['largest']):.3g}"
        )
    if len(losses) > _LISTED and not all_losses:
        lines.append(f"  and {len(losses) - _LISTED} more: --range-check lists all")
    return lines
