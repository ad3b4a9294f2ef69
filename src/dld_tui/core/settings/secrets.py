"""Verified passwords and passphrases, and prompts for the user.

Secrets are kept in this process or in the system's keyring, and nowhere else: not in a file,
a log, a command line or a message. The name of a secret is what it opens, e.g.
``password user@host:22``.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Protocol

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError

SERVICE = "dld-tui"
"""The name of our entries in a keyring."""


def password_name(address: str) -> str:
    """Return the name of the password for ``USER@HOST[:PORT]``."""
    return f"password {address}"


def passphrase_name(key: Path) -> str:
    """Return the name of the passphrase of a key file."""
    return f"passphrase {key}"


class Secrets:
    """What this process knows; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}

    def __repr__(self) -> str:
        """Return how many there are, and no more."""
        return f"<Secrets: {len(self._known)}>"

    def get(self, name: str, *, from_keyring: bool = False) -> str | None:
        """Return a secret; None if unknown.

        Args:
            name: What it opens.
            from_keyring: Look into the system's keyring as well; one that fails counts as empty.
        """
        with self._lock:
            secret = self._known.get(name)
        if secret is None and from_keyring:
            secret = _read_keyring(name)
        return secret

    def keep(self, name: str, secret: str, *, in_keyring: bool = False) -> None:
        """Keep a verified secret.

        Raises:
            UnavailableError: There is no keyring; this process keeps the secret.
        """
        with self._lock:
            self._known[name] = secret
        if in_keyring and _read_keyring(name) != secret:
            _write_keyring(name, secret)

    def forget(self, name: str, *, in_keyring: bool = False) -> None:
        """Forget a secret that was wrong, or of a target that is removed."""
        with self._lock:
            self._known.pop(name, None)
        if in_keyring:
            _delete_from_keyring(name)

    def clear(self) -> None:
        """Forget the secrets of this process; a keyring is not changed."""
        with self._lock:
            self._known.clear()


SECRETS = Secrets()
"""The ones of this process."""


def keyring_problem() -> str | None:
    """Return why the system's keyring cannot be used, or None when it can."""
    try:
        _keyring()
    except UnavailableError as error:
        return str(error)
    return None


def _keyring() -> Any:  # its types are not there where it is not
    try:
        import keyring
    except ImportError:
        from dld_tui.core.process.installation import install_command

        hint = f"{install_command('keyring')}, or remember secrets in memory"
        raise UnavailableError("the package keyring is not installed", hint=hint) from None
    if keyring.get_keyring().priority < 1:
        hint = "Start one (GNOME Keyring, KWallet), or remember secrets in memory"
        raise UnavailableError("this system has no usable keyring", hint=hint)
    return keyring


def _read_keyring(name: str) -> str | None:
    try:
        password = _keyring().get_password(SERVICE, name)
    except UnavailableError:
        return None
    except Exception:  # noqa: BLE001 - a seam: each keyring has errors of its own; then we ask
        return None
    return password if isinstance(password, str) else None


def _write_keyring(name: str, secret: str) -> None:
    try:
        _keyring().set_password(SERVICE, name, secret)
    except UnavailableError:
        raise
    except Exception as error:  # noqa: BLE001 - a seam: each keyring has errors of its own
        kind = type(error).__name__
        raise UnavailableError(f"the keyring refused to keep the secret ({kind})") from None


def _delete_from_keyring(name: str) -> None:
    try:
        _keyring().delete_password(SERVICE, name)
    except Exception:  # noqa: BLE001 - a seam; what is not there needs no deleting
        return


# The command line asks on the terminal, the user interface with a dialog; a program without a
# person refuses. An asker is called from a thread that may wait.


class Asker(Protocol):
    """Asks the user; all texts passed to it may be foreign."""

    def secret(self, question: str) -> str | None:
        """Return a hidden input; None if the user cancelled."""

    def confirm(self, question: str, detail: str) -> bool:
        """Return whether the user agreed.

        Args:
            question: One line.
            detail: Background for the answer; may have several lines.
        """


class Nobody:
    """Used where there is no user: every answer is no."""

    def secret(self, question: str) -> str | None:
        """Return None."""
        return None

    def confirm(self, question: str, detail: str) -> bool:
        """Return False."""
        return False


class _Current:
    """The asker of this process."""

    asker: Asker = Nobody()


def use(asker: Asker) -> None:
    """Make an asker the one of this process."""
    _Current.asker = asker


def current() -> Asker:
    """Return the prompter of this process; until :func:`use` was called, no user is there."""
    return _Current.asker


GOOD = "good"
WEAK = "weak"
"""It works, with a but."""
BAD = "bad"


@dataclass(frozen=True)
class ConnectionStep:
    """One step of a test."""

    name: str
    state: str
    """:data:`GOOD`, :data:`WEAK` or :data:`BAD`."""
    found: str
    """The result; untrusted text."""
    fix: str = ""
    """How to fix it; empty if there is nothing to fix."""
