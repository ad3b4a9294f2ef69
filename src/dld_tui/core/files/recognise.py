"""Say what kind of file a path holds, by its content."""

from __future__ import annotations

import codecs
import os
import re
import struct
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CorruptFileError, DldError, InputError
from dld_tui.core.files.log_text import unwrapped
from dld_tui.core.files.proto_fields import (
    DELIMITED,
    FIXED32,
    FIXED64,
    MODEL_TAGS,
    VARINT,
    read_varint,
)
from dld_tui.core.files.source import Source
from dld_tui.core.process.plugins import Plugin, plugins, skip
from dld_tui.core.types import CancelCheck, ProgressCallback

_GIT_LFS = "version https://git-lfs"


R = TypeVar("R", covariant=True)


@dataclass(frozen=True)
class ReportReader(Generic[R]):
    """Reads what another profiler wrote as a report."""

    title: str
    """What such a file is, with its article: ``a profile of NAME``."""
    matches: Callable[[bytes, Path], bool]
    """Tells by the first 64 KiB of a file, or by all of it at its path, whether it is one."""
    read: Callable[[Path, ProgressCallback | None, CancelCheck | None], R]
    """See :func:`dld_tui.core.report.report.temporary_report`."""


def reader_of(head: bytes, path: str | os.PathLike[str]) -> Plugin[ReportReader[Any]] | None:
    """Return the reader of a package that knows a file."""
    for plugin in plugins("readers", ReportReader):
        try:
            if plugin.value.matches(head, Path(path)):
                return plugin
        # The seam to code of others, which may raise anything: it does not know the file then.
        except Exception as error:  # noqa: BLE001
            skip("readers", plugin, error)
    return None


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


def capability_text(text: str) -> str:
    """Return ``8.6`` of ``86``, and ``8.0 and later`` of ``80+``, as the provider writes it."""
    if not re.fullmatch(r"\d{2,3}\+?", text):
        return text
    digits = text.rstrip("+")
    return f"{digits[:-1]}.{digits[-1]}" + (" and later" if text.endswith("+") else "")


HEAD: Final = 64 << 10
"""Bytes at the start of a file that tell what it is."""
_MODEL_FIELDS_TO_CHECK: Final = 16


class FileKind(Enum):
    """What a file is; the value is how a sentence names it."""

    ONNX = "an ONNX model"
    ONNX_TEXT = "an ONNX model as text"
    REPORT = "a profile report"
    ORT_PROFILE = "an ONNX Runtime profile"
    TRACE = "a Chrome trace"
    ENGINE_LAYERS = "TensorRT layer information"
    ENGINE_PROFILE = "a TensorRT layer profile"
    ENGINE_TIMES = "a list of TensorRT inference times"
    ENGINE_METADATA = "metadata of a TensorRT engine"
    ENGINE_ARCHIVE = "an archive of a TensorRT engine"
    TRTEXEC_LOG = "a TensorRT log"
    TUNING = "a result of tuning"
    SWEEP = "a result of a sweep"
    EDIT_SCRIPT = "an edit script"
    OTHER_PROFILE = "a profile of another program"

    @property
    def is_model(self) -> bool:
        """Whether it is an ONNX model, in whatever form."""
        return self in (FileKind.ONNX, FileKind.ONNX_TEXT)

    @property
    def title(self) -> str:
        """The kind in a sentence, with its article."""
        return self.value


_SIGNATURES: Final = (
    (0, b"PK\x03\x04", "a ZIP archive (PyTorch .pt?)"),
    (0, b"PK\x05\x06", "an empty ZIP archive"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras .h5?)"),
    (4, b"TFL3", "a TensorFlow Lite model"),
    (4, b"ORTM", "an ONNX Runtime .ort model"),
    (0, b"\x1f\x8b", "gzip-compressed"),
    (0, b"\x28\xb5\x2f\xfd", "zstd-compressed"),
    (0, b"\xfd7zXZ\x00", "xz-compressed"),
    (0, b"BZh", "bzip2-compressed"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"GGUF", "a GGUF model"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"\x7fELF", "a program or shared library"),
    (0, b"SQLite format 3\x00", "a SQLite database that is not a report of this program"),
    (0, b"\x89PNG", "a picture"),
    (0, b"\xff\xd8\xff", "a picture"),
    (0, b"%PDF-", "a PDF document"),
)
_COMPRESSED: Final = frozenset(
    {"gzip-compressed", "zstd-compressed", "xz-compressed", "bzip2-compressed"}
)
# Patterns are compiled where a file may be of the kind, and kept by `re`: models need none.
_PICKLE: Final = rb"(?s)\x80[\x02-\x05](?:\x95.{8})?[\x8a}\]c(\x8c.]"
_SAFETENSORS: Final = rb"(?s).{6}\x00\x00\{\s*\""
_ZIP: Final = b"PK\x03\x04"
_GRAPH_MEMBER: Final = r"(?:^|[./])graph(?:\.[0-9a-f]{6,40})?\.json$"
_REPORT_ID: Final = b"DLDP"
"""SQLite's application_id of our reports, at byte 68."""

# Logs have escapes for colours (0x1b), TensorRT's have separators (0x1e, 0x1f) as well.
_CONTROL: Final = r"[\x00-\x08\x0e-\x1a]"
_JSON_START: Final = r'\s*(?:\{|\[\s*(?:[\[{\]"]|$))'
_LOG: Final = (
    r"(?m)&&&& RUNNING TensorRT|\[TensorRT v\d"
    r"|\[TRT\] \[[VIWEF]\]|\] \[[VIWEF]\] (?:\[TRT\]|===)"
    # The table of layer times by itself: its titles, or its sum.
    r"|\bLayer +Time ?\(ms\) +Avg\.|\bTime ?\(ms\) +Avg\..*\bLayer$"
    r"|\bTotal +[\d.]+ +[\d.]+ +(?:[\d.]+ +)?100\.0$"
    r"|\b[\d.]+ +[\d.]+ +(?:[\d.]+ +)?100\.0 +Total$"
)
_ONNX_PROTO_TEXT: Final = r"(?m)^[ \t]*(?:ir_version:|opset_import\s*\{|graph\s*\{|producer_name:)"
_ONNX_TEXT: Final = (
    r"(?:\s*#[^\n]*\n)*\s*<\s*(?:ir_version|opset_import|producer_name|domain|metadata_props)\s*:"
)
_HTML: Final = r"(?i)\s*<(?:!doctype|html|head|\?xml|[a-z])"

_TEXT: Final = r'"(?:[^"\\]|\\.)*"'
_JSON_STARTS: Final = (
    (r'\{\s*"(?:journal|edit|undo|redo)"\s*:', FileKind.EDIT_SCRIPT),
    (rf'\{{\s*"report"\s*:\s*{_TEXT},\s*"source"\s*:\s*{_TEXT},\s*"best"\s*:\s*"', FileKind.TUNING),
    (rf'\{{\s*"model"\s*:\s*{_TEXT},\s*"backend"\s*:\s*{_TEXT},\s*"axes"\s*:', FileKind.SWEEP),
    (r'\[\s*\{\s*"count"\s*:', FileKind.ENGINE_PROFILE),
    (r'\[\s*\{\s*"name"\s*:[^{}]{0,9999}"(?:averageMs|timeMs)"\s*:', FileKind.ENGINE_PROFILE),
    (r'\[\s*\{[^{}]{0,9999}"(?:startComputeMs|startEnqMs|computeMs)"\s*:', FileKind.ENGINE_TIMES),
    (r'\[\s*\{[^{}]*"(?:ph|cat)"\s*:', FileKind.TRACE),
)
"""How the JSON files begin that have no telling keys, or have them only at the start."""
_ORT_EVENT: Final = r'"cat"\s*:\s*"(?:Node|Session)"'
"""What ONNX Runtime's profile has and other Chrome traces have not."""

_JSON_KEYS: Final = (
    ("Layers|LayerType|LayerInfo|layerInfo|I/O Tensors", FileKind.ENGINE_LAYERS),
    ("performance_summary|model_options|build_options|ComputeCapability", FileKind.ENGINE_METADATA),
    ("irVersion|ir_version|opsetImport|opset_import", FileKind.ONNX_TEXT),
    ("traceEvents", FileKind.TRACE),
)
"""Keys that tell a kind wherever they are."""


def recognise(path: str | os.PathLike[str]) -> FileKind:
    """Return what kind of file a path holds.

    Raises:
        CorruptFileError: The file is empty, or neither text nor an ONNX protobuf.
        InputError: It cannot be read, or is something else that is known by name.
    """
    source = Source.open(path)
    try:
        head = source.read(0, min(source.size, HEAD))
    finally:
        source.close()
    where = os.fspath(path)
    if not head:
        raise CorruptFileError("File is empty (0 bytes)", where=where)
    if head.startswith(b"SQLite format 3\x00") and head[68:72] == _REPORT_ID:
        return FileKind.REPORT
    if reader_of(head, where) is not None:
        return FileKind.OTHER_PROFILE
    if head.startswith(_ZIP) and _is_engine_archive(where):
        return FileKind.ENGINE_ARCHIVE
    _refuse_known(head, where)
    text = _as_text(head)
    if text is not None:
        return _kind_of_text(text, where)
    _require_model(head, where)
    return FileKind.ONNX


def is_sweep(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is that of a result of ``dld sweep``."""
    try:
        return recognise(path) is FileKind.SWEEP
    except DldError:  # who opens it says why
        return False


def _refuse_known(head: bytes, where: str) -> None:
    for offset, signature, name in _SIGNATURES:
        if not head.startswith(signature, offset):
            continue
        if name in _COMPRESSED:
            raise InputError(f"This file is {name}: decompress first", where=where)
        raise InputError(f"This is {name}, not ONNX", where=where)
    engine = engine_header(head)
    if engine is not None:
        raise InputError(
            f"This is a TensorRT engine, not ONNX, written by {engine.text}",
            where=where,
            hint="Open its layer information instead (.trt.json, trtexec --exportLayerInfo)",
        )
    if head[0] == 0x80 and re.match(_PICKLE, head):
        raise InputError("This is a Python pickle (PyTorch .pt or .pth?), not ONNX", where=where)
    if head[6:9] == b"\0\0{" and re.match(_SAFETENSORS, head):
        raise InputError(
            "This is a safetensors file (weights without a graph), not ONNX", where=where
        )


def _is_engine_archive(path: str) -> bool:
    """Tell whether a ZIP archive has TREx's layer information in it (``.tea``)."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            return any(re.search(_GRAPH_MEMBER, name) for name in archive.namelist())
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return False


def _as_text(head: bytes) -> str | None:
    """Return the head of a text file, None for anything else."""
    encoding = "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        # The head may end within a character, so the end is not final.
        text = unwrapped(codecs.getincrementaldecoder(encoding)().decode(head, final=False))
    except UnicodeDecodeError:
        return None
    return None if re.search(_CONTROL, text) else text


def _kind_of_text(text: str, where: str) -> FileKind:
    if text.startswith(_GIT_LFS):
        raise InputError(
            "This is a Git LFS pointer, not the file itself", where=where, hint="Run: git lfs pull"
        )
    if re.match(_JSON_START, text):
        return _kind_of_json(text.strip(), where)
    if re.search(_LOG, text):
        return FileKind.TRTEXEC_LOG
    if re.match(r"-+ Layer \d", text):
        return FileKind.ENGINE_LAYERS
    if re.match(_ONNX_TEXT, text) or (
        re.search(_ONNX_PROTO_TEXT, text) and not re.match(_HTML, text)
    ):
        return FileKind.ONNX_TEXT
    if text.lstrip().startswith("#") and re.search(r'^[ \t]*\{\s*"edit"\s*:', text, re.MULTILINE):
        return FileKind.EDIT_SCRIPT
    raise InputError("Looks like HTML/text, not ONNX (failed download?)", where=where)


def _kind_of_json(text: str, where: str) -> FileKind:
    known_kind = next((kind for start, kind in _JSON_STARTS if re.match(start, text)), None)
    if known_kind is None:
        matches = (kind for keys, kind in _JSON_KEYS if re.search(rf'"(?:{keys})"\s*:', text))
        known_kind = next(matches, None)
    if known_kind is None and re.match(r"\[\s*\{", text) and re.search(r'"ph"\s*:\s*"\w"', text):
        known_kind = FileKind.TRACE  # with arguments before the telling keys
    if known_kind is FileKind.TRACE and re.search(_ORT_EVENT, text):
        return FileKind.ORT_PROFILE
    if known_kind is not None:
        return known_kind
    # ONNX Runtime leaves this behind when a session fails before its first event.
    if text == "[":
        return FileKind.ORT_PROFILE
    raise InputError(
        "This JSON file is not a known kind of profile, layer information or model",
        where=where,
    )


def _require_model(head: bytes, where: str) -> None:
    """Check that a file starts with fields of ModelProto; whether the rest is right is not said."""
    position = 0
    known = 0
    for _ in range(_MODEL_FIELDS_TO_CHECK):
        if position >= len(head):
            break
        try:
            tag, after = read_varint(head, position)
            number, wire_type = tag >> 3, tag & 7
            expected = MODEL_TAGS.get(number)
            if number == 0 or (expected is not None and tag != expected):
                raise ValueError(f"unexpected field {number}")
            known += expected is not None
            if wire_type == VARINT:
                position = read_varint(head, after)[1]
            elif wire_type == DELIMITED:
                length, after = read_varint(head, after)
                position = after + length
            elif wire_type in (FIXED32, FIXED64):
                position = after + (4 if wire_type == FIXED32 else 8)
            else:
                break  # a group: legal and never seen
        except IndexError:
            break
        except ValueError as error:
            raise CorruptFileError(
                f"Not an ONNX protobuf: {error} at byte {position}", where=where
            ) from None
    if not known:
        raise CorruptFileError(
            "Not an ONNX protobuf: it starts with no field of a model", where=where
        )
