"""Payloads in the arguments of edits: small ones as text, large ones by reference to a file.

An edit is a line of JSON in the journal, so a payload of hundreds of megabytes cannot be in it.
It is written once to a file, named by its SHA-256, and the edit refers to that. The files are in a
folder of their own. Every document holds a shared lock on those that it uses; a file that nobody
holds and no journal mentions is removed.

A message of protobuf with payloads cut out is written with its sentinels, and what they stand
for.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message

from dld_tui.core import fmt
from dld_tui.core.errors import CancelledError, EditError, InputError, SaveError
from dld_tui.core.files.blobs import PAYLOAD_FIELDS, SENTINEL_LENGTH, Blob, payload_digest
from dld_tui.core.files.source import Source, reason
from dld_tui.core.process.paths import ensure, state_dir
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.files.blobs import BlobTable, SpillFile
    from dld_tui.core.files.external import ExternalFiles

CHUNK = 4 << 20
"""Bytes that are copied at a time."""
_MENTION = rb'"sha256": ?"([0-9a-f]{64})"'
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
        """Write a payload to a separate file and return its SHA-256 and the file.

        Args:
            parts: Its bytes, in parts.
            length: How many they are in all, for `progress`.
            progress: Called with bytes done and bytes in all.
            cancelled: Asked before each part.

        Raises:
            SaveError: The folder cannot be written to or its disk is full.
            CancelledError: `cancelled` said so.
        """
        temporary = payload_dir() / f"{_TEMPORARY}{os.urandom(8).hex()}"
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

    def adopt(self, path: Path, sha256: str) -> Source | None:
        """Return a payload file that a journal refers to; None when its content differs.

        Raises:
            InputError: There is no such file.
            CancelledError: `cancelled` said so.
        """
        source = Source.open(path)
        fcntl.flock(source.descriptor, fcntl.LOCK_SH)
        whole = Blob(source, 0, source.size, "raw_data")
        if payload_digest(whole, None) != sha256:
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
            sha256 = payload_digest(Blob(source, 0, source.size, "raw_data"), cancelled)
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
        """Release the files, and remove those that are no longer needed."""
        if self._held:
            for source in self._held.values():
                source.close()
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
    folder = payload_dir() / f"{_TEMPORARY}{os.urandom(8).hex()}"
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
    names: set[str] = set()
    for journal in folder.glob("*"):
        with suppress(OSError), journal.open("rb") as file:
            for line in file:
                names.update(match.decode("ascii") for match in re.findall(_MENTION, line))
    return names


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
    import hashlib  # with OpenSSL, which takes 4 MB

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


INLINE_LIMIT = 64 << 10
"""The most bytes of a payload that is in the arguments themselves."""
_SHA256 = r"[0-9a-f]{64}"

M = TypeVar("M", bound=Message)


class PayloadOwner(Protocol):
    """What tensors and payloads need of the document that they belong to."""

    source: Source | None
    blobs: BlobTable
    spill: SpillFile
    payloads: PayloadStore
    external: ExternalFiles
    fixed_forms: dict[tuple[Blob, int], Blob]
    prepared: dict[str, Blob]
    new_data: int
    """The bytes that edits have generated so far."""
    new_data_limit: int

    @property
    def title(self) -> str:
        """A short name. Untrusted text."""


def reference(document: PayloadOwner, payload: bytes | Blob) -> JSON:
    """Return a payload as an argument of an edit.

    Up to :data:`INLINE_LIMIT` bytes are ``{"raw": BASE64}``. More are written to a file that lives
    as long as a document or a journal needs it, and are ``{"file", "offset", "length",
    "sha256"}``. The field of a payload of varints is in ``field``.

    Args:
        document: The document that the edit is for.
        payload: What to refer to.

    Raises:
        SaveError: The file cannot be written.
    """
    field = payload.field if isinstance(payload, Blob) else "raw_data"
    tail: dict[str, JSON] = {} if field == "raw_data" else {"field": field}
    length = payload.length if isinstance(payload, Blob) else len(payload)
    if length <= INLINE_LIMIT:
        data = payload.read() if isinstance(payload, Blob) else payload
        return {"raw": base64.b64encode(data).decode("ascii"), **tail}
    parts = payload.chunks(CHUNK) if isinstance(payload, Blob) else iter((payload,))
    return write_payload(document, parts, length) | tail


def write_payload(
    document: PayloadOwner,
    parts: Iterator[bytes],
    length: int = 0,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> dict[str, JSON]:
    """Write a payload that comes in parts to a file and return the reference to it.

    Args:
        document: The document that the edit is for.
        parts: Its bytes.
        length: How many they are in all, for `progress`.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked now and then.

    Raises:
        SaveError: The file cannot be written.
        CancelledError: `cancelled` said so.
    """
    sha256, source = document.payloads.write(
        parts, length=length, progress=progress, cancelled=cancelled
    )
    return {"file": str(source.path), "offset": 0, "length": source.size, "sha256": sha256}


def journaled_file(
    document: PayloadOwner, path: Path, *, cancelled: CancelCheck | None = None
) -> JSON:
    """Move a file to where the files of payloads are and return the reference to all of it.

    Raises:
        SaveError: It cannot be moved: it is on another file system, say.
        CancelledError: `cancelled` said so.
    """
    sha256, source = document.payloads.take(path, cancelled)
    return {"file": str(source.path), "offset": 0, "length": source.size, "sha256": sha256}


def resolve(document: PayloadOwner, reference: JSON) -> bytes | Blob:
    """Return the payload that a reference stands for. Large ones stay in their file.

    A file elsewhere, which a script may name, is copied: it could change later.

    Raises:
        EditError: It is no reference, the file is gone, or it has another content.
        SaveError: There is no room for a copy.
    """
    if isinstance(reference, dict) and isinstance(reference.get("raw"), str):
        try:
            return base64.b64decode(str(reference["raw"]), validate=True)
        except (binascii.Error, ValueError):
            raise EditError("tensor data in the arguments are not base64") from None
    name, start, length, sha256, field = _checked(reference)
    source = document.payloads.held(sha256) if sha256 else None
    if source is None:
        source, start = _opened(document, name, start, length, sha256)
    elif source.size == length:
        start = 0
    if source.size < start + length:
        raise _gone(name, f"has {fmt.size(source.size)}, not {fmt.size(start + length)}")
    return Blob(source, start, length, field)


def payload_blob(document: PayloadOwner, reference: JSON) -> Blob:
    """Return the payload of a reference as one in a file, however small it is.

    Raises:
        EditError: See :func:`resolve`.
        SaveError: There is no room for it.
    """
    payload = resolve(document, reference)
    if isinstance(payload, Blob):
        return payload
    field = reference.get("field") if isinstance(reference, dict) else None
    return document.spill.append(payload, _field(field))


def _checked(reference: JSON) -> tuple[str, int, int, str | None, str]:
    if not isinstance(reference, dict):
        raise EditError("tensor data are {raw} or {file, offset, length, sha256}")
    name, start = reference.get("file"), reference.get("offset", 0)
    length, sha256 = reference.get("length"), reference.get("sha256")
    if type(start) is not int or type(length) is not int or min(start, length) < 0:
        raise EditError("tensor data are {raw} or {file, offset, length, sha256}")
    named = sha256 is None or (isinstance(sha256, str) and re.fullmatch(_SHA256, sha256))
    if not isinstance(name, str) or not named:
        raise EditError("tensor data are {raw} or {file, offset, length, sha256}")
    field = _field(reference.get("field"))
    return name, start, length, str(sha256) if sha256 else None, field


def _field(value: JSON) -> str:
    if value is None:
        return "raw_data"
    if value not in PAYLOAD_FIELDS:
        raise EditError(f"tensor data cannot be in {value!r:.60}")
    return str(value)


def _opened(
    document: PayloadOwner,
    name: str,
    start: int,
    length: int,
    sha256: str | None,
) -> tuple[Source, int]:
    """Return the file with a payload and where in it the payload begins."""
    path = Path(name)
    try:
        if sha256 is not None and path.parent == payload_dir() and path.name == sha256:
            source = document.payloads.adopt(path, sha256)
            if source is None:
                raise _gone(name, "has another content")
            return source, start
        outside = Source.open(path)
        if outside.size < start + length:
            raise _gone(name, f"has {fmt.size(outside.size)}, not {fmt.size(start + length)}")
        blob = Blob(outside, start, length, "raw_data")
        digest, copy = document.payloads.write(blob.chunks(CHUNK))
        outside.close()
    except EditError:
        raise
    except (InputError, OSError) as error:
        why = error.message if isinstance(error, InputError) else reason(error)
        raise _gone(name, why) from None
    if sha256 is not None and digest != sha256:
        raise _gone(name, "has another content")
    return copy, 0


def _gone(name: str, why: str) -> EditError:
    shown = clip(visible(name), 200, keep="middle")
    return EditError(f"the data of this edit cannot be read: {why}", where=shown)


def encode_message(document: PayloadOwner, message: Message) -> JSON:
    """Return a message of a document as an argument of an edit, payloads by reference.

    It is base64, or ``{"data": BASE64, "payloads": {SENTINEL: REFERENCE}}`` when payloads were cut
    out of it.

    Raises:
        SaveError: A payload cannot be written.
    """
    data = message.SerializeToString()
    fields: dict[str, JSON] = {}
    nonce = document.blobs.nonce
    position = data.find(nonce)
    while position >= 0:
        sentinel = data[position : position + SENTINEL_LENGTH]
        blob = document.blobs.get(sentinel)
        if blob is not None:
            fields[sentinel.decode("ascii")] = reference(document, blob)
        position = data.find(nonce, position + 1)
    text = base64.b64encode(data).decode("ascii")
    return {"data": text, "payloads": fields} if fields else text


def decode_message(document: PayloadOwner, encoded: JSON, kind: type[M]) -> M:
    """Return the message that :func:`encode_message` wrote, with payloads of this document.

    Raises:
        EditError: A payload is gone, or it is no such message.
        SaveError: There is no room for a payload.
    """
    payloads: Any = {}
    if isinstance(encoded, dict):
        payloads, encoded = encoded.get("payloads"), encoded.get("data")
    if not isinstance(encoded, str) or not isinstance(payloads, dict):
        raise EditError("a record in the arguments is not base64")
    try:
        data = base64.b64decode(encoded, validate=True)
        for sentinel, described in payloads.items():
            old = sentinel.encode("ascii")
            if len(old) != SENTINEL_LENGTH:
                raise ValueError(sentinel)
            new = document.blobs.add(payload_blob(document, described))
            data = data.replace(old, new)
        return kind.FromString(data)
    except (ValueError, DecodeError):
        raise EditError(f"a record in the arguments is not a {kind.DESCRIPTOR.name}") from None
