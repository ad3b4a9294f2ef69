"""Saved connections: the settings of targets, without passwords, in ``targets.toml``.

Only its owner may read it: variables of the environment may be tokens. Hand-written content,
comments included, is kept.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.params import (
    RequestData,
    from_json,
    param,
    put_once,
    settings_of,
    text_of,
    to_json,
)
from dld_tui.core.process import paths
from dld_tui.core.settings import toml_files
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import comma_separated

AUTH = ("auto", "password", "key", "agent")
REMEMBER = ("memory", "keyring")
RESERVED = ("local",)
"""Names that mean something else."""
DEFAULT_PORT = 22
DEFAULT_DIRECTORY = "~/.cache/dld-tui/target"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HOST = re.compile(r"[A-Za-z0-9_:\[][A-Za-z0-9_.:%\[\]-]{0,254}")
_USER = re.compile(r"[^\s\x00-\x1f\x7f'\"`\\;&|<>(){}$!*?-][^\s\x00-\x1f\x7f'\"`;&|<>(){}$!*?]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Connection:
    """How to reach a target, and how programs are started there."""

    name: str
    """How users call it, e.g. in ``--target NAME``."""
    host: str
    """A host name, an address, or a ``Host`` of ``~/.ssh/config``."""
    port: int | None = None
    """None means what ``~/.ssh/config`` says, else 22."""
    user: str = ""
    """Empty means what ``~/.ssh/config`` says, else the user here."""
    auth: str = "auto"
    """One of :data:`AUTH`; ``auto`` tries the agent, keys, then what the server asks for."""
    key: Path | None = None
    known_hosts: Path | None = None
    """None means what ``~/.ssh/config`` says, else ``~/.ssh/known_hosts``."""
    jump: str = ""
    """``[USER@]HOST[:PORT]``, several separated by commas: the jump hosts."""
    proxy_command: str = ""
    """A command whose standard input and output are the connection; ``%h %p %r`` are replaced."""
    config: bool = True
    """Whether ``~/.ssh/config`` is read."""
    directory: str = DEFAULT_DIRECTORY
    """The folder on the target for uploaded files."""
    python: str = "python3"
    """The Python on the target that creates the environment there."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Environment variables of processes on the target."""
    launcher: tuple[str, ...] = ()
    """A prefix of commands, e.g. ``("srun", "--gres=gpu:1")``."""
    remember: str = "memory"
    """One of :data:`REMEMBER`: where a password or passphrase is kept once it was right."""

    def __hash__(self) -> int:
        """Return a hash by name; the environment has none."""
        return hash((self.name, self.host, self.port, self.user))

    @property
    def address(self) -> str:
        """How the machine is called in messages: ``[USER@]HOST[:PORT]``."""
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port not in (None, DEFAULT_PORT) else ""
        return f"{user}{self.host}{port}"


def validate(connection: Connection) -> Connection:
    """Return the connection if every field of it can be used.

    Raises:
        UsageError: A field cannot; the line names it.
    """
    for problem in problems(connection):
        raise UsageError(problem, where=f"target {connection.name!r}")
    return connection


def problems(connection: Connection) -> list[str]:
    """Return the problems of a connection, one line each; empty if it is valid."""
    faults = [name_problem(connection.name), host_problem(connection.host)]
    if connection.user and not _USER.fullmatch(connection.user):
        faults.append(f"the user {connection.user!r} has characters that a user name cannot have")
    if connection.port is not None and not 1 <= connection.port <= 65535:
        faults.append(f"the port is {connection.port}; it is 1 to 65535")
    if connection.auth not in AUTH:
        faults.append(f"the authentication {connection.auth!r} is not one of {', '.join(AUTH)}")
    if connection.remember not in REMEMBER:
        faults.append(f"remember {connection.remember!r} is not one of {', '.join(REMEMBER)}")
    if connection.jump and connection.proxy_command:
        faults.append("a jump host and a proxy command exclude each other")
    faults += [_jump_problem(hop) for hop in hops(connection.jump)]
    for label, text in (
        ("directory", connection.directory),
        ("Python", connection.python),
        ("proxy command", connection.proxy_command or "none"),
        *(("launcher", word) for word in connection.launcher),
    ):
        if not text or _CONTROL.search(text):
            faults.append(f"the {label} is empty or has control characters")
    for name, value in connection.environment.items():
        if not _VARIABLE.fullmatch(name):
            faults.append(f"{name!r} is not the name of an environment variable")
        if "\0" in value:
            faults.append(f"the value of {name} holds a zero byte")
    return [problem for problem in faults if problem]


def name_problem(name: str) -> str:
    """Return the problem of a target's name, or an empty string."""
    if name in RESERVED:
        return f"the name {name!r} is this machine; choose another one"
    if not _NAME.fullmatch(name):
        return (
            f"the name {name!r} is not letters, digits, dots, dashes and underlines,"
            " with a letter or digit first"
        )
    return ""


def host_problem(host: str) -> str:
    """Return the problem of a host, or an empty string."""
    return "" if _HOST.fullmatch(host) else f"the host {host!r} is not a host name or address"


def hops(jump: str) -> tuple[str, ...]:
    """Return the jump hosts, the nearest first; ``none`` means none."""
    if jump.lower() == "none":
        return ()
    return tuple(comma_separated(jump))


def split_hop(hop: str) -> tuple[str, str, int | None]:
    """Return user, host and port of ``[USER@]HOST[:PORT]`` or its ``ssh://`` form.

    An IPv6 address with a port is written in brackets.

    Raises:
        UsageError: It is neither.
    """
    rest = hop.removeprefix("ssh://").rstrip("/")
    user, _, place = rest.rpartition("@")
    port = ""
    if place.startswith("["):
        host, _, after = place[1:].partition("]")
        port = after.removeprefix(":")
    elif place.count(":") == 1:
        host, _, port = place.partition(":")
    else:
        host = place
    good = not host_problem(host) and (not user or _USER.fullmatch(user))
    if not good or (port and not (port.isdecimal() and 1 <= int(port) <= 65535)):
        raise UsageError(f"the jump host {hop!r} is not USER@HOST:PORT")
    return user, host, int(port) if port else None


def is_plain_user(user: str) -> bool:
    """Return whether a user name is free of characters with a meaning in a shell."""
    return bool(_USER.fullmatch(user))


def changed(connection: Connection, **values: object) -> Connection:
    """Return the connection with some fields replaced."""
    return dataclasses.replace(connection, **values)  # type: ignore[arg-type]


def _jump_problem(hop: str) -> str:
    try:
        split_hop(hop)
    except UsageError as error:
        return error.message
    return ""


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
    document = toml_files.parse_document(source)
    data = {} if document is None else document.unwrap()
    return {str(name): _connection(str(name), table, source) for name, table in data.items()}


def find(name: str, path: Path | None = None) -> Connection:
    """Return a saved connection.

    Raises:
        UsageError: No connection has this name.
        InputError: As :func:`load`.
    """
    known = load(path)
    if name not in known:
        hint = f"Known targets: {', '.join(known)}" if known else "Add one with dld target add"
        raise UsageError(f"unknown target {name!r}", hint=hint)
    return known[name]


def save(connection: Connection, path: Path | None = None) -> None:
    """Add a connection, or replace the one of the same name.

    Raises:
        UsageError: A field is invalid.
        InputError: The existing file is not valid TOML.
        SaveError: The file cannot be written; the old one is intact.
    """
    validate(connection)
    target = store_path() if path is None else path
    document = toml_files.read_document(target)
    toml_files.put_table(document, connection.name, _values(connection))
    toml_files.write_document(target, document, private=True)


def remove(name: str, path: Path | None = None) -> None:
    """Delete a connection; files on the target stay.

    Raises:
        UsageError: No connection has this name.
        InputError: The file is not valid TOML.
        SaveError: The file cannot be written.
    """
    target = store_path() if path is None else path
    document = toml_files.read_document(target)
    if name not in document:
        raise UsageError(f"unknown target {name!r}")
    del document[name]
    toml_files.write_document(target, document, private=True)


def _connection(name: str, table: Any, path: Path) -> Connection:
    where = f"{path}: target {name!r}"
    values = toml_files.typed_values(table, _TYPES, partial(InputError, where=where))
    values.update({key: Path(values[key]) for key in _PATHS if key in values})
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


@dataclass(frozen=True)
class ConnectionForm:
    """The settings of a target, as text where that is what one types."""

    name: str = param(
        label="Name",
        help="Name for --target NAME: letters, digits, dots and dashes.",
        positional=True,
        page="Machine",
    )
    host: str = param(
        label="Host",
        help="Host name, address, or a Host of ~/.ssh/config.",
        spellings=("--host",),
        metavar="HOST",
        page="Machine",
    )
    port: int | None = param(
        None,
        label="Port",
        help="If empty, the port in ~/.ssh/config, else 22.",
        minimum=1,
        maximum=65535,
        spellings=("--port",),
        metavar="PORT",
        page="Machine",
        empty="from ~/.ssh/config, else 22",
    )
    user: str = param(
        "",
        label="User",
        help="If empty, the user in ~/.ssh/config, else the local user.",
        spellings=("--user",),
        metavar="USER",
        page="Machine",
        empty="from ~/.ssh/config, else yours",
    )
    auth: str = param(
        "auto",
        label="Authentication",
        help="auto tries the agent, then keys, then the methods that the server requests.",
        choices=AUTH,
        spellings=("--auth",),
        page="Machine",
    )
    key: Path | None = param(
        None,
        label="Private key",
        help="Private key file. If empty, the keys in ~/.ssh/config, else the default keys.",
        kind="file",
        spellings=("--key",),
        metavar="FILE",
        page="Machine",
        empty="from ~/.ssh/config, else the defaults",
    )
    remember: str = param(
        "memory",
        label="Remember secrets",
        help=(
            "Keep an accepted password or passphrase for this session only, or in the system's "
            "keyring."
        ),
        choices=REMEMBER,
        spellings=("--remember",),
        page="Machine",
    )
    known_hosts: Path | None = param(
        None,
        label="Known hosts",
        help=(
            "File of known host keys. If empty, the files in ~/.ssh/config, else the default files."
        ),
        kind="file",
        spellings=("--known-hosts",),
        metavar="FILE",
        page="Network",
        empty="from ~/.ssh/config, else the defaults",
    )
    jump: str = param(
        "",
        label="Jump hosts",
        help="Jump hosts: USER@HOST:PORT, separated by commas.",
        spellings=("--jump",),
        metavar="HOSTS",
        page="Network",
    )
    proxy_command: str = param(
        "",
        label="Proxy command",
        help=(
            "Command that carries the connection on its standard input and output; %h, %p and "
            "%r are host, port and user."
        ),
        spellings=("--proxy-command",),
        metavar="COMMAND",
        page="Network",
    )
    config: bool = param(
        True,
        label="~/.ssh/config",
        help="Read ~/.ssh/config and /etc/ssh/ssh_config.",
        spellings=("--config",),
        page="Network",
    )
    directory: str = param(
        DEFAULT_DIRECTORY,
        label="Directory",
        help="Working folder on the target.",
        spellings=("--directory",),
        metavar="DIR",
        page="Programs",
    )
    python: str = param(
        "python3",
        label="Python",
        help="Python on the target, 3.10 or newer.",
        spellings=("--python",),
        metavar="PROGRAM",
        page="Programs",
    )
    launcher: str = param(
        "",
        label="Launcher",
        help=(
            "Command prefix of every job, such as srun --gres=gpu:1, docker exec -i NAME or "
            "sudo -n."
        ),
        spellings=("--launcher",),
        metavar="COMMAND",
        page="Programs",
    )
    environment: tuple[str, ...] = param(
        (),
        label="Environment",
        help="Environment variables of the jobs, NAME=VALUE.",
        spellings=("--env",),
        metavar="NAME=VALUE",
        page="Programs",
    )


def connection_of(form: ConnectionForm) -> Connection:
    """Return the connection that a form describes.

    Raises:
        UsageError: A field cannot be used.
    """
    variables: dict[str, str] = {}
    for text in form.environment:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"the variable {text!r} is not NAME=VALUE", where="--env")
        put_once(variables, name, value, "--env")
    try:
        launcher = tuple(shlex.split(form.launcher))
    except ValueError as error:
        raise UsageError(f"the launcher {form.launcher!r}: {error}") from None
    values = {name: getattr(form, name) for name in to_json(form)}
    files = {name: _absolute(values[name]) for name in ("key", "known_hosts")}
    values |= {"launcher": launcher, "environment": variables, **files}
    return validate(Connection(**values))


def form_values(connection: Connection) -> RequestData:
    """Return the values of the form of a connection, as JSON data."""
    return to_json(_form_of(connection))


def changed_by(connection: Connection, values: Mapping[str, Any]) -> Connection:
    """Return a connection with the given values; ``environment`` adds to the existing variables.

    Raises:
        UsageError: A field is invalid.
    """
    before = form_values(connection)
    added = [str(text) for text in values.get("environment") or ()]
    kept = before["environment"]
    assert isinstance(kept, list)
    given = {name: value for name, value in values.items() if value is not None and value != ()}
    data = {**before, **given, "environment": [*kept, *added]}
    return connection_of(from_json(ConnectionForm, data))


def settings_shown(connection: Connection) -> list[tuple[str, str]]:
    """Return label and text of the settings that are set; the text is foreign."""
    values = form_values(connection)
    rows = []
    for setting in settings_of(ConnectionForm):
        value = values[setting.name]
        text = ("no", "yes")[value] if isinstance(value, bool) else text_of(setting, value)
        if text:
            rows.append((setting.param.label, text))
    return rows


def _absolute(path: Path | None) -> Path | None:
    """Return an absolute path; an empty one stays empty."""
    if path is None or str(path) in ("", "."):
        return None
    return path if str(path).startswith("~") else Path(os.path.abspath(path))


def _form_of(connection: Connection) -> ConnectionForm:
    values = {name: getattr(connection, name) for name in ConnectionForm.__dataclass_fields__}
    values["launcher"] = shlex.join(connection.launcher)
    values["environment"] = tuple(f"{n}={v}" for n, v in connection.environment.items())
    return ConnectionForm(**values)


def target_table(connections: Sequence[Connection]) -> Table[Connection]:
    """Return the targets as a table."""
    return Table(
        (
            Column("name", "name", lambda saved: saved.name, width=16, style="strong"),
            Column("address", "address", lambda saved: saved.address, least=20, keep="end"),
            Column("auth", "auth", lambda saved: saved.auth, width=9, priority=4, style="dim"),
            Column("way", "way", lambda saved: saved.jump or saved.proxy_command, width=18,
                   priority=2, style="dim"),
            Column("launcher", "launcher", lambda saved: " ".join(saved.launcher), width=20,
                   priority=3, style="dim"),
        ),
        connections,
        row_key=lambda saved: saved.name,
    )  # fmt: skip
