"""Wheels for a target, fetched here: by the platform, libc and Python of the target."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dld_tui.core import paths
from dld_tui.core.errors import UnavailableError
from dld_tui.core.files.writer import write_text
from dld_tui.core.text import clip, visible
from dld_tui.targets.ssh.bootstrap import Machine
from dld_tui.targets.ssh.loop import within

_MACHINE = re.compile(r"[a-z0-9_]{2,20}")
_LEGACY = {"x86_64": {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"},
           "aarch64": {17: "manylinux2014"}}  # fmt: skip
_OLDEST_GLIBC = 5
_NEWEST_MUSL = 2
_SLOW_S = 1800.0


def platform_tags(machine: Machine) -> list[str]:
    """Return the platform tags of wheels that run on a target, the best first.

    Raises:
        UnavailableError: The target is no Linux, or says nothing sensible.
    """
    name, version = machine.libc
    kind = machine.machine
    if machine.system != "Linux" or not _MACHINE.fullmatch(kind):
        what = clip(visible(f"{machine.system} {kind}"), 60)
        raise UnavailableError(f"packages for {what} cannot be fetched here")
    if name != "glibc":  # Alpine: Python does not say which musl it is
        return [f"musllinux_1_{minor}_{kind}" for minor in range(_NEWEST_MUSL, -1, -1)]
    numbers = re.findall(r"\d+", version)
    minor = int(numbers[1]) if len(numbers) > 1 and numbers[0] == "2" else 17
    tags = []
    for number in range(min(minor, 99), _OLDEST_GLIBC - 1, -1):
        tags.append(f"manylinux_2_{number}_{kind}")
        if number in _LEGACY.get(kind, {}):
            tags.append(f"{_LEGACY[kind][number]}_{kind}")
    return [*tags, f"linux_{kind}"]


def download_command(machine: Machine, requirements: Sequence[str], folder: Path) -> list[str]:
    """Return the command that fetches wheels for a target into a folder."""
    major, minor, _ = machine.python
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input"]
    command += ["--only-binary", ":all:", "--dest", str(folder), "--implementation", "cp"]
    command += ["--python-version", f"{major}.{minor}"]
    for abi in (f"cp{major}{minor}", "abi3", "none"):
        command += ["--abi", abi]
    for tag in platform_tags(machine):
        command += ["--platform", tag]
    return [*command, *requirements]


async def fetch(machine: Machine, requirements: Sequence[str], name: str) -> list[Path]:
    """Fetch wheels for a target with the pip of this Python; return their files.

    Args:
        machine: The target.
        requirements: For pip.
        name: Of the folder in our cache; what is there need not be fetched again.

    Raises:
        UnavailableError: There is no pip here, or it does not find them.
    """
    major, minor, _ = machine.python
    where = f"{name}-py{major}.{minor}-{platform_tags(machine)[0]}"
    folder = paths.ensure(paths.cache_dir() / "wheels" / where)
    marker = folder / "requirements.txt"
    wanted = "\n".join(requirements)
    if not (marker.is_file() and marker.read_text(encoding="utf-8") == wanted):
        await _download(machine, requirements, folder)
        write_text(marker, wanted)
    return sorted(folder.glob("*.whl"))


async def _download(machine: Machine, requirements: Sequence[str], folder: Path) -> None:
    for old in folder.glob("*.whl"):
        old.unlink()
    process = await asyncio.create_subprocess_exec(
        *download_command(machine, requirements, folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        printed, _ = await within(_SLOW_S, process.communicate())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise _not_found(printed.decode("utf-8", "replace"), requirements)


def _not_found(printed: str, requirements: Sequence[str]) -> UnavailableError:
    names = ", ".join(requirements)
    if "No module named pip" in printed:
        return UnavailableError(
            f"{names}: the target cannot fetch them, and the Python here has no pip to do it",
            hint=f"{sys.executable} -m ensurepip",
        )
    errors = [line for line in printed.splitlines() if line.startswith("ERROR:")]
    last = (errors or printed.strip().splitlines() or ["pip does not say why"])[-1]
    return UnavailableError(
        f"{names}: neither the target nor this machine can fetch them:"
        f" {clip(visible(last.removeprefix('ERROR: ')), 300)}",
        hint="Install them on the target by hand",
        details=printed,
    )
