"""Targets by name."""

from __future__ import annotations

from dld_tui.core.errors import UsageError
from dld_tui.targets.base import Target
from dld_tui.targets.local import LocalTarget

LOCAL = LocalTarget.name


def names() -> list[str]:
    """Return the names that :func:`get` knows; this machine is the first."""
    return [LOCAL]


def get(name: str | None = None) -> Target:
    """Return a target; None is this machine.

    Raises:
        UsageError: There is no target of this name.
    """
    if name is None or name == LOCAL:
        return LocalTarget()
    raise UsageError(f"there is no target {name!r}", hint=f"Known targets: {', '.join(names())}")
