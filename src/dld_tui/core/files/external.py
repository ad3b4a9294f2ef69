"""External data files: which may be opened, the payloads in them, and which nothing needs any more.

The location of external data comes from the model, so it is foreign: it may only name a regular
file in the model's own folder or below it. What a location or a link in the folder says about the
world outside is never opened or examined, unless the user allows links (the Hugging Face cache is
made of them).

A data file is never overwritten: until the model is renamed, the old one reads from it. So each
time a model is converted onto the same output, a data file of another name is written, and the
former one is removed here, after that. Only files that this program named after the model are
meant, and only where no other model of the folder refers to them.
"""

from __future__ import annotations

import math
import os
import re
import resource
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from google.protobuf.message import DecodeError

from dld_tui.core.errors import DldError, InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import FIXED_WIDTH_FIELDS, SENTINEL_LENGTH, Blob, BlobTable
from dld_tui.core.files.source import Source, open_error
from dld_tui.core.files.wire import TENSOR, cut, splice
from dld_tui.core.text import clip, visible
from dld_tui.core.types import ELEMENT_BITS

_PAYLOAD_FIELDS = (
    "raw_data",
    "float_data",
    "int32_data",
    "int64_data",
    "double_data",
    "uint64_data",
)
_FLOATS, _DOUBLES = f"<{SENTINEL_LENGTH // 4}f", f"<{SENTINEL_LENGTH // 8}d"


def dense_tensors(model: onnx.ModelProto, *, sparse: bool = False) -> Iterator[onnx.TensorProto]:
    """Yield every tensor that may have external data: initializers and attributes at all levels.

    Args:
        model: The model.
        sparse: Yield the parts of sparse tensors as well, which other tools read from the model
            only.
    """
    graphs = [model.graph]
    for training in model.training_info:
        graphs += (training.initialization, training.algorithm)
    nodes: list[Iterable[onnx.NodeProto]] = [function.node for function in model.functions]
    for function in model.functions:
        for attribute in function.attribute_proto:
            yield from tensors_of_attribute(attribute, sparse=sparse)
            graphs += _graphs_of(attribute)
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            for record in graph.sparse_initializer if sparse else ():
                yield from (record.values, record.indices)
            nodes.append(graph.node)
        for node in nodes.pop():
            for attribute in node.attribute:
                yield from tensors_of_attribute(attribute, sparse=sparse)
                graphs += _graphs_of(attribute)


def tensors_of_attribute(
    attribute: onnx.AttributeProto, *, sparse: bool = False
) -> Iterator[onnx.TensorProto]:
    """Yield the tensors that an attribute holds itself; with `sparse` parts of sparse ones too."""
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    if sparse and attribute.HasField("sparse_tensor"):
        yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)


def _graphs_of(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    return [*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs]


def has_external(skeleton: bytes) -> bool:
    """Return whether a serialised model may have external data: True is a maybe, False is sure."""
    return b"\x70\x01" in skeleton  # data_location: EXTERNAL


def is_external(tensor: onnx.TensorProto) -> bool:
    """Return whether a tensor's payload is in a file of its own."""
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def entries_of(tensor: onnx.TensorProto) -> dict[str, str]:
    """Return the ``external_data`` entries. Untrusted text."""
    return {_text(entry.key): _text(entry.value) for entry in tensor.external_data}


def _text(value: str | bytes) -> str:
    # protobuf hands out text that is not UTF-8 as bytes.
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def set_external(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    """Make a tensor's payload external; what it held inline is removed."""
    for field in (*_PAYLOAD_FIELDS, "external_data"):
        tensor.ClearField(field)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


PENDING = "dld.pending"
"""Marks external data that is still to be written: the payload is in ``raw_data`` until then."""


def is_pending(tensor: onnx.TensorProto) -> bool:
    """Return whether a tensor's data is to go to a data file when the model is saved."""
    return is_external(tensor) and any(entry.key == PENDING for entry in tensor.external_data)


def set_pending(tensor: onnx.TensorProto, location: str, payload: bytes) -> None:
    """Make a tensor's payload external as soon as the model is saved.

    Args:
        tensor: The tensor.
        location: The data file, relative to the model; empty for one named after the model.
        payload: The payload or, better, a sentinel that stands for it.
    """
    set_inline(tensor, payload)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), (PENDING, "1")):
        tensor.external_data.add(key=key, value=value)


def make_plain(tensor: onnx.TensorProto) -> None:
    """Make a tensor inline whose data was to go to a data file; others stay as they are."""
    if is_pending(tensor):
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")


def set_inline(tensor: onnx.TensorProto, payload: bytes) -> None:
    """Make a tensor's payload inline."""
    for field in (*_PAYLOAD_FIELDS, "external_data", "data_location"):
        tensor.ClearField(field)
    tensor.raw_data = payload


def inline_blob(tensor: onnx.TensorProto, blobs: BlobTable) -> Blob | None:
    """Return the payload that was cut out of a tensor when that is all it has, else None.

    None for a payload of several chunks, too.
    """
    blob: Blob | None = None
    for field in _PAYLOAD_FIELDS:
        values = getattr(tensor, field)
        if not values:
            continue
        if blob is not None:
            return None
        blob = blobs.get(_sentinel(field, values))
        if blob is None:
            return None
    return blob


def _sentinel(field: str, values: bytes | list[float] | list[int]) -> bytes:
    """Return the field's content as bytes if it may be a sentinel, else nothing."""
    if isinstance(values, bytes):
        return values
    if field == "float_data":
        return struct.pack(_FLOATS, *values) if len(values) * 4 == SENTINEL_LENGTH else b""
    if field == "double_data":
        return struct.pack(_DOUBLES, *values) if len(values) * 8 == SENTINEL_LENGTH else b""
    if len(values) == SENTINEL_LENGTH and all(0 <= value < 0x80 for value in values):
        return bytes(int(value) for value in values)
    return b""


def has_values_as_stored(blob: Blob) -> bool:
    """Return whether a payload is what ``raw_data`` or a data file holds: little-endian values."""
    return blob.field in FIXED_WIDTH_FIELDS


def decoded(tensor: onnx.TensorProto, blobs: BlobTable) -> bytes:
    """Return the payload of a tensor with varints in the form of ``raw_data``. Reads it all.

    Raises:
        DecodeError: The payload is no list of varints.
        ValueError: Its length does not fit the dimensions.
    """
    from onnx import numpy_helper

    pieces = splice(tensor.SerializeToString(), blobs, kind=TENSOR)
    data = b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in pieces)
    return numpy_helper.from_array(
        numpy_helper.to_array(onnx.TensorProto.FromString(data))
    ).raw_data


def element_bits(data_type: int) -> int | None:
    """Return the bits of an element of a ``TensorProto.DataType``; None for strings and unknown."""
    try:
        return ELEMENT_BITS.get(onnx.TensorProto.DataType.Name(data_type).lower())
    except (ValueError, TypeError):
        return None


def payload_length(tensor: onnx.TensorProto) -> int | None:
    """Return the bytes that the values of a tensor take; None when its type or shape is odd."""
    bits = element_bits(tensor.data_type)
    if bits is None or any(dim < 0 for dim in tensor.dims):
        return None
    return (math.prod(tensor.dims) * bits + 7) // 8


KNOWN_ENTRIES = frozenset({"location", "offset", "length", "checksum", "basepath"})
"""The keys of ``external_data`` that ONNX defines; others are ignored."""

_LARGEST_OFFSET = 2**63 - 1
_NUMBER = r"(?a)\s*([0-9]{1,19})\s*"
_DRIVE = r"[A-Za-z]:"
_MAX_LINKS = 40
_MANY_FILES = 128
_WANTED_DESCRIPTORS = 65536


class ExternalDataError(InputError):
    """External data that is missing, or that must not be opened.

    Args:
        message: What is wrong.
        link: True when it is a link that leaves the folder, which the user may allow.
    """

    def __init__(self, message: str, *, link: bool = False, **context: str | None) -> None:
        super().__init__(message, **context)
        self.link = link


def resolve_external(
    model_path: str | os.PathLike[str], location: str, *, allow_linked: bool = False
) -> Path:
    """Return the regular file that a location means, without links in its path.

    Args:
        model_path: The model; locations are relative to its folder.
        location: The entry of the tensor.
        allow_linked: Follow links out of the folder. An absolute location, or one that leads out
            by ``..``, is refused even so. Links into the folder that the model itself is in, where
            the model is a link, are followed always.

    Raises:
        ExternalDataError: It is refused, or the file does not exist.
    """
    where = os.fspath(model_path)
    shown = clip(visible(location), 200, keep="middle")
    parts = _parts(where, location)
    root = Path(os.path.realpath(os.path.dirname(os.path.abspath(model_path))))
    try:
        return _resolved(root, parts, model_path, allow_linked)
    except _LeavesFolderError:
        raise ExternalDataError(
            f"External data path leaves the model folder through a link: {shown}",
            where=where,
            hint=_link_hint(root),
            link=True,
        ) from None
    except _NotRegularError:
        raise ExternalDataError(
            f"External data {shown} is not a regular file", where=where
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise ExternalDataError(f"External data {shown} not found", where=where) from None
    except OSError as error:
        raise ExternalDataError(
            f"External data {shown} cannot be opened: {open_error(root, error).message}",
            where=where,
        ) from None


def _resolved(
    root: Path, parts: list[str], model_path: str | os.PathLike[str], allow_linked: bool
) -> Path:
    """Return the file of a location, as ONNX Runtime allows it to be.

    Where the model itself is a link, as in the cache of the Hugging Face hub, its data may be in
    the folder that the link leads to.
    """
    try:
        return _Resolver(root, allow_linked).file(parts)
    except _LeavesFolderError:
        home = Path(os.path.realpath(model_path)).parent
        if home == root:
            raise
        path = _Resolver(root, True).file(parts)
        if not path.is_relative_to(home):
            raise
        return path


def require_location(model_path: str | os.PathLike[str], location: str) -> Path:
    """Return where a data file of a location would be, which need not be there.

    Raises:
        ExternalDataError: The location is not inside the model's folder.
    """
    where = os.fspath(model_path)
    parts = _parts(where, location)
    root = os.path.realpath(os.path.dirname(os.path.abspath(model_path)))
    path = Path(os.path.realpath(os.path.join(root, *parts)))
    is_inside = ".." not in parts and path.is_relative_to(root)
    is_text = not any("\ud800" <= char <= "\udfff" for char in location)  # as ONNX stores it
    if not (is_inside and is_text) or path == Path(root) or path.is_dir():
        shown = clip(visible(location), 200, keep="middle")
        raise ExternalDataError(f"External data cannot be written to {shown}", where=where)
    return path


def _parts(where: str, location: str) -> list[str]:
    """Return the parts of a location that does not lead out of the model's folder by itself."""
    shown = clip(visible(location), 200, keep="middle")
    if not location or "\0" in location:
        raise ExternalDataError(f"External data with an invalid location: '{shown}'", where=where)
    parts = location.split("/")
    normal = os.path.normpath(location)  # `s/../w.bin` stays inside, as it does for ONNX
    leads_out = normal.startswith("/") or normal == ".." or normal.startswith("../")
    if leads_out or "\\" in location or re.match(_DRIVE, location):
        raise ExternalDataError(f"External data path leaves the model folder: {shown}", where=where)
    return parts


def in_huggingface_cache(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is inside a Hugging Face cache, which is made of links."""
    parts = Path(os.path.abspath(path)).parts
    return any(
        part == "snapshots" and parts[index - 1].startswith(("models--", "datasets--", "spaces--"))
        for index, part in enumerate(parts)
        if index
    )


def _link_hint(folder: Path) -> str:
    if in_huggingface_cache(folder):
        return "This is a Hugging Face cache, which is made of links: allow linked data to read it"
    return "Allow linked data if you trust the model, or copy the file into its folder"


class _LeavesFolderError(Exception):
    pass


class _NotRegularError(Exception):
    pass


class _Resolver:
    """Walks a relative path below a folder one name at a time, following links itself."""

    def __init__(self, root: Path, allow_linked: bool) -> None:
        self._root = root
        self._allow_linked = allow_linked

    def file(self, parts: list[str]) -> Path:
        pending = [part for part in reversed(parts) if part not in ("", ".")]
        current = self._root
        links = 0
        mode = stat.S_IFDIR
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not stat.S_ISDIR(mode):
                    raise NotADirectoryError
                if current == self._root:
                    return self._outside(current / "..", pending)
                current = current.parent
                continue
            mode = os.lstat(current / part).st_mode
            if not stat.S_ISLNK(mode):
                current /= part
                continue
            links += 1
            if links > _MAX_LINKS:
                raise _NotRegularError
            target = os.readlink(current / part)
            mode = stat.S_IFDIR  # that of the folder from where its parts lead
            if target.startswith("/"):
                inside = self._below_root(target)
                if inside is None:
                    return self._outside(Path(target), pending)
                target, current = inside, self._root
            pending += reversed(target.split("/"))
        if not stat.S_ISREG(mode):
            raise _NotRegularError
        return current

    def _below_root(self, target: str) -> str | None:
        prefix = os.path.join(self._root, "")
        return target[len(prefix) :] if target.startswith(prefix) else None

    def _outside(self, path: Path, pending: list[str]) -> Path:
        if not self._allow_linked:
            raise _LeavesFolderError
        resolved = Path(os.path.realpath(path.joinpath(*reversed(pending))))
        if not stat.S_ISREG(os.stat(resolved).st_mode):
            raise _NotRegularError
        return resolved


class ExternalFiles:
    """The data files of one model, each opened once, when it is first needed.

    Args:
        model_path: The model's file.
        allow_linked: Follow links out of its folder; such files are only read.
    """

    def __init__(self, model_path: str | os.PathLike[str], *, allow_linked: bool = False) -> None:
        self.model_path = Path(model_path)
        self.allow_linked = allow_linked
        self._where = os.fspath(model_path)
        self._sources: dict[str, Source] = {}
        self._copies: dict[tuple[Source, int], Blob] = {}
        self._clones: dict[Path, set[tuple[int, int, int, int]]] = {}
        self._written: list[Source] = []
        self._replaced: list[Source] = []

    def reopened(self) -> ExternalFiles:
        """Return the same files for another document, which opens and closes them on its own."""
        other = ExternalFiles(self.model_path, allow_linked=self.allow_linked)
        other._where = self._where
        other._copies = dict(self._copies)
        other._clones = {path: set(clones) for path, clones in self._clones.items()}
        return other

    def blob(self, entries: Mapping[str, str], *, expected: int | None = None) -> Blob:
        """Return the payload that the ``external_data`` entries of a tensor mean; nothing is read.

        Args:
            entries: ``location``, and ``offset`` and ``length`` in bytes; others are ignored.
            expected: The bytes that the tensor needs, for entries without a length.

        Raises:
            ExternalDataError: The file is missing or refused, or the range is not in it.
        """
        blob = self.original(entries, expected=expected)
        copy = self._copies.get((blob.source, blob.offset))
        if copy is None or copy.length < blob.length:
            return blob
        return Blob(copy.source, copy.offset, blob.length, "raw_data")

    def original(self, entries: Mapping[str, str], *, expected: int | None = None) -> Blob:
        """Return the payload in the file that the entries name, even if it was copied since.

        See :meth:`blob` for the arguments.

        Raises:
            ExternalDataError: The file is missing or refused, or the range is not in it.
        """
        location = entries.get("location", "")
        source = self.source(location)
        offset = self._number(entries, "offset", location, 0)
        rest = max(source.size - offset, 0)
        length = self._number(entries, "length", location, rest if expected is None else expected)
        if offset + length > source.size:
            raise ExternalDataError(
                f"External data {clip(visible(location), 200)}: Invalid offset/length: bytes"
                f" {offset} to {offset + length} are not in the file of {source.size} bytes",
                where=self._where,
            )
        return Blob(source, offset, length, "raw_data")

    def source(self, location: str) -> Source:
        """Return the open data file of a location.

        Raises:
            ExternalDataError: It is missing or refused.
        """
        source = self._sources.get(location)
        if source is None:
            source = self._open(self.resolve(location), location)
            self._sources[location] = source
            if len(self._sources) == _MANY_FILES:
                _allow_many_files()
        return source

    def resolve(self, location: str) -> Path:
        """Return the file that a location means, without opening it.

        Raises:
            ExternalDataError: It is missing or refused.
        """
        try:
            return resolve_external(self.model_path, location, allow_linked=self.allow_linked)
        except ExternalDataError as error:
            # Where the model is itself a link, its data may be beside the real file.
            if error.link or not self.model_path.is_symlink():
                raise
            real = os.path.realpath(self.model_path)
            try:
                return resolve_external(real, location, allow_linked=self.allow_linked)
            except ExternalDataError:
                raise error from None

    def adopt(self, pieces: Sequence[bytes | Blob], source: Source) -> None:
        """Take in a data file that was written for this model.

        From now on the payloads in it are read from there, whatever their entries say.

        Args:
            pieces: What was written, from its first byte.
            source: The file.
        """
        self._written.append(source)
        new: dict[tuple[Source, int], Blob] = {}
        offset = 0
        for piece in pieces:
            length = len(piece) if isinstance(piece, bytes) else piece.length
            if isinstance(piece, Blob) and piece.is_stored:
                new[piece.source, piece.offset] = Blob(source, offset, length, "raw_data")
            offset += length
        # A copy of a copy is one of the original, too.
        self._copies = {
            key: new.get((copy.source, copy.offset), copy) for key, copy in self._copies.items()
        }
        self._copies.update(new)

    def is_home(self, folder: Path) -> bool:
        """Return whether all entries are right as they are for a model in a resolved folder."""
        home = os.path.realpath(self.model_path.absolute().parent)
        return not self._copies and os.fspath(folder) == home

    def is_data_file(self, source: Source) -> bool:
        """Return whether a source is a data file of this model, and still the one at its path."""
        known = source in self._written or source in self._sources.values()
        return known and not source.changed_on_disk()

    def data_file(self, path: Path) -> Source | None:
        """Return the data file of this model that is at a path without links, or None."""
        for source in (*self._written, *self._sources.values()):
            if os.path.realpath(source.path) == os.fspath(path) and self.is_data_file(source):
                return source
        return None

    def replaced(self, source: Source) -> None:
        """Take in a data file that begins with what the one at its path held before."""
        path = os.path.realpath(source.path)
        for location, old in self._sources.items():
            if os.path.realpath(old.path) == path:
                self._replaced.append(old)
                self._sources[location] = source
        old_ones = [old for old in self._written if os.path.realpath(old.path) == path]
        self._replaced += old_ones
        self._written = [old for old in self._written if old not in old_ones]
        self._written.append(source)

    def changed_on_disk(self) -> list[Path]:
        """Return the data files in use that another program has changed or removed."""
        sources = [*self._sources.values(), *self._written]
        return [source.path for source in sources if source.changed_on_disk()]

    def cloned(self, source: Path, clone: Path) -> None:
        """Take note that a file holds what a data file does, for as long as it is not changed."""
        self._clones.setdefault(source, set()).add(_identity(clone.stat()))

    def holds(self, path: Path, source: Source) -> bool:
        """Return whether a path leads to a data file: by another hard link, or to a clone of it."""
        if path == source.path:
            return True
        with suppress(OSError):
            status = path.stat()
            if os.path.samestat(status, os.fstat(source.descriptor)):
                return True
            return _identity(status) in self._clones.get(source.path, ())
        return False

    def moved_to(self, model_path: str | os.PathLike[str]) -> None:
        """Take note that the model was saved at another path, for messages.

        Entries are still relative to the folder that they were read in: the tensors that the undo
        history holds have them, too.
        """
        self._where = os.fspath(model_path)

    def close(self) -> None:
        """Close all data files."""
        for source in (*self._sources.values(), *self._written, *self._replaced):
            source.close()
        self._sources, self._copies, self._written, self._replaced = {}, {}, [], []

    def _open(self, path: Path, location: str) -> Source:
        try:
            return Source.open(path, follow_link=False)
        except InputError as error:
            raise ExternalDataError(
                f"External data {clip(visible(location), 200)} cannot be opened: {error.message}",
                where=self._where,
            ) from error

    def _number(self, entries: Mapping[str, str], key: str, location: str, default: int) -> int:
        text = entries.get(key)
        if text is None:
            return default
        match = re.fullmatch(_NUMBER, text)
        if match is None or int(match[1]) > _LARGEST_OFFSET:
            raise ExternalDataError(
                f"External data {clip(visible(location), 200)}: Invalid offset/length: {key} is"
                f" '{clip(visible(text), 40)}'",
                where=self._where,
            )
        return int(match[1])


def _allow_many_files() -> None:
    """Raise the limit of open files as far as the system lets us.

    Some exporters write a file for each weight, and the usual limit is 1024.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = (
        _WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _WANTED_DESCRIPTORS)
    )
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def named_data_files(model: Path) -> list[Path]:
    """Return the data files that a model refers to and have its name; none on an error."""
    pattern = re.compile(rf"{re.escape(model.name)}(\.[0-9]+)?\.data")
    folder = Path(os.path.realpath(model.absolute().parent))
    try:
        locations = _locations(model)
    except (DldError, OSError):
        return []
    return [folder / name for name in sorted(locations) if pattern.fullmatch(name)]


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def is_data_file(path: Path, model: Path) -> bool:
    """Return whether a file holds weights of a model; False on an error."""
    if not path.exists():
        return False
    folder = Path(os.path.realpath(model.absolute().parent))
    with suppress(DldError, OSError):
        return any(
            (folder / name).exists() and path.samefile(folder / name) for name in _locations(model)
        )
    return False


def remove_unused(files: Iterable[Path], model: Path) -> list[Path]:
    """Remove data files that neither a model nor one beside it refers to; return which.

    Args:
        files: Those that the model referred to before it was written; see
            :func:`named_data_files`.
        model: The model as it is now.
    """
    wanted = {path for path in files if path.is_file() and not path.is_symlink()}
    if not wanted:
        return []
    try:
        for other in sorted(model.absolute().parent.glob("*.onnx")):
            wanted -= {Path(os.path.realpath(other.parent)) / name for name in _locations(other)}
        wanted -= {Path(os.path.realpath(model.absolute().parent)) / n for n in _locations(model)}
    except (DldError, OSError):
        return []  # a model that cannot be read may need them
    removed = []
    for path in sorted(wanted):
        with suppress(OSError):
            path.unlink()
            removed.append(path)
    return removed


def _locations(model: Path) -> set[str]:
    source = Source.open(model)
    try:
        proto = onnx.ModelProto.FromString(cut(source, BlobTable()).model)
    except DecodeError as error:
        raise DldError(str(error)) from None
    finally:
        source.close()
    locations = (entries_of(t).get("location", "") for t in dense_tensors(proto) if is_external(t))
    return {os.path.normpath(location) for location in locations}
