"""The saved tools: tables ``[tools.NAME]`` of ``config.toml``, whose comments stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dld_tui.core import config
from dld_tui.core.custom_tools.model import Tool, added_tools, table_of, tools_of, validate
from dld_tui.core.errors import InputError, UsageError

_TABLE = "tools"


def load(path: Path | None = None) -> dict[str, Tool]:
    """Return the tools by name: those of other packages, then the saved ones of the file.

    Raises:
        InputError: The file is not valid TOML, or a tool in it cannot be used.
    """
    source = config.config_path() if path is None else path
    tables = config.read_document(source).unwrap().get(_TABLE, {})
    wrong: list[str] = []
    found = tools_of(tables, wrong)
    if wrong:
        raise InputError(wrong[0], where=str(source), hint="Correct it by hand")
    return added_tools() | found


def find(name: str, path: Path | None = None) -> Tool:
    """Return a saved tool.

    Raises:
        UsageError: There is none of this name.
        InputError: As :func:`load`.
    """
    known = load(path)
    if name not in known:
        hint = f"Known tools: {', '.join(known)}" if known else "Add one with dld tool add"
        raise UsageError(f"there is no tool {name!r}", hint=hint)
    return known[name]


def save(tool: Tool, path: Path | None = None, *, instead_of: str = "") -> None:
    """Add a tool, or replace the one of the same name.

    Args:
        path: The settings file; the user's when None.
        instead_of: The name that it had before.

    Raises:
        UsageError: A field of it cannot be used.
        InputError: The file that is there is not valid TOML, or ``tools`` in it is no table.
        SaveError: The file cannot be written; the old one is intact.
    """
    validate(tool)
    target = config.config_path() if path is None else path
    document = config.read_document(target)
    tables = _tables(document, target)
    if instead_of and instead_of != tool.name:
        tables.pop(instead_of, None)
    values = table_of(tool)
    table = tables.get(tool.name)
    if isinstance(table, dict):
        for gone in [key for key in table if key not in values]:
            del table[gone]
        table.update(values)
    else:
        tables[tool.name] = values
    config.write_document(target, document)


def remove(name: str, path: Path | None = None) -> None:
    """Forget a tool.

    Raises:
        UsageError: There is none of this name.
        InputError: The file is not valid TOML.
        SaveError: The file cannot be written.
    """
    target = config.config_path() if path is None else path
    document = config.read_document(target)
    tables = _tables(document, target)
    if name not in tables:
        raise UsageError(f"there is no tool {name!r}")
    del tables[name]
    config.write_document(target, document)


def _tables(document: Any, path: Path) -> Any:
    import tomlkit

    if _TABLE not in document:
        document[_TABLE] = tomlkit.table(is_super_table=True)
    tables = document[_TABLE]
    if not isinstance(tables, dict):
        raise InputError("tools: expected a table of tools", where=str(path))
    return tables
