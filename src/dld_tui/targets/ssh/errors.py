"""What goes wrong between here and a target, as errors that a user can act on."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence

import asyncssh

from dld_tui.core.errors import DldError, UnavailableError

RESOLVE = "resolve"
CONNECT = "connect"
HOST_KEY = "host key"
AUTHENTICATION = "authentication"
_TOO_MANY = "many authentication"
"""Of what OpenSSH says when more keys were offered than it takes."""


class LinkError(UnavailableError):
    """A target cannot be reached.

    Args:
        stage: The step that failed: :data:`RESOLVE`, :data:`CONNECT`, …
        message: See :class:`DldError`, also for the others.
        where: The machine.
        hint: What to do next.
        passes: Whether another attempt may succeed: the line broke, and nothing was refused.
    """

    def __init__(
        self,
        stage: str,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        passes: bool = False,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.stage = stage
        self.passes = passes or stage in (RESOLVE, CONNECT)


class ConnectionLostError(LinkError):
    """The connection is gone; what ran on the target may go on."""

    def __init__(self, where: str, message: str = "the connection is lost") -> None:
        super().__init__(CONNECT, message, where=where)


def offered_too_many(error: BaseException) -> bool:
    """Return whether a server ended the authentication after too many keys."""
    return _TOO_MANY in str(error)


def from_network(
    error: BaseException, where: str, host: str, stage: str, words: str = ""
) -> LinkError:
    """Return our error for an exception of a connection attempt; untrusted text stays foreign.

    Args:
        error: The exception.
        where: The machine, for messages.
        host: Its name.
        stage: The failed step.
        words: The last words of the proxy command, if there is one.
    """
    if words:
        return LinkError(CONNECT, f"the proxy command says: {words}", where=where)
    if isinstance(error, socket.gaierror):
        hint = "Check its spelling, the name server, or give its address"
        return LinkError(RESOLVE, f"the host {host!r} is not known", where=where, hint=hint)
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        hint = "It may be off, or a firewall may drop the packets"
        message = "the machine does not answer in time"
        return LinkError(stage, message, where=where, hint=hint, passes=True)
    if isinstance(error, ConnectionRefusedError):
        hint = "Check the port, and that the SSH server runs there"
        return LinkError(CONNECT, "the connection is refused", where=where, hint=hint)
    if isinstance(error, asyncssh.ChannelOpenError):
        message = f"the machine before it cannot reach it: {error.reason}"
        hint = "Check host and port, and that the server before it allows forwarding"
        return LinkError(CONNECT, message, where=where, hint=hint)
    if isinstance(error, asyncssh.KeyExchangeFailed):
        hint = "One of both sides is old; see KexAlgorithms and Ciphers in man ssh_config"
        message = f"no common encryption algorithm: {error.reason}"
        return LinkError(HOST_KEY, message, where=where, hint=hint)
    if isinstance(error, asyncssh.DisconnectError) and offered_too_many(error):
        hint = "An agent may hold many keys: choose one with --auth key --key FILE"
        message = f"the server ended the authentication: {error.reason}"
        return LinkError(AUTHENTICATION, message, where=where, hint=hint)
    if isinstance(error, asyncssh.DisconnectError):
        passes = isinstance(error, asyncssh.ConnectionLost)
        message = f"the connection is lost: {error.reason}"
        return LinkError(stage, message, where=where, passes=passes)
    if isinstance(error, OSError):
        return _from_os(error, where, stage)
    hint = "If that is from ~/.ssh/config, correct it, or connect without it: --no-config"
    return LinkError(stage, f"the connection fails: {error}", where=where, hint=hint)


def _from_os(error: OSError, where: str, stage: str) -> LinkError:
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        hint = "Check the network, or give a jump host"
        return LinkError(CONNECT, "there is no route to the machine", where=where, hint=hint)
    text = error.strerror or str(error) or type(error).__name__
    return LinkError(stage, f"the connection fails: {text}", where=where, passes=True)


def not_permitted(
    where: str, methods: Sequence[str], tried: Sequence[str], notes: Sequence[str], hint: str
) -> LinkError:
    """Return the error of a refused authentication.

    Args:
        where: The machine.
        methods: Those that the server still offered.
        tried: The tried methods, for display, e.g. ``key ~/.ssh/id_ed25519``.
        notes: Why some were not tried.
        hint: What to do next.
    """
    message = "authentication failed"
    if tried:
        message += f"; refused: {', '.join(dict.fromkeys(tried))}"
    if notes:
        message += f"; {'; '.join(dict.fromkeys(notes))}"
    if methods:
        message += f"; the server takes {', '.join(methods)}"
    return LinkError(AUTHENTICATION, message, where=where, hint=hint)


def stage_of(error: DldError) -> str:
    """Return the step that an error belongs to."""
    return error.stage if isinstance(error, LinkError) else RESOLVE
