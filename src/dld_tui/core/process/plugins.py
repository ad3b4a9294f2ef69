"""Entry points of packages, ours included; each is imported when it is first needed.

A package declares, for instance, ``[project.entry-points."dld_tui.activities"]`` with
``toy = "toy_package:ACTIVITY"``. What cannot be used is told once, and skipped.

They are read from the metadata of the packages here: ``importlib.metadata`` takes half of the time
that a command needs to start. For the same reason this module imports little.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache, reduce
from typing import Any, Generic, NamedTuple, TypeVar, cast

from dld_tui.core.errors import UnavailableError
from dld_tui.core.process.confinement import is_confined

PREFIX = "dld_tui."
GROUPS = (
    "commands", "activities", "checks", "readers", "charts", "tools", "rules", "settings",
    "meters", "metrics", "needs", "writers",
)  # fmt: skip
T = TypeVar("T")


class EntryPoint(NamedTuple):
    """A line of the metadata of a package."""

    name: str
    reference: str
    """``MODULE:NAME``."""
    package: str
    """The distribution that declares it, as its folder is named. Untrusted text."""

    @property
    def is_ours(self) -> bool:
        """Whether it is code of this program, whoever declares it."""
        return self.reference.startswith(PREFIX)


class Plugin(Generic[T]):
    """An entry point that can be used.

    Args:
        name: Of the entry point. Untrusted text.
        package: The distribution that declares it. Untrusted text.
        value: What it is.
    """

    __slots__ = ("name", "package", "value")

    def __init__(self, name: str, package: str, value: T) -> None:
        self.name, self.package, self.value = name, package, value


def plugins(group: str, kind: type[T]) -> tuple[Plugin[T], ...]:
    """Return what the installed packages add to a group, in the order of the names.

    Only our own in a process that an agent directs. What cannot be used is skipped.

    Args:
        group: One of :data:`GROUPS`.
        kind: What each entry point has to be.
    """
    return _plugins(group, cast("Hashable", kind), tuple(sys.path), is_confined())


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return what the installed packages declare in a group, importing nothing."""
    points = _declared(tuple(sys.path)).get(PREFIX + group, ())
    return tuple(point for point in points if point.is_ours) if is_confined() else points


def our_entry_points() -> str:
    """Return the ``entry_points.txt`` of a copy of this program."""
    lines = []
    for group, points in _declared(tuple(sys.path)).items():
        ours = [f"{point.name} = {point.reference}" for point in points if point.is_ours]
        lines += [f"[{group}]", *ours] if ours else []
    return "".join(f"{line}\n" for line in lines)


@lru_cache(maxsize=64)
def _plugins(
    group: str, kind: Any, folders: tuple[str, ...], confined: bool
) -> tuple[Plugin[Any], ...]:
    loaded = []
    for point in entry_points(group):
        try:
            value = resolve(point.reference)
        # The seam to code of others, which may raise anything while it is imported.
        except Exception as error:  # noqa: BLE001
            skip(group, point, (isinstance(error, UnavailableError) and error.__cause__) or error)
            continue
        if isinstance(value, kind):
            loaded.append(Plugin(point.name, point.package, value))
        else:
            skip(group, point, f"{point.reference} is not of type {kind.__name__}")
    return tuple(loaded)


@lru_cache(maxsize=16)
def _declared(folders: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of each group that is ours: a millisecond for 80 packages.

    Of a package that is in several folders, the first counts, as it does for imports.
    """
    groups: dict[str, list[EntryPoint]] = {}
    seen = set()
    for folder in dict.fromkeys(folders):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            package = name.rpartition(".")[0].partition("-")[0].lower().replace("_", "-")
            if package in seen:
                continue
            seen.add(package)
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    text = file.read()
            except OSError:
                continue
            if f"[{PREFIX}".encode() in text:
                _read(text.decode("utf-8", "replace"), package, groups)
    return {group: tuple(sorted(points)) for group, points in groups.items()}


def _read(text: str, package: str, groups: dict[str, list[EntryPoint]]) -> None:
    """Add the entry points of a file: sections as of an INI file, ``name = module:attribute``."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        name, equals, reference = line.partition("=")
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif equals and not line.startswith(("#", ";")) and group.startswith(PREFIX):
            reference = reference.partition("[")[0].strip()
            groups.setdefault(group, []).append(EntryPoint(name.strip(), reference, package))


# What is skipped is told once, to who listens last: the page rather than the command that opens it.


class Skipped(NamedTuple):
    """An extension that cannot be used. Untrusted text."""

    group: str
    name: str
    package: str
    problem: str

    @property
    def line(self) -> str:
        """Which one, why, and what to do."""
        return (
            f"{self.package}: its entry point {self.name!r} in {PREFIX}{self.group} is skipped:"
            f" {self.problem}. Update or uninstall {self.package}"
        )


_skipped: dict[Skipped, None] = {}
_listeners: list[Callable[[str], None]] = []


def skip(group: str, one: EntryPoint | Plugin[Any], problem: str | BaseException) -> None:
    """Tell that an extension is skipped, unless that was told before.

    Args:
        group: One of :data:`GROUPS`.
        one: The extension.
        problem: Why it cannot be used. Untrusted text.
    """
    if isinstance(problem, BaseException):
        problem = f"{type(problem).__name__}: {problem}"
    told = Skipped(group, one.name, one.package, " ".join(problem.split()))
    if told not in _skipped:
        _skipped[told] = None
        if _listeners:
            _listeners[-1](told.line)


def skipped() -> tuple[Skipped, ...]:
    """Return what was skipped in this process."""
    return tuple(_skipped)


def listen(listener: Callable[[str], None]) -> Callable[[], None]:
    """Call a function with a line for each extension that is skipped, known ones included.

    Lines are untrusted text. Calls may come on any thread. The function before it hears no more
    until this one ends.

    Returns:
        What ends it.
    """
    _listeners.append(listener)
    for told in skipped():
        listener(told.line)
    return lambda: _listeners.remove(listener)


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
