"""What weights lose in another type, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from dld_tui.core import fmt
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_LISTED = 12


def loss_lines(losses: Sequence[Mapping[str, JSON]]) -> list[str]:
    """Return lines on weights that lose something, those out of range first. Fit for a terminal."""
    if not losses:
        return []

    def out_of_range(one: Mapping[str, JSON]) -> int:
        return cast("int", one["overflow"]) + cast("int", one["underflow"])

    ordered = sorted(losses, key=lambda one: -out_of_range(one))
    lines = [f"{fmt.plural(len(losses), 'weight')} would be rounded:"]
    for one in ordered[:_LISTED]:
        counts = [
            f"{fmt.count(cast('int', one[key]))} {text}"
            for key, text in (
                ("overflow", "too large"), ("underflow", "to zero"), ("rounded", "rounded")
            )
            if one[key]
        ]  # fmt: skip
        name = clip(visible(str(one["name"])), 50, keep="middle")
        error = cast("float", one["max_error"])
        lines.append(f"  {name}: {', '.join(counts)}; largest error {error:.3g}")
    if len(ordered) > _LISTED:
        lines.append(f"  and {fmt.count(len(ordered) - _LISTED)} more")
    return lines
