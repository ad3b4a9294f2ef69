"""The header of a .npy file: parsed without numpy's own reader, which takes pickles."""

from __future__ import annotations

import ast
import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dld_tui.core.errors import EditError, InputError
from dld_tui.core.files.source import Source
from dld_tui.core.tensors.elements import require_dims
from dld_tui.core.text import clip, visible

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000
"""Characters of the largest header that is parsed, as in numpy itself."""


@dataclass(frozen=True)
class NpyHeader:
    """What a .npy file says of itself."""

    path: Path
    descr: str
    """NumPy's type string, such as ``<f4``."""
    shape: tuple[int, ...]
    fortran: bool
    """True when the elements are in column order."""
    offset: int
    """Where the elements begin, in bytes."""
    length: int
    """Bytes of the elements."""

    @property
    def dtype(self) -> str:
        """The ONNX type of the elements, as far as numpy's type tells."""
        kind = np.dtype(self.descr)
        return "string" if kind.kind in "US" else kind.newbyteorder("=").name


def read_npy_header(path: Path | str) -> NpyHeader:
    """Return the header of a .npy file, after comparing it with the file's size.

    Raises:
        InputError: It is no .npy file, is cut short, holds pickled objects or records.
    """
    source = Source.open(path)
    try:
        return header_of(source)
    finally:
        source.close()


def header_of(source: Source) -> NpyHeader:
    """Return the header of an open .npy file; see :func:`read_npy_header`."""
    path = source.path
    start = source.read(0, min(source.size, 12))
    if not start.startswith(_MAGIC) or len(start) < 10:
        raise refused(path, _what_instead(start))
    version = start[6]
    if version not in (1, 2, 3):
        raise refused(path, f"is a .npy file of version {version}, which is not known")
    wide = version > 1
    size = int.from_bytes(start[8:12] if wide else start[8:10], "little")
    begin = 12 if wide else 10
    if size > _LONGEST_HEADER:
        raise refused(path, f"has a header of {size} B")
    if begin + size > source.size:
        raise refused(path, "is cut short in its header")
    text = source.read(begin, size).decode("utf-8" if version == 3 else "latin-1", "replace")
    descr, fortran, shape = _parsed(path, text)
    length = math.prod(shape) * np.dtype(descr).itemsize
    found = source.size - begin - size
    if found < length:
        raise refused(path, f"is cut short: {found} B of {length} B of elements are there")
    if found > length:
        raise refused(path, f"has {found - length} B behind its last element")
    return NpyHeader(path, descr, shape, fortran and len(shape) > 1, begin + size, length)


def _what_instead(start: bytes) -> str:
    if start.startswith(b"PK"):
        return "is a .npz archive: unpack it and choose one array"
    if start.startswith(b"\x80"):
        return "is a pickle, which could run code: it is never read"
    return "is no .npy file"


def _parsed(path: Path, text: str) -> tuple[str, bool, tuple[int, ...]]:
    try:
        header = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise refused(path, "has a header that cannot be read") from None
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        raise refused(path, "has a header that cannot be read")
    descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    if isinstance(descr, list):
        raise refused(path, "holds records of several fields, not one element type")
    if descr == "<f1":  # what numpy writes for ml_dtypes' float8_e5m2, and cannot read
        descr = "|V1"
    try:
        kind = np.dtype(descr) if isinstance(descr, str) else None
    except (TypeError, ValueError):
        kind = None
    if kind is None:
        raise refused(path, f"has elements of an unknown type {clip(visible(str(descr)), 40)}")
    if kind.hasobject:
        raise refused(path, "holds pickled objects, which could run code: they are never read")
    if kind.kind not in "biufcUSV" or kind.name in ("float128", "longdouble", "complex256"):
        raise refused(path, f"has elements of type {kind.name}, which ONNX does not have")
    if not isinstance(fortran, bool) or not isinstance(shape, tuple):
        raise refused(path, "has a header that cannot be read")
    try:
        return str(descr), fortran, require_dims(shape)
    except EditError as error:
        raise refused(path, f"has an impossible shape: {error.message}") from None


def refused(path: Path, why: str, hint: str | None = None) -> InputError:
    """Return the error that says by name why a file is not taken."""
    return InputError(why, where=os.fspath(path), hint=hint)
