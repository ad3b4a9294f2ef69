"""One model as lines of text, for ``git diff`` and other tools that compare text.

An item whose order has no meaning is where its name sorts it; what is too long for a line is
followed by a hash, so that any change shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.diff.attributes import attribute_text, tensor_text
from dld_tui.core.diff.nodes import signature
from dld_tui.core.diff.side import Side
from dld_tui.core.diff.tensors import Meter, digest
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Attribute, Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.document.wiretext import get_text, text_of
from dld_tui.core.errors import InputError
from dld_tui.core.text import clip, visible

_SMALL = 16
"""Elements of a tensor that is shown with its values instead of their hash."""
_LONG = 1000
"""Cells of a value that are shown."""
_NO_LIMIT = 1 << 62


def model_lines(document: Document, *, weights: bool = True) -> Iterator[str]:
    """Yield the lines of a model, fit to be shown.

    Args:
        document: The model.
        weights: False leaves the hashes of large tensors out, so that no payload is read.
    """
    for line in _Printer(weights).model(document):
        yield visible(line)


class _Printer:
    def __init__(self, weights: bool) -> None:
        self.weights = weights
        self.meter = Meter()

    def model(self, document: Document) -> Iterator[str]:
        model = document.model
        yield "model"
        for name in ("ir_version", "producer_name", "producer_version", "domain", "model_version"):
            if model.HasField(name):
                yield f"  {name}: {text_or_number(getattr(model, name))}"
        for domain, version in sorted(document.opset_imports.items()):
            yield f"  opset {domain or 'ai.onnx'}: {version}"
        yield from _notes(model, "  ")
        yield from self.scope(document.main, "main", "")
        for function in sorted(document.functions, key=lambda scope: scope.step):
            yield from self.scope(function, function.step, "")

    def scope(self, scope: Scope, title: str, indent: str) -> Iterator[str]:
        side = Side(scope, None)
        inner = f"{indent}  "
        yield f"{indent}{title}"
        proto: Any = scope.proto
        if not scope.is_function and proto.name:
            yield f"{inner}name: {text_of(proto.name)}"
        yield from _notes(proto, inner)
        if scope.is_function:
            yield from _function_head(proto, inner)
        for kind, names in (("input", side.inputs), ("output", side.outputs)):
            for name in names:
                yield f"{inner}{kind} {name}: {side.type_text(name) or '?'}"
        for name in sorted(side.initializers):
            yield f"{inner}initializer {name}: {self.initializer(side, name)}"
        terminals = {*side.inputs, *side.outputs}
        for name in sorted(side.types.keys() - terminals):
            yield f"{inner}type {name}: {side.type_text(name)}"
        for index, node in enumerate(side.nodes):
            yield from self.node(side, index, node, inner)

    def initializer(self, side: Side, name: str) -> str:
        tensor = side.tensor(name)
        if tensor is not None:
            return self.tensor(tensor)
        sparse = side.initializers[name]
        parts = (Tensor(part, side.scope.document) for part in (sparse.values, sparse.indices))
        values, indices = (self.tensor(part) for part in parts)
        return f"sparse {fmt.shape(tuple(sparse.dims))}, values {values}, indices {indices}"

    def tensor(self, tensor: Tensor) -> str:
        text = tensor_text(tensor)
        if tensor.element_count <= _SMALL or not self.weights:
            return text
        try:
            return f"{text} blake2b {digest(tensor, self.meter)}"
        except InputError as error:
            return f"{text} ({error.message})"

    def node(self, side: Side, index: int, node: Node, indent: str) -> Iterator[str]:
        yield f"{indent}node {side.names[index]}: {signature(side, index)}"
        inner = f"{indent}    "
        for attribute in sorted(node.attributes(), key=lambda one: one.name):
            scopes = node.children.get(attribute.name)
            if scopes is not None and attribute.reference is None:
                for number, scope in enumerate(scopes):
                    place = "" if scope.position is None else f"[{number}]"
                    yield from self.scope(scope, f"{attribute.name}{place}", inner)
                continue
            value = attribute.value
            is_tensor = isinstance(value, Tensor) and attribute.reference is None
            text = self.tensor(value) if is_tensor else _whole(attribute)
            yield f"{inner}{attribute.name}: {text}"
        yield from _notes(node.proto, inner)


def _whole(attribute: Attribute) -> str:
    """Return the value of an attribute; a long one as its beginning and a hash of all of it."""
    text = attribute_text(attribute, limit=_NO_LIMIT)
    if len(text) <= _LONG:
        return text
    found = hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16)
    return f"{clip(text, _LONG)} blake2b {found.hexdigest()}"


def text_or_number(value: Any) -> str:
    """Return a field of a message as text."""
    return text_of(value) if isinstance(value, (str, bytes)) else str(value)


def _notes(message: Any, indent: str) -> Iterator[str]:
    doc_string = get_text(message, "doc_string")
    if doc_string:
        yield f"{indent}doc_string: {doc_string}"
    entries = [(text_of(entry.key), text_of(entry.value)) for entry in message.metadata_props]
    for key, value in sorted(entries):
        yield f"{indent}metadata {key}: {value}"


def _function_head(proto: Any, indent: str) -> Iterator[str]:
    for entry in sorted(proto.opset_import, key=lambda entry: text_of(entry.domain)):
        yield f"{indent}opset {text_of(entry.domain) or 'ai.onnx'}: {entry.version}"
    for name in proto.attribute:
        yield f"{indent}parameter {text_of(name)}"
    for default in proto.attribute_proto:
        yield f"{indent}parameter {text_of(default.name)} has a default"
