"""Entry points of other packages; each is imported when it is first needed.

A package declares, for instance, ``[project.entry-points."dld_tui.activities"]`` with
``toy = "toy_package:ACTIVITY"``. A plugin that cannot be loaded is listed with the reason.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Hashable
from functools import lru_cache, reduce
from typing import Any, Generic, TypeVar, cast

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError
from dld_tui.core.process.confinement import is_confined

PREFIX = "dld_tui."
GROUPS = ("activities", "checks", "readers", "charts", "tools", "rules", "settings", "metrics")
T = TypeVar("T")


@dataclass(frozen=True)
class Plugin(Generic[T]):
    """One entry point."""

    name: str
    package: str
    """The distribution that declares it. Untrusted text."""
    value: T | None
    problem: str = ""
    """Why it cannot be used; empty when it can. Untrusted text."""


def plugins(group: str, kind: type[T]) -> tuple[Plugin[T], ...]:
    """Return what the installed packages add to a group, in the order of the names.

    None in a process that an agent directs.

    Args:
        group: One of :data:`GROUPS`.
        kind: What each entry point has to be.
    """
    if is_confined():
        return ()
    return _plugins(group, cast("Hashable", kind), tuple(sys.path))


def has_plugins() -> bool:
    """Return whether an installed package adds anything."""
    return not is_confined() and _are_declared(tuple(sys.path))


@lru_cache(maxsize=32)
def _are_declared(folders: tuple[str, ...]) -> bool:
    return any(map(_declares, folders))


@lru_cache(maxsize=32)
def _plugins(group: str, kind: Any, folders: tuple[str, ...]) -> tuple[Plugin[Any], ...]:
    if not _are_declared(folders):
        return ()
    from importlib.metadata import entry_points  # half of the time that a command takes to start

    points = sorted(entry_points(group=PREFIX + group), key=lambda point: point.name)
    return tuple(_plugin(point, kind) for point in points)


def _declares(folder: str) -> bool:
    """Return whether a package in a folder has an entry point of ours: a millisecond for 80."""
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return False
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if f"[{PREFIX}".encode() in file.read():
                        return True
            except OSError:
                continue
    return False


def _plugin(point: Any, kind: type[Any]) -> Plugin[Any]:
    package = point.dist.name if point.dist is not None else ""
    try:
        value = point.load()
    # The seam to code of others, which may raise anything while it is imported.
    except Exception as error:  # noqa: BLE001
        return Plugin(point.name, package, None, f"{type(error).__name__}: {error}")
    if not isinstance(value, kind):
        return Plugin(point.name, package, None, f"{point.value} is not of type {kind.__name__}")
    return Plugin(point.name, package, value)


def resolve(reference: Any) -> Any:
    """Return the object of a reference such as ``package.module:Class.method``; others unchanged.

    Raises:
        UnavailableError: The module cannot be imported, or has no such name.
    """
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    try:
        return reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise UnavailableError(f"unavailable: {error}", where=reference) from error
