"""What tables of an engine plan are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

Value: TypeAlias = "str | int | float | None"
Row: TypeAlias = "tuple[Value, ...]"

TEXT: Final = "text"
MS: Final = "ms"
PERCENT: Final = "percent"
BYTES: Final = "bytes"
COUNT: Final = "count"
MACS: Final = "macs"
RATIO: Final = "ratio"


@dataclass(frozen=True)
class Column:
    """One column."""

    key: str
    """Its name in CSV, JSON and ``--sort``."""
    title: str
    kind: str
    flexible: bool = False
    """Gives way where there is no room."""


@dataclass(frozen=True)
class Table:
    """Rows of plain values; text in them is foreign."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: list[Row]
