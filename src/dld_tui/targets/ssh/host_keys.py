"""A host key that is not the known one: refused, or a new host that a person is asked about."""

from __future__ import annotations

import shlex

import asyncssh

from dld_tui.core.connections.asking import Asker
from dld_tui.core.paths import short
from dld_tui.core.text import visible
from dld_tui.targets.ssh.errors import HOST_KEY, LinkError
from dld_tui.targets.ssh.known_hosts import Known, host_name, remember
from dld_tui.targets.ssh.route import Hop


def new_key(
    hop: Hop,
    where: str,
    known: Known,
    key: asyncssh.SSHKey | None,
    reason: str,
    *,
    is_last: bool,
) -> asyncssh.SSHKey:
    """Return the key of a host that is seen for the first time.

    Args:
        hop: The machine.
        where: How messages call it.
        known: What the files of known hosts say of it.
        key: What it shows; None when that is no plain key.
        reason: What is wrong, in asyncssh's words.
        is_last: Whether a key was accepted already.

    Raises:
        LinkError: The host has another key, or this one is revoked.
    """
    if key is None:
        hint = "Its certificate or key is revoked, expired or not for this host"
        raise LinkError(HOST_KEY, f"the host key is refused: {reason}", where=where, hint=hint)
    shown = key.get_fingerprint()
    revoked = known.revoking(key)
    if revoked is not None:
        message = f"the host key {shown} is revoked in {revoked.path} line {revoked.line}"
        raise LinkError(HOST_KEY, message, where=where, hint="Ask who runs the machine")
    other = known.contradicting(key)
    if other is not None:
        file, name = shlex.quote(str(other.path)), shlex.quote(host_name(*hop.known_name))
        raise LinkError(
            HOST_KEY,
            f"the host key has changed: it is {shown}, but {other.path} line {other.line}"
            f" says {other.key.get_fingerprint()}",
            where=where,
            hint="Somebody may be in between. If the machine was set up anew, take the old key"
            f" out: ssh-keygen -f {file} -R {name}",
        )
    if is_last:
        hint = f"Look at {hop.known_hosts[0]}"
        message = f"the host shows yet another key, {shown}"
        raise LinkError(HOST_KEY, message, where=where, hint=hint)
    return key


def trust(hop: Hop, where: str, key: asyncssh.SSHKey, asker: Asker) -> None:
    """Ask whether a new host is to be trusted, and note its key. Waits for the person.

    Raises:
        LinkError: It is not.
        SaveError: The file of known hosts cannot be written.
    """
    file = hop.known_hosts[0]
    shown = key.get_fingerprint()
    question = visible(f"Trust the host {hop.host}, port {hop.port}?")
    detail = "\n".join((
        "This host is not known yet. Its key is",
        f"{key.algorithm.decode('ascii', 'replace')} {shown}",
        "Compare that with what the machine itself says:",
        "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
        f"The key will be kept in {visible(short(file))}.",
    ))  # fmt: skip
    if not asker.confirm(question, detail):
        message = f"the host is not known; its key is {shown}"
        hint = f"Accept it in a terminal with dld target test, or add it to {file}"
        raise LinkError(HOST_KEY, message, where=where, hint=hint)
    remember(file, *hop.known_name, key)
