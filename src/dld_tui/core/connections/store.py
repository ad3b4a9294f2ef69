"""The saved connections: ``targets.toml`` in the configuration folder, one table a target.

No secret is ever in it. What a person wrote by hand, comments too, stays.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dld_tui.core import paths
from dld_tui.core.connections.model import Connection, problems, validate
from dld_tui.core.errors import InputError, SaveError, UsageError
from dld_tui.core.files.writer import write_text

if typing.TYPE_CHECKING:
    from tomlkit import TOMLDocument

_TYPES: dict[str, type] = {
    "host": str, "port": int, "user": str, "auth": str, "key": str, "known_hosts": str,
    "jump": str, "proxy_command": str, "config": bool, "directory": str, "python": str,
    "environment": dict, "launcher": list, "remember": str,
}  # fmt: skip
_PATHS = ("key", "known_hosts")


def store_path() -> Path:
    """Return the path of the file of connections."""
    return paths.config_dir() / "targets.toml"


def load(path: Path | None = None) -> dict[str, Connection]:
    """Return the saved connections by name, in the order of the file.

    Raises:
        InputError: The file cannot be read, is not TOML, or a connection in it cannot be used.
    """
    source = store_path() if path is None else path
    document = _parse(source)
    data = {} if document is None else document.unwrap()
    return {str(name): _connection(str(name), table, source) for name, table in data.items()}


def find(name: str, path: Path | None = None) -> Connection:
    """Return a saved connection.

    Raises:
        UsageError: There is none of this name.
        InputError: As :func:`load`.
    """
    known = load(path)
    if name not in known:
        hint = f"Known targets: {', '.join(known)}" if known else "Add one with dld target add"
        raise UsageError(f"there is no target {name!r}", hint=hint)
    return known[name]


def save(connection: Connection, path: Path | None = None) -> None:
    """Add a connection, or replace the one of the same name.

    Raises:
        UsageError: A field of it cannot be used.
        InputError: The file that is there is not valid TOML.
        SaveError: The file cannot be written; the old one is intact.
    """
    import tomlkit

    validate(connection)
    target = store_path() if path is None else path
    document = _parse(target) or tomlkit.document()
    values = _values(connection)
    table = document.get(connection.name)
    if isinstance(table, dict):
        for gone in [key for key in table if key not in values]:
            del table[gone]
        table.update(values)
    else:
        document[connection.name] = values
    _write(target, tomlkit.dumps(document))


def remove(name: str, path: Path | None = None) -> None:
    """Forget a connection; what is on the target stays there.

    Raises:
        UsageError: There is none of this name.
        InputError: The file is not valid TOML.
        SaveError: The file cannot be written.
    """
    import tomlkit

    target = store_path() if path is None else path
    document = _parse(target)
    if document is None or name not in document:
        raise UsageError(f"there is no target {name!r}")
    del document[name]
    _write(target, tomlkit.dumps(document))


def _parse(path: Path) -> TOMLDocument | None:
    if not path.is_file():  # the usual case, and no reason to import a parser
        return None
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the file cannot be read: {error}", where=str(path)) from None
    except TOMLKitError as error:
        hint = "Correct it by hand"
        raise InputError(f"not valid TOML: {error}", where=str(path), hint=hint) from None


def _connection(name: str, table: Any, path: Path) -> Connection:
    where = f"{path}: target {name!r}"
    if not isinstance(table, Mapping):
        raise InputError("expected a table with a host", where=where)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _TYPES:
            raise InputError(f"unknown setting {key!r}", where=where)
        if type(value) is not _TYPES[key]:
            raise InputError(f"{key} is {value!r}, not a {_TYPES[key].__name__}", where=where)
        values[key] = Path(str(value)) if key in _PATHS else value
    if "host" not in values:
        raise InputError("it has no host", where=where)
    words = values.pop("launcher", [])
    variables = values.pop("environment", {})
    if not all(isinstance(word, str) for word in (*words, *variables.values())):
        raise InputError("launcher and environment hold text only", where=where)
    connection = Connection(name, launcher=tuple(words), environment=variables, **values)
    for problem in problems(connection):
        raise InputError(problem, where=where)
    return connection


def _values(connection: Connection) -> dict[str, Any]:
    """Return what differs from the defaults, as TOML values."""
    plain = Connection("", "")
    values: dict[str, Any] = {"host": connection.host}
    for key in _TYPES:
        value = getattr(connection, key)
        if key == "host" or value == getattr(plain, key):
            continue
        if key in _PATHS:
            value = str(value)
        elif key == "launcher":
            value = list(value)
        elif key == "environment":
            value = dict(value)
        values[key] = value
    return values


def _write(path: Path, text: str) -> None:
    try:
        paths.ensure(path.parent)
    except OSError as error:
        raise SaveError(f"targets not saved: {error.strerror}", where=str(path)) from None
    write_text(path, text)
