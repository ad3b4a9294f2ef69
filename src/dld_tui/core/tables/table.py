"""A table: its columns, declared once, and its rows.

::

    LAYERS = (
        Column("name", "layer", lambda layer: layer.name, least=20, keep="end"),
        Column("time_ms", "ms", lambda layer: layer.time_ms, MS, heat=True),
    )
    table = Table(LAYERS, report.layers, sort="time_ms")
    csv_of(table), html_of("layers", table), TableView().set_table(table)

The renderers beside this module, and :mod:`~dld_tui.widgets.lists.table_view`, work with any kind
of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.fmt import UNKNOWN
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Unit:
    """The kind of a column's values; every one of them may be None, which is unknown."""

    name: str
    text: Callable[[Any], str]
    """Text of a known value for people; foreign where the value is."""
    type: str = "double"
    """As Arrow calls it: ``string``, ``int64``, ``double``, ``bool`` or ``list``, of texts."""
    item: Callable[[Any], str] = str
    """One value of a list as text."""
    json_item: Callable[[Any], JSON] = str
    """One value of a list in JSON."""
    unknown: str = fmt.UNKNOWN
    """Text for None and for an empty text."""

    @property
    def is_number(self) -> bool:
        """Whether values are aligned to the right, and sorted from the largest on."""
        return self.type in ("int64", "double")

    def shown(self, value: Any) -> str:
        """Return the text of a value for people; foreign where the value is."""
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


def figure_text(value: float) -> str:
    """Return a figure in at most three digits, e.g. ``1.5``; from 100 on, whole."""
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
JOULES = Unit("J", fmt.joules)
BYTES = Unit("B", fmt.size, "int64")
SIZE = Unit("B", lambda value: fmt.size(value) if value else "", "int64")
"""Bytes of something that many rows have none of."""
SHORT = Unit("short", fmt.short_count)
"""Large counts, such as multiply-accumulates."""
RATIO = Unit("ratio", figure_text)
RATE = Unit("1/s", figure_text)
FLAG = Unit("flag", lambda value: "yes" if value else "", "bool", unknown="")
BAR = Unit("bar", lambda value: "", unknown="")
"""A figure that screens draw as a bar of the largest."""


class Estimate(NamedTuple):
    """A figure with the ends of its interval, which are the figure itself where none is known."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class IntervalUnit(Unit):
    """Estimates, which screens draw as bars with error bars on one axis."""

    reference: float = 0.0
    """The figure that means no difference: the axis marks it in each row."""
    mark: Callable[[float], str] = str
    """The label of a figure on the axis."""


Row = TypeVar("Row")
Value: TypeAlias = "str | float | bool | Sequence[Any] | None"
"""What a cell holds; None is unknown. Texts are foreign."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column: its values, and how it is laid out where space is scarce."""

    key: str
    """Its name in CSV, JSON, ``--sort`` and stored settings."""
    title: str
    value: Callable[[Row], Value]
    unit: Unit = TEXT
    width: int | None = None
    """Cells on a screen; None takes what the others leave."""
    align: str = ""
    """``left`` or ``right``; by default numbers are to the right."""
    heat: bool = False
    """Screens colour the value by how much it stands out."""
    help: str = ""
    text: Callable[[Row], str] | None = None
    """Text for people, where it is not the value in its unit. May be foreign."""
    order: Callable[[Row], Any] | None = None
    """The sort key, where it is not the value; None sorts last."""
    style: str | Callable[[Row], str] = ""
    """The style class of the text on a screen."""
    least: int = 8
    """The fewest cells that a column of no width shrinks to before others are left out."""
    priority: int = 0
    """0 is seen first; the column with the highest number is left out first."""
    keep: str = "start"
    """Which end of a long text stays: ``start``, ``end`` or ``middle``."""
    descending: bool | None = None
    """Sort from the largest value on; by default numbers are."""
    sortable: bool = True
    pinned: bool = False
    """Stays where the others scroll; without any it is the first text that is seen first."""
    shown: bool = True
    """Part of the table that a new user sees."""

    @property
    def is_right(self) -> bool:
        """Whether it is aligned to the right."""
        return self.align == "right" or (not self.align and self.unit.is_number)

    @property
    def falls(self) -> bool:
        """Whether it is sorted from the largest value on."""
        return self.unit.is_number if self.descending is None else self.descending

    @property
    def least_cells(self) -> int:
        """The fewest cells that it is drawn in."""
        return self.least if self.width is None else self.width

    def shown_text(self, row: Row) -> str:
        """Return the text of a row for people: untrusted text, to be escaped before it is shown."""
        return self.unit.shown(self.value(row)) if self.text is None else self.text(row)

    def order_of(self, row: Row) -> Any:
        """Return the sort key: texts without case, None where unknown."""
        value = self.value(row) if self.order is None else self.order(row)
        if isinstance(value, str):
            return value.lower() or None
        if value is not None and self.unit.type == "list" and self.order is None:
            return self.unit.plain(value).lower() or None
        return value

    def style_of(self, row: Row) -> str:
        """Return the style class of a row's text."""
        return self.style if isinstance(self.style, str) else self.style(row)


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Columns and rows."""

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    sort: str = ""
    """The key of the column by which the rows are sorted, if any."""
    groups: tuple[str, ...] = ()
    """The keys by which rows can be grouped."""
    name: str = ""
    """A word of our own, for files and anchors."""
    title: str = ""
    row_key: Callable[[Row], Hashable] | None = None
    """Returns the identity of a row; by default its position."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def keys(self) -> list[str]:
        """The keys of the columns, in order."""
        return [column.key for column in self.columns]

    def column(self, key: str) -> Column[Row]:
        """Return a column.

        Raises:
            KeyError: There is no such column.
        """
        for column in self.columns:
            if column.key == key:
                return column
        raise KeyError(key)

    def key(self, place: int) -> Hashable:
        """Return the identity of the row at a position."""
        return place if self.row_key is None else self.row_key(self.rows[place])

    def values(self, row: Row) -> tuple[Value, ...]:
        """Return the values of a row, in the order of the columns."""
        return tuple(column.value(row) for column in self.columns)

    def text(self, place: int) -> str:
        """Return a row as text, its cells separated by tabs: foreign."""
        row = self.rows[place]
        return "\t".join(column.shown_text(row) for column in self.columns if column.title)

    def pick(self, keys: Iterable[str]) -> Table[Row]:
        """Return the table with some columns, in the order of `keys`."""
        return replace(self, columns=tuple(self.column(key) for key in keys))

    def telling(self) -> Table[Row]:
        """Return the table without the columns that are unknown or empty in every row.

        The first column stays.
        """
        kept = [
            column
            for place, column in enumerate(self.columns)
            if not place or any(column.shown_text(row) not in ("", UNKNOWN) for row in self.rows)
        ]
        return replace(self, columns=tuple(kept))

    def sorted_by(self, key: str) -> Table[Row]:
        """Return the table in the order of a column; what is unknown is last.

        Raises:
            UsageError: There is no such column.
        """
        if key not in self.keys:
            raise UsageError(f"--sort {key}: this table has {', '.join(self.keys)}")
        order = sort_places(self, key, self.column(key).falls)
        return replace(self, rows=[self.rows[place] for place in order], sort=key)


def sort_places(
    table: Table[Row], key: str, falling: bool, places: Iterable[int] | None = None
) -> list[int]:
    """Return the places of rows in the order of a column; unknown is last in both directions."""
    column = table.column(key)
    chosen = range(len(table.rows)) if places is None else places
    keyed = [(column.order_of(table.rows[place]), place) for place in chosen]
    known = [pair for pair in keyed if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=falling)
    return [place for _, place in known] + [place for order, place in keyed if order is None]


def json_of(table: Table[Any]) -> list[dict[str, JSON]]:
    """Return the rows as objects, with the keys of the columns in their order."""
    return [
        {column.key: column.unit.json(column.value(row)) for column in table.columns}
        for row in table.rows
    ]
