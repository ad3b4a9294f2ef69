"""The private key files of a machine, and asking for a passphrase when the server takes a key.

The public half lies open: in the file itself where OpenSSH wrote it, else in the ``.pub`` beside.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import asyncssh

from dld_tui.core.paths import short
from dld_tui.targets.ssh.route import Hop

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
        """Return a signature; asyncssh goes on to the next key on a ValueError."""
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
    """What the key files hold. Reads them: make it on a thread.

    Args:
        hop: The machine.
    """

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
                self.notes.append(f"the key file {short(path)} is not there")
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
            if "passphrase" in str(error).lower():
                self.locked[path] = public_half(path)
            else:
                self.notes.append(f"the key file {short(path)} cannot be used: {error}")
        except (OSError, ValueError) as error:
            self.notes.append(f"the key file {short(path)} cannot be read: {error}")
        else:
            self.open.append(path)


def public_data(paths: Iterable[Path]) -> set[bytes]:
    """Return the public halves of key files, as far as they lie open."""
    halves = (public_half(path) for path in paths)
    return {half.public_data for half in halves if half is not None}
