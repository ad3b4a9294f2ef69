"""What the values of a column are: how people read them, and what they are in a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Unit:
    """The kind of a column's values; every one of them may be None, which is unknown."""

    name: str
    text: Callable[[Any], str]
    """How people read a value that is known; foreign where the value is."""
    type: str = "double"
    """As Arrow calls it: ``string``, ``int64``, ``double``, ``bool`` or ``list``, of texts."""
    item: Callable[[Any], str] = str
    """One value of a list as text."""
    json_item: Callable[[Any], JSON] = str
    """One value of a list in JSON."""
    unknown: str = fmt.UNKNOWN
    """What stands for None and for an empty text."""

    @property
    def is_number(self) -> bool:
        """Whether values are aligned to the right, and sorted from the largest on."""
        return self.type in ("int64", "double")

    def shown(self, value: Any) -> str:
        """Return a value as people read it; foreign text where the value is."""
        return self.unknown if value in (None, "", ()) else self.text(value)

    def plain(self, value: Any) -> Any:
        """Return a value for a cell of CSV: a text or a number; lists are joined by ``;``."""
        if self.type == "list" and value is not None:
            return "; ".join(map(self.item, value))
        return value

    def json(self, value: Any) -> JSON:
        """Return a value for a JSON document."""
        if self.type == "list" and value is not None:
            return [self.json_item(item) for item in value]
        return value  # type: ignore[no-any-return]

    def arrow(self, value: Any) -> Any:
        """Return a value of its type for Arrow."""
        return [*map(self.item, value)] if self.type == "list" and value is not None else value


def ratio_text(value: float) -> str:
    """Return a figure in three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def joined(items: Sequence[object]) -> str:
    """Return texts of a list for people."""
    return ", ".join(map(str, items))


TEXT = Unit("text", str, "string")
NOTE = Unit("note", str, "string", unknown="")
"""Text that is empty where there is nothing to say."""
NAMES = Unit("names", joined, "list")
COUNT = Unit("count", fmt.count, "int64")
PLACE = Unit("place", str, "int64")
MEAN = Unit("mean", lambda value: f"{round(value, 2):,.10g}")
"""A mean of counts, with decimals where it has some."""
MS = Unit("ms", fmt.milliseconds)
FINE_MS = Unit("ms", lambda value: fmt.milliseconds(value, digits=4))
"""Times of engine layers, of which many take microseconds."""
PERCENT = Unit("%", fmt.percent)
BYTES = Unit("B", fmt.size, "int64")
SIZE = Unit("B", lambda value: fmt.size(value) if value else "", "int64")
"""Bytes of something that many rows have none of."""
SHORT = Unit("short", fmt.short_count)
"""Large counts, such as multiply-accumulates."""
RATIO = Unit("ratio", ratio_text)
FLAG = Unit("flag", lambda value: "yes" if value else "", "bool", unknown="")
BAR = Unit("bar", lambda value: "", unknown="")
"""A figure that screens draw as a bar of the largest."""
