"""Which files belong together: the names of TREx, of trtexec's users, and of this program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_HASH: Final = r"(?:\.[0-9a-f]{6,40})?"
_ENDING: Final = re.compile(
    r"^(?P<stem>.*?)[._-]?\b(?P<role>"
    r"build\.metadata|profile\.metadata|metadata|graph|profile|timing|times|trt|build|layers?"
    rf"|layer[_-]?info|exportLayerInfo|exportProfile|exportTimes)(?P<hash>{_HASH})\.(?:json|txt)$",
    re.IGNORECASE,
)
_CONFIGURATION: Final = re.compile(r"^(?P<role>build_cfg|plan_cfg)\.json$")
"""What TREx's archives have besides."""
_LOG: Final = re.compile(r"^(?P<stem>.*?)\.(?P<role>build|profile)\.log$")
_ROLES: Final = {
    "graph": "graph", "trt": "graph", "layer": "graph", "layers": "graph", "layerinfo": "graph",
    "layer_info": "graph", "layer-info": "graph", "exportlayerinfo": "graph",
    "profile": "profile", "exportprofile": "profile",
    "timing": "timing", "times": "timing", "exporttimes": "timing",
    "metadata": "metadata", "build.metadata": "build.metadata",
    "profile.metadata": "profile.metadata", "build": "build",
}  # fmt: skip
_ENGINES: Final = (".engine", ".plan", ".trt")
_MOST_FILES: Final = 20_000
"""A folder with more is not looked through."""


@dataclass(frozen=True)
class FileName:
    """A file's name taken apart."""

    stem: str
    role: str
    infix: str = ""
    """A hash that tells several files of one role apart."""


@dataclass
class FileSet:
    """The files of an engine by role, each with all candidates, the likeliest first."""

    roles: dict[str, list[Path]] = field(default_factory=dict)

    def of(self, role: str) -> list[Path]:
        """Return the files of a role."""
        return self.roles.get(role, [])


def file_name(name: str) -> FileName | None:
    """Return the parts of a file's name; None when it is none of these files."""
    found = _ENDING.match(name)
    if found:
        role = _ROLES[found["role"].lower()]
        return FileName(found["stem"], role, found["hash"].removeprefix("."))
    configuration = _CONFIGURATION.match(name)
    if configuration:
        return FileName("", configuration["role"])
    log = _LOG.match(name)
    if log:
        return FileName(log["stem"], f"{log['role']}.log")
    return None


def find_set(path: Path) -> FileSet:
    """Return the files beside `path` that belong to the same engine, itself included."""
    own = file_name(path.name)
    stems = {own.stem} if own else {path.name}
    if path.suffix.lower() in _ENGINES:
        stems.add(path.name.removesuffix(path.suffix))
    elif own and own.stem:
        # NAME.engine.graph.json and NAME.trt.json may lie together.
        stems |= {own.stem.removesuffix(".engine"), f"{own.stem}.engine"}
    return match_names(_names_beside(path), stems, own.infix if own else "", path.parent)


def _names_beside(path: Path) -> list[str]:
    names = []
    try:
        for place, entry in enumerate(path.parent.iterdir()):
            if place >= _MOST_FILES:
                return []
            names.append(entry.name)
    except OSError:
        return []
    return sorted(names)


def match_names(
    names: Sequence[str], stems: set[str] | None, infix: str = "", folder: Path | None = None
) -> FileSet:
    """Return files by role.

    Args:
        names: Names of files.
        stems: What they may be called; None is anything.
        infix: The hash that is preferred where several files have a role.
        folder: What the paths are made of.
    """
    found = FileSet()
    ranked = []
    for name in names:
        parts = file_name(name.rpartition("/")[2])
        if parts is None or (stems is not None and parts.stem not in stems):
            continue
        rank = 0 if parts.infix == infix else 1 if not parts.infix else 2
        ranked.append((rank, name, parts))
    for _, name, parts in sorted(ranked, key=lambda item: item[:2]):
        path = folder / name if folder is not None else Path(name)
        found.roles.setdefault(parts.role, []).append(path)
    return found
