"""Tensors: shape, size, payload and statistics, read lazily and in parts.

A payload may be in the protobuf message, cut out and left in the model's file, or in an external
data file. Nothing here trusts a claimed size: sizes are compared with what is there before
reading. Encodings are those of onnx.proto (TensorProto): ``raw_data`` is little-endian, the typed
fields have a fixed element type each, elements narrower than a byte are packed from the low bits
up.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError, InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import SENTINEL_LENGTH, Blob, SpillFile
from dld_tui.core.files.external import (
    PENDING,
    decoded,
    element_bits,
    is_pending,
    payload_length,
)
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.files.wire import fixed_width
from dld_tui.core.model.tensors.numpy_types import numpy_type
from dld_tui.core.model.tensors.value_types import dtype_name
from dld_tui.core.types import ELEMENT_BITS, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    import numpy as np

    from dld_tui.core.model.tensors.payloads import PayloadOwner

_T = onnx.TensorProto
DATA_FIELDS = (
    "raw_data",
    "float_data",
    "int32_data",
    "string_data",
    "int64_data",
    "double_data",
    "uint64_data",
)
_FIXED_WIDTH = {"raw_data": 0, "float_data": 4, "double_data": 8}
"""Fields whose payload is little-endian and of fixed width, with the width of an entry."""
_STRUCT_CODES = {
    "float16": "e", "float32": "f", "float64": "d", "bool": "?", "int8": "b", "uint8": "B",
    "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
}  # fmt: skip
_SUB_BYTE_BITS = {name: bits for name, bits in ELEMENT_BITS.items() if bits < 8}
MAX_DIMENSION_PRODUCT = 2**63 - 1
"""ONNX counts elements in int64."""


class NoDataError(InputError):
    """A tensor has no values, as in a model without weights."""


class AmbiguousDataError(InputError):
    """A tensor has values in several fields."""


class Tensor:
    """A read-only view of a TensorProto of a document.

    Edits go through :meth:`..document.document.Document.apply`.
    """

    __slots__ = ("document", "proto")

    def __init__(self, proto: onnx.TensorProto, document: PayloadOwner | None) -> None:
        self.proto = proto
        self.document = document

    def __repr__(self) -> str:
        return f"<Tensor {self.dtype}{list(self.shape)} {self.name!r}>"

    @property
    def name(self) -> str:
        """The name, empty for most tensors in attributes. Untrusted text."""
        return text_of(self.proto.name)

    @property
    def dtype(self) -> str:
        """Element type, e.g. ``float32``; ``undefined`` where the file gives none."""
        return dtype_name(self.proto.data_type)

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions as the file claims them; may be negative or absurd in a broken model."""
        return tuple(self.proto.dims)

    @property
    def element_count(self) -> int:
        """The product of the dimensions, exact at any size; 0 when one is negative."""
        if any(dim < 0 for dim in self.proto.dims):
            return 0
        return math.prod(self.proto.dims)

    @property
    def bits(self) -> int | None:
        """Bits of an element, or None for strings and unknown types."""
        return element_bits(self.proto.data_type)

    @property
    def nbytes(self) -> int | None:
        """Bytes of the elements by type and shape; None when unknown."""
        return payload_length(self.proto)

    @property
    def is_external(self) -> bool:
        """True when the payload is in a data file, or will be once the model is saved."""
        return self.proto.data_location == _T.EXTERNAL

    @property
    def is_pending(self) -> bool:
        """True when an edit made it external: the model's next save writes the data file."""
        return is_pending(self.proto)

    @property
    def external_entries(self) -> dict[str, str]:
        """``location``, ``offset``, ``length`` … of external data. Untrusted text.

        Of a pending one only the location, as far as it is known before it is written.
        """
        entries = {text_of(entry.key): text_of(entry.value) for entry in self.proto.external_data}
        if entries.pop(PENDING, None) and not entries.get("location"):
            title = self.document.title if self.document is not None else "new model"
            entries["location"] = f"{title}.data"
        return entries

    @property
    def fields(self) -> list[str]:
        """The data fields that carry something; a valid tensor has at most one."""
        return [
            field
            for field in DATA_FIELDS
            if (
                len(getattr(self.proto, field))
                if field != "raw_data"
                else self.proto.HasField(field)
            )
        ]

    @property
    def location(self) -> str:
        """``inline``, ``external`` or ``none`` (no data at all: a weightless model)."""
        if self.is_external:
            return "external"
        return "inline" if self.fields or self.element_count == 0 else "none"

    @property
    def problem(self) -> str | None:
        """Why the values cannot be read, or None. Opens external data, reads no payload."""
        error = self.error
        return None if error is None else error.message

    @property
    def error(self) -> DldError | None:
        """The same as an error of a class that tells what is wrong."""
        try:
            self._payload()
        except DldError as error:
            return error
        return None

    def payload(self) -> Blob | bytes:
        """Return the encoded elements of a raw, float or double payload, after checking their size.

        Raises:
            InputError: The payload is missing, too short, ambiguous, or not of a fixed width.
        """
        field, data = self._payload()
        if field not in _FIXED_WIDTH:
            raise InputError(f"{field} has no fixed element width", where=self.name)
        return data

    def payload_key(self) -> str:
        """Return a key of this state of the values, valid as long as the document is open.

        Raises:
            InputError: See :meth:`payload`.
        """
        import hashlib  # with OpenSSL, which takes 4 MB

        field, data = self._payload()
        if isinstance(data, Blob):
            return f"{id(data.source)} {data.offset} {data.length} {hash(data)}"
        return hashlib.sha256(data or self.proto.SerializeToString()).hexdigest() + field

    def _payload(self) -> tuple[str, Blob | bytes]:
        where = self.name or None
        if self.dtype == "undefined":
            raise InputError("data type UNDEFINED", where=where)
        if any(dim < 0 for dim in self.proto.dims):
            raise InputError(f"negative dimension in {list(self.shape)}", where=where)
        if self.element_count > MAX_DIMENSION_PRODUCT:
            power = self.element_count.bit_length() - 1
            raise InputError(f"element count overflows (about 2^{power})", where=where)
        if self.is_external and not self.is_pending:
            return "raw_data", self._external()
        fields = self.fields
        if len(fields) > 1:
            raise AmbiguousDataError(f"has both {fields[0]} and {fields[1]}", where=where)
        if not fields:
            if self.element_count == 0:
                return "raw_data", b""
            raise NoDataError("has no data (weightless model?)", where=where)
        field = fields[0]
        data = self._field_payload(field)
        if self._in_chunks(field):
            assert self.document is not None
            field, data = "raw_data", decoded(self.proto, self.document.blobs)
        elif isinstance(data, Blob) and field not in _FIXED_WIDTH:
            field, data = "raw_data", self._fixed_width(data)
        if field == "raw_data":
            self._check_length(len(data) if isinstance(data, bytes) else data.length)
        return field, data

    def _external(self) -> Blob:
        if self.document is None:
            raise InputError("external data of a tensor without a file", where=self.name)
        blob = self.document.external.blob(self.external_entries, expected=self.nbytes)
        self._check_length(blob.length)
        return blob

    def _check_length(self, length: int) -> None:
        needed = self.nbytes
        if needed is None:
            raise InputError(f"{self.dtype} cannot be in raw_data", where=self.name or None)
        if length != needed:
            dims = "x".join(str(dim) for dim in self.shape) or "scalar"
            raise InputError(
                f"raw_data has {length} B, {dims} {self.dtype} needs {needed} B",
                where=self.name or None,
            )

    def _fixed_width(self, data: Blob) -> Blob:
        """Return a payload of varints as ``raw_data`` has it. It is decoded once."""
        assert self.document is not None
        bits = self.bits
        if bits is None or bits > 64:
            raise InputError(f"{self.dtype} cannot be in {data.field}", where=self.name or None)
        width = max(bits // 8, 1)
        known = self.document.fixed_forms.get((data, width))
        if known is None:
            # A file of its own: a thread may ask while an edit writes to the document's.
            known = SpillFile().append(fixed_width(data.chunks(1 << 20), width))
            self.document.fixed_forms[data, width] = known
        if known.length != self.nbytes:
            per_entry = max(8 // bits, 1)
            raise InputError(
                f"{data.field} has {known.length // width} values, {self.element_count} elements "
                f"need {-(-self.element_count // per_entry)}",
                where=self.name or None,
            )
        return known

    def _field_payload(self, field: str) -> Blob | bytes:
        """Return the bytes of a data field, from the cut payload or from the message."""
        values = getattr(self.proto, field)
        if field == "raw_data":
            return self._blob(values) or values
        if field == "string_data":
            return b""
        if field in _FIXED_WIDTH:
            width = _FIXED_WIDTH[field]
            data = struct.pack(f"<{len(values)}{'f' if width == 4 else 'd'}", *values)
            return (self._blob(data) or data) if len(data) == SENTINEL_LENGTH else data
        if len(values) == SENTINEL_LENGTH and all(0 <= value < 128 for value in values):
            blob = self._blob(bytes(values))
            if blob is not None:
                return blob
        return b""

    def _in_chunks(self, field: str) -> bool:
        """Return whether a packed field came in several chunks, each cut out on its own (legal)."""
        if field in ("raw_data", "string_data") or self.document is None:
            return False
        values = getattr(self.proto, field)
        per_chunk = SENTINEL_LENGTH // _FIXED_WIDTH.get(field, 1)
        if len(values) <= per_chunk:
            return False
        first = onnx.TensorProto()
        getattr(first, field).extend(values[:per_chunk])
        return isinstance(Tensor(first, self.document)._field_payload(field), Blob)

    def _blob(self, sentinel: bytes) -> Blob | None:
        return self.document.blobs.get(sentinel) if self.document is not None else None

    def read(self, start: int = 0, count: int | None = None) -> np.ndarray[Any, Any]:
        """Return elements in flat (row-major) order.

        Args:
            start: The first element.
            count: How many; the rest when None. Cut at the end of the tensor.

        Returns:
            An array of shape [count] of the numpy type for :attr:`dtype` (ml_dtypes for bfloat16,
            float8 and the like; int8 or uint8 for narrower integers; bytes objects for strings).

        Raises:
            InputError: The values cannot be read; says why.
        """
        stop = self.element_count if count is None else min(start + count, self.element_count)
        start = min(start, stop)
        field, data = self._payload()
        if field in ("raw_data", "float_data", "double_data"):
            return self._read_fixed(field, data, start, stop)
        return self._read_varints(field, start, stop)

    def listed(self) -> list[Any]:
        """Return all elements of a small tensor as :meth:`read` does, as Python's own values.

        Those of types that Python has are read without numpy, which takes a quarter of a second.

        Raises:
            InputError: The values cannot be read; says why.
        """
        field, data = self._payload()
        count, code = self.element_count, _STRUCT_CODES.get(self.dtype)
        if code is not None and field in _FIXED_WIDTH:
            return list(struct.unpack(f"<{count}{code}", self._cut(field, data, 0, count)[0]))
        values: Sequence[Any] = getattr(self.proto, field)
        if field == f"{self.dtype}_data" and len(values) == count:
            return list(values)
        elements: list[Any] = self.read().tolist()
        return elements

    def _read_fixed(
        self, field: str, data: Blob | bytes, start: int, stop: int
    ) -> np.ndarray[Any, Any]:
        part, aligned = self._cut(field, data, start, stop)
        if self.dtype in _SUB_BYTE_BITS:
            return self._unpack(part, start - aligned, stop - start)
        import numpy as np

        return np.frombuffer(part, self._numpy_type.newbyteorder("<"))

    @property
    def _numpy_type(self) -> np.dtype[Any]:
        kind = numpy_type(self.dtype)
        if kind is None:
            raise InputError(
                f"elements of type {self.dtype} cannot be read", where=self.name or None
            )
        return kind

    def _cut(self, field: str, data: Blob | bytes, start: int, stop: int) -> tuple[bytes, int]:
        """Return the bytes that hold elements, and which element they begin with."""
        bits = self.bits or 8
        if field != "raw_data":
            # float_data also carries complex64, double_data complex128, as pairs.
            length = len(data) if isinstance(data, bytes) else data.length
            if length * 8 != self.element_count * bits:
                raise InputError(
                    f"{field} has {length} B, {self.element_count} elements need "
                    f"{self.element_count * bits // 8} B",
                    where=self.name or None,
                )
        group = 1 if bits >= 8 else 8 // math.gcd(bits, 8)  # elements that fill whole bytes
        aligned = start // group * group
        first, last = aligned * bits // 8, (stop * bits + 7) // 8
        return data[first:last] if isinstance(data, bytes) else data.read(
            first, last - first
        ), aligned

    def _unpack(self, data: bytes, skipped: int, count: int) -> np.ndarray[Any, Any]:
        import numpy as np

        bits = _SUB_BYTE_BITS[self.dtype]
        stream = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        rows = stream[: len(stream) // bits * bits].reshape(-1, bits)
        codes = (rows * (1 << np.arange(bits, dtype=np.uint8))).sum(axis=1, dtype=np.uint8)
        return self._from_codes(codes[skipped : skipped + count], bits)

    def _from_codes(self, codes: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
        if self.dtype in ("int4", "int2"):
            import numpy as np

            sign = 1 << (bits - 1)
            return ((codes ^ sign).astype(np.int8) - sign).astype(np.int8)
        if self.dtype.startswith("float"):
            return codes.view(self._numpy_type)
        return codes

    def _read_varints(self, field: str, start: int, stop: int) -> np.ndarray[Any, Any]:
        values = getattr(self.proto, field)
        bits = self.bits
        per_entry = 1 if bits is None or bits >= 8 else max(1, 8 // bits)
        needed = -(-self.element_count // per_entry)
        if len(values) != needed:
            raise InputError(
                f"{field} has {len(values)} values, {self.element_count} elements need {needed}",
                where=self.name or None,
            )
        if field == "string_data":
            import numpy as np

            return np.array(list(values[start:stop]) or [], dtype=object)
        if per_entry > 1:
            packed = bytes(value & 0xFF for value in values)
            return self._unpack(packed, start, stop - start)
        return self._typed(values[start:stop])

    def _typed(self, values: Any) -> np.ndarray[Any, Any]:
        import numpy as np

        dtype = self._numpy_type
        wide = np.asarray(list(values), np.uint64 if dtype.kind == "u" else np.int64)
        if dtype.kind in "iub" and dtype.itemsize <= 8 and self.dtype not in _SUB_BYTE_BITS:
            return wide.astype(dtype)
        # float16, bfloat16 and float8 are stored as their bit patterns in int32_data.
        return wide.astype(f"<u{dtype.itemsize}").view(dtype)


PART_ELEMENTS = 1 << 20


@dataclass(frozen=True)
class TensorStatistics:
    """What the values of a tensor look like. Figures leave NaN and infinite values out."""

    count: int
    """All elements."""
    minimum: float | None
    """None when no value is finite."""
    maximum: float | None
    mean: float | None
    std: float | None
    """Population standard deviation."""
    zeros: int
    nans: int
    infinities: int


@dataclass
class _Moments:
    """Running count, mean and squared deviation (Chan, Golub, LeVeque 1979, merge formula)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def merge(self, values: np.ndarray[Any, Any]) -> None:
        import numpy as np

        added = len(values)
        if not added:
            return
        with np.errstate(over="ignore"):  # of numbers near the end of float64's range
            mean = float(values.mean())
            squares = float(((values - mean) ** 2).sum())
        total = self.count + added
        delta = mean - self.mean
        self.squares += squares + delta * delta * self.count * added / total
        self.mean += delta * added / total
        self.count = total


def tensor_statistics(
    tensor: Tensor,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> TensorStatistics | None:
    """Read a tensor once and describe its values; None for strings and complex numbers.

    Raises:
        InputError: The values cannot be read.
        CancelledError: `cancelled` said so.
    """
    if tensor.dtype in ("string", "complex64", "complex128"):
        return None
    import numpy as np

    moments = _Moments()
    low, high = math.inf, -math.inf
    zeros = nans = infinities = 0
    total = tensor.element_count
    for start in range(0, total, PART_ELEMENTS):
        if cancelled is not None and cancelled():
            raise CancelledError
        values = tensor.read(start, PART_ELEMENTS).astype(np.float64)
        finite = values[np.isfinite(values)]
        nans += int(np.isnan(values).sum())
        infinities += int(np.isinf(values).sum())
        zeros += int((values == 0).sum())
        moments.merge(finite)
        if len(finite):
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
        if progress is not None:
            progress(min(start + PART_ELEMENTS, total), total)
    known = moments.count > 0
    return TensorStatistics(
        count=total,
        minimum=low if known else None,
        maximum=high if known else None,
        mean=moments.mean if known else None,
        std=math.sqrt(moments.squares / moments.count) if known else None,
        zeros=zeros,
        nans=nans,
        infinities=infinities,
    )
