"""Known hosts: the accepted keys of a host, and asking about an unknown key.

asyncssh can read such files, but does not report where an entry is, and rejects a whole file for
one bad line; OpenSSH skips the line, and so does this.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import shlex
import struct
from collections.abc import Awaitable, Callable, Iterable, Sequence
from fnmatch import translate
from pathlib import Path
from typing import TypeAlias

import asyncssh

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import SaveError
from dld_tui.core.process.paths import ensure, short
from dld_tui.core.settings.saved_targets import DEFAULT_PORT
from dld_tui.core.settings.secrets import Asker
from dld_tui.core.text import visible
from dld_tui.targets.ssh.errors import HOST_KEY, LinkError
from dld_tui.targets.ssh.route import Hop

_MARKERS = ("", "@cert-authority", "@revoked")


@dataclass(frozen=True)
class KnownHost:
    """One line that is about a host."""

    path: Path
    line: int
    marker: str
    """Empty, ``@cert-authority`` or ``@revoked``."""
    key: asyncssh.SSHKey


@dataclass(frozen=True)
class KnownKeys:
    """What the files say of one host and port."""

    entries: tuple[KnownHost, ...]
    """Lines about this host at this port."""
    fallback: tuple[KnownHost, ...] = ()
    """Lines about the host without a port, if there are none with it."""

    def keys(self, marker: str = "") -> list[asyncssh.SSHKey]:
        """Return the keys of a kind of line."""
        return [entry.key for entry in (*self.entries, *self.fallback) if entry.marker == marker]

    def contradicting(self, key: asyncssh.SSHKey) -> KnownHost | None:
        """Return the line that says another key than this one, or None when none does."""
        others = [entry for entry in self.entries if not entry.marker]
        same_kind = [entry for entry in others if entry.key.algorithm == key.algorithm]
        return next(iter(same_kind or others), None)

    def revoking(self, key: asyncssh.SSHKey) -> KnownHost | None:
        """Return the line that revokes a key, or None."""
        revoked = (entry for entry in self.entries if entry.marker == "@revoked")
        return next((entry for entry in revoked if entry.key == key), None)


def known_keys(paths: Iterable[Path], host: str, port: int) -> KnownKeys:
    """Look a host up. A file that is not there or cannot be read says nothing."""
    exact: list[KnownHost] = []
    plain: list[KnownHost] = []
    name = host_name(host, port)
    for path in paths:
        try:
            text = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            parsed = _parse(line)
            if parsed is None:
                continue
            marker, patterns, data = parsed
            is_exact = _matches(patterns, name)
            if not is_exact and not (name != host and _matches(patterns, host)):
                continue
            try:
                key = asyncssh.import_public_key(data)
            except (asyncssh.KeyImportError, ValueError):
                continue
            (exact if is_exact else plain).append(KnownHost(path, number, marker, key))
    revoked = [entry for entry in plain if entry.marker == "@revoked"]
    if any(entry.marker != "@revoked" for entry in exact):
        return KnownKeys((*exact, *revoked))
    return KnownKeys((*exact, *revoked), tuple(e for e in plain if e.marker != "@revoked"))


def host_name(host: str, port: int) -> str:
    """Return how such a file writes a host: ``host`` or ``[host]:port``."""
    return host.lower() if port == DEFAULT_PORT else f"[{host.lower()}]:{port}"


def remember(path: Path, host: str, port: int, key: asyncssh.SSHKey) -> None:
    """Append a line to a file; the file and its folder are made when they are not there.

    Raises:
        SaveError: The file cannot be written.
    """
    data = key.export_public_key("openssh").decode().split()[:2]
    line = f"{host_name(host, port)} {' '.join(data)}\n".encode()
    try:
        ensure(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as error:
        message = f"the host key is not saved: {error.strerror}"
        raise SaveError(message, where=str(path)) from None


def _parse(line: str) -> tuple[str, Sequence[str], str] | None:
    """Return marker, host patterns and key of a line; None for other lines."""
    words = line.split()
    marker = words.pop(0) if words and words[0].startswith("@") else ""
    if len(words) < 3 or words[0].startswith("#") or marker not in _MARKERS:
        return None
    return marker, words[0].split(","), " ".join(words[1:3])


def _matches(patterns: Sequence[str], name: str) -> bool:
    is_match = False
    for pattern in patterns:
        is_negated = pattern.startswith("!")
        if _matches_one(pattern.removeprefix("!"), name):
            if is_negated:
                return False
            is_match = True
    return is_match


def _matches_one(pattern: str, name: str) -> bool:
    if pattern.startswith("|"):
        try:
            _, magic, salt, digest = pattern.split("|")
            wanted = base64.b64decode(digest)
            computed = hmac.new(base64.b64decode(salt), name.encode(), hashlib.sha1).digest()
        except ValueError:
            return False
        return magic == "1" and hmac.compare_digest(wanted, computed)
    # Brackets are part of [host]:port here, and no set of characters.
    escaped = pattern.lower().replace("[", "[[]")
    return re.fullmatch(translate(escaped), name) is not None


def new_key(
    hop: Hop,
    where: str,
    known: KnownKeys,
    key: asyncssh.SSHKey | None,
    reason: str,
    *,
    is_last: bool,
) -> asyncssh.SSHKey:
    """Return the key of a host that is seen for the first time.

    Args:
        where: The machine, for messages.
        known: The entries of the host in files of known hosts.
        key: The key that it shows; None if that is not a plain key.
        reason: The problem, in asyncssh's words.
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


# The public half lies open: in the file itself where OpenSSH wrote it, else in the ``.pub``
# beside.

_MAGIC = b"openssh-key-v1\0"
_BEGIN, _END = "-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"

Unlock: TypeAlias = "Callable[[], Awaitable[asyncssh.SSHKey]]"


class LockedKey(asyncssh.SSHKeyPair):
    """A key pair whose private half is opened when something is to be signed.

    Args:
        public: The public half.
        certificate: Its certificate, if it goes with one.
        unlock: Returns the private half; raises ValueError when it stays closed.
    """

    _key_type = "local"

    def __init__(
        self,
        public: asyncssh.SSHKey,
        certificate: asyncssh.SSHCertificate | None,
        unlock: Unlock,
    ) -> None:
        algorithms = public.sig_algorithms
        super().__init__(
            public.algorithm,
            public.algorithm,
            algorithms,
            algorithms,
            public.public_data,
            None,
            cert=certificate,
        )
        self._unlock = unlock

    async def sign_async(self, data: bytes) -> bytes:
        """Return a signature; asyncssh continues with the next key on a ValueError."""
        key = await self._unlock()
        return key.sign(data, self.sig_algorithm)


def locked_keys(
    public: asyncssh.SSHKey, certificates: Sequence[Path], unlock: Unlock
) -> list[asyncssh.SSHKeyPair]:
    """Return the pairs of a key: with its certificate if there is one, and without."""
    pairs: list[asyncssh.SSHKeyPair] = []
    for path in certificates:
        try:
            certificate = asyncssh.read_certificate(path)
        except (OSError, ValueError, asyncssh.KeyImportError):
            continue
        if certificate.key.public_data == public.public_data:
            pairs.append(LockedKey(public, certificate, unlock))
    return [*pairs, LockedKey(public, None, unlock)]


def public_half(path: Path) -> asyncssh.SSHKey | None:
    """Return the public half of a private key file, or None when it does not lie open."""
    try:
        return _inside(path.read_text(encoding="ascii"))
    except (OSError, ValueError, struct.error, asyncssh.KeyImportError):
        pass
    try:
        return asyncssh.read_public_key(path.with_name(f"{path.name}.pub"))
    except (OSError, ValueError, asyncssh.KeyImportError):
        return None


def _inside(text: str) -> asyncssh.SSHKey:
    _, begin, rest = text.partition(_BEGIN)
    if not begin:
        raise ValueError("not in OpenSSH's format")
    data = base64.b64decode(rest.partition(_END)[0])
    if not data.startswith(_MAGIC):
        raise ValueError("not in OpenSSH's format")
    at = len(_MAGIC)
    for _ in range(3):  # cipher, key derivation, its options
        at += 4 + _length(data, at)
    blob = data[at + 8 : at + 8 + _length(data, at + 4)]
    kind = blob[4 : 4 + _length(blob, 0)].decode("ascii")
    return asyncssh.import_public_key(f"{kind} {base64.b64encode(blob).decode()}")


def _length(data: bytes, at: int) -> int:
    (length,) = struct.unpack_from(">I", data, at)
    return int(length)


class KeyFiles:
    """What the key files hold. Reads them: make it on a thread."""

    def __init__(self, hop: Hop) -> None:
        self.pairs: list[asyncssh.SSHKeyPair] = []
        """The keys of files without a passphrase."""
        self.open: list[Path] = []
        self.locked: dict[Path, asyncssh.SSHKey | None] = {}
        """The files with a passphrase, with their public half where it lies open."""
        self.notes: list[str] = []
        """What keeps files from being used."""
        for path in hop.keys:
            self._read(path, hop.certificates, is_named=hop.auth == "key")

    def _read(self, path: Path, certificates: Sequence[Path], *, is_named: bool) -> None:
        try:
            there = [str(file) for file in certificates if file.is_file()]
            self.pairs += asyncssh.load_keypairs([str(path)], None, there)
        except FileNotFoundError:
            if is_named:
                self.notes.append(f"the key file {short(path)} does not exist")
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
            if "passphrase" in str(error).lower():
                self.locked[path] = public_half(path)
            else:
                self.notes.append(f"the key file {short(path)} cannot be used: {error}")
        except (OSError, ValueError) as error:
            self.notes.append(f"the key file {short(path)} cannot be read: {error}")
        else:
            self.open.append(path)


def public_data(paths: Iterable[Path]) -> dict[Path, bytes]:
    """Return the public halves of key files, as far as they lie open."""
    halves = {path: public_half(path) for path in paths}
    return {path: half.public_data for path, half in halves.items() if half is not None}
