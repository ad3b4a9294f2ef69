"""A table as a Parquet file, with pyarrow, which is optional."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from dld_tui.core.errors import UnavailableError
from dld_tui.core.report.schema import as_text
from dld_tui.core.tables.table import Table


def parquet_of(table: Table[Any], metadata: Mapping[str, str]) -> bytes:
    """Return the file's content: typed columns, lists of texts, unknown values are null.

    Args:
        table: The table.
        metadata: Texts that the file carries beside its rows.

    Raises:
        UnavailableError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UnavailableError(
            "Parquet needs pyarrow, which is not installed",
            hint="pip install 'dld-tui[parquet]', or write --csv",
        ) from error
    types = {
        "string": pyarrow.string(), "int64": pyarrow.int64(), "double": pyarrow.float64(),
        "bool": pyarrow.bool_(), "list": pyarrow.list_(pyarrow.string()),
    }  # fmt: skip
    schema = pyarrow.schema(
        [(column.key, types[column.unit.type]) for column in table.columns],
        metadata={name: as_text(value) for name, value in metadata.items()},
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
        return [as_text(item) for item in value]
    return as_text(value) if isinstance(value, str) else value
