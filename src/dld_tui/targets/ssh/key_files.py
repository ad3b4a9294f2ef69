"""The private key files of a machine, read without asking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import asyncssh

from dld_tui.core.paths import short
from dld_tui.targets.ssh.locked_key import public_half
from dld_tui.targets.ssh.route import Hop


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
