"""The report of a conversion to float16, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from dld_tui.core import fmt
from dld_tui.core.conversion.values_text import values_lines
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_LISTED = 5
"""Weights out of range that are named when not all are asked for."""


def fp16_lines(result: Mapping[str, JSON], *, all_losses: bool) -> list[str]:
    """Return lines that say what is in float16 and what is not. Fit for a terminal.

    Args:
        result: What the activity ``convert_fp16`` gives.
        all_losses: List all weights with values out of range.
    """
    lines = []
    if "nodes" in result:
        nodes, casts, weights = (cast("int", result[key]) for key in ("nodes", "casts", "weights"))
        lines.append(
            f"{fmt.plural(nodes, 'node')} in float16, {fmt.plural(weights, 'weight')} converted,"
            f" {fmt.plural(max(casts, 0), 'cast')} added"
        )
        for reason, count in cast("dict[str, int]", result["kept"]).items():
            lines.append(f"  kept {fmt.plural(count, 'node')}: {clip(visible(reason), 100)}")
        if inlined := cast("int", result["inlined"]):
            lines.append(f"  {fmt.plural(inlined, 'function call')} inlined")
    losses = cast("list[dict[str, JSON]]", result["losses"])
    if losses:
        lines.append(f"{fmt.plural(len(losses), 'weight')} with values out of float16's range:")
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
    if "values" in result:
        lines += values_lines(cast("dict[str, JSON]", result["values"]), str(result["library"]))
    return lines
