"""Payloads in the arguments of edits: small ones as text, large ones by reference to a file.

An edit is a line of JSON in the journal, so a payload of hundreds of megabytes cannot be in it. It
is written once to a file (see :mod:`.payload_store`) and the edit refers to that.

A message of protobuf with payloads cut out is written with its sentinels, and what they stand for.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from google.protobuf.message import DecodeError, Message

from dld_tui.core import fmt
from dld_tui.core.document.payload_store import CHUNK, payload_dir
from dld_tui.core.errors import EditError, InputError
from dld_tui.core.files.blobs import PAYLOAD_FIELDS, SENTINEL_LENGTH, Blob
from dld_tui.core.files.source import Source, reason
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

INLINE_LIMIT = 64 << 10
"""The most bytes of a payload that is in the arguments themselves."""
_SHA256 = re.compile(r"[0-9a-f]{64}")

M = TypeVar("M", bound=Message)


# --- references ----------------------------------------------------------------------------------


def reference(
    document: Document,
    payload: bytes | Blob,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> JSON:
    """Return a payload as an argument of an edit.

    Up to :data:`INLINE_LIMIT` bytes are ``{"raw": BASE64}``. More are written to a file that lives
    as long as a document or a journal needs it, and are ``{"file", "offset", "length",
    "sha256"}``. The field of a payload of varints is in ``field``.

    Args:
        document: The document that the edit is for.
        payload: What to refer to.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked now and then.

    Raises:
        SaveError: The file cannot be written.
        CancelledError: `cancelled` said so.
    """
    field = payload.field if isinstance(payload, Blob) else "raw_data"
    tail: dict[str, JSON] = {} if field == "raw_data" else {"field": field}
    length = payload.length if isinstance(payload, Blob) else len(payload)
    if length <= INLINE_LIMIT:
        data = payload.read() if isinstance(payload, Blob) else payload
        return {"raw": base64.b64encode(data).decode("ascii"), **tail}
    parts = payload.chunks(CHUNK) if isinstance(payload, Blob) else iter((payload,))
    return written(document, parts, length, progress=progress, cancelled=cancelled) | tail


def written(
    document: Document,
    parts: Iterator[bytes],
    length: int = 0,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> dict[str, JSON]:
    """Write a payload that comes in parts to a file and return the reference to it.

    See :func:`reference` for the other arguments.

    Raises:
        SaveError: The file cannot be written.
        CancelledError: `cancelled` said so.
    """
    sha256, source = document.payloads.write(
        parts, length=length, progress=progress, cancelled=cancelled
    )
    return {"file": str(source.path), "offset": 0, "length": source.size, "sha256": sha256}


def kept_file(document: Document, path: Path, *, cancelled: CancelCheck | None = None) -> JSON:
    """Move a file to where the files of payloads are and return the reference to all of it.

    Raises:
        SaveError: It cannot be moved: it is on another file system, say.
        CancelledError: `cancelled` said so.
    """
    sha256, source = document.payloads.take(path, cancelled)
    return {"file": str(source.path), "offset": 0, "length": source.size, "sha256": sha256}


def resolve(
    document: Document, reference: JSON, *, cancelled: CancelCheck | None = None
) -> bytes | Blob:
    """Return the payload that a reference stands for. Large ones stay in their file.

    A file elsewhere, which a script may name, is copied: it could change later.

    Raises:
        EditError: It is no reference, the file is gone, or it has another content.
        SaveError: There is no room for a copy.
        CancelledError: `cancelled` said so.
    """
    if isinstance(reference, dict) and isinstance(reference.get("raw"), str):
        try:
            return base64.b64decode(str(reference["raw"]), validate=True)
        except (binascii.Error, ValueError):
            raise EditError("a payload in the arguments is not base64") from None
    name, start, length, sha256, field = _checked(reference)
    source = document.payloads.held(sha256) if sha256 else None
    if source is None:
        source, start = _opened(document, name, start, length, sha256, cancelled)
    elif source.size == length:
        start = 0
    if source.size < start + length:
        raise _gone(name, f"has {fmt.size(source.size)}, not {fmt.size(start + length)}")
    return Blob(source, start, length, field)


def payload_blob(document: Document, reference: JSON) -> Blob:
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
        raise EditError("a payload is {raw} or {file, offset, length, sha256}")
    name, start = reference.get("file"), reference.get("offset", 0)
    length, sha256 = reference.get("length"), reference.get("sha256")
    numbers = all(type(value) is int and value >= 0 for value in (start, length))
    named = sha256 is None or (isinstance(sha256, str) and _SHA256.fullmatch(sha256))
    if not isinstance(name, str) or not numbers or not named:
        raise EditError("a payload is {raw} or {file, offset, length, sha256}")
    field = _field(reference.get("field"))
    return name, cast("int", start), cast("int", length), str(sha256) if sha256 else None, field


def _field(value: JSON) -> str:
    if value is None:
        return "raw_data"
    if value not in PAYLOAD_FIELDS:
        raise EditError(f"a payload cannot be in {value!r:.60}")
    return str(value)


def _opened(
    document: Document,
    name: str,
    start: int,
    length: int,
    sha256: str | None,
    cancelled: CancelCheck | None,
) -> tuple[Source, int]:
    """Return the file with a payload and where in it the payload begins."""
    path = Path(name)
    try:
        if sha256 is not None and path.parent == payload_dir() and path.name == sha256:
            source = document.payloads.adopt(path, sha256, cancelled)
            if source is None:
                raise _gone(name, "has another content")
            return source, start
        outside = Source.open(path)
        if outside.size < start + length:
            raise _gone(name, f"has {fmt.size(outside.size)}, not {fmt.size(start + length)}")
        blob = Blob(outside, start, length, "raw_data")
        found, copy = document.payloads.write(blob.chunks(CHUNK), cancelled=cancelled)
        outside.close()
    except EditError:
        raise
    except (InputError, OSError) as error:
        why = error.message if isinstance(error, InputError) else reason(error)
        raise _gone(name, why) from None
    if sha256 is not None and found != sha256:
        raise _gone(name, "has another content")
    return copy, 0


def _gone(name: str, why: str) -> EditError:
    shown = clip(visible(name), 200, keep="middle")
    return EditError(f"the data of this edit cannot be read: {why}", where=shown)


# --- whole messages ------------------------------------------------------------------------------


def encode_message(document: Document, message: Message) -> JSON:
    """Return a message of a document as an argument of an edit, payloads by reference.

    It is base64, or ``{"data": BASE64, "payloads": {SENTINEL: REFERENCE}}`` when payloads were cut
    out of it.

    Raises:
        SaveError: A payload cannot be written.
    """
    data = message.SerializeToString()
    found: dict[str, JSON] = {}
    nonce = document.blobs.nonce
    position = data.find(nonce)
    while position >= 0:
        sentinel = data[position : position + SENTINEL_LENGTH]
        blob = document.blobs.get(sentinel)
        if blob is not None:
            found[sentinel.decode("ascii")] = reference(document, blob)
        position = data.find(nonce, position + 1)
    text = base64.b64encode(data).decode("ascii")
    return {"data": text, "payloads": found} if found else text


def decode_message(document: Document, encoded: JSON, kind: type[M]) -> M:
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
        raise EditError(f"a record in the arguments is no {kind.DESCRIPTOR.name}") from None
