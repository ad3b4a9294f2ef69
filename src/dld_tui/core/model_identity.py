"""Which model file was run: enough to tell later whether it is still the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.errors import InputError
from dld_tui.core.events import Progress
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

HASHED_BYTES = 1_000_000_000
"""Larger files are not read for their hash: size and time must do."""
_CHUNK = 32 << 20


def identify(path: Path, document: Document) -> Generator[Progress, None, dict[str, JSON]]:
    """Return the facts of a model file, in the form that a report keeps; yield progress.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        status = os.stat(path)
        digest = None
        if status.st_size <= HASHED_BYTES:
            digest = yield from _sha256(path, status.st_size)
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from None
    return {
        "path": str(path.absolute()),
        "bytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "sha256": digest,
        "opsets": dict(document.opset_imports),
        "nodes": sum(len(scope.nodes) for scope in document.scopes()),
    }


def _sha256(path: Path, size: int) -> Generator[Progress, None, str]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            yield Progress(file.tell(), size, "bytes", "Reading the model")
    return digest.hexdigest()
