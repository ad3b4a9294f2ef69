"""The first steps on a target: probing it, and installing our package, before our agent runs.

Both programs here are passed to the target's Python on its command line. The probe is written so
that every Python since 2.7 can report that it is too old.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import dld_tui
from dld_tui.core.errors import UnavailableError
from dld_tui.core.machine import jetson
from dld_tui.core.settings.saved_targets import DEFAULT_DIRECTORY
from dld_tui.core.text import clip, visible

OLDEST_PYTHON = (3, 10)
_PLAIN = re.compile(r"[a-z0-9.-]{1,40}")
_LEFT_OUT = ("app.py", "cli", "screens", "styles", "widgets", "__main__.py", "__pycache__")
"""What no worker needs."""
_SENT = frozenset((".py", ".json", ".rules"))
"""Suffixes of modules and of data files beside them."""

PROBE = """
import json, os, platform, sys
root = sys.argv[1]
cache = os.environ.get("NV_DLD_CACHE_DIR", "")
if root == sys.argv[3] and os.path.isabs(cache):
    root = os.path.join(cache, "target")
root = os.path.abspath(os.path.expanduser(root))
here = root
while not os.path.exists(here):
    here = os.path.dirname(here)
found = {
    "python": list(sys.version_info[:3]), "executable": sys.executable, "root": root,
    "machine": platform.machine(), "system": platform.system(),
    "libc": list(platform.libc_ver()), "host": platform.node(),
    "writable": os.path.isdir(here) and os.access(here, os.W_OK | os.X_OK), "here": here,
    "virtual": sys.prefix if sys.prefix != getattr(sys, "base_prefix", sys.prefix) else "",
    "package": os.path.isfile(os.path.join(root, "package", sys.argv[2], "complete")),
    "gpu": os.path.exists("/dev/nvidia0") or os.path.exists("/dev/nvhost-gpu")
    or os.path.exists("/dev/nvgpu"),
}
try:
    with open("/etc/nv_tegra_release") as file:
        found["tegra"] = file.readline(200)
except Exception:
    pass
try:
    with open(os.path.join(root, "ready", sys.argv[4] + ".json")) as file:
        found["ready"] = json.load(file).get("python")
    if not os.access(found["ready"], os.X_OK):
        found["ready"] = None
except Exception:
    pass
try:
    found["environments"] = sorted(os.listdir(os.path.join(root, "venv")))
except OSError:
    found["environments"] = []
if hasattr(os, "statvfs"):
    disk = os.statvfs(here)
    found["free"] = disk.f_bavail * disk.f_frsize
print("\\n@dld:" + json.dumps(found))
"""

UNPACK = """
import hashlib, io, json, os, shutil, sys, zipfile
root, digest = sys.argv[1:]
os.umask(0o077)
try:
    data = sys.stdin.buffer.read()
    folder = os.path.join(root, "package", digest)
    fresh = folder + ".%d" % os.getpid()
    os.makedirs(fresh)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [i.filename for i in archive.infolist()]
            whole = hashlib.sha256()
            for name in sorted(names):
                content = archive.read(name)
                whole.update(("%s %d\\n" % (name, len(content))).encode() + content)
            if whole.hexdigest() != digest:
                raise OSError("the package was damaged in transfer")
            archive.extractall(fresh)
        open(os.path.join(fresh, "complete"), "w").close()
        if not os.path.isfile(os.path.join(folder, "complete")):
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    packages = os.path.join(root, "package")
    others = sorted((n for n in os.listdir(packages) if n != digest),
                    key=lambda n: os.path.getmtime(os.path.join(packages, n)))
    for name in others[:-3]:
        shutil.rmtree(os.path.join(packages, name), ignore_errors=True)
    print("\\n@dld:" + json.dumps({"unpacked": digest}))
except (OSError, zipfile.BadZipFile) as error:
    print("\\n@dld:" + json.dumps({"error": str(error), "number": getattr(error, "errno", None)}))
"""


@dataclass(frozen=True)
class Machine:
    """What the probe found. All text is foreign."""

    python: tuple[int, int, int]
    executable: str
    root: str
    """The deployment folder, as an absolute path there."""
    machine: str
    """E.g. ``x86_64``."""
    system: str
    libc: tuple[str, str]
    """Its name and version, e.g. ``("glibc", "2.36")``."""
    host: str
    here: str
    """The nearest folder above it that is there."""
    writable: bool
    """Whether the deployment folder can be made and written to."""
    package: bool
    """Whether our package is there, in this version."""
    gpu: bool
    free: int | None
    """Bytes free on the disk of the deployment folder."""
    ready: str | None
    """The Python of the requested environment, if that is known to be complete."""
    environments: tuple[str, ...]
    """The virtual environments in the deployment folder."""
    virtual: str = ""
    """The virtual environment that its Python is of, which the user made."""


def machine_from(data: Mapping[str, Any], where: str) -> Machine:
    """Return the answer of a probe.

    Raises:
        UnavailableError: It is no answer of our probe, or the Python is too old.
    """
    try:
        major, minor, patch = (int(number) for number in data["python"])
        if (major, minor) < OLDEST_PYTHON:
            raise UnavailableError(
                f"its Python is {major}.{minor}.{patch}; 3.10 or newer is needed"
                + (f"; {board}" if (board := jetson.too_old(str(data.get("tegra", "")))) else ""),
                where=where,
                hint=f"Install a newer one there ({INSTALL_PYTHON}) and name it:"
                " dld target add … --python python3.12",
            )
        free = data.get("free")
        root = str(data["root"])
        if not root.startswith("/") or "\0" in root or len(root) > 4000:
            raise ValueError(root)
        libc = [str(part) for part in data["libc"]]
        return Machine(
            (major, minor, patch),
            str(data["executable"]),
            root,
            str(data["machine"]),
            str(data["system"]),
            (libc[0], libc[1]),
            str(data["host"]),
            str(data["here"]),
            bool(data["writable"]),
            bool(data["package"]),
            bool(data["gpu"]),
            int(free) if free is not None else None,
            str(data["ready"]) if data.get("ready") else None,
            tuple(name for name in map(str, data["environments"]) if _PLAIN.fullmatch(name)),
            str(data.get("virtual") or ""),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UnavailableError(
            f"its Python gave an invalid answer: {clip(visible(str(error)), 100)}",
            where=where,
        ) from None


INSTALL_PYTHON = "sudo apt install python3, or uv python install 3.12, which needs no root"


def probe_arguments(python: str, directory: str, ready: str) -> list[str]:
    """Return the command that probes a target, and looks for a complete environment there."""
    return [python, "-c", PROBE, directory, package_digest(), DEFAULT_DIRECTORY, ready or "none"]


@lru_cache(maxsize=1)
def package_files() -> dict[str, bytes]:
    """Return the part of our package that a worker needs: paths and contents."""
    top = Path(dld_tui.__file__).parent
    files = {f"dld_tui/{path.relative_to(top).as_posix()}": path for path in _files(top)}
    return {name: files[name].read_bytes() for name in sorted(files)}


def _files(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name in _LEFT_OUT:
            continue
        if entry.is_dir():
            yield from _files(entry)
        elif entry.suffix in _SENT:
            yield entry


@lru_cache(maxsize=1)
def package_digest() -> str:
    """Return the hash of that part: its version."""
    whole = hashlib.sha256()
    for name, content in package_files().items():
        whole.update(f"{name} {len(content)}\n".encode() + content)
    return whole.hexdigest()


def package_archive() -> bytes:
    """Return the package as a zip file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in package_files().items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content,
                             zipfile.ZIP_DEFLATED)  # fmt: skip
    return stream.getvalue()
