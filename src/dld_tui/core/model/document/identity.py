"""What identifies a model file in reports and build records."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator, Mapping
from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Progress
from dld_tui.core.files.source import open_error
from dld_tui.core.model.document.document import Document

HASHED_BYTES = 1_000_000_000
"""Larger files are not read for their hash: size and time must do."""


_CHUNK = 32 << 20


@dataclass(frozen=True)
class ModelIdentity:
    """Identifies the model file that was measured or built."""

    path: str
    """Absolute. Untrusted text."""
    bytes: int
    mtime_ns: int
    sha256: str | None
    """None for a file of more than `HASHED_BYTES`."""
    opsets: Mapping[str, int]
    """Versions of operator sets, by domain."""
    nodes: int
    """In all scopes."""


def identify(path: Path, document: Document) -> Generator[Progress, None, ModelIdentity]:
    """Return the identity of a model file, as reports and build records store it.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        status = os.stat(path)
        digest = None
        if status.st_size <= HASHED_BYTES:
            digest = yield from _sha256(path, status.st_size)
    except OSError as error:
        raise open_error(path, error) from None
    return ModelIdentity(
        str(path.absolute()),
        status.st_size,
        status.st_mtime_ns,
        digest,
        dict(document.opset_imports),
        sum(len(scope.nodes) for scope in document.scopes()),
    )


def _sha256(path: Path, size: int) -> Generator[Progress, None, str]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            yield Progress(file.tell(), size, "bytes", "Reading the model")
    return digest.hexdigest()
