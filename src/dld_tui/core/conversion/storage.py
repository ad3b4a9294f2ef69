"""Where a model keeps its weights: in itself, in a data file, or nowhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx

from dld_tui.core import fmt
from dld_tui.core.conversion.copies import copy_of
from dld_tui.core.document.document import Document
from dld_tui.core.document.edits.tensor_targets import emptied, put_payload
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.errors import InputError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.tensors.elements import encoded
from dld_tui.core.text import clip, visible

HASH_KEY = "dld.sha256"
"""Metadata of a tensor whose values were taken out: their SHA-256, as ``raw_data`` has them."""
_CHUNK = 4 << 20


@dataclass
class Moved:
    """A copy whose weights are elsewhere."""

    document: Document
    """Has no path. Close it before the document that it was made of."""
    count: int = 0
    """Weights that were moved."""
    bytes: int = 0
    notes: list[str] = field(default_factory=list)


def to_external(document: Document, location: str = "", threshold: int = 1024) -> Moved:
    """Return a copy whose weights go to a data file when it is written.

    Args:
        document: The model; it stays as it is, and open until the copy is closed.
        location: The data file, relative to the model; empty for one named after it.
        threshold: Weights of fewer bytes stay in the model.
    """
    made = Moved(copy_of(document))
    for _, tensor in _initializers(made.document):
        if tensor.is_external or tensor.dtype == "string" or (tensor.nbytes or 0) < threshold:
            continue
        payload = _payload(tensor, made)
        if payload is not None:
            proto = emptied(tensor.proto)
            put_payload(made.document, proto, payload, location=location)
            _take(tensor, proto, made)
    return made


def to_inline(document: Document) -> Moved:
    """Return a copy that has its weights in itself."""
    made = Moved(copy_of(document))
    for _, tensor in _initializers(made.document):
        if not tensor.is_external:
            continue
        payload = _payload(tensor, made)
        if payload is not None:
            proto = emptied(tensor.proto)
            put_payload(made.document, proto, payload)
            _take(tensor, proto, made)
    return made


def stripped(document: Document, threshold: int = 1024) -> Moved:
    """Return a copy without the values of its weights, but with their hashes.

    Args:
        document: The model; it stays as it is, and open until the copy is closed.
        threshold: Weights of fewer bytes keep their values: shapes and the like.
    """
    made = Moved(copy_of(document))
    for _, tensor in _initializers(made.document):
        if tensor.dtype == "string" or (tensor.nbytes or 0) < threshold or not tensor.nbytes:
            continue
        payload = _payload(tensor, made)
        if payload is None:
            continue
        proto = emptied(tensor.proto)
        entries = [e for e in proto.metadata_props if text_of(e.key) != HASH_KEY]
        del proto.metadata_props[:]
        proto.metadata_props.extend(entries)
        proto.metadata_props.add(key=HASH_KEY, value=_hash(payload))
        _take(tensor, proto, made)
    made.notes += _in_nodes(made.document, threshold)
    return made


def _in_nodes(document: Document, threshold: int) -> list[str]:
    """Return a note on weights that are no initializers, and so stay what they are."""
    tensors = [
        Tensor(attribute.t, document)
        for scope in document.scopes()
        for node in scope.nodes_of_type("Constant")
        for attribute in node.proto.attribute
        if attribute.HasField("t")
    ]
    sizes = [size for tensor in tensors if (size := tensor.nbytes or 0) >= threshold]
    if not sizes:
        return []
    return [
        f"{fmt.plural(len(sizes), 'weight')} ({fmt.size(sum(sizes))}) in Constant nodes keep their"
        " values: dld convert sanitize makes them initializers"
    ]


def restored(document: Document, source: Document, *, any_values: bool = False) -> Moved:
    """Return a copy of a stripped model with the weights of the model that it was made of.

    Args:
        document: The stripped model.
        source: The model with the weights; open until the copy is closed.
        any_values: Take weights whose values are others than those that were taken out, too.

    Raises:
        InputError: A weight is not in `source`, has another type or shape, or other values.
    """
    made = Moved(copy_of(document))
    homes = {scope.path: scope for scope in source.scopes()}
    try:
        for scope, tensor in _initializers(made.document):
            if tensor.location != "none":
                continue
            home = homes.get(scope.path)
            payload = _same_weight(tensor, home, any_values=any_values)
            proto = emptied(tensor.proto)
            entries = [e for e in proto.metadata_props if text_of(e.key) != HASH_KEY]
            del proto.metadata_props[:]
            proto.metadata_props.extend(entries)
            put_payload(made.document, proto, payload)
            _take(tensor, proto, made)
    except BaseException:
        made.document.close()
        raise
    return made


def _same_weight(tensor: Tensor, home: Scope | None, *, any_values: bool) -> Blob | bytes:
    name = clip(visible(tensor.name), 60, keep="middle")
    found = home.initializer(tensor.name) if home is not None else None
    if found is None:
        raise InputError(f"there is no weight {name!r} to restore from")
    if (found.dtype, found.shape) != (tensor.dtype, tensor.shape):
        raise InputError(
            f"weight {name!r} is {tensor.dtype}{list(tensor.shape)} here and"
            f" {found.dtype}{list(found.shape)} there"
        )
    payload = _values(found)
    wanted = next(
        (text_of(e.value) for e in tensor.proto.metadata_props if text_of(e.key) == HASH_KEY), None
    )
    if wanted is not None and not any_values and _hash(payload) != wanted:
        raise InputError(
            f"weight {name!r} has other values than those that were taken out",
            hint="Add --any-values to take them even so",
        )
    return payload


def _initializers(document: Document) -> Iterator[tuple[Scope, Tensor]]:
    for scope in document.scopes():
        for proto in list(scope.records.get("initializer", ())):
            yield scope, Tensor(proto, document)


def _payload(tensor: Tensor, made: Moved) -> Blob | bytes | None:
    try:
        return _values(tensor)
    except InputError as error:
        name = clip(visible(tensor.name), 60, keep="middle")
        made.notes.append(f"{name} stays as it is: {visible(error.message)}")
        return None


def _values(tensor: Tensor) -> Blob | bytes:
    problem = tensor.problem
    if problem is not None:
        raise InputError(problem)
    try:
        return tensor.payload()
    except InputError:  # a few varints in the message itself
        return encoded(tensor.read(), tensor.dtype)


def _take(tensor: Tensor, proto: onnx.TensorProto, made: Moved) -> None:
    """Put a tensor in the place of another: nobody else holds records of a copy."""
    made.count += 1
    made.bytes += tensor.nbytes or 0
    tensor.proto.CopyFrom(proto)


def _hash(payload: Blob | bytes) -> str:
    digest = hashlib.sha256()
    for part in (payload,) if isinstance(payload, bytes) else payload.chunks(_CHUNK):
        digest.update(part)
    return digest.hexdigest()
