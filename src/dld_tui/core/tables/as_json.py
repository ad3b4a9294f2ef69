"""A table as the records of a JSON document."""

from __future__ import annotations

from typing import Any

from dld_tui.core.tables.table import Table
from dld_tui.core.types import JSON


def json_of(table: Table[Any]) -> list[dict[str, JSON]]:
    """Return the rows as objects, with the keys of the columns in their order."""
    return [
        {column.key: column.unit.json(column.value(row)) for column in table.columns}
        for row in table.rows
    ]
