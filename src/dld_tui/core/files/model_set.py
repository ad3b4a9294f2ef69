"""A model as the files to write: the model itself and, where needed, a file of external data.

Two things make a data file: a model of more than 2 GiB, which protobuf cannot hold in one file, and
saving a model with external data to another folder. A data file is always a new one; nothing is
appended to an old file or overwritten, because another model may use it and because only then the
renaming of the model is the one step that counts.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from dld_tui.core import fmt
from dld_tui.core.errors import InputError, SaveError
from dld_tui.core.files.blobs import Blob, BlobTable, SpillFile
from dld_tui.core.files.external import ExternalDataError, ExternalFiles
from dld_tui.core.files.fields import MAX_MESSAGE
from dld_tui.core.files.source import Source
from dld_tui.core.files.splice import pieces_length, splice
from dld_tui.core.files.tensors import (
    decoded,
    dense_tensors,
    entries_of,
    has_external,
    has_values_as_stored,
    inline_blob,
    is_external,
    payload_length,
    set_external,
)
from dld_tui.core.files.wire import verify_model
from dld_tui.core.files.writer import Output, write_set
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
    _offsets: dict[Blob, int] = field(default_factory=dict)

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
    remarks: list[str] = field(default_factory=list)
    """For the user."""

    @property
    def data_path(self) -> Path | None:
        """Where the data file goes."""
        return _folder(self.target) / self.data.name if self.data is not None else None

    def write(
        self,
        *,
        overwrite: bool = True,
        like: Source | None = None,
        progress: ProgressCallback | None = None,
        cancelled: CancelCheck | None = None,
    ) -> list[str]:
        """Write the files in one atomic step and return remarks for the user.

        See :func:`~dld_tui.core.files.writer.write_pieces` for the arguments.

        Raises:
            SaveError: One could not be written; what was there is untouched.
            FileChangedError: The target or a source was changed by another program.
            CancelledError: `cancelled` said so.
        """
        outputs = [Output(self.target, self.pieces, overwrite, like, verify_model)]
        if self.data is not None and self.data_path is not None:
            outputs.insert(0, Output(self.data_path, self.data.pieces, overwrite=False))
        return [*self.remarks, *write_set(outputs, progress=progress, cancelled=cancelled)]

    def adopt(self, blobs: BlobTable, external: ExternalFiles) -> Source:
        """Make a document read its payloads from the files just written; return the open model.

        Raises:
            InputError: They cannot be opened.
        """
        source = Source.open(self.target)
        blobs.repoint(self.pieces, source)
        if self.data is not None and self.data_path is not None:
            data = Source.open(self.data_path)
            blobs.repoint(self.data.pieces, data)
            external.adopt(self.data.pieces, data)
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
        self._remarks: list[str] = []
        self._resolved: dict[str, Path | None] = {}

    def result(self, pieces: list[bytes | Blob]) -> ModelSet:
        return ModelSet(self._target, pieces, self._data, self._remarks)

    # --- external data of another folder ---------------------------------------------------------

    def bring_external(self, skeleton: bytes) -> bytes:
        """Return the skeleton with entries that are right in the target's folder."""
        model = onnx.ModelProto.FromString(skeleton)
        changed = False
        problems: set[str] = set()
        for tensor in dense_tensors(model):
            if is_external(tensor):
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
        if self._at_target(entries["location"]) == source.path and not source.changed_on_disk():
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

    # --- payloads that are too large for the model's own file ------------------------------------

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
            self._external is not None
            and source.path.is_relative_to(self.folder)
            and self._external.is_data_file(source)
        ):
            return source.path.relative_to(self.folder).as_posix(), blob.offset, blob.length
        if self._data is None:
            self._data = DataFile(unused_data_name(self._target))
        return self._data.name, self._data.add(blob), blob.length
