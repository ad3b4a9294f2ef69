"""Files of large payloads of edits: each named by its SHA-256, kept while somebody needs it.

They are in a folder of their own, not in the journals, whose lines refer to them. Every document
holds a shared lock on the files that it uses; a file that nobody holds and no journal mentions is
removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dld_tui.core.errors import CancelledError, InputError, SaveError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.source import Source, reason
from dld_tui.core.paths import ensure, state_dir
from dld_tui.core.types import CancelCheck, ProgressCallback

CHUNK = 4 << 20
"""Bytes that are copied at a time."""
_MENTION = re.compile(rb'"sha256": ?"([0-9a-f]{64})"')
_TEMPORARY = ".new-"


def payload_dir() -> Path:
    """Return the folder of the payload files; it may not exist yet."""
    return state_dir() / "payloads"


class PayloadStore:
    """The payload files that one document uses. It holds a lock on each until it is closed."""

    def __init__(self) -> None:
        self._held: dict[str, Source] = {}

    def held(self, sha256: str) -> Source | None:
        """Return the file of a payload that this document uses already, or None."""
        return self._held.get(sha256)

    def write(
        self,
        parts: Iterator[bytes],
        *,
        length: int = 0,
        progress: ProgressCallback | None = None,
        cancelled: CancelCheck | None = None,
    ) -> tuple[str, Source]:
        """Write a payload to a file of its own and return its SHA-256 and the file.

        Args:
            parts: Its bytes, in parts.
            length: How many they are in all, for `progress`.
            progress: Called with bytes done and bytes in all.
            cancelled: Asked before each part.

        Raises:
            SaveError: The folder cannot be written to or its disk is full.
            CancelledError: `cancelled` said so.
        """
        temporary = payload_dir() / f"{_TEMPORARY}{secrets.token_hex(8)}"
        try:
            ensure(temporary.parent)
            with open(temporary, "xb", buffering=0, opener=_private) as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                try:
                    sha256 = _copied(file.fileno(), parts, length, progress, cancelled)
                    return sha256, self._keep(sha256, temporary)
                except BaseException:
                    temporary.unlink(missing_ok=True)
                    raise
        except OSError as error:
            raise SaveError(
                f"cannot hold the data of an edit: {reason(error)}", where=str(payload_dir())
            ) from error

    def adopt(self, path: Path, sha256: str, cancelled: CancelCheck | None = None) -> Source | None:
        """Return a payload file that a journal refers to; None when its content is another one.

        Raises:
            InputError: There is no such file.
            CancelledError: `cancelled` said so.
        """
        source = Source.open(path)
        fcntl.flock(source.descriptor, fcntl.LOCK_SH)
        whole = Blob(source, 0, source.size, "raw_data")
        if _digest(whole, cancelled) != sha256:
            source.close()
            return None
        self._held[sha256] = source
        return source

    def take(self, path: Path, cancelled: CancelCheck | None = None) -> tuple[str, Source]:
        """Move a file of the same file system in; return its SHA-256 and the file.

        Raises:
            InputError: There is no such file.
            SaveError: It cannot be moved.
            CancelledError: `cancelled` said so.
        """
        source = Source.open(path, follow_link=False)
        try:
            sha256 = _digest(Blob(source, 0, source.size, "raw_data"), cancelled)
            os.chmod(path, 0o600)
            return sha256, self._keep(sha256, path)
        except OSError as error:
            raise SaveError(
                f"cannot hold the data of an edit: {reason(error)}", where=str(payload_dir())
            ) from error
        finally:
            source.close()

    def _keep(self, sha256: str, temporary: Path) -> Source:
        known = self._held.get(sha256)
        final = payload_dir() / sha256
        if known is None:
            known = _locked(final)
        if known is None:
            known = Source.open(temporary)
            fcntl.flock(known.descriptor, fcntl.LOCK_SH)
            os.rename(temporary, final)
            known.path = final
        else:
            temporary.unlink()
        self._held[sha256] = known
        return known

    def close(self) -> None:
        """Give the files up, and remove those that nobody needs any more."""
        if self._held:
            for source in self._held.values():
                source.close()
            self._held = {}
            sweep()


def sweep() -> None:
    """Remove the payload files that no document uses and no journal refers to."""
    folder = payload_dir()
    if not folder.is_dir():
        return
    wanted = _mentioned(state_dir() / "journals")
    for path in folder.iterdir():
        if path.name in wanted:
            continue
        with suppress(OSError):  # in use, or gone: then it is not ours to remove
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.name.startswith(_TEMPORARY) and path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            finally:
                os.close(descriptor)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder whose files :meth:`PayloadStore.take` can move in; it goes with the context.

    After a crash the next :func:`sweep` removes it.

    Raises:
        SaveError: It cannot be made.
    """
    folder = payload_dir() / f"{_TEMPORARY}{secrets.token_hex(8)}"
    try:
        ensure(folder.parent)
        folder.mkdir(mode=0o700)
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SaveError(
            f"cannot hold the data of an edit: {reason(error)}", where=str(payload_dir())
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _mentioned(folder: Path) -> set[str]:
    found: set[str] = set()
    for journal in folder.glob("*.jsonl"):
        with suppress(OSError), journal.open("rb") as file:
            for line in file:
                found.update(match.decode("ascii") for match in _MENTION.findall(line))
    return found


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _locked(path: Path) -> Source | None:
    """Return a payload file with a lock on it; None when there is none."""
    try:
        source = Source.open(path, follow_link=False)
    except InputError:
        return None
    fcntl.flock(source.descriptor, fcntl.LOCK_SH)
    if source.changed_on_disk():  # another program has just removed it
        source.close()
        return None
    return source


def _copied(
    descriptor: int,
    parts: Iterator[bytes],
    length: int,
    progress: ProgressCallback | None,
    cancelled: CancelCheck | None,
) -> str:
    digest = hashlib.sha256()
    done = 0
    for part in parts:
        if cancelled is not None and cancelled():
            raise CancelledError
        digest.update(part)
        view = memoryview(part)
        while view:
            view = view[os.write(descriptor, view) :]
        done += len(part)
        if progress is not None:
            progress(done, max(length, done))
    return digest.hexdigest()


def _digest(blob: Blob, cancelled: CancelCheck | None) -> str:
    digest = hashlib.sha256()
    for part in blob.chunks(CHUNK):
        if cancelled is not None and cancelled():
            raise CancelledError
        digest.update(part)
    return digest.hexdigest()
