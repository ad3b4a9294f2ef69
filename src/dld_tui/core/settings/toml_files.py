"""TOML files of settings: read and written with their comments, values checked by type."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dld_tui.core.errors import DldError, InputError, SaveError
from dld_tui.core.process import paths

if typing.TYPE_CHECKING:
    from tomlkit import TOMLDocument


def read_document(path: Path) -> TOMLDocument:
    """Return the settings file with its comments, for editing; an empty one if it does not exist.

    Raises:
        InputError: The existing file cannot be read or is not valid TOML.
    """
    import tomlkit

    document = parse_document(path)
    return tomlkit.document() if document is None else document


def put_table(tables: Any, name: str, values: Mapping[str, Any]) -> None:
    """Add a table, or change the one of the same name: comments beside its values stay."""
    table = tables.get(name)
    if isinstance(table, dict):
        for gone in [key for key in table if key not in values]:
            del table[gone]
        table.update(values)
    else:
        tables[name] = values


def typed_values(
    table: Any, types: Mapping[str, type], refused: Callable[[str], DldError]
) -> dict[str, Any]:
    """Return the values of a table, each of the type that its field declares.

    Raises:
        DldError: The error that `refused` makes of the reason.
    """
    if not isinstance(table, Mapping):
        raise refused("expected a table")
    for key, value in table.items():
        if key not in types:
            raise refused(f"unknown setting {key!r}")
        if type(value) is not types[key]:
            raise refused(f"{key} is {value!r}, not a {types[key].__name__}")
    return dict(table)


def write_document(path: Path, document: TOMLDocument, *, private: bool = False) -> None:
    """Write the settings file.

    Args:
        path: Where it is.
        document: Its content.
        private: Whether nobody but its owner may read it, whoever could before.

    Raises:
        SaveError: The file cannot be written; the old one is intact.
    """
    import tomlkit

    from dld_tui.core.files.writer import write_text

    try:
        paths.ensure(path.parent)
    except OSError as error:
        raise SaveError(f"settings not saved: {error.strerror}", where=str(path)) from None
    write_text(path, tomlkit.dumps(document), overwrite=True, private=private)


def parse_document(path: Path) -> TOMLDocument | None:
    """Return a TOML file with its comments; None if it does not exist.

    Raises:
        InputError: It cannot be read or is not valid TOML.
    """
    if not path.is_file():  # the usual case, and no reason to import a parser
        return None
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    except TOMLKitError as error:
        hint = "Correct it by hand"
        raise InputError(f"not valid TOML: {error}", where=str(path), hint=hint) from None
