"""A model as the files to write: the model itself and, where needed, a file of external data.

Three things make a data file: a model of more than 2 GiB, which protobuf cannot hold in one file,
saving a model with external data to another folder, and tensors that an edit made external. A data
file is a new one, or what it was with more behind it: all that another model, or this one before
it is replaced, reads from it stays where it is, so that only the renaming of the model counts.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import field
from functools import cached_property
from pathlib import Path

from google.protobuf.message import DecodeError

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, SaveError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import Blob, BlobTable, ByteCount, SpillFile, spill_folder, stream
from dld_tui.core.files.external import (
    PENDING,
    ExternalDataError,
    ExternalFiles,
    decoded,
    dense_tensors,
    entries_of,
    has_external,
    has_values_as_stored,
    inline_blob,
    is_external,
    is_pending,
    make_plain,
    payload_length,
    set_external,
    set_inline,
)
from dld_tui.core.files.source import Source
from dld_tui.core.files.temporary import VIEW, VIEW_PREFIX, discard, hold_file, hold_folder, release
from dld_tui.core.files.text_model import (
    TextFormat,
    as_source,
    format_of,
    is_text,
    open_text,
    printed,
)
from dld_tui.core.files.wire import MAX_MESSAGE, THRESHOLD, pieces_length, splice, verify_model
from dld_tui.core.files.writer import (
    Output,
    require_distinct,
    save_errors,
    write_set,
)
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback

_ALIGNMENT = 4096
"""Payloads begin at a page, so that runtimes can map them."""


@dataclass
class DataFile:
    """A file of external data that is to be written."""

    name: str
    """Its name, in the folder of the model."""
    pieces: list[bytes | Blob] = field(default_factory=list)
    length: int = 0
    """Bytes so far."""
    old: Source | None = None
    """The file that it takes the place of, and begins with."""
    _offsets: dict[Blob, int] = field(default_factory=dict)

    @classmethod
    def continued(cls, name: str, source: Source) -> DataFile:
        """Return a data file that begins with all that an old one holds."""
        return cls(name, [Blob(source, 0, source.size, "raw_data")], source.size, source)

    def add(self, blob: Blob) -> int:
        """Take in a payload and return its offset; the same payload twice is stored once."""
        offset = self._offsets.get(blob)
        if offset is None:
            if padding := -self.length % _ALIGNMENT:
                self.pieces.append(bytes(padding))
            offset = self._offsets[blob] = self.length + padding
            self.pieces.append(blob)
            self.length = offset + blob.length
        return offset


@dataclass
class ModelSet:
    """What to write for a model."""

    target: Path
    pieces: list[bytes | Blob]
    """The content of the model's file."""
    data: DataFile | None = None
    """The data file that is named after the model."""
    named: list[DataFile] = field(default_factory=list)
    """Data files whose names the tensors gave."""
    remarks: list[str] = field(default_factory=list)
    """For the user."""
    text: TextFormat | None = None
    """How the model's file has it as text; None for a binary one."""

    @cached_property
    def _binary(self) -> bytes:
        """The content of the model's file, or what its text stands for."""
        return b"".join(
            piece if isinstance(piece, bytes) else piece.read(0, piece.length)
            for piece in self.pieces
        )

    @property
    def _files(self) -> list[DataFile]:
        return [*self.named, *([self.data] if self.data is not None else [])]

    def _path(self, data: DataFile) -> Path:
        return _folder(self.target) / data.name

    def write(
        self,
        *,
        overwrite: bool = False,
        like: Source | None = None,
        progress: ProgressCallback | None = None,
        cancelled: CancelCheck | None = None,
        sealed: Callable[[Path], None] | None = None,
    ) -> list[str]:
        """Write the files in one atomic step and return remarks for the user.

        See :func:`~dld_tui.core.files.writer.write_pieces` for the other arguments.

        Args:
            overwrite: See there.
            like: See there.
            progress: See there.
            cancelled: See there.
            sealed: Called with the model's complete file before it is renamed over the target.

        Raises:
            SaveError: One could not be written; what was there is untouched.
            FileChangedError: The target or a source was changed by another program.
            CancelledError: `cancelled` said so.
        """
        pieces = self.pieces
        if self.text is not None:
            pieces = [printed(self._binary, self.text, self.target)]

        def verify(path: Path) -> None:
            if self.text is None:  # a text was read again when it was made
                verify_model(path)
            if sealed is not None:
                sealed(path)

        outputs = [
            *(
                Output(self._path(data), data.pieces, data.old is not None, data.old)
                for data in self._files
            ),
            Output(self.target, pieces, overwrite, like, verify),
        ]
        require_distinct([output.path for output in outputs])  # before a folder is made
        for data in self.named:
            with save_errors(self._path(data)):
                self._path(data).parent.mkdir(parents=True, exist_ok=True)
        return [*self.remarks, *write_set(outputs, progress=progress, cancelled=cancelled)]

    def adopt(self, blobs: BlobTable, external: ExternalFiles) -> Source:
        """Make a document read its payloads from the files just written; return the open model.

        Raises:
            InputError: They cannot be opened.
        """
        source = Source.open(self.target)
        if self.text is not None:
            with closing(source):
                source = as_source(self._binary, source)
        blobs.repoint(self.pieces, source)
        if self.data is not None:
            data = Source.open(self._path(self.data))
            blobs.repoint(self.data.pieces, data)
            external.adopt(self.data.pieces, data)
        for named in self.named:
            data = Source.open(self._path(named))
            blobs.repoint(named.pieces, data)
            external.replaced(data)
        return source


def plan_model(
    skeleton: bytes,
    blobs: BlobTable,
    target: Path,
    *,
    external: ExternalFiles | None = None,
    spill: SpillFile | None = None,
    limit: int = MAX_MESSAGE,
) -> ModelSet:
    """Return the files that hold a model when it is saved at `target`. The skeleton is not changed.

    The name of the target says whether it is text.

    Args:
        skeleton: The serialised model with sentinels.
        blobs: Its payloads.
        target: The path of the model's file.
        external: The data files that it refers to.
        spill: Takes payloads that have to be re-encoded for a data file.
        limit: The most bytes that the model's file may have.

    Raises:
        SaveError: Even without tensor data the model is larger than the limit.
        FileChangedError: A file that payloads are read from became shorter.
    """
    planner = _Planner(blobs, target, external, spill or SpillFile())
    if external is not None and not external.is_home(planner.folder) and has_external(skeleton):
        skeleton = planner.bring_external(skeleton)
    if PENDING.encode("ascii") in skeleton:
        skeleton = planner.write_pending(skeleton)
    pieces = splice(skeleton, blobs)
    if pieces_length(pieces) > limit:
        pieces = splice(planner.externalise(skeleton), blobs)
        if (length := pieces_length(pieces)) > limit:
            raise SaveError(
                f"{fmt.size(length)} of it cannot be external data; protobuf holds 2 GiB",
                where=str(target),
            )
    return planner.result(pieces)


def unused_data_name(target: Path) -> str:
    """Return a name for a new data file beside a model: ``NAME.onnx.data``, numbered when taken."""
    folder, name = _folder(target), target.name
    numbered = (f"{name}.{number}.data" for number in itertools.count(1))
    names = itertools.chain([f"{name}.data"], numbered)
    return next(name for name in names if not os.path.lexists(folder / name))


def _folder(target: Path) -> Path:
    """Return the folder that locations in a model are relative to, without links."""
    return Path(os.path.realpath(target.absolute().parent))


class _Planner:
    """Decides for each payload whether it stays, and else where it goes."""

    def __init__(
        self, blobs: BlobTable, target: Path, external: ExternalFiles | None, spill: SpillFile
    ) -> None:
        self._blobs = blobs
        self._target = target
        self.folder = _folder(target)
        self._external = external
        self._spill = spill
        self._data: DataFile | None = None
        self._named: dict[str, DataFile | None] = {}
        """None for names that data cannot go to."""
        self._locations: set[str] = set()
        """Of the data files that the model refers to."""
        self._remarks: list[str] = []
        self._resolved: dict[str, Path | None] = {}

    def result(self, pieces: list[bytes | Blob]) -> ModelSet:
        named = [data for data in self._named.values() if data is not None]
        text = format_of(self._target)
        return ModelSet(self._target, pieces, self._data, named, self._remarks, text)

    def bring_external(self, skeleton: bytes) -> bytes:
        """Return the skeleton with entries that are right in the target's folder."""
        model = onnx.ModelProto.FromString(skeleton)
        changed = False
        problems: set[str] = set()
        for tensor in dense_tensors(model):
            if is_external(tensor) and not is_pending(tensor):
                try:
                    changed |= self._bring(tensor)
                except InputError as error:
                    problems.add(error.message)
        self._remarks += (f"{problem}: its entry is kept as it was" for problem in sorted(problems))
        if self._data is not None:
            size = fmt.size(self._data.length)
            self._remarks.append(f"{size} of external data are copied to {self._data.name}")
        return model.SerializeToString() if changed else skeleton

    def _bring(self, tensor: onnx.TensorProto) -> bool:
        """Return whether the tensor's entries had to be changed."""
        assert self._external is not None
        entries, length = entries_of(tensor), payload_length(tensor)
        source = self._external.original(entries, expected=length).source
        beside = self._at_target(entries["location"])
        is_there = beside is not None and self._external.holds(beside, source)
        if is_there and not source.changed_on_disk():
            return False
        set_external(tensor, *self._place(self._external.blob(entries, expected=length)))
        return True

    def _at_target(self, location: str) -> Path | None:
        """Return the file that a location means beside the target."""
        assert self._external is not None
        if location not in self._resolved:
            beside = ExternalFiles(self._target, allow_linked=self._external.allow_linked)
            try:
                self._resolved[location] = beside.resolve(location)
            except ExternalDataError:
                self._resolved[location] = None
        return self._resolved[location]

    def write_pending(self, skeleton: bytes) -> bytes:
        """Return the skeleton with the entries of the data files that are to be written."""
        model = onnx.ModelProto.FromString(skeleton)
        tensors = [tensor for tensor in dense_tensors(model) if is_external(tensor)]
        pending = [tensor for tensor in tensors if is_pending(tensor)]
        self._locations = {
            entries_of(tensor).get("location", "") for tensor in tensors if not is_pending(tensor)
        }
        for tensor in pending:
            location = entries_of(tensor).get("location", "")
            data = tensor.raw_data
            blob = self._blobs.get(data) or self._spill.append(data)
            set_external(tensor, *self._place_at(location, blob))
        return model.SerializeToString()

    def _place_at(self, location: str, blob: Blob) -> tuple[str, int, int]:
        """Return location, offset and length of a payload in the data file of a given name."""
        if not location:
            return self._place(blob)
        source = blob.source
        path = self.folder / location
        if blob.is_stored and source.path == path and self._is_data_file(source):
            return location, blob.offset, blob.length
        if location not in self._named:
            self._named[location] = self._named_file(location)
        data = self._named[location]
        return self._place(blob) if data is None else (location, data.add(blob), blob.length)

    def _is_data_file(self, source: Source) -> bool:
        return self._external is not None and self._external.is_data_file(source)

    def _named_file(self, location: str) -> DataFile | None:
        """Return the data file of a name, None when something else has the name."""
        path = self.folder / location
        inside = Path(os.path.realpath(path.parent)).is_relative_to(self.folder)
        if inside and not os.path.lexists(path):
            return DataFile(location)
        old = self._own_file(path, location) if inside else None
        if old is not None:
            return DataFile.continued(location, old)
        self._remarks.append(f"{visible(location)} is another file: data for it goes elsewhere")
        return None

    def _own_file(self, path: Path, location: str) -> Source | None:
        if self._external is None:
            return None
        if location in self._locations:
            with suppress(ExternalDataError):  # then it is not this model's
                self._external.source(location)
        return self._external.data_file(path)

    def externalise(self, skeleton: bytes) -> bytes:
        """Return the skeleton with all payloads that were cut out of tensors made external."""
        model = onnx.ModelProto.FromString(skeleton)
        before = self._data.length if self._data is not None else 0
        for tensor in dense_tensors(model):
            blob = self._stored(tensor)
            if blob is not None:
                set_external(tensor, *self._place(blob))
        if self._data is not None:
            size = fmt.size(self._data.length - before)
            self._remarks.append(
                f"{size} of weights go to {self._data.name}: one ONNX file holds at most 2 GiB"
            )
        return model.SerializeToString()

    def _stored(self, tensor: onnx.TensorProto) -> Blob | None:
        """Return the payload of a tensor as a data file has it; None when it is to stay inline."""
        blob = inline_blob(tensor, self._blobs)
        if blob is None or has_values_as_stored(blob):
            return blob
        try:
            return self._spill.append(decoded(tensor, self._blobs))
        except (DecodeError, ValueError):  # broken: it can only be kept as it is
            return None

    def _place(self, blob: Blob) -> tuple[str, int, int]:
        """Return location, offset and length: where the payload is, or in the new data file."""
        source = blob.source
        if (
            blob.is_stored
            and source.path.is_relative_to(self.folder)
            and self._is_data_file(source)
        ):
            return source.path.relative_to(self.folder).as_posix(), blob.offset, blob.length
        if self._data is None:
            self._data = DataFile(unused_data_name(self._target))
        return self._data.name, self._data.add(blob), blob.length


# A small valid ONNX file that stands for a whole document, for tools that run in child processes.
#
# The tools of others (the ONNX checker, shape inference, ONNX Runtime, Polygraphy) read files.
# Serialising gigabytes for them would take the time and memory that the document saves, so they get
# the structure with its payloads as external
# data: in the model's own file, where it has them, or in a sparse stand-in when nobody reads the
# values.

_HOLE = "values.hole"
_LARGEST_HOLE = 1 << 40
_MOST_KEPT, _SMALL = 64 << 20, 1 << 20
"""Bytes of payloads that a loadable view keeps, and of one from which on it has no values."""
"""More than any real payload; a claim of more is left for the tool to refuse."""


def external_view(
    skeleton: bytes,
    blobs: BlobTable,
    folder: Path | None = None,
    *,
    external: ExternalFiles | None = None,
    values: bool = False,
    loadable: bool = False,
    cancelled: CancelCheck | None = None,
) -> Path:
    """Write a small ONNX file with the structure of a document, and return its path.

    Args:
        skeleton: The serialised model with sentinels.
        blobs: Its payloads.
        folder: The model's folder, where payloads can be referred to without copying them.
        external: The data files that the model refers to.
        values: True when the payloads will be read, by an inference. They are then referred to in
            the model's folder or, where that is not possible (a folder that may not be written to,
            payloads of edits), copied. False makes a stand-in of the same size without disk blocks;
            small payloads, which shape inference reads, are there even so.
        loadable: Whether a runtime loads a view without values: integers and all but large payloads
            have their values, and what was in a data file is in one.
        cancelled: Asked while payloads are copied.

    Returns:
        The file; hand it to :func:`discard_view` when done.

    Raises:
        SaveError: It cannot be written.
        CancelledError: `cancelled` said so.
    """
    model = onnx.ModelProto.FromString(skeleton)
    path = (_beside(folder) if values else None) or _temporary_file(on_disk=values)
    view = _View(blobs, external, path, values, loadable and not values)
    try:
        for tensor in dense_tensors(model):
            view.refer(tensor)
        if view.hole:
            with save_errors(path), open(path.parent / _HOLE, "wb") as file:
                file.truncate(view.hole)
        if view.data.pieces:
            _write(path.with_name(view.data.name), view.data.pieces, cancelled)
        # What is left in blobs are parts of sparse tensors and strings: they cannot be external.
        _write(path, splice(model.SerializeToString(), blobs), cancelled)
    except BaseException:
        discard_view(path)
        raise
    return path


@contextmanager
def binary_file(model: Path) -> Iterator[Path]:
    """Give a library the file of a model, that of a model as text in binary form.

    Raises:
        InputError: A text cannot be read.
        SaveError: The binary file cannot be written.
    """
    if not is_text(model):
        yield model
        return
    source, _ = open_text(model)
    with closing(source):
        path = _beside(model.absolute().parent) or _temporary_file(on_disk=True)
        try:
            _write(path, [source.read(0, source.size)], None)
            yield path
        finally:
            discard_view(path)


def _write(path: Path, pieces: Sequence[bytes | Blob], cancelled: CancelCheck | None) -> None:
    with save_errors(path), open(path, "wb", buffering=0) as file:
        stream(file.fileno(), pieces, ByteCount(pieces_length(pieces), None, cancelled))


def _beside(folder: Path | None) -> Path | None:
    """Return a new file in the model's folder, None when that may not be written to."""
    if folder is None or not os.access(folder, os.W_OK):
        return None
    home = Path(os.path.realpath(folder))
    with save_errors(home):
        try:
            return hold_file(home)
        except PermissionError:  # by other rules than its mode
            return None


def _temporary_file(*, on_disk: bool) -> Path:
    """Return a file, which is not there yet, in a new temporary folder."""
    parent = spill_folder() if on_disk else Path(tempfile.gettempdir())
    with save_errors(parent):
        return hold_folder(VIEW, parent) / "model.onnx"


def discard_view(path: Path) -> None:
    """Remove a view and what was made for it; what is already gone is no error."""
    if path.parent.name.startswith(VIEW_PREFIX):
        discard(path.parent)
    elif path.name.startswith(VIEW_PREFIX):
        for view_file in (path, path.with_name(f"{path.name}.data")):
            with suppress(FileNotFoundError):
                view_file.unlink()
        release(path)


class _View:
    """Places the payloads of one view."""

    def __init__(
        self,
        blobs: BlobTable,
        external: ExternalFiles | None,
        path: Path,
        values: bool,
        keeps: bool,
    ) -> None:
        self._blobs = blobs
        self._external = external
        self._folder = path.parent
        self._values = values
        self._keeps = keeps
        """Whether payloads keep their values even so, as long as there are few bytes of them."""
        self._most_kept = _MOST_KEPT
        self._spill = SpillFile()
        self._names: dict[Source, str | None] = {}
        self.data = DataFile(f"{path.name}.data")
        self.hole = 0
        """Bytes of the stand-in: all payloads are at its start, so it is as long as the longest."""

    def refer(self, tensor: onnx.TensorProto) -> None:
        """Give a tensor entries that are right in the view's folder."""
        if is_external(tensor) and not is_pending(tensor):
            self._refer_external(tensor)
            return
        make_plain(tensor)
        blob = inline_blob(tensor, self._blobs)
        if blob is None:
            return
        if has_values_as_stored(blob):
            self._place(tensor, blob, blob.length)
        elif not self._values and not self._is_kept(tensor, payload_length(tensor)):
            self._place(tensor, None, payload_length(tensor))
        else:
            with suppress(DecodeError, ValueError):  # broken: it stays, for the tool to complain
                values = self._spill.append(decoded(tensor, self._blobs))
                self._place(tensor, values, values.length)

    def _refer_external(self, tensor: onnx.TensorProto) -> None:
        length = payload_length(tensor)
        if self._external is None:
            return
        try:
            blob = self._external.blob(entries_of(tensor), expected=length)
        except InputError:
            # The document reports missing and refused data; a tool that reads no values need not.
            if not self._values:
                self._place(tensor, None, length)
            return
        if not self._values and not self._keeps and blob.length < THRESHOLD:
            set_inline(tensor, blob.read())
        else:
            self._place(tensor, blob, blob.length)

    def _place(self, tensor: onnx.TensorProto, blob: Blob | None, length: int | None) -> None:
        if length is None or length > _LARGEST_HOLE:
            return
        if blob is None or not (self._values or self._is_kept(tensor, length)):
            self.hole = max(self.hole, length)
            set_external(tensor, _HOLE, 0, length)
            return
        self._most_kept -= length
        name = self._reachable(blob.source) if blob.is_stored and self._values else None
        if name is not None:
            set_external(tensor, name, blob.offset, length)
        else:
            set_external(tensor, self.data.name, self.data.add(blob), length)

    def _is_kept(self, tensor: onnx.TensorProto, length: int | None) -> bool:
        """Return whether a payload keeps its values: a runtime that loads it may use them."""
        if not self._keeps or length is None or length > self._most_kept:
            return False
        integers = (onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.BOOL)
        return length < _SMALL or tensor.data_type in integers

    def _reachable(self, source: Source) -> str | None:
        """Return the location of a file from the view's folder, None when it has none."""
        if source not in self._names:
            # The tools refuse links, so it must be in the folder itself.
            path = Path(os.path.realpath(source.path))
            inside = path.is_relative_to(self._folder) and not source.changed_on_disk()
            self._names[source] = path.relative_to(self._folder).as_posix() if inside else None
        return self._names[source]
