"""Cut large payloads out of an ONNX file without reading them.

:func:`cut` walks the protobuf wire format of a file and leaves a 32-byte sentinel in the place of
every large payload; what remains, the skeleton, is a small valid ModelProto. :func:`splice` does
the opposite.
"""

from __future__ import annotations

import os
from typing import Final

from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.files.blobs import BlobTable
from dld_tui.core.files.fields import MAX_MESSAGE
from dld_tui.core.files.source import Source
from dld_tui.core.files.splice import pieces_length, splice
from dld_tui.core.files.walk import Walk
from dld_tui.core.types import CancelCheck, ProgressCallback

__all__ = ["THRESHOLD", "cut", "pieces_length", "splice", "verify_model"]

THRESHOLD: Final = 4096
"""Payloads of fewer bytes stay in the skeleton: an extra blob would cost more than they do."""

_SMALL_THRESHOLD: Final = 256
_LARGE_SKELETON: Final = 64 << 20


def cut(
    source: Source,
    blobs: BlobTable,
    *,
    threshold: int = THRESHOLD,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> bytes:
    """Return the file's ModelProto with a sentinel in the place of every large payload.

    Args:
        source: The file; it must stay open for as long as the blobs are used.
        blobs: Takes in the payloads.
        threshold: The length in bytes from which on a payload is large, at least 33. When more
            than 64 MB remain, it is lowered to 256.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked now and then.

    Raises:
        CorruptFileError: The file is empty, cut short, or not protobuf of a model.
        InputError: What remains is more than protobuf can hold.
        CancelledError: `cancelled` said so.
        FileChangedError: The file became shorter meanwhile.
    """
    if source.size == 0:
        raise CorruptFileError("File is empty (0 bytes)", where=str(source.path))
    mark = len(blobs)
    try:
        walk = Walk(source, blobs, threshold, progress, cancelled)
        skeleton_length = walk.model()
        if skeleton_length > _LARGE_SKELETON and threshold > _SMALL_THRESHOLD:
            blobs.forget_from(mark)
            walk = Walk(source, blobs, _SMALL_THRESHOLD, progress, cancelled)
            skeleton_length = walk.model()
        if skeleton_length > MAX_MESSAGE:
            raise InputError(
                f"{skeleton_length} bytes of the model are not tensor data, more than the 2 GiB "
                "that protobuf can hold",
                where=str(source.path),
            )
        skeleton = walk.skeleton()
        if progress is not None:
            progress(source.size, source.size)
        return skeleton
    except BaseException:
        blobs.forget_from(mark)
        raise


def verify_model(path: str | os.PathLike[str], *, cancelled: CancelCheck | None = None) -> None:
    """Check that a file can be opened again, by walking its structure; payloads are not read.

    Raises:
        CorruptFileError: It cannot.
    """
    source = Source.open(path)
    try:
        cut(source, BlobTable(), cancelled=cancelled)
    finally:
        source.close()
