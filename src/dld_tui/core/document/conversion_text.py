"""The report of an opset conversion, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from dld_tui.core import fmt
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_PARTS = ("changed", "added", "removed")


def conversion_lines(result: Mapping[str, JSON]) -> list[str]:
    """Return lines that say what a conversion did; the first is a summary. Fit for a terminal.

    Args:
        result: What the activity ``convert_opset`` gives.
    """
    counts = {part: cast("dict[str, int]", result[part]) for part in _PARTS}
    totals = {part: sum(counted.values()) for part, counted in counts.items()}
    said = [f"{fmt.count(total)} {part}" for part, total in totals.items() if total]
    summary = ", ".join(said) or "no node had to change"
    lines = [f"opset {result['from']} to {result['to']}: {summary}"]
    width = max((len(op) for counted in counts.values() for op in counted), default=0)
    for part, counted in counts.items():
        lines += [
            f"  {part:<8} {clip(visible(op_type), 60):<{min(width, 60)}}  {fmt.count(number)}"
            for op_type, number in counted.items()
        ]
    if result["initializers"]:
        lines.append(f"  added    {fmt.plural(cast('int', result['initializers']), 'initializer')}")
    lines += [
        f"  not converted: {visible(str(note))}" for note in cast("list[JSON]", result["notes"])
    ]
    return lines
