"""The Python of the jobs on a target: its packages, and installing the missing ones.

Wheels are unpacked here without pip, which a bare system lacks. While something is installed, a
file in the environment is locked; where it is left behind, the installation was cut off by a kill
or a power cut, and the environment is made again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from dld_tui.core.process.child import ask
from dld_tui.targets.ssh.remote import objects
from dld_tui.targets.ssh.remote.replies import fail, last_answer, new_mark

_LOOK = """
import importlib.metadata as m, importlib.util as u, json, sys
found = {}
for module, names in json.loads(sys.argv[1]).items():
    try:
        spec = u.find_spec(module)
    except Exception:
        spec = None
    if spec is None or spec.origin is None:
        continue
    found[module] = ""
    for name in names:
        try:
            found[module] = m.version(name)
            break
        except m.PackageNotFoundError:
            pass
print("\\n" + sys.argv[2] + json.dumps({"found": found, "prefix": sys.prefix}))
"""
_MARK = "dld-installing"
_SLOW_S = 60
_INSTALL_S = 3600
_LARGEST_WHEEL = 8 << 30


def look(python: str, modules: dict[str, list[str]]) -> dict[str, Any]:
    """Return which modules a Python has: ``{"found": {module: version}}``.

    Args:
        python: Its command.
        modules: The names of the packages that may bring each module.
    """
    # Not isolated: on a Jetson much is installed for one user.
    mark = new_mark()
    command = [python, "-c", _LOOK, json.dumps(modules), mark]
    try:
        done = ask(command, _SLOW_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"found": {}, "problem": str(error)}
    answer = last_answer(done.output.encode("utf-8", "replace"), mark)
    if answer is not None:
        return answer
    return {"found": {}, "problem": (done.errors.strip().splitlines() or ["no answer"])[-1]}


def create(root: Path, name: str) -> dict[str, Any]:
    """Make a virtual environment that sees the system's packages; return its Python."""
    folder = root / "venv" / PurePosixPath(name).name
    python = folder / "bin" / "python"
    if _is_cut_off(folder):
        for note in (root / "ready").glob("*.json"):  # of what was in it, too
            note.unlink(missing_ok=True)
        shutil.rmtree(folder)
    if not python.exists():
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Without pip: where it would come from is missing on a bare Debian.
        command = [sys.executable, "-m", "venv", "--without-pip", *_system_packages()]
        done = ask([*command, str(folder)], _INSTALL_S, cwd=None)
        if done.status or not python.exists():
            shutil.rmtree(folder, ignore_errors=True)
            why = (done.errors + done.output).strip().splitlines() or ["it gives no reason"]
            fail(
                f"no virtual environment can be created: {why[-1]}", "sudo apt install python3-venv"
            )
        _add_packages_of(sys.executable, python)
    return {"python": str(python)}


@contextlib.contextmanager
def _installing(python: str) -> Iterator[None]:
    """Mark the environment of a Python until what the block installs is on the disk."""
    mark = Path(python).parent.parent / _MARK
    with mark.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # two jobs may install at once
        objects.flush(mark.parent)
        yield
        os.sync()
        mark.unlink(missing_ok=True)


def _is_cut_off(folder: Path) -> bool:
    try:
        with (folder / _MARK).open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except OSError:  # there is none, or somebody installs
        return False


def _settings_of_virtual(python: str) -> Path:
    """Return the file that makes the folder of a Python a virtual environment, if it is one."""
    return Path(python).parent.parent / "pyvenv.cfg"


def _system_packages() -> list[str]:
    """Return the option that lets the system's packages in, but where the user keeps them out."""
    with contextlib.suppress(OSError):
        text = _settings_of_virtual(sys.executable).read_text(encoding="utf-8", errors="replace")
        if "include-system-site-packages=false" in text.lower().replace(" ", ""):
            return []
    return ["--system-site-packages"]


def _add_packages_of(user: str, ours: str | Path) -> None:
    """Give our environment access to the packages of the virtual environment that it extends."""
    if _settings_of_virtual(user).is_file():
        lines = "".join(f"{folder}\n" for folder in _sites_of(user))
        (_sites_of(str(ours))[0] / "dld-user.pth").write_text(lines, encoding="utf-8")


def pip_install(python: str, requirements: list[str], options: list[str]) -> dict[str, Any]:
    """Install packages from the target's own network; say whether that went well.

    Returns:
        ``{"ok": bool, "why": str}``; the last line of what pip says.
    """
    if ask([python, "-m", "pip", "--version"], _SLOW_S, cwd=None).status:
        return {"ok": False, "why": "there is no pip"}
    command = [python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command += ["--retries", "1", "--timeout", "15", "--only-binary", ":all:", *options]
    with _installing(python):
        done = ask([*command, *requirements], _INSTALL_S, cwd=None)
    if done.status == 0:
        return {"ok": True, "why": ""}
    lines = [line for line in done.errors.splitlines() if line.startswith("ERROR:")]
    return {"ok": False, "why": (lines or done.errors.splitlines() or ["pip failed"])[-1][:500]}


def install_wheels(root: Path, python: str, wheels: list[list[str]]) -> dict[str, Any]:
    """Unpack wheels that were sent into a virtual environment.

    Args:
        root: The deployment folder.
        python: The environment's, below the deployment folder.
        wheels: Names and hashes.
    """
    folder = Path(python).parent.parent
    if folder.parent != root / "venv":
        fail("packages are only installed into dld's own environment")
    site = _sites_of(python)[0]
    with _installing(python):
        for name, sha256 in wheels:
            try:
                with zipfile.ZipFile(objects.path_of(root, sha256)) as wheel:
                    _unpack(wheel, site)
            except (zipfile.BadZipFile, FileNotFoundError) as error:
                fail(f"{name} is not a wheel: {error}")
    return {"installed": len(wheels)}


def _sites_of(python: str) -> list[Path]:
    """Return the folders of the packages of a Python, the one of compiled packages first."""
    mark = new_mark()
    code = (
        "import json, sysconfig as s;"
        f" print('\\n{mark}' + json.dumps({{p: s.get_path(p) for p in ('platlib', 'purelib')}}))"
    )
    done = ask([python, "-I", "-c", code], _SLOW_S, cwd=None)
    answer = last_answer(done.output.encode("utf-8", "replace"), mark) or {}
    if done.status or not answer:
        why = (done.errors.strip().splitlines() or ["no answer"])[-1]
        fail(f"the Python of the environment does not work: {why}")
    return [Path(folder) for folder in dict.fromkeys(answer.values())]


def _unpack(wheel: zipfile.ZipFile, site: Path) -> None:
    if sum(entry.file_size for entry in wheel.infolist()) > _LARGEST_WHEEL:
        fail("a wheel is too large")
    for entry in wheel.infolist():
        target = site / _place(entry.filename)
        if entry.is_dir():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with wheel.open(entry) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
        if (entry.external_attr >> 16) & 0o111:
            target.chmod(0o755)


def _place(name: str) -> str:
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or "\\" in name:
        fail("a wheel has a path outside of it")
    # NAME.data/purelib and platlib hold what belongs into the root; scripts and headers may stay.
    if len(parts) > 2 and parts[0].endswith(".data") and parts[1] in ("purelib", "platlib"):
        return os.path.join(*parts[2:])
    return os.path.join(*parts)
