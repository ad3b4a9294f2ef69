"""Engines that ONNX Runtime's TensorRT provider keeps: what their names and profiles tell.

The provider names an engine after its partition of the model, its precision and its GPU, and writes
the ranges of dynamic dimensions beside it, as a FlexBuffer (tensorrt_execution_provider.cc and
SerializeProfileV2 of ONNX Runtime).
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.files.recognise import EngineHeader, capability_text, engine_header
from dld_tui.core.files.source import Source
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_NAME = re.compile(
    r"(?:(?P<provider>Tensorrt|NvTensorRTRTX)ExecutionProvider_TRTKernel_(?:sub)?graph_)?"
    r"(?P<graph>.*?)_(?P<hash>\d{6,})_(?P<part>\d+)(?:_\d+)?"
    r"(?P<types>(?:_(?:fp16|bf16|int8|dlacore\d+))*)_sm(?P<sm>\d{2,3}\+?)"
    r"(?P<stripped>\.stripped)?\.(?:engine|profile)(?P<encrypted>\.encrypted)?"
)
_MOST_BYTES = 1 << 20
"""Profiles are a few hundred bytes; a larger file is none."""
_HEAD = 64


@dataclass(frozen=True)
class Range:
    """The sizes of a dimension in an optimization profile."""

    tensor: str
    """Untrusted text."""
    axis: int
    profile: int
    least: int
    best: int
    most: int

    @property
    def text(self) -> str:
        """For people; free of untrusted text."""
        sizes = f"{self.least} to {self.most}, best {self.best}"
        profile = f", profile {self.profile}" if self.profile else ""
        return f"{visible(self.tensor)} axis {self.axis}: {sizes}{profile}"


@dataclass(frozen=True)
class CachedEngine:
    """An engine in a file, as it is, as its name says, and as the profile beside it says."""

    header: EngineHeader | None
    """None where it is encrypted, or the file is a profile."""
    bytes: int
    graph: str = ""
    """The model's graph, of the name. Untrusted text."""
    partition: int | None = None
    """The part of that graph; None where the name does not say."""
    types: tuple[str, ...] = ()
    compute_capability: str = ""
    is_stripped: bool = False
    """Whether its weights are in the model that it was built from."""
    is_encrypted: bool = False
    ranges: tuple[Range, ...] = ()

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Titles and texts for people; free of untrusted text."""
        rows = [("engine", self.header.text if self.header else "encrypted or not here")]
        rows.append(("size", fmt.size(self.bytes)))
        if self.partition is not None:
            rows.append(("partition", f"{self.partition} of graph {visible(self.graph)}"))
        if self.types:
            rows.append(("precision", ", ".join(self.types)))
        if self.compute_capability:
            rows.append(("made for", f"compute capability {self.compute_capability}"))
        if self.is_stripped:
            rows.append(("weights", "stripped: ONNX Runtime refits them from the model"))
        rows += [("shapes" if not at else "", one.text) for at, one in enumerate(self.ranges)]
        return rows

    def to_json(self) -> JSON:
        """Return the fields of ``dld inspect --json``. Fields may be added, never renamed."""
        return {
            "engine": None if self.header is None else self.header.text, "bytes": self.bytes,
            "graph": self.graph or None, "partition": self.partition, "types": list(self.types),
            "compute_capability": self.compute_capability or None, "stripped": self.is_stripped,
            "encrypted": self.is_encrypted,
            "ranges": [
                {"tensor": one.tensor, "axis": one.axis, "profile": one.profile,
                 "least": one.least, "best": one.best, "most": one.most} for one in self.ranges
            ],
        }  # fmt: skip


def cached_engine(path: Path) -> CachedEngine | None:
    """Return what is known of a file of an engine, or of the profile of a cache; None for others.

    Raises:
        InputError: It cannot be read.
    """
    source = Source.open(path)
    try:
        size = source.size
        header = engine_header(source.read(0, min(_HEAD, size)))
    finally:
        source.close()
    match = _NAME.fullmatch(path.name)
    if header is None and match is None:
        return None
    ranges = _ranges_beside(path)
    if match is None:
        return CachedEngine(header, size, ranges=ranges)
    return CachedEngine(
        header, size, match["graph"], int(match["part"]),
        tuple(match["types"].split("_")[1:]), capability_text(match["sm"]),
        match["stripped"] is not None, match["encrypted"] is not None, ranges,
    )  # fmt: skip


def _ranges_beside(path: Path) -> tuple[Range, ...]:
    """Return the ranges of the profile of an engine; none where there is no such file."""
    stem = path.name.removesuffix(".encrypted").removesuffix(".engine").removesuffix(".stripped")
    beside = path.with_name(f"{stem.removesuffix('.profile')}.profile")
    try:
        source = Source.open(beside, follow_link=False)
    except InputError:
        return ()
    try:
        data = source.read(0, source.size) if source.size <= _MOST_BYTES else b""
    finally:
        source.close()
    try:
        return tuple(profile_ranges(data))
    except (ValueError, struct.error):
        return ()


def profile_ranges(data: bytes) -> list[Range]:
    """Return the ranges that a profile file holds.

    Raises:
        ValueError: It is no such file.
    """
    ranges = []
    for tensor, numbers in _map_of_vectors(data).items():
        seen: dict[int, int] = {}
        for at in range(0, len(numbers) - 3, 4):
            axis, least, most, best = numbers[at : at + 4]
            ranges.append(Range(tensor, axis, seen.get(axis, 0), least, best, most))
            seen[axis] = seen.get(axis, 0) + 1
    return sorted(ranges, key=lambda one: (one.tensor, one.profile, one.axis))


_MAP, _VECTOR_INT, _VECTOR_UINT = 9, 11, 12
_UNSIGNED = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


def _map_of_vectors(data: bytes) -> dict[str, list[int]]:
    """Return the root of a FlexBuffer, which must be a map of vectors of integers."""
    if len(data) < 3 or data[-1] not in _UNSIGNED or data[-2] >> 2 != _MAP:
        raise ValueError("no map")
    at = len(data) - 2 - data[-1]
    start, width = at - _number(data, at, data[-1]), 1 << (data[-2] & 3)
    count = _number(data, start - width, width)
    keys = start - 3 * width - _number(data, start - 3 * width, width)
    key_width = _number(data, start - 2 * width, width)
    if count > len(data):
        raise ValueError("too long")
    vectors = {}
    for index in range(count):
        place = keys + index * key_width
        begin = place - _number(data, place, key_width)
        if not 0 <= begin < len(data):
            raise ValueError("a key is outside")
        key = data[begin : data.index(b"\0", begin)].decode(errors="replace")
        kind = data[start + count * width + index]
        place = start + index * width
        vectors[key] = _vector(data, place - _number(data, place, width), kind)
    return vectors


def _vector(data: bytes, start: int, kind: int) -> list[int]:
    width, is_signed = 1 << (kind & 3), kind >> 2 == _VECTOR_INT
    if kind >> 2 not in (_VECTOR_INT, _VECTOR_UINT):
        raise ValueError("no vector of integers")
    count = _number(data, start - width, width)
    if count > len(data):
        raise ValueError("too long")
    code = _UNSIGNED[width].lower() if is_signed else _UNSIGNED[width]
    return [_number(data, start + at * width, width, code) for at in range(count)]


def _number(data: bytes, at: int, width: int, code: str = "") -> int:
    if at < 0 or width not in _UNSIGNED:
        raise ValueError("outside")
    number: int = struct.unpack_from(code or _UNSIGNED[width], data, at)[0]
    return number
