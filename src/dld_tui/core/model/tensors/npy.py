"""NumPy's .npy files: tensors out of them and into them, streamed, and never through pickle.

NumPy has no name for some ONNX types. They are exchanged as:

* bfloat16 as uint16 and the float8 types as uint8, the bits as they are,
* int4 and int2 as int8, uint4 and uint2 as uint8, one number a byte,
* float4 and float6 types as uint8, one code a byte,
* strings as ``U`` (or ``S`` where they are not UTF-8).
"""

from __future__ import annotations

import ast
import io
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, EditError, InputError
from dld_tui.core.files.blobs import Blob, SpillFile
from dld_tui.core.files.source import Source
from dld_tui.core.files.writer import write_pieces
from dld_tui.core.model.tensors.elements import (
    NARROW_INTEGERS,
    PART_ELEMENTS,
    Array,
    encode_elements,
    integer_limits,
    native_type,
    raw_payload,
    require_dims,
)
from dld_tui.core.model.tensors.payloads import INLINE_LIMIT, PayloadOwner, reference, write_payload
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000
"""Characters of the largest header that is parsed, as in numpy itself."""


@dataclass(frozen=True)
class NpyHeader:
    """The header of a .npy file."""

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
        """The ONNX type of the elements, as far as numpy's type determines it."""
        kind = np.dtype(self.descr)
        return "string" if kind.kind in "US" else kind.newbyteorder("=").name


def read_npy_header(path: Path | str) -> NpyHeader:
    """Return the header of a .npy file, after comparing it with the file's size.

    Raises:
        InputError: It is not a .npy file, is cut short, holds pickled objects or records.
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
        raise npy_error(path, _what_instead(start))
    version = start[6]
    if version not in (1, 2, 3):
        raise npy_error(path, f"is a .npy file of version {version}, which is not known")
    wide = version > 1
    size = int.from_bytes(start[8:12] if wide else start[8:10], "little")
    begin = 12 if wide else 10
    if size > _LONGEST_HEADER:
        raise npy_error(path, f"has a header of {size} B")
    if begin + size > source.size:
        raise npy_error(path, "is cut short in its header")
    text = source.read(begin, size).decode("utf-8" if version == 3 else "latin-1", "replace")
    descr, fortran, shape = _parsed(path, text)
    length = math.prod(shape) * np.dtype(descr).itemsize
    available = source.size - begin - size
    if available < length:
        raise npy_error(path, f"is cut short: {available} B of {length} B of elements are there")
    if available > length:
        raise npy_error(path, f"has {available - length} B behind its last element")
    return NpyHeader(path, descr, shape, fortran and len(shape) > 1, begin + size, length)


def _what_instead(start: bytes) -> str:
    if start.startswith(b"PK"):
        return "is a .npz archive: unpack it and choose one array"
    if start.startswith(b"\x80"):
        return "is a pickle, which could run code: it is never read"
    return "is not a .npy file"


def _parsed(path: Path, text: str) -> tuple[str, bool, tuple[int, ...]]:
    try:
        header = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise npy_error(path, "has a header that cannot be read") from None
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        raise npy_error(path, "has a header that cannot be read")
    descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    if isinstance(descr, list):
        raise npy_error(path, "holds records of several fields, not one element type")
    if descr == "<f1":  # what numpy writes for ml_dtypes' float8_e5m2, and cannot read
        descr = "|V1"
    try:
        kind = np.dtype(descr) if isinstance(descr, str) else None
    except (TypeError, ValueError):
        kind = None
    if kind is None:
        raise npy_error(path, f"has elements of an unknown type {clip(visible(str(descr)), 40)}")
    if kind.hasobject:
        raise npy_error(path, "holds pickled objects, which could run code: they are never read")
    if kind.kind not in "biufcUSV" or kind.name in ("float128", "longdouble", "complex256"):
        raise npy_error(path, f"has elements of type {kind.name}, which ONNX does not have")
    if not isinstance(fortran, bool) or not isinstance(shape, tuple):
        raise npy_error(path, "has a header that cannot be read")
    try:
        return str(descr), fortran, require_dims(shape)
    except EditError as error:
        raise npy_error(path, f"has an impossible shape: {error.message}") from None


def npy_error(path: Path, why: str, hint: str | None = None) -> InputError:
    """Return the error for a file that is refused."""
    return InputError(why, where=os.fspath(path), hint=hint)


_FORTRAN_LIMIT = 64 << 20
"""Bytes of the largest file in column order: putting it into row order takes it all in memory."""
_STRINGS_LIMIT = 64 << 20
_CODES = {
    **dict.fromkeys(("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"), "u1"),
    **dict.fromkeys(("float8e8m0", "float4e2m1", "float6e2m3", "float6e3m2"), "u1"),
    "bfloat16": "u2",
}
"""Types that are exchanged as their bits, and numpy's type for those."""
_NARROW_FLOATS = {"float4e2m1": 4, "float6e2m3": 6, "float6e3m2": 6}


@dataclass(frozen=True)
class NpyPayload:
    """The content of a .npy file as arguments of ``add_initializer`` or ``replace_tensor``."""

    dtype: str
    dims: tuple[int, ...]
    payload: JSON


def import_npy(
    document: PayloadOwner,
    path: Path | str,
    *,
    dtype: str | None = None,
    dims: Sequence[int] | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> NpyPayload:
    """Read a .npy file into a payload for an edit; large ones are streamed into a file.

    Args:
        document: The document that the edit is for.
        dtype: The element type that it must have, or be the bits of (see the module); by default
            what it says.
        dims: The dimensions that it must have; by default those it says.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked now and then.

    Raises:
        InputError: The file is refused; says why, with both types or shapes.
        SaveError: There is no room for a copy.
        CancelledError: `cancelled` said so.
    """
    source = Source.open(path)
    try:
        header = header_of(source)
        wanted = dtype or header.dtype
        _require_match(header, wanted, dims)
        if wanted == "string":
            return NpyPayload(wanted, header.shape, {"values": _strings(source, header)})
        if math.prod(header.shape) > 2**48:
            raise npy_error(header.path, "has too many elements")
        parts = _parts(source, header, wanted)
        if header.length <= INLINE_LIMIT:
            payload = reference(document, b"".join(parts))
        else:
            payload = write_payload(
                document, parts, header.length, progress=progress, cancelled=cancelled
            )
        return NpyPayload(wanted, header.shape, payload)
    finally:
        source.close()


def _require_match(header: NpyHeader, dtype: str, dims: Sequence[int] | None) -> None:
    kind = np.dtype(header.descr)
    native_type(dtype)
    if not _fits(kind, header.dtype, dtype):
        if kind.kind == "V":
            raise npy_error(
                header.path, f"holds {kind.itemsize} B elements of an unnamed type, not {dtype}"
            )
        raise npy_error(header.path, f"holds {header.dtype}, the tensor is {dtype}")
    if dims is not None and tuple(dims) != header.shape:
        present, wanted = fmt.shape(header.shape), fmt.shape(tuple(dims))
        raise npy_error(header.path, f"has shape {present}, the tensor has {wanted}")
    if header.fortran and header.length > _FORTRAN_LIMIT:
        raise npy_error(
            header.path,
            f"is in column (Fortran) order and larger than {fmt.size(_FORTRAN_LIMIT)}",
            hint="Save it again with numpy.ascontiguousarray",
        )


def _fits(kind: np.dtype[Any], name: str, dtype: str) -> bool:
    if dtype in _CODES:
        # np.save writes the ml_dtypes types as void of their size.
        return kind.kind in "uV" and kind.itemsize == int(_CODES[dtype][1])
    if dtype in NARROW_INTEGERS:
        return name == np.dtype(NARROW_INTEGERS[dtype]).name or kind == np.dtype("V1")
    return name == dtype


def _parts(source: Source, header: NpyHeader, dtype: str) -> Iterator[bytes]:
    kind = np.dtype(header.descr)
    if header.fortran:
        flat = np.frombuffer(source.read(header.offset, header.length), kind)
        values = flat.reshape(header.shape, order="F").ravel(order="C")
        for start in range(0, len(values), PART_ELEMENTS):
            yield _raw(values[start : start + PART_ELEMENTS], dtype, header.path)
        return
    step = PART_ELEMENTS * kind.itemsize
    for done in range(0, header.length, step):
        data = source.read(header.offset + done, min(step, header.length - done))
        yield _raw(np.frombuffer(data, kind), dtype, header.path)


def _raw(values: Array, dtype: str, path: Path) -> bytes:
    """Return elements of a .npy file as ``raw_data`` has them."""
    if dtype in NARROW_INTEGERS:
        if values.dtype.kind == "V":  # as ml_dtypes has them: the low bits of a byte
            return encode_elements(values.view(NARROW_INTEGERS[dtype]), dtype)
        low, high = integer_limits(dtype)
        if len(values) and (int(values.min()) < low or int(values.max()) > high):
            raise npy_error(path, f"has numbers that {dtype} cannot hold: it holds {low} to {high}")
        return encode_elements(values, dtype)
    if dtype in _NARROW_FLOATS:
        codes = values.view(np.uint8)
        if len(codes) and int(codes.max()) >= 1 << _NARROW_FLOATS[dtype]:
            raise npy_error(path, f"has codes that {dtype} does not have")
        return encode_elements(codes.view(native_type(dtype)), dtype)
    if values.dtype.kind == "V":
        return values.tobytes()
    if dtype == "bool":
        return bytes(values.view(np.uint8) != 0)
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()


def _strings(source: Source, header: NpyHeader) -> list[JSON]:
    if header.length > _STRINGS_LIMIT:
        raise npy_error(header.path, f"has more than {fmt.size(_STRINGS_LIMIT)} of strings")
    flat = np.frombuffer(source.read(header.offset, header.length), np.dtype(header.descr))
    try:
        if header.fortran:
            flat = flat.reshape(header.shape, order="F").ravel(order="C")
        texts = flat.tolist()
    except (UnicodeError, ValueError):
        raise npy_error(header.path, "has strings that are not Unicode") from None
    return [
        text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
        for text in texts
    ]


def export_npy(
    tensor: Tensor,
    path: Path | str,
    *,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> list[str]:
    """Write a tensor to a .npy file in one atomic step, and return remarks for the user.

    Raises:
        InputError: The values cannot be read, or are too many strings.
        SaveError: The file cannot be written; what was there is untouched.
        CancelledError: `cancelled` said so.
    """
    dtype = tensor.dtype
    kind = native_type(dtype)
    note = []
    payload: bytes | Blob
    if dtype == "string":
        descr, payload = _string_array(tensor)
    elif dtype in NARROW_INTEGERS or dtype in _NARROW_FLOATS:
        descr = np.dtype(NARROW_INTEGERS.get(dtype, np.uint8)).str
        payload = SpillFile().append(_one_a_byte(tensor, cancelled))
        note = [f"{dtype} is written as {np.dtype(descr).name}, one element a byte"]
    else:
        descr = f"<{_CODES[dtype]}" if dtype in _CODES else kind.newbyteorder("<").str
        if dtype in _CODES:
            note = [f"{dtype} is written as {np.dtype(descr).name}: the bits as they are"]
        payload = raw_payload(tensor)
    header = io.BytesIO()
    fields: Any = {"descr": descr, "fortran_order": False, "shape": tensor.shape}
    np.lib.format.write_array_header_1_0(header, fields)
    pieces = [header.getvalue(), payload]
    remarks = write_pieces(
        path, pieces, overwrite=overwrite, progress=progress, cancelled=cancelled
    )
    return [*note, *remarks]


def _one_a_byte(tensor: Tensor, cancelled: CancelCheck | None) -> Iterator[bytes]:
    for start in range(0, tensor.element_count, PART_ELEMENTS):
        if cancelled is not None and cancelled():
            raise CancelledError
        yield bytes(tensor.read(start, PART_ELEMENTS).view(np.uint8))


def _string_array(tensor: Tensor) -> tuple[str, bytes]:
    texts: list[Any] = tensor.read().tolist()
    try:
        texts = [text.decode("utf-8") for text in texts]
        unit, code = 4, "U"
    except UnicodeDecodeError:
        unit, code = 1, "S"
    if any(text[-1:] in ("\0", b"\0") for text in texts):
        raise InputError("strings that end with NUL cannot be in a .npy file", where=tensor.name)
    longest = max((len(text) for text in texts), default=1) or 1
    if longest * unit * len(texts) > _STRINGS_LIMIT:
        raise InputError(
            f"the strings would take more than {fmt.size(_STRINGS_LIMIT)}", where=tensor.name
        )
    array = np.array(texts, f"{code}{longest}")
    little = array.astype(array.dtype.newbyteorder("<"))
    return little.dtype.str, bytes(little.data.cast("B"))


__all__ = ["NpyHeader", "NpyPayload", "export_npy", "import_npy", "read_npy_header"]
