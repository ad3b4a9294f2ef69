"""Where a model keeps its weights: in itself, in a data file, or nowhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import field

import onnx

from dld_tui.core.conversion.copies import copy_of, working_copy
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.files.blobs import Blob, payload_digest
from dld_tui.core.files.external import dense_tensors
from dld_tui.core.files.proto_fields import set_items, text_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.parts.extraction import is_constant
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.edits.tensors import (
    belongs_inside,
    kept_inside,
    put_payload,
    without_values,
)
from dld_tui.core.model.tensors.elements import raw_payload
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.text import shortened, visible

HASH_KEY = "dld.sha256"
"""Metadata of a tensor whose values were stripped: the SHA-256 of their ``raw_data``."""


@dataclass
class RelocatedWeights:
    """A copy whose weights are stored elsewhere."""

    document: Document
    """Has no path. Close it before the original document."""
    count: int = 0
    """Weights that were moved."""
    bytes: int = 0
    notes: list[str] = field(default_factory=list)


def move_to_external(
    document: Document, location: str = "", threshold: int = 1024
) -> RelocatedWeights:
    """Return a copy whose weights go to a data file when it is written.

    Args:
        document: The model; it stays as it is, and open until the copy is closed.
        location: The data file, relative to the model; empty for one named after it.
        threshold: Weights of fewer bytes stay in the model.
    """
    moved, lists = RelocatedWeights(copy_of(document)), 0
    for _, _, tensor in _weights(moved.document):
        if tensor.is_external or tensor.dtype == "string" or not tensor.nbytes:
            continue
        if tensor.nbytes < threshold:
            continue
        if belongs_inside(tensor):
            lists += 1
            continue
        payload = _payload(tensor, moved)
        if payload is not None:
            proto = without_values(tensor.proto)
            put_payload(moved.document, proto, payload, location=location)
            _replace(tensor, proto, moved)
    if lists:
        moved.notes.append(kept_inside(lists))
    return moved


def move_inline(document: Document) -> RelocatedWeights:
    """Return a copy that has its weights in itself."""
    moved = RelocatedWeights(copy_of(document))
    for _, _, tensor in _weights(moved.document):
        if not tensor.is_external:
            continue
        payload = _payload(tensor, moved)
        if payload is not None:
            proto = without_values(tensor.proto)
            put_payload(moved.document, proto, payload)
            _replace(tensor, proto, moved)
    return moved


def strip_weights(document: Document, threshold: int = 1024) -> RelocatedWeights:
    """Return a copy without the values of its weights, but with their hashes.

    Args:
        document: The model; it stays as it is, and open until the copy is closed.
        threshold: Weights of fewer bytes keep their values: shapes and the like.
    """
    moved = RelocatedWeights(copy_of(document))
    for _, _, tensor in _weights(moved.document):
        if tensor.dtype == "string" or (tensor.nbytes or 0) < threshold or not tensor.nbytes:
            continue
        payload = _payload(tensor, moved)
        if payload is None:
            continue
        proto = _unhashed(tensor)
        proto.metadata_props.add(key=HASH_KEY, value=payload_digest(payload))
        _replace(tensor, proto, moved)
    return moved


def _unhashed(tensor: Tensor) -> onnx.TensorProto:
    """Return the message of a tensor without its values and their hash."""
    proto = without_values(tensor.proto)
    others = (entry for entry in proto.metadata_props if text_of(entry.key) != HASH_KEY)
    set_items(proto.metadata_props, others)
    return proto


def restore_weights(
    document: Document, source: Document, *, any_values: bool = False
) -> RelocatedWeights:
    """Return a copy of a stripped model with the weights of the model that it was made of.

    Args:
        document: The stripped model.
        source: The model with the weights; open until the copy is closed.
        any_values: Accept weights whose values differ from those that were stripped.

    Raises:
        InputError: A weight is not in `source`, has another type or shape, or other values.
    """
    homes = {scope.path: scope for scope in source.scopes()}
    with working_copy(document) as copy:
        moved = RelocatedWeights(copy)
        for scope, name, tensor in _weights(moved.document):
            if tensor.location != "none":
                continue
            source_weight = _weight(homes.get(scope.path), name)
            payload = _same_weight(name, tensor, source_weight, any_values=any_values)
            proto = _unhashed(tensor)
            put_payload(moved.document, proto, payload)
            _replace(tensor, proto, moved)
    return moved


def content_digest(document: Document) -> str:
    """Return the SHA-256 of a model, which is the same wherever its weights are; reads them all."""
    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    digest = hashlib.sha256()
    for proto in dense_tensors(model):
        tensor = Tensor(proto, document)
        if tensor.dtype == "string":
            digest.update(repr(tensor.read().tolist()).encode(errors="surrogatepass"))
        else:
            try:
                digest.update(payload_digest(_values(tensor)).encode())
            except InputError as error:  # no trial has its values either
                digest.update(error.message.encode(errors="surrogatepass"))
        proto.CopyFrom(without_values(proto))
    digest.update(model.SerializeToString(deterministic=True))
    return digest.hexdigest()


def has_same_nodes(first: Document, second: Document) -> bool:
    """Return whether two models have the same nodes, so that equal weights give equal values."""
    return _structure(first) == _structure(second)


def _structure(document: Document) -> list[tuple[object, ...]]:
    """Return what the nodes of all scopes compute, apart from the values of tensors."""
    return [
        (scope.path, scope.inputs, scope.outputs,
         [(node.op_type, node.proto.domain, node.inputs, node.outputs, _plain(node))
          for node in scope.nodes])
        for scope in document.scopes()
    ]  # fmt: skip


def _plain(node: Node) -> list[bytes]:
    """Return the attributes of a node other than tensors and graphs."""
    return [
        attribute.SerializeToString(deterministic=True)
        for attribute in node.proto.attribute
        if not attribute.HasField("t") and not attribute.tensors and not attribute.HasField("g")
    ]


def _weight(home: Scope | None, name: str) -> Tensor | None:
    """Return the weight of a name: an initializer, or the tensor of a Constant node."""
    if home is None:
        return None
    node = home.producer(name)
    return home.initializer(name) or (None if node is None else _constant_tensor(node))


def _same_weight(
    name: str, tensor: Tensor, source_weight: Tensor | None, *, any_values: bool
) -> Blob | bytes:
    name = shortened(name)
    if source_weight is None:
        raise InputError(f"there is no weight {name!r} to restore from")
    if (source_weight.dtype, source_weight.shape) != (tensor.dtype, tensor.shape):
        raise InputError(
            f"weight {name!r} is {tensor.dtype}{list(tensor.shape)} here and"
            f" {source_weight.dtype}{list(source_weight.shape)} there"
        )
    payload = _values(source_weight)
    wanted = next(
        (text_of(e.value) for e in tensor.proto.metadata_props if text_of(e.key) == HASH_KEY), None
    )
    if wanted is not None and not any_values and payload_digest(payload) != wanted:
        raise InputError(
            f"weight {name!r} has other values than those that were stripped",
            hint="Add --any-values to accept them",
        )
    return payload


def _initializers(document: Document) -> Iterator[tuple[Scope, Tensor]]:
    for scope in document.scopes():
        for proto in list(scope.records.get("initializer", ())):
            yield scope, Tensor(proto, document)


def _weights(document: Document) -> Iterator[tuple[Scope, str, Tensor]]:
    """Yield the initializers and the tensors of Constant nodes, with their names."""
    for scope, tensor in _initializers(document):
        yield scope, tensor.name, tensor
    for scope in document.scopes():
        for node in scope.nodes_of_type("Constant"):
            constant = _constant_tensor(node)
            if constant is not None:
                yield scope, node.outputs[0], constant


def _constant_tensor(node: Node) -> Tensor | None:
    """Return the tensor of a Constant node."""
    return node.tensor("value") if is_constant(node) and node.outputs else None


def _payload(tensor: Tensor, moved: RelocatedWeights) -> Blob | bytes | None:
    try:
        return _values(tensor)
    except InputError as error:
        name = shortened(tensor.name)
        moved.notes.append(f"{name} is unchanged: {visible(error.message)}")
        return None


def _values(tensor: Tensor) -> Blob | bytes:
    problem = tensor.problem
    if problem is not None:
        raise InputError(problem)
    return raw_payload(tensor)


def _replace(tensor: Tensor, proto: onnx.TensorProto, moved: RelocatedWeights) -> None:
    """Overwrite a tensor in place: nobody else holds records of a copy."""
    moved.count += 1
    moved.bytes += tensor.nbytes or 0
    tensor.proto.CopyFrom(proto)
