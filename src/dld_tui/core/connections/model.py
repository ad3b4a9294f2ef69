"""One saved connection: everything about a target but its secrets."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from dld_tui.core.errors import UsageError

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
    """``[USER@]HOST[:PORT]``, several separated by commas: the machines on the way."""
    proxy_command: str = ""
    """A command whose standard input and output are the connection; ``%h %p %r`` are replaced."""
    config: bool = True
    """Whether ``~/.ssh/config`` is read."""
    directory: str = DEFAULT_DIRECTORY
    """The folder on the target that holds what is sent there."""
    python: str = "python3"
    """The Python on the target that the environment there is made with."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables for what is started on the target."""
    launcher: tuple[str, ...] = ()
    """What is put before a command, e.g. ``("srun", "--gres=gpu:1")``."""
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
    """Return what is wrong with a connection, one line each; empty when it can be used."""
    found = [name_problem(connection.name), host_problem(connection.host)]
    if connection.user and not _USER.fullmatch(connection.user):
        found.append(f"the user {connection.user!r} has characters that a user name has not")
    if connection.port is not None and not 1 <= connection.port <= 65535:
        found.append(f"the port is {connection.port}; it is 1 to 65535")
    if connection.auth not in AUTH:
        found.append(f"the authentication {connection.auth!r} is not one of {', '.join(AUTH)}")
    if connection.remember not in REMEMBER:
        found.append(f"remember {connection.remember!r} is not one of {', '.join(REMEMBER)}")
    if connection.jump and connection.proxy_command:
        found.append("a jump host and a proxy command exclude each other")
    found += [_jump_problem(hop) for hop in hops(connection.jump)]
    for label, text in (
        ("directory", connection.directory),
        ("Python", connection.python),
        ("proxy command", connection.proxy_command or "none"),
        *(("launcher", word) for word in connection.launcher),
    ):
        if not text or _CONTROL.search(text):
            found.append(f"the {label} is empty or has control characters")
    for name, value in connection.environment.items():
        if not _VARIABLE.fullmatch(name):
            found.append(f"{name!r} is no name of an environment variable")
        if "\0" in value:
            found.append(f"the value of {name} holds a zero byte")
    return [problem for problem in found if problem]


def name_problem(name: str) -> str:
    """Return what is wrong with the name of a target, or an empty string."""
    if name in RESERVED:
        return f"the name {name!r} is this machine; choose another one"
    if not _NAME.fullmatch(name):
        return (
            f"the name {name!r} is not letters, digits, dots, dashes and underlines,"
            " with a letter or digit first"
        )
    return ""


def host_problem(host: str) -> str:
    """Return what is wrong with a host, or an empty string."""
    return "" if _HOST.fullmatch(host) else f"the host {host!r} is no host name or address"


def hops(jump: str) -> tuple[str, ...]:
    """Return the machines on the way, the nearest first; ``none`` means none."""
    if jump.lower() == "none":
        return ()
    return tuple(hop.strip() for hop in jump.split(",") if hop.strip())


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
    """Tell whether a user name has none of the characters that mean something to a shell."""
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
