"""What the layers of an engine can be narrowed to: types, precisions, what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.report.groups import UNKNOWN, group_layers
from dld_tui.core.report.records import Layer
from dld_tui.core.text import visible
from dld_tui.widgets.layer_columns import precision_style, short_precision
from dld_tui.widgets.operator_style import layer_style
from dld_tui.widgets.pick_dialog import PickItem

_Filter: TypeAlias = "tuple[str, tuple[str, str] | None]"
"""(text of the filter, (grouping, key) that the layers belong to)."""
_MOST_TACTICS = 200


def narrowings(layers: Sequence[Layer]) -> tuple[list[PickItem], dict[str, _Filter]]:
    """Return what to choose from, and the filter of each by its key."""
    items: list[PickItem] = []
    filters: dict[str, _Filter] = {}

    def add(what: str, shown: str, style: str, count: int, chosen: _Filter) -> None:
        key = f"{what} {len(items)}"
        row = [
            (f"{what:<10} ", "dim"), (shown, style), (f"  {fmt.plural(count, 'layer')}", "dim"),
        ]  # fmt: skip
        items.append(PickItem(key, row, f"{what} {shown}"))
        filters[key] = chosen

    wrong = sum(bool(layer.details.get("findings")) for layer in layers)
    if wrong:
        add("finding", "any", "warn", wrong, ("findings>0", None))
    for group in group_layers(layers, "type"):
        shown, style = visible(group.key), layer_style(group.key)
        add("type", shown, style, group.count, ("", ("type", group.key)))
    for group in group_layers(layers, "precision"):
        if group.key != UNKNOWN:
            shown, style = short_precision(group.key), precision_style(group.key)
            add("precision", shown, style, group.count, ("", ("precision", group.key)))
    tactics = Counter(str(layer.details.get("tactic") or "") for layer in layers)
    del tactics[""]
    for tactic, count in tactics.most_common(_MOST_TACTICS):
        add("tactic", visible(tactic), "", count, ("", ("tactic", tactic)))
    return items, filters
