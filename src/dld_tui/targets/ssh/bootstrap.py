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
from functools import lru_cache
from pathlib import Path
from typing import Any

import dld_tui
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError
from dld_tui.core.machine import jetson
from dld_tui.core.process.plugins import our_entry_points
from dld_tui.core.settings.saved_targets import DEFAULT_DIRECTORY
from dld_tui.core.text import clip, visible

OLDEST_PYTHON = (3, 10)
_PLAIN = re.compile(r"[a-z0-9.-]{1,40}")
_LEFT_OUT = ("app.py", "cli", "screens", "styles", "widgets", "__main__.py", "__pycache__")
"""What no worker needs."""
_SENT = frozenset((".py", ".json", ".rules"))
"""Suffixes of modules and of data files beside them."""

_METADATA = f"dld_tui-{dld_tui.__version__}.dist-info"
"""The folder in which the extras are declared, as after an installation."""

_IS_WHOLE = """
import hashlib, os
def is_whole(folder, digest):
    files = []
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        files += [os.path.relpath(os.path.join(where, name), folder) for name in names]
    whole = hashlib.sha256()
    try:
        for name in sorted(files):
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            whole.update(("%s %d\\n" % (name, len(content))).encode() + content)
    except EnvironmentError:
        return False
    return whole.hexdigest() == digest
"""
"""Whether a folder holds the package of a digest, and nothing else, whatever happened to the disk:
5 MB, which take about 10 ms."""

PROBE = f"""{_IS_WHOLE}
import json, platform, shutil, sys
root = sys.argv[1]
cache = os.environ.get("NV_DLD_CACHE_DIR", "")
if root == sys.argv[3] and os.path.isabs(cache):
    root = os.path.join(cache, "target")
root = os.path.abspath(os.path.expanduser(root))
here = root
while not os.path.exists(here):
    here = os.path.dirname(here)
package = os.path.join(root, "package", sys.argv[2])
found = {{
    "python": list(sys.version_info[:3]), "executable": sys.executable, "root": root,
    "machine": platform.machine(), "system": platform.system(),
    "libc": list(platform.libc_ver()), "host": platform.node(),
    "writable": os.path.isdir(here) and os.access(here, os.W_OK | os.X_OK), "here": here,
    "virtual": sys.prefix if sys.prefix != getattr(sys, "base_prefix", sys.prefix) else "",
    "package": is_whole(package, sys.argv[2]),
    "gpu": os.path.exists("/dev/nvidia0") or os.path.exists("/dev/nvhost-gpu")
    or os.path.exists("/dev/nvgpu"),
}}
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
if found["package"]:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read()
    except Exception:
        boot = ""
    note = os.path.join(package, "__pycache__", "boot")
    try:
        with open(note) as file:
            is_same = file.read() == boot
    except Exception:
        is_same = False
    if not is_same:
        for where, folders, names in os.walk(package):
            if "__pycache__" in folders:
                shutil.rmtree(os.path.join(where, "__pycache__"), True)
        try:
            os.mkdir(os.path.dirname(note), 0o700)
            with open(note, "w") as file:
                file.write(boot)
        except Exception:
            pass
print("\\n" + sys.argv[5] + json.dumps(found))
"""
"""What Python compiled is not flushed to the disk: that of an earlier boot is removed."""

UNPACK = f"""{_IS_WHOLE}
import io, json, shutil, sys, zipfile
root, digest, mark = sys.argv[1:]
os.umask(0o077)
def flush(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
try:
    packages = os.path.join(root, "package")
    folder = os.path.join(packages, digest)
    fresh = "%s.%d" % (folder, os.getpid())
    damaged = fresh + ".old"
    os.makedirs(fresh)
    try:
        with zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read())) as archive:
            archive.extractall(fresh)
        if not is_whole(fresh, digest):
            raise OSError("the package was damaged in transfer")
        for where, _, names in os.walk(fresh):
            for name in names:
                flush(os.path.join(where, name))
            flush(where)
        if not is_whole(folder, digest):
            if os.path.lexists(folder):
                os.rename(folder, damaged)
            os.rename(fresh, folder)
            flush(packages)
    finally:
        for left in (fresh, damaged):
            shutil.rmtree(left, True)
    others = sorted((n for n in os.listdir(packages) if n != digest),
                    key=lambda n: os.path.getmtime(os.path.join(packages, n)))
    for name in others[:-3]:
        shutil.rmtree(os.path.join(packages, name), True)
    print("\\n" + mark + json.dumps({{"unpacked": digest}}))
except Exception as error:
    print("\\n" + mark + json.dumps({{"error": str(error)}}))
"""

_CARRIED = """
import importlib.abc, importlib.util, io, os, sys, zipfile
left, data = int(sys.argv[6]), io.BytesIO()
while left:
    part = os.read(0, min(left, 1 << 20))
    if not part:
        sys.exit("the program did not arrive")
    left -= data.write(part)
archive = zipfile.ZipFile(data)
names = frozenset(archive.namelist())
class Carried(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        for end in ("/__init__.py", ".py"):
            file = name.replace(".", "/") + end
            if file in names:
                is_package = end != ".py"
                return importlib.util.spec_from_loader(
                    name, self, origin=file, is_package=is_package)
    def exec_module(self, module):
        file = module.__spec__.origin
        exec(compile(archive.read(file), file, "exec"), module.__dict__)
sys.meta_path.insert(0, Carried())
"""
"""Imports the package from standard input, where it cannot be on the disk; the rest is left."""
# As in the worker of this machine: a stray numpy.py in some folder must not be run.
_INSTALLED = "import sys; sys.path.insert(0, sys.argv[1] + '/package/' + sys.argv[2]);"
_SERVE = (
    " from dld_tui.targets.ssh.remote.agent import main;"
    " main(sys.argv[1], sys.argv[3], sys.argv[4], sys.argv[5])"
)


def agent_arguments(
    python: str, root: str, name: str, arguments: str, mark: str, carried: int = 0
) -> list[str]:
    """Return the command that serves a command of the agent.

    Args:
        python: On the target.
        root: The deployment folder.
        name: The command.
        arguments: Its arguments, as JSON.
        mark: What its answers begin with.
        carried: How long the package is that standard input begins with; 0 runs the installed one.
    """
    program = f"{_CARRIED}{_SERVE.strip()}" if carried else f"{_INSTALLED}{_SERVE}"
    words = [root, package_digest(), name, arguments, mark]
    return [python, "-I", "-S", "-c", program, *words, *([str(carried)] if carried else [])]


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
    """Whether our package is there, in this version and undamaged."""
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


def probe_arguments(python: str, directory: str, ready: str, mark: str) -> list[str]:
    """Return the command that probes a target, and looks for a complete environment there."""
    words = [directory, package_digest(), DEFAULT_DIRECTORY, ready or "none", mark]
    return [python, "-c", PROBE, *words]


@lru_cache(maxsize=1)
def package_files() -> dict[str, bytes]:
    """Return the part of our package that a worker needs: paths and contents."""
    top = Path(dld_tui.__file__).parent
    files = {
        f"dld_tui/{path.relative_to(top).as_posix()}": path.read_bytes() for path in _files(top)
    }
    about = f"Metadata-Version: 2.1\nName: dld-tui\nVersion: {dld_tui.__version__}\n"
    files[f"{_METADATA}/METADATA"] = about.encode()
    files[f"{_METADATA}/entry_points.txt"] = our_entry_points().encode()
    return {name: files[name] for name in sorted(files)}


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
