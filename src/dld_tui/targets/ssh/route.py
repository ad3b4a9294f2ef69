"""The way to a target: each machine on it with what ``~/.ssh/config`` says of it.

asyncssh reads that file too, but connects to jump hosts without our questions and runs no shell for
``ProxyCommand``; so the file is asked here for the way, and there for the rest (algorithms).
"""

from __future__ import annotations

import getpass
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from asyncssh.config import ConfigParseError, SSHClientConfig

from dld_tui.core.connections.model import (
    DEFAULT_PORT,
    Connection,
    hops,
    host_problem,
    split_hop,
)
from dld_tui.core.errors import InputError, UsageError

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
    """Certificates of keys, besides those that lie beside their keys."""
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
    """Return the machines on the way, the target last.

    Raises:
        InputError: The configuration of OpenSSH cannot be read.
        UsageError: The way is no way: a wrong host, or a circle.
    """
    return _route(_Wanted(
        connection.host, connection.user, connection.port, connection.auth, connection.key,
        connection.jump, connection.proxy_command, connection.known_hosts, _files(connection),
    ), 0)  # fmt: skip


@dataclass(frozen=True)
class _Wanted:
    """What is asked for, before the configuration was read."""

    host: str
    user: str = ""
    port: int | None = None
    auth: str = "auto"
    key: Path | None = None
    jump: str = ""
    proxy_command: str = ""
    known_hosts: Path | None = None
    config: tuple[Path, ...] = field(default=())


def _route(wanted: _Wanted, depth: int) -> list[Hop]:
    if depth > _DEEPEST:
        raise UsageError("the jump hosts go in a circle", where=wanted.host)
    options = _options(wanted)
    jump = wanted.jump or ("" if wanted.proxy_command else str(options.get("ProxyJump") or ""))
    proxy = "" if jump else wanted.proxy_command or str(options.get("ProxyCommand") or "")
    target = _hop(wanted, options, proxy)
    before: list[Hop] = []
    for index, text in enumerate(hops(jump)):
        user, host, port = split_hop(text)
        hop = _Wanted(host, user, port, known_hosts=wanted.known_hosts, config=wanted.config)
        # Only the first is reached from here; the others have no way of their own.
        before += _route(hop, depth + 1) if index == 0 else [_hop(hop, _options(hop), "")]
    return [*before, target]


def _hop(wanted: _Wanted, options: Any, proxy_command: str) -> Hop:
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
        port=wanted.port or cast("int", options.get("Port")) or DEFAULT_PORT,
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
        config=wanted.config,
        proxy_command=proxy_command,
        timeout_s=float(cast("int", options.get("ConnectTimeout")) or 15),
        has_ciphers=bool(options.get("Ciphers")),
    )


def _options(wanted: _Wanted) -> Any:
    user = wanted.user or ()
    port = wanted.port or ()
    try:
        return SSHClientConfig.load(
            None, list(wanted.config), False, False, False,
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


def _known_hosts(wanted: _Wanted, options: Any) -> tuple[Path, ...]:
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
