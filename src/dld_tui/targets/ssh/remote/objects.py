"""Files on the target that are named by the SHA-256 of their content.

``objects/HASH`` was whole and on the disk before it had this name; ``objects/KEY.part`` is on its
way and is taken up again after a cut. A disk may fail all the same, or a power cut may find one
that lies: every object is read and hashed before each job that uses it. Nothing is remembered of
that: what changed on the disk shows in no date. The bytes are read once, as the job then has them
from memory.
"""

from __future__ import annotations

import contextlib
import errno
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


def flush(path: Path) -> None:
    """Have the disk take what is in a file or folder; not every file system can."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
    finally:
        os.close(descriptor)


def is_whole(root: Path, sha256: str) -> bool:
    """Return whether an object is there and holds what its name says; a damaged one is removed."""
    path = path_of(root, sha256)
    try:
        with path.open("rb") as file:
            if _hash(file)[0].hexdigest() == sha256:
                os.fchmod(file.fileno(), 0o600)  # sets its ctime: it is in use
                return True
    except FileNotFoundError:
        return False
    except OSError:  # a bad sector
        pass
    with contextlib.suppress(OSError):
        path.unlink()
    return False


def look(root: Path, sizes: Iterable[int], names: Iterable[str]) -> dict[str, Any]:
    """Report which objects are there and whole, and which of these sizes occur."""
    wanted = set(sizes)
    present: set[int] = set()
    with contextlib.suppress(FileNotFoundError), os.scandir(root / "objects") as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                present.add(entry.stat().st_size)
    return {
        "there": [name for name in dict.fromkeys(names) if is_whole(root, name)],
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
    except OSError:  # a bad sector
        path.unlink()
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
        file.flush()
        flush(path)
    name = digest.hexdigest()
    os.replace(path, path_of(root, name))
    flush(folder)
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
    fresh: dict[Path, str] = {}
    try:
        for number, size in enumerate(sizes):
            data = source.read(size)
            if len(data) < size:
                fail("the connection ended before the files did", kind="cut")
            path = folder / f"{os.getpid()}.{number}.part"
            fresh[path] = hashlib.sha256(data).hexdigest()
            path.write_bytes(data)
        for path in fresh:
            flush(path)
        for path, name in fresh.items():
            os.replace(path, folder / name)
    finally:
        for path in fresh:
            path.unlink(missing_ok=True)
    flush(folder)
    return {"sha256": list(fresh.values())}
