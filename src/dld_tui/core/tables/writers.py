"""Writers of tables in formats of other programs, which packages add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError
from dld_tui.core.files.writer import write_bytes
from dld_tui.core.process.plugins import plugins, skip
from dld_tui.core.tables.table import Table


@dataclass(frozen=True)
class TableWriter:
    """Writes tables: an entry point of ``dld_tui.writers``, whose name is the option."""

    ending: str
    """Of names of files, such as ``.parquet``."""
    title: str
    """The format in a sentence, such as ``Parquet (needs pyarrow)``."""
    content: Callable[[Sequence[tuple[str, Table[Any]]], Mapping[str, str]], bytes]
    """Takes named tables, one if not `several`, and metadata about them; returns the file. Names,
    metadata and cells are untrusted text."""
    several: bool = False
    """Whether a file holds several tables."""


def writers() -> dict[str, TableWriter]:
    """Return the writers by the names of their options."""
    found = {}
    for plugin in plugins("writers", TableWriter):
        if plugin.value.ending.startswith(".") and plugin.name.isidentifier():
            found[plugin.name] = plugin.value
        else:
            skip("writers", plugin, "its ending is not one as .xlsx, or its name no word")
    return found


def write_tables(
    writer: TableWriter,
    path: Path,
    tables: Sequence[tuple[str, Table[Any]]],
    metadata: Mapping[str, str] | None = None,
    *,
    overwrite: bool = False,
) -> list[str]:
    """Write tables, and return remarks for the user.

    Raises:
        UnavailableError: The writer needs a package that is not installed.
        SaveError: The file cannot be written.
        ActivityError: The writer has a bug.
    """
    try:
        content = writer.content(tables, metadata or {})
    except (DldError, OSError):
        raise
    # The seam to code of others, which may raise anything.
    except Exception as error:
        raise ActivityError(
            f"the writer of {writer.title} failed: {type(error).__name__}: {error}",
            where=str(path),
            hint="Update or uninstall its package, as dld doctor names it",
        ) from error
    return write_bytes(path, content, overwrite=overwrite)
