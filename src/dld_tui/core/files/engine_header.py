"""The first bytes of a serialized engine: which TensorRT wrote it.

``ftrt`` is what TensorRT writes; with serialization version 0 its bytes 24 to 27 are the version,
as ``trtexec --getPlanVersionOnly`` (8.6 and later) reads them. TensorRT-RTX writes ``vtrt``
with the same layout (seen in engines of 1.7), and after it, at byte 32, one bit for each compute
capability that the engine was built for. ``ptrt`` is the older form; where that has its version
is published nowhere.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<4sI16x4B4sI")
_RTX_CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "12.0", "12.1")
"""What the bits mean, the lowest first."""
MAGICS = (b"ftrt", b"ptrt", b"vtrt")


@dataclass(frozen=True)
class EngineHeader:
    """What the header of an engine tells."""

    product: str
    """``TensorRT`` or ``TensorRT-RTX``."""
    version: str
    """E.g. ``10.16.1.11``; empty when the header does not tell."""
    compute_capabilities: tuple[str, ...] = ()
    """What the engine was built for; empty when the header does not tell."""

    @property
    def text(self) -> str:
        """Who wrote the engine, in words."""
        if not self.version:
            return f"an unknown version of {self.product}: its header does not tell"
        made_for = ", ".join(self.compute_capabilities)
        return f"{self.product} {self.version}" + (
            f" for compute capability {made_for}" if made_for else ""
        )


def engine_header(head: bytes) -> EngineHeader | None:
    """Return what the first 36 bytes of an engine tell; None when it is no engine."""
    magic = head[:4]
    if magic not in MAGICS:
        return None
    product = "TensorRT-RTX" if magic == b"vtrt" else "TensorRT"
    if magic == b"ptrt" or len(head) < _HEADER.size:
        return EngineHeader(product, "")
    _, serialization, major, minor, patch, build, second, mask = _HEADER.unpack_from(head)
    if serialization != 0 or major == 0:
        return EngineHeader(product, "")
    capabilities: tuple[str, ...] = ()
    if magic == b"vtrt" and second == b"vtrt" and mask < 1 << 16:
        known = len(_RTX_CAPABILITIES)
        capabilities = tuple(name for bit, name in enumerate(_RTX_CAPABILITIES) if mask >> bit & 1)
        # A build for all has a bit more than there are capabilities in its Python bindings.
        capabilities += ("others",) if mask >> known else ()
    return EngineHeader(product, f"{major}.{minor}.{patch}.{build}", capabilities)
