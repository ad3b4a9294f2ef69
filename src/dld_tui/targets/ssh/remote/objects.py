"""Files on the target that are named by the SHA-256 of their content.

``objects/HASH`` is whole and verified; ``objects/KEY.part`` is on its way and is taken up again
after a cut.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import select
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from dld_tui.targets.ssh.remote.replies import answer, fail

_NAME = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 20
_DAY_S = 86400
_IDLE_S = 15.0
"""A sender that is silent for so long is gone."""


def folder_of(root: Path) -> Path:
    """Return the folder of the objects, made where it is missing."""
    folder = root / "objects"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def path_of(root: Path, sha256: str) -> Path:
    """Return where an object is, or would be."""
    if not _NAME.fullmatch(sha256):
        fail("not the name of an object")
    return root / "objects" / sha256


def look(root: Path, sizes: Iterable[int], names: Iterable[str]) -> dict[str, Any]:
    """Report which objects exist, and which of these sizes occur."""
    wanted = set(sizes)
    present: set[int] = set()
    with contextlib.suppress(FileNotFoundError), os.scandir(root / "objects") as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                present.add(entry.stat().st_size)
    return {
        "there": [name for name in names if path_of(root, name).is_file()],
        "sizes": sorted(wanted & present),
    }


def part(root: Path, key: str) -> dict[str, Any]:
    """Say how much of a file is here, and the hash of that."""
    path = folder_of(root) / f"{path_of(root, key).name}.part"
    try:
        with path.open("rb") as file:
            digest, size = _hash(file)
    except FileNotFoundError:
        return {"size": 0, "sha256": ""}
    return {"size": size, "sha256": digest.hexdigest()}


def drop(root: Path, key: str) -> None:
    """Remove a partial file."""
    Path(f"{path_of(root, key)}.part").unlink(missing_ok=True)


def receive(root: Path, key: str, offset: int, size: int) -> None:
    """Append standard input to a partial file; when it is whole, give it the name of its hash.

    Says ``{"ready": true}`` before it reads and ``{"sha256": HASH}`` at the end.
    """
    folder = folder_of(root)
    path = folder / f"{path_of(root, key).name}.part"
    free = shutil.disk_usage(folder).free
    if size - offset > free:
        fail(
            f"{size - offset} bytes are needed and only {free} are free on the disk of {folder}",
            "Free some space there, or set another --directory",
            "space",
        )
    with path.open("r+b" if path.exists() else "w+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fail("the same file is being sent by another program", kind="busy")
        digest, there = _hash(file, offset)
        if there != offset:
            fail("the partial file has changed", kind="changed")
        file.truncate(offset)
        file.seek(offset)
        answer({"ready": True})
        got = offset + _take_in(file, digest, size - offset)
        if got < size:
            fail("the connection ended before the file did", kind="cut")
    name = digest.hexdigest()
    os.replace(path, path_of(root, name))
    answer({"sha256": name})


def _take_in(file: BinaryIO, digest: Any, rest: int) -> int:
    source = sys.stdin.fileno()
    got = 0
    # A connection that was cut may look open here for hours: the lock must not last that long.
    while got < rest and select.select([source], [], [], _IDLE_S)[0]:
        data = os.read(source, min(_CHUNK, rest - got))
        if not data:
            break
        digest.update(data)
        file.write(data)
        got += len(data)
    return got


def _hash(file: BinaryIO, limit: int | None = None) -> tuple[Any, int]:
    digest, done = hashlib.sha256(), 0
    while limit is None or done < limit:
        data = file.read(_CHUNK if limit is None else min(_CHUNK, limit - done))
        if not data:
            break
        digest.update(data)
        done += len(data)
    return digest, done


def place(root: Path, sha256: str, target: Path, mtime_ns: int | None = None) -> None:
    """Put an object at a path: as another name of the same file, else as a copy."""
    source = path_of(root, sha256)
    if not source.is_file():
        fail("an object is missing", kind="missing")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copyfile(source, target)
    if mtime_ns is not None:
        os.utime(target, ns=(mtime_ns, mtime_ns))


def clean(root: Path, days: float) -> int:
    """Remove objects that no job has used for so long; return the bytes that are free now."""
    freed = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(root / "objects") as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            # Making another name of a file sets its ctime: the time of its last use.
            if status.st_ctime <= time.time() - days * _DAY_S and status.st_nlink == 1:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
                    freed += status.st_size
    return freed


def send(path: Path, offset: int) -> None:
    """Print the size and hash of a file, then the bytes from an offset."""
    with path.open("rb") as file:
        digest, size = _hash(file)
        answer({"size": size, "sha256": digest.hexdigest()})
        file.seek(min(offset, size))
        shutil.copyfileobj(file, sys.stdout.buffer, _CHUNK)
        sys.stdout.buffer.flush()


def receive_many(root: Path) -> dict[str, Any]:
    """Take in small files: a line with their sizes as JSON, then their contents; return hashes."""
    folder = folder_of(root)
    source = sys.stdin.buffer
    sizes: list[int] = json.loads(source.readline())
    names = []
    for size in sizes:
        data = source.read(size)
        if len(data) < size:
            fail("the connection ended before the files did", kind="cut")
        name = hashlib.sha256(data).hexdigest()
        fresh = folder / f"{name}.{os.getpid()}.part"
        fresh.write_bytes(data)
        os.replace(fresh, folder / name)
        names.append(name)
    return {"sha256": names}
