"""A small valid ONNX file that stands for a whole document, for tools that run in child processes.

The tools of others (the ONNX checker, shape inference, ONNX Runtime, Polygraphy) read files.
Serialising gigabytes for them would take the time and memory that the document saves, so they get
the structure with its payloads as external
data: in the model's own file, where it has them, or in a sparse stand-in when nobody reads the
values.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from google.protobuf.message import DecodeError

from dld_tui.core.errors import InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import Blob, BlobTable, ByteCount, SpillFile, spill_folder, stream
from dld_tui.core.files.external import ExternalFiles
from dld_tui.core.files.model_set import DataFile
from dld_tui.core.files.source import Source
from dld_tui.core.files.tensors import (
    decoded,
    dense_tensors,
    entries_of,
    has_values_as_stored,
    inline_blob,
    is_external,
    is_pending,
    make_plain,
    payload_length,
    set_external,
    set_inline,
)
from dld_tui.core.files.wire import THRESHOLD, pieces_length, splice
from dld_tui.core.files.writer import PREFIX, explained, hold_file, hold_folder, let_go, sweep
from dld_tui.core.types import CancelCheck

_HOLE = "values.hole"
_LARGEST_HOLE = 1 << 40
"""More than any real payload; a claim of more is left for the tool to refuse."""


def external_view(
    skeleton: bytes,
    blobs: BlobTable,
    folder: Path | None = None,
    *,
    external: ExternalFiles | None = None,
    values: bool = False,
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
        cancelled: Asked while payloads are copied.

    Returns:
        The file; hand it to :func:`discard_view` when done.

    Raises:
        SaveError: It cannot be written.
        CancelledError: `cancelled` said so.
    """
    model = onnx.ModelProto.FromString(skeleton)
    path = (_beside(folder) if values else None) or _elsewhere(on_disk=values)
    view = _View(blobs, external, path, values)
    try:
        for tensor in dense_tensors(model):
            view.refer(tensor)
        if view.hole:
            with explained(path), open(path.parent / _HOLE, "wb") as file:
                file.truncate(view.hole)
        if view.data.pieces:
            _write(path.with_name(view.data.name), view.data.pieces, cancelled)
        # What is left in blobs are parts of sparse tensors and strings: they cannot be external.
        _write(path, splice(model.SerializeToString(), blobs), cancelled)
    except BaseException:
        discard_view(path)
        raise
    return path


def _write(path: Path, pieces: Sequence[bytes | Blob], cancelled: CancelCheck | None) -> None:
    with explained(path), open(path, "wb", buffering=0) as file:
        stream(file.fileno(), pieces, ByteCount(pieces_length(pieces), None, cancelled))


def _beside(folder: Path | None) -> Path | None:
    """Return a new file in the model's folder, None when that may not be written to."""
    if folder is None or not os.access(folder, os.W_OK):
        return None
    home = Path(os.path.realpath(folder))
    sweep(home)
    with explained(home):
        try:
            return hold_file(home, ".onnx")
        except PermissionError:  # by other rules than its mode
            return None


def _elsewhere(*, on_disk: bool) -> Path:
    """Return a file, which is not there yet, in a new temporary folder."""
    parent = spill_folder() if on_disk else Path(tempfile.gettempdir())
    sweep(parent)
    with explained(parent):
        return hold_folder(parent) / "model.onnx"


def discard_view(path: Path) -> None:
    """Remove a view and what was made for it; what is already gone is no error."""
    if path.parent.name.startswith(PREFIX):
        shutil.rmtree(path.parent, ignore_errors=True)
        let_go(path.parent)
    elif path.name.startswith(PREFIX):
        for made in (path, path.with_name(f"{path.name}.data")):
            with suppress(FileNotFoundError):
                made.unlink()
        let_go(path)


class _View:
    """Places the payloads of one view."""

    def __init__(
        self, blobs: BlobTable, external: ExternalFiles | None, path: Path, values: bool
    ) -> None:
        self._blobs = blobs
        self._external = external
        self._folder = path.parent
        self._values = values
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
        elif not self._values:
            self._place(tensor, blob, payload_length(tensor))
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
        if not self._values and blob.length < THRESHOLD:
            set_inline(tensor, blob.read())
        else:
            self._place(tensor, blob, blob.length)

    def _place(self, tensor: onnx.TensorProto, blob: Blob | None, length: int | None) -> None:
        if length is None or length > _LARGEST_HOLE:
            return
        if not self._values or blob is None:
            self.hole = max(self.hole, length)
            set_external(tensor, _HOLE, 0, length)
            return
        name = self._reachable(blob.source) if blob.is_stored else None
        if name is not None:
            set_external(tensor, name, blob.offset, length)
        else:
            set_external(tensor, self.data.name, self.data.add(blob), length)

    def _reachable(self, source: Source) -> str | None:
        """Return the location of a file from the view's folder, None when it has none."""
        if source not in self._names:
            # The tools refuse links, so it must be in the folder itself.
            path = Path(os.path.realpath(source.path))
            inside = path.is_relative_to(self._folder) and not source.changed_on_disk()
            self._names[source] = path.relative_to(self._folder).as_posix() if inside else None
        return self._names[source]
