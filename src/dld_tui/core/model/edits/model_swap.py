"""Edits that replace the whole document by another model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf.message import DecodeError

from dld_tui.core.errors import EditError, InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.external import (
    ExternalDataError,
    dense_tensors,
    entries_of,
    has_external,
    is_external,
    is_pending,
    payload_length,
    set_pending,
)
from dld_tui.core.files.wire import cut, pieces_length, splice
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.edit_registry import edit
from dld_tui.core.model.document.scope import Scope, ScopeOwner
from dld_tui.core.model.document.serialise import save, skeleton_bytes
from dld_tui.core.model.document.transactions import Primitive, Transaction
from dld_tui.core.model.tensors.payloads import (
    CHUNK,
    INLINE_LIMIT,
    journaled_file,
    reference,
    resolve,
    scratch_folder,
    write_payload,
)
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.core.types import JSON, CancelCheck


class SwapModel(Primitive):
    """Exchange the whole content of a document for that of another model.

    Args:
        model: The model; its nodes and other records move to scopes of the document.
    """

    node = None
    is_whole = True

    def __init__(self, document: ScopeOwner, model: onnx.ModelProto) -> None:
        self.scope = document.main
        self._document = document
        self._model = model
        with collector_paused():
            self._main = Scope(model.graph, document)
            self._main.records["function"] = [
                Scope(function, document) for function in model.functions
            ]
        del model.functions[:]
        for node in self._main.nodes:
            node.scope = document.main

    def _change(self, *, forwards: bool) -> None:
        document, main = self._document, self.scope
        document.model, self._model = self._model, document.model
        # All that a scope is, its indexes and inferred types included: each is of one content.
        main.__dict__, self._main.__dict__ = self._main.__dict__, main.__dict__


def read_model(document: ScopeOwner, described: JSON) -> onnx.ModelProto:
    """Return the model that a reference means, its payloads as ones of the document.

    Raises:
        EditError: The file is gone, it has another content, or it is no ONNX model.
        SaveError: There is no room for a copy.
    """
    payload = resolve(document, _whole_file(described))
    mark = len(document.blobs)
    try:
        if isinstance(payload, bytes):
            skeleton = payload
        elif payload.offset or payload.length != payload.source.size:
            raise EditError("a model is a whole file, not a part of one")
        else:
            skeleton = cut(payload.source, document.blobs).model
        model = onnx.ModelProto.FromString(skeleton)
        if not model.HasField("graph"):
            raise InputError("Model has no graph")
        return model
    except (DecodeError, InputError) as error:
        document.blobs.forget_from(mark)
        why = error.message if isinstance(error, InputError) else "not an ONNX protobuf"
        raise EditError(f"the model of this edit cannot be read: {why}") from None


def _whole_file(described: JSON) -> JSON:
    """Return a reference with the length of its file, which a script need not say."""
    if not isinstance(described, dict) or "length" in described or "raw" in described:
        return described
    name = described.get("file")
    try:
        return {**described, "length": os.stat(str(name)).st_size}
    except (OSError, ValueError):
        return {**described, "length": 0}  # it is refused when it is opened


def keep_model(
    document: Document, path: Path, *, move: bool = False, cancelled: CancelCheck | None = None
) -> JSON:
    """Keep a model's file for as long as an edit needs it, and return the reference to it.

    Args:
        document: The document that is to take in the model.
        path: The model.
        move: Whether the file itself may be moved to where such files are kept. One with external
            data is copied even so.
        cancelled: Asked now and then.

    Raises:
        InputError: It cannot be opened, or its external data cannot.
        SaveError: There is no room for it.
        CancelledError: `cancelled` said so.
    """
    kept_document = Document.open(path, cancelled=cancelled)
    try:
        skeleton = skeleton_bytes(kept_document)
        size = path.stat().st_size
        if move and size > INLINE_LIMIT and not _has_data_files(skeleton):
            return journaled_file(document, path, cancelled=cancelled)
        pieces = splice(_with_external(kept_document, skeleton, path.name), kept_document.blobs)
        return _kept(document, pieces, cancelled)
    finally:
        kept_document.close(keep_journal=True)


def write_kept(document: Document, described: JSON, target: Path) -> list[str]:
    """Write a kept model to a separate file, and return remarks for the user.

    Raises:
        EditError: See :func:`read_model`.
        SaveError: It cannot be written, or the file exists.
    """
    payload = resolve(document, described)
    with scratch_folder() as folder:
        path = folder / target.name
        if isinstance(payload, bytes):
            path.write_bytes(payload)
        else:
            path = payload.source.path
        kept_document = Document.open(path)
        try:
            return save(kept_document, target, overwrite=False)
        finally:
            kept_document.close()


class PresentModel:
    """The present state of a document. Tensors in data files beside its file stay there."""

    def __init__(self, document: Document) -> None:
        self._document = document
        path = document.path
        skeleton = skeleton_bytes(document)
        folder = None if path is None else Path(os.path.realpath(path.absolute().parent))
        if folder is not None and not document.external.is_home(folder):
            skeleton = _with_external(document, skeleton, lenient=True)
        self._pieces = splice(skeleton, document.blobs)

    def keep(self) -> JSON:
        """Keep it, whatever the document is by now, and return the reference to it.

        Raises:
            SaveError: There is no room for it.
        """
        return _kept(self._document, self._pieces, None)


def _has_data_files(skeleton: bytes) -> bool:
    if not has_external(skeleton):
        return False
    tensors = dense_tensors(onnx.ModelProto.FromString(skeleton))
    return any(is_external(tensor) for tensor in tensors)


def _with_external(
    document: Document, skeleton: bytes, name: str = "", *, lenient: bool = False
) -> bytes:
    """Return a skeleton whose external tensors are inline until the model is saved.

    Args:
        document: Whose skeleton it is.
        name: The name of the model's file. A data file that is named after it is renamed.
        lenient: Leave tensors whose data cannot be opened unchanged.

    Raises:
        ExternalDataError: Data cannot be opened.
    """
    if not has_external(skeleton):
        return skeleton
    model = onnx.ModelProto.FromString(skeleton)
    for tensor in dense_tensors(model):
        if not is_external(tensor) or is_pending(tensor):
            continue
        entries = entries_of(tensor)
        try:
            blob = document.external.blob(entries, expected=payload_length(tensor))
        except ExternalDataError:
            if lenient:
                continue
            raise
        location = entries["location"] if name else ""
        plain = "" if location == f"{name}.data" else location
        set_pending(tensor, plain, document.blobs.add(blob))
    return model.SerializeToString()


def _kept(
    document: Document, pieces: Sequence[bytes | Blob], cancelled: CancelCheck | None
) -> JSON:
    length = pieces_length(pieces)
    if length <= INLINE_LIMIT:
        return reference(document, b"".join(_chunks(pieces)))
    return write_payload(document, _chunks(pieces), length, cancelled=cancelled)


def _chunks(pieces: Sequence[bytes | Blob]) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
        else:
            yield from piece.chunks(CHUNK)


@edit
def replace_model(
    document: Document,
    transaction: Transaction,
    *,
    model: JSON,
    title: str = "replace the whole model",
) -> str:
    """Replace this model by another one, such as the result of a conversion.

    Args:
        document: The document; it stays that of its file.
        transaction: Takes in the change.
        model: The whole file of the model as a payload; ``{"file": PATH}`` will do. See
            :func:`~dld_tui.core.model.edits.model_swap.keep_model`.
        title: What is done, for people.

    Raises:
        EditError: The file cannot be read or is no ONNX model.
    """
    if not isinstance(title, str):
        raise EditError("title must be text")
    transaction.do(SwapModel(document, read_model(document, model)))
    return title
