"""Targets by name: this machine, and the saved connections."""

from __future__ import annotations

from dld_tui.core.connections import store
from dld_tui.core.errors import DldError, UsageError
from dld_tui.targets.base import Target
from dld_tui.targets.process import LocalTarget

LOCAL = LocalTarget.name


def names() -> list[str]:
    """Return the names that :func:`get` knows; this machine is the first.

    Of a file of targets that cannot be read there is none; :func:`get` says what is wrong with it.
    """
    try:
        return [LOCAL, *store.load()]
    except DldError:
        return [LOCAL]


def get(name: str | None = None) -> Target:
    """Return a target; None is this machine.

    Raises:
        UsageError: There is no target of this name.
        InputError: The file of targets cannot be read.
    """
    if name is None or name == LOCAL:
        return LocalTarget()
    connection = store.load().get(name)
    if connection is None:
        raise UsageError(
            f"there is no target {name!r}", hint=f"Known targets: {', '.join(names())}"
        )
    from dld_tui.targets.ssh.target import SshTarget

    return SshTarget(connection)
