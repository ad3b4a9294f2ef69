"""A table as a Parquet file, with pyarrow, which is optional."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from dld_tui.core.errors import UnavailableError
from dld_tui.core.process.installation import install_command
from dld_tui.core.tables.table import Table
from dld_tui.core.tables.writers import TableWriter
from dld_tui.core.text import encodable


def content(tables: Sequence[tuple[str, Table[Any]]], metadata: Mapping[str, str]) -> bytes:
    """Return the first table: typed columns, lists of texts, unknown values are null.

    Args:
        tables: The names and the tables.
        metadata: Texts that the file carries beside its rows.

    Raises:
        UnavailableError: pyarrow is not installed.
    """
    (_, table), *_ = tables
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UnavailableError(
            "Parquet needs pyarrow, which is not installed",
            hint=f"{install_command('parquet')}, or write --csv",
        ) from error
    types = {
        "string": pyarrow.string(), "int64": pyarrow.int64(), "double": pyarrow.float64(),
        "bool": pyarrow.bool_(), "list": pyarrow.list_(pyarrow.string()),
    }  # fmt: skip
    schema = pyarrow.schema(
        [(column.key, types[column.unit.type]) for column in table.columns],
        metadata={name: encodable(value) for name, value in metadata.items()},
    )
    columns = [
        pyarrow.array(
            [_clean(column.unit.arrow(column.value(row))) for row in table.rows],
            type=types[column.unit.type],
        )
        for column in table.columns
    ]
    target = io.BytesIO()
    parquet.write_table(pyarrow.table(columns, schema=schema), target)
    return target.getvalue()


def _clean(value: Any) -> Any:
    """Return a value with texts as UTF-8 can hold them."""
    if isinstance(value, list):
        return [encodable(item) for item in value]
    return encodable(value) if isinstance(value, str) else value


WRITER = TableWriter(".parquet", "Parquet (needs pyarrow)", content)
