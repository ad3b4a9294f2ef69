"""The route to a target: each machine on it, its ``ProxyCommand``, and quoting for shells.

An SSH server passes a command to the user's shell as one string, so every argument is quoted, for
POSIX shells, zsh, fish, csh and tcsh. Between single quotes, only fish has escapes, of the quote
and of the backslash; csh uses ``!`` for its history even there, and ends a line at a line break.
So a command with one of these four goes to ``/bin/sh`` as text in which they are octal numbers.

asyncssh reads OpenSSH's configuration, too, but connects to jump hosts without our prompts and runs
no shell for ``ProxyCommand``; so the route is read here, and the rest (algorithms) there.

asyncssh can start a ``ProxyCommand``, but mistakes its standard error for data of the connection.
"""

from __future__ import annotations

import getpass
import os
import re
import shlex
import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asyncssh.config import ConfigParseError, SSHClientConfig

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.process.child import Child
from dld_tui.core.settings.saved_targets import (
    DEFAULT_PORT,
    Connection,
    hops,
    host_problem,
    is_plain_user,
    split_hop,
)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile("%(.)")
_PLAIN = re.compile(r"[A-Za-z0-9_@+:,./-]+")
"""Words that no shell changes; zsh takes a leading ``=`` as the name of a program."""
_PARTS = re.compile(r"[^'\\]+|['\\]")
_SPECIAL = re.compile(r"[\n!\\']")
_BY_SH = '/bin/sh -c \'eval "exec $(printf %b "$0")"\' '


def command_line(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    launcher: Sequence[str] = (),
) -> str:
    """Return a text that a shell runs as exactly these arguments.

    Args:
        arguments: The program and its arguments.
        environment: Variables for the program; set after the launcher, so that they also apply
            inside a container.
        launcher: A prefix, such as ``("docker", "exec", "NAME")``.

    Raises:
        UsageError: There is no program, an argument holds a zero byte, or a variable has no name.
    """
    if not arguments:
        raise UsageError("there is no command to run")
    words = list(launcher)
    if environment:
        for name in environment:
            if not _VARIABLE.fullmatch(name):
                raise UsageError(f"{name!r} is not the name of an environment variable")
        words += ["env", *(f"{name}={value}" for name, value in environment.items())]
        if "=" in arguments[0]:
            raise UsageError("a program with '=' in its name cannot be given variables")
    words += arguments
    if any("\0" in word for word in words):
        raise UsageError("an argument of a command holds a zero byte")
    line = " ".join(map(quoted, words))
    if not any(map(_SPECIAL.search, words)):
        return line
    return f"{_BY_SH}'{_SPECIAL.sub(_as_octal, line)}'"


def _as_octal(match: re.Match[str]) -> str:
    return f"\\0{ord(match[0]):03o}"


def quoted(word: str) -> str:
    """Return a word quoted for sh, bash, zsh and fish, and for most words also for csh."""
    if _PLAIN.fullmatch(word):
        return word
    parts = _PARTS.findall(word)
    return "".join(f"\\{part}" if part in ("'", "\\") else f"'{part}'" for part in parts) or "''"


def proxy_arguments(command: str, host: str, port: int, user: str) -> list[str]:
    """Return the program and arguments that run a ``ProxyCommand`` as OpenSSH does: by a shell.

    ``%h``, ``%p``, ``%r`` and ``%%`` are replaced.

    Raises:
        UsageError: Host or user contain characters with a meaning in a shell, or the command
            contains another ``%``.
    """
    problem = host_problem(host)
    if not problem and user and not is_plain_user(user):
        problem = f"the user {user!r} has characters with a meaning to the shell"
    if problem:
        raise UsageError(f"{problem}, so the proxy command is not run")
    values = {"h": host, "n": host, "p": str(port), "r": user, "%": "%"}

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise UsageError(f"the proxy command has %{match[1]}; known are %h %n %p %r %%")
        return shlex.quote(values[match[1]])

    return ["/bin/sh", "-c", f"exec {_TOKEN.sub(value, command)}"]


SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")
_DEEPEST = 8
"""More jumps than that are a circle in the configuration."""


@dataclass(frozen=True)
class Hop:
    """One machine to connect and authenticate to."""

    alias: str
    """As the user wrote it; ``Host`` of the configuration is matched against it."""
    host: str
    port: int
    user: str
    auth: str
    keys: tuple[Path, ...]
    """Private key files to try, in this order."""
    certificates: tuple[Path, ...]
    """Certificates of keys, besides those beside their keys."""
    keys_only: bool
    """Of the keys an agent holds, use only those that are also in `keys`."""
    agent: str | None
    """The socket of the agent; None means the one of the environment."""
    known_hosts: tuple[Path, ...]
    """The files of known hosts; a new one is added to the first."""
    host_key_alias: str
    """How the files of known hosts call it, if not by its host; empty when they do not."""
    config: tuple[Path, ...]
    proxy_command: str = ""
    timeout_s: float = 15.0
    has_ciphers: bool = False
    """Whether the configuration chooses the ciphers."""

    @property
    def address(self) -> str:
        """How it is called in messages."""
        port = f":{self.port}" if self.port != DEFAULT_PORT else ""
        return f"{self.user}@{self.host}{port}"

    @property
    def known_name(self) -> tuple[str, int]:
        """The host and port to look up among the known hosts."""
        if self.host_key_alias:
            return self.host_key_alias, DEFAULT_PORT
        return self.host, self.port


def route(connection: Connection) -> list[Hop]:
    """Return the machines on the route, the target last.

    Raises:
        InputError: The configuration of OpenSSH cannot be read.
        UsageError: The route is invalid: a wrong host, or a cycle.
    """
    return _route(connection, 0)


def _route(wanted: Connection, depth: int) -> list[Hop]:
    if depth > _DEEPEST:
        raise UsageError("the jump hosts form a cycle", where=wanted.host)
    options = _options(wanted)
    jump = wanted.jump or ("" if wanted.proxy_command else str(options.get("ProxyJump") or ""))
    proxy = "" if jump else wanted.proxy_command or str(options.get("ProxyCommand") or "")
    target = _hop(wanted, options, proxy)
    before: list[Hop] = []
    for index, text in enumerate(hops(jump)):
        user, host, port = split_hop(text)
        hop = Connection("", host, port, user, known_hosts=wanted.known_hosts, config=wanted.config)
        # Only the first is reached from here; the others have no way of their own.
        before += _route(hop, depth + 1) if index == 0 else [_hop(hop, _options(hop), "")]
    return [*before, target]


def _hop(wanted: Connection, options: Any, proxy_command: str) -> Hop:
    host = str(options.get("Hostname") or wanted.host)
    problem = host_problem(host)
    if problem:
        raise UsageError(problem)
    given = [wanted.key] if wanted.key else [Path(p) for p in options.get("IdentityFile") or ()]
    home = Path("~/.ssh").expanduser()
    keys = [path.expanduser() for path in given] or [home / name for name in _DEFAULT_KEYS]
    agent = options.get("IdentityAgent")
    return Hop(
        alias=wanted.host,
        host=host,
        port=wanted.port or options.get("Port") or DEFAULT_PORT,
        user=wanted.user or str(options.get("User") or "") or _local_user(),
        auth=wanted.auth,
        keys=tuple(keys),
        certificates=tuple(
            Path(path).expanduser() for path in options.get("CertificateFile") or ()
        ),
        keys_only=bool(options.get("IdentitiesOnly")) or wanted.auth == "key",
        agent=str(Path(str(agent)).expanduser()) if agent else None,
        known_hosts=_known_hosts(wanted, options),
        host_key_alias=str(options.get("HostKeyAlias") or ""),
        config=_files(wanted),
        proxy_command=proxy_command,
        timeout_s=float(options.get("ConnectTimeout") or 15),
        has_ciphers=bool(options.get("Ciphers")),
    )


def _options(wanted: Connection) -> Any:
    user = wanted.user or ()
    port = wanted.port or ()
    try:
        return SSHClientConfig.load(
            None, list(_files(wanted)), False, False, False,
            _local_user(), user, wanted.host, port,
        )  # type: ignore[no-untyped-call,unused-ignore]  # fmt: skip
    except ConfigParseError as error:
        raise InputError(
            str(error), hint="Correct it, or connect without it: --no-config"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the SSH configuration cannot be read: {error}") from None


def _files(connection: Connection) -> tuple[Path, ...]:
    if not connection.config:
        return ()
    files = (Path("~/.ssh/config").expanduser(), SYSTEM_CONFIG)
    return tuple(path for path in files if path.is_file())


def _known_hosts(wanted: Connection, options: Any) -> tuple[Path, ...]:
    if wanted.known_hosts is not None:
        return (wanted.known_hosts.expanduser(),)
    user = options.get("UserKnownHostsFile") or ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
    system = options.get("GlobalKnownHostsFile") or ("/etc/ssh/ssh_known_hosts",)
    return tuple(Path(str(name)).expanduser() for name in (*user, *system))


def _local_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "root"


_LAST = 400
"""Bytes of its standard error that are kept for a message."""
_LEAVE_S = 1.0


class Proxy:
    """One running command.

    Args:
        arguments: The program and its arguments.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.socket, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        try:
            self._process = Child(
                list(arguments),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._errors.fileno(),
            )
        except OSError:
            self.socket.close()
            self._errors.close()
            raise
        finally:
            theirs.close()

    def last_words(self) -> str:
        """Return the last line of its standard error; untrusted text."""
        if self._errors.closed:
            return ""
        size = os.fstat(self._errors.fileno()).st_size
        data = os.pread(self._errors.fileno(), _LAST, max(0, size - _LAST))
        lines = data.decode("utf-8", "surrogateescape").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End it; waits a moment at most. Safe to call twice."""
        self.socket.close()  # the transport that used it may have closed it before
        self._process.end(_LEAVE_S)
        self._errors.close()
