"""A connection as a person writes it: the one declaration of the command line and of the form."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dld_tui.core.connections.store import AUTH, DEFAULT_DIRECTORY, REMEMBER, Connection, validate
from dld_tui.core.errors import UsageError
from dld_tui.core.params import RequestData, from_json, param, settings_of, text_of, to_json
from dld_tui.core.tables.table import Column, Table


@dataclass(frozen=True)
class ConnectionForm:
    """The settings of a target, as text where that is what one types."""

    name: str = param(
        label="Name",
        help="How the target is called, as in --target NAME: letters, digits, dots and dashes.",
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
        help="Empty is what ~/.ssh/config says, else 22.",
        minimum=1,
        maximum=65535,
        spellings=("--port",),
        metavar="PORT",
        page="Machine",
    )
    user: str = param(
        "",
        label="User",
        help="Empty is what ~/.ssh/config says, else the user here.",
        spellings=("--user",),
        metavar="USER",
        page="Machine",
    )
    auth: str = param(
        "auto",
        label="Authentication",
        help="auto tries the agent, then keys, then what the server asks for.",
        choices=AUTH,
        spellings=("--auth",),
        page="Machine",
    )
    key: Path | None = param(
        None,
        label="Private key",
        help="File of the private key; empty is what ~/.ssh/config says, else the usual ones.",
        kind="file",
        spellings=("--key",),
        metavar="FILE",
        page="Machine",
    )
    remember: str = param(
        "memory",
        label="Remember secrets",
        help="Where a password or passphrase is kept once it was right: for this run of the"
        " program, or in the system's keyring.",
        choices=REMEMBER,
        spellings=("--remember",),
        page="Machine",
    )
    known_hosts: Path | None = param(
        None,
        label="Known hosts",
        help="File of known host keys; empty is what ~/.ssh/config says, else the usual ones.",
        kind="file",
        spellings=("--known-hosts",),
        metavar="FILE",
        page="Way",
    )
    jump: str = param(
        "",
        label="Jump hosts",
        help="Machines on the way: USER@HOST:PORT, several with commas between.",
        spellings=("--jump",),
        metavar="HOSTS",
        page="Way",
    )
    proxy_command: str = param(
        "",
        label="Proxy command",
        help="A command whose input and output are the connection; %h, %p and %r are host, port"
        " and user.",
        spellings=("--proxy-command",),
        metavar="COMMAND",
        page="Way",
    )
    config: bool = param(
        True,
        label="~/.ssh/config",
        help="Read ~/.ssh/config and /etc/ssh/ssh_config.",
        spellings=("--config",),
        page="Way",
    )
    directory: str = param(
        DEFAULT_DIRECTORY,
        label="Directory",
        help="Folder on the target for what is sent there.",
        spellings=("--directory",),
        metavar="DIR",
        page="Programs",
    )
    python: str = param(
        "python3",
        label="Python",
        help="The Python on the target, 3.10 or newer.",
        spellings=("--python",),
        metavar="PROGRAM",
        page="Programs",
    )
    launcher: str = param(
        "",
        label="Launcher",
        help="Put before every job, e.g. srun --gres=gpu:1, docker exec NAME, sudo -n.",
        spellings=("--launcher",),
        metavar="COMMAND",
        page="Programs",
    )
    environment: tuple[str, ...] = param(
        (),
        label="Environment",
        help="Variables for the jobs, NAME=VALUE.",
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
        variables[name] = value
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
    """Return a connection with what a person gave; ``environment`` adds to what there is.

    Raises:
        UsageError: A field cannot be used.
    """
    before = form_values(connection)
    added = [str(text) for text in values.get("environment") or ()]
    kept = before["environment"]
    assert isinstance(kept, list)
    given = {name: value for name, value in values.items() if value is not None and value != ()}
    data = {**before, **given, "environment": [*kept, *added]}
    return connection_of(from_json(ConnectionForm, data))


def settings_shown(connection: Connection) -> list[tuple[str, str]]:
    """Return label and text of what is set; the text is foreign."""
    values = form_values(connection)
    found = []
    for setting in settings_of(ConnectionForm):
        value = values[setting.name]
        text = ("no", "yes")[value] if isinstance(value, bool) else text_of(setting, value)
        if text:
            found.append((setting.param.label, text))
    return found


def _absolute(path: Path | None) -> Path | None:
    """Return a file that is found from everywhere; an empty one is none."""
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
            Column("name", "name", lambda one: one.name, width=16, style="strong"),
            Column("address", "address", lambda one: one.address, least=20, keep="end"),
            Column("auth", "auth", lambda one: one.auth, width=9, priority=4, style="dim"),
            Column("way", "way", lambda one: one.jump or one.proxy_command, width=18, priority=2,
                   style="dim"),
            Column("launcher", "launcher", lambda one: " ".join(one.launcher), width=20,
                   priority=3, style="dim"),
        ),
        connections,
        row_key=lambda one: one.name,
    )  # fmt: skip
