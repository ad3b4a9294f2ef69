"""Forgetting the secrets of a target that is removed."""

from __future__ import annotations

from dld_tui.core.connections.secrets import SECRETS, Secrets, passphrase_name, password_name
from dld_tui.core.connections.store import Connection
from dld_tui.core.errors import DldError
from dld_tui.targets.ssh.route import route


def forget_secrets(connection: Connection, secrets: Secrets | None = None) -> None:
    """Forget the password of a target and the passphrase of its own key.

    Those of machines on the way stay: other targets may use them. A keyring may take a while to
    answer: call it on a thread.
    """
    known = SECRETS if secrets is None else secrets
    in_keyring = connection.remember == "keyring"
    try:
        address = route(connection)[-1].address
    except DldError:  # the configuration changed meanwhile
        address = connection.address
    known.forget(password_name(address), in_keyring=in_keyring)
    if connection.key is not None:
        known.forget(passphrase_name(connection.key.expanduser()), in_keyring=in_keyring)
