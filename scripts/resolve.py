"""Ask pip which wheels a set of requirements resolves to on another platform or Python.

pip evaluates environment markers, and what Python a wheel is for, for the interpreter that runs it,
whatever `--python-version` says. So after each answer both are evaluated again for the platform
asked about, what pip left out is added, and what does not run there refused, until nothing changes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Platform:
    """Where the packages are to run."""

    python: str
    """For example ``3.10``."""
    machine: str
    """``x86_64`` or ``aarch64``."""
    glibc_minor: int
    """The 35 of glibc 2.35."""

    @property
    def tags(self) -> list[str]:
        """Return the wheel platform tags it can install, newest first."""
        return [
            *(f"manylinux_2_{minor}_{self.machine}" for minor in range(self.glibc_minor, 16, -1)),
            f"manylinux2014_{self.machine}",
        ]

    def needs(self, requirement: Requirement, extras: set[str]) -> bool:
        """Tell whether a requirement applies here."""
        environment = {
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "platform_machine": self.machine,
            "sys_platform": "linux",
            "platform_system": "Linux",
            "os_name": "posix",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }
        marker = requirement.marker
        return marker is None or any(
            marker.evaluate({**environment, "extra": extra}) for extra in extras | {""}
        )


class NotResolvedError(Exception):
    """No set of wheels satisfies the requirements; the text is pip's last error line."""


def declared(extras: tuple[str, ...] = ()) -> list[str]:
    """Return the base requirements of pyproject.toml and those of some extras."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomlkit.parse(text).unwrap()["project"]
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *(line for extra in extras for line in optional[extra])]


def resolve(platform: Platform, requirements: list[str]) -> dict[str, str]:
    """Return {canonical name: version} of the wheels that satisfy the requirements.

    Raises:
        NotResolvedError: pip finds no such set.
    """
    wanted = list(requirements)
    while True:
        chosen = _pip(platform, wanted)
        missing = _refused(platform, chosen) or _missing(platform, chosen)
        if not missing:
            return {name: entry["metadata"]["version"] for name, entry in chosen.items()}
        wanted += missing


def _pip(platform: Platform, requirements: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--only-binary=:all:", "--target", scratch]
        command += ["--python-version", platform.python, "--report", "-"]
        for tag in platform.tags:
            command += ["--platform", tag]
        done = subprocess.run([*command, *requirements], capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        raise NotResolvedError(errors[-1].removeprefix("ERROR: ") if errors else done.stderr)
    return {
        canonicalize_name(entry["metadata"]["name"]): entry
        for entry in json.loads(done.stdout)["install"]
    }


def _refused(platform: Platform, chosen: dict[str, Any]) -> list[str]:
    """Return what excludes the chosen versions that are for other Pythons."""
    told = {name: entry["metadata"] for name, entry in chosen.items()}
    return [
        f"{name}!={one['version']}"
        for name, one in told.items()
        if not SpecifierSet(one.get("requires_python") or "").contains(f"{platform.python}.0")
    ]


def _missing(platform: Platform, chosen: dict[str, Any]) -> list[str]:
    missing = set()
    for entry in chosen.values():
        extras = set(entry.get("requested_extras", ()))
        for line in entry["metadata"].get("requires_dist", ()):
            requirement = Requirement(line)
            absent = canonicalize_name(requirement.name) not in chosen
            if absent and platform.needs(requirement, extras):
                requirement.marker = None
                missing.add(str(requirement))
    return sorted(missing)
