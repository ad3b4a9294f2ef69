"""Where a model keeps its weights: in itself, in a data file, or nowhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx

from dld_tui.core import fmt
from dld_tui.core.conversion.copies import copy_of
from dld_tui.core.document.document import Document
from dld_tui.core.document.edits.attributes import find_attribute
from dld_tui.core.document.edits.tensors import emptied, put_payload
from dld_tui.core.document.node import Node
from dld_tui.core.document.parts.extraction import is_constant
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import InputError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.external import dense_tensors
from dld_tui.core.files.proto_text import text_of
from dld_tui.core.tensors.elements import encoded
from dld_tui.core.text import shortened, visible

HASH_KEY = "dld.sha256"
"""Metadata of a tensor whose values were taken out: their SHA-256, as ``raw_data`` has them."""
_CHUNK = 4 << 20
_LIST = 1024
"""Bytes from which no tensor of one dimension is a shape, axes, pads, steps or the like."""


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
    made, lists = Moved(copy_of(document)), 0
    for _, _, tensor in _weights(made.document):
        if tensor.is_external or tensor.dtype == "string" or not tensor.nbytes:
            continue
        if tensor.nbytes < threshold:
            continue
        if len(tensor.shape) < 2 and (tensor.nbytes or 0) < _LIST:
            lists += 1
            continue
        payload = _payload(tensor, made)
        if payload is not None:
            proto = emptied(tensor.proto)
            put_payload(made.document, proto, payload, location=location)
            _take(tensor, proto, made)
    if lists:
        stay = "stays" if lists == 1 else "stay"
        made.notes.append(
            f"{fmt.plural(lists, 'list')} of less than {_LIST} bytes {stay} in the model: shapes"
            " may depend on them, and runtimes do not infer these from data files"
        )
    return made


def to_inline(document: Document) -> Moved:
    """Return a copy that has its weights in itself."""
    moved = Moved(copy_of(document))
    for _, _, tensor in _weights(moved.document):
        if not tensor.is_external:
            continue
        payload = _payload(tensor, moved)
        if payload is not None:
            proto = emptied(tensor.proto)
            put_payload(moved.document, proto, payload)
            _take(tensor, proto, moved)
    return moved


def stripped(document: Document, threshold: int = 1024) -> Moved:
    """Return a copy without the values of its weights, but with their hashes.

    Args:
        document: The model; it stays as it is, and open until the copy is closed.
        threshold: Weights of fewer bytes keep their values: shapes and the like.
    """
    moved = Moved(copy_of(document))
    for _, _, tensor in _weights(moved.document):
        if tensor.dtype == "string" or (tensor.nbytes or 0) < threshold or not tensor.nbytes:
            continue
        payload = _payload(tensor, moved)
        if payload is None:
            continue
        proto = _unhashed(tensor)
        proto.metadata_props.add(key=HASH_KEY, value=_hash(payload))
        _take(tensor, proto, moved)
    return moved


def _unhashed(tensor: Tensor) -> onnx.TensorProto:
    """Return the message of a tensor without its values, and without what was noted of them."""
    proto = emptied(tensor.proto)
    entries = [e for e in proto.metadata_props if text_of(e.key) != HASH_KEY]
    del proto.metadata_props[:]
    proto.metadata_props.extend(entries)
    return proto


def restored(document: Document, source: Document, *, any_values: bool = False) -> Moved:
    """Return a copy of a stripped model with the weights of the model that it was made of.

    Args:
        document: The stripped model.
        source: The model with the weights; open until the copy is closed.
        any_values: Take weights whose values are others than those that were taken out, too.

    Raises:
        InputError: A weight is not in `source`, has another type or shape, or other values.
    """
    moved = Moved(copy_of(document))
    homes = {scope.path: scope for scope in source.scopes()}
    try:
        for scope, name, tensor in _weights(moved.document):
            if tensor.location != "none":
                continue
            found = _weight(homes.get(scope.path), name)
            payload = _same_weight(name, tensor, found, any_values=any_values)
            proto = _unhashed(tensor)
            put_payload(moved.document, proto, payload)
            _take(tensor, proto, moved)
    except BaseException:
        moved.document.close()
        raise
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
                digest.update(_hash(_values(tensor)).encode())
            except InputError as error:  # no trial has its values either
                digest.update(error.message.encode(errors="surrogatepass"))
        proto.CopyFrom(emptied(proto))
    digest.update(model.SerializeToString(deterministic=True))
    return digest.hexdigest()


def computes_alike(one: Document, two: Document) -> bool:
    """Return whether two models have the same nodes, so that equal weights give equal values."""
    return _structure(one) == _structure(two)


def _structure(document: Document) -> list[tuple[object, ...]]:
    """Return what the nodes of all scopes compute, but for the values of tensors."""
    return [
        (scope.path, scope.inputs, scope.outputs,
         [(node.op_type, node.proto.domain, node.inputs, node.outputs, _plain(node))
          for node in scope.nodes])
        for scope in document.scopes()
    ]  # fmt: skip


def _plain(node: Node) -> list[bytes]:
    """Return the attributes of a node that are no tensors and no graphs."""
    return [
        attribute.SerializeToString(deterministic=True)
        for attribute in node.proto.attribute
        if not attribute.HasField("t") and not attribute.tensors and not attribute.HasField("g")
    ]


def _weight(home: Scope | None, name: str) -> Tensor | None:
    """Return the weight of a name, whether an initializer or a Constant node gives it."""
    if home is None:
        return None
    node = home.producer(name)
    return home.initializer(name) or (None if node is None else _held(node))


def _same_weight(
    name: str, tensor: Tensor, found: Tensor | None, *, any_values: bool
) -> Blob | bytes:
    name = shortened(name)
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


def _weights(document: Document) -> Iterator[tuple[Scope, str, Tensor]]:
    """Yield the initializers and what Constant nodes hold, with the names of the values."""
    for scope, tensor in _initializers(document):
        yield scope, tensor.name, tensor
    for scope in document.scopes():
        for node in scope.nodes_of_type("Constant"):
            held = _held(node)
            if held is not None:
                yield scope, node.outputs[0], held


def _held(node: Node) -> Tensor | None:
    """Return the tensor of a Constant node."""
    if not is_constant(node) or not node.outputs:
        return None
    _, attribute = find_attribute(node, "value")
    if attribute is None or not attribute.HasField("t"):
        return None
    return Tensor(attribute.t, node.scope.document)


def _payload(tensor: Tensor, moved: Moved) -> Blob | bytes | None:
    try:
        return _values(tensor)
    except InputError as error:
        name = shortened(tensor.name)
        moved.notes.append(f"{name} stays as it is: {visible(error.message)}")
        return None


def _values(tensor: Tensor) -> Blob | bytes:
    problem = tensor.problem
    if problem is not None:
        raise InputError(problem)
    try:
        return tensor.payload()
    except InputError:  # a few varints in the message itself
        return encoded(tensor.read(), tensor.dtype)


def _take(tensor: Tensor, proto: onnx.TensorProto, moved: Moved) -> None:
    """Put a tensor in the place of another: nobody else holds records of a copy."""
    moved.count += 1
    moved.bytes += tensor.nbytes or 0
    tensor.proto.CopyFrom(proto)


def _hash(payload: Blob | bytes) -> str:
    digest = hashlib.sha256()
    for part in (payload,) if isinstance(payload, bytes) else payload.chunks(_CHUNK):
        digest.update(part)
    return digest.hexdigest()
