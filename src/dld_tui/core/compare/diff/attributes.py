"""Attributes of nodes: their keys for matching, their texts, and what differs between two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.compare.diff.model_diff import Field
from dld_tui.core.compare.diff.tensors import (
    Meter,
    TensorDifference,
    same_inline,
    tensor_difference,
)
from dld_tui.core.errors import InputError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.external import has_external
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document.node import Attribute, Node
from dld_tui.core.model.document.operator_matching import attribute_word
from dld_tui.core.model.tensors.literals import KINDS, LiteralError, format_literal
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import ValueType, value_type_of
from dld_tui.core.text import clip

_SHOWN_ELEMENTS = 16
"""Tensors up to this size are shown with their values."""
_LONG = 200
"""Characters of a literal that are shown."""


def attribute_key(node: Node) -> tuple[Any, ...]:
    """Return a key that is equal for nodes with equal attributes.

    Large payloads count by their type and length and subgraphs by their operators: two nodes with
    equal keys may still differ, which :func:`attribute_fields` finds.
    """
    protos = node.proto.attribute
    if not len(protos):
        return ()
    nonce = node.scope.document.blobs.nonce
    keys: list[Any] = []
    for proto in protos:
        data = proto.SerializeToString()
        name = text_of(proto.name)
        if name in node.children:
            keys.append((name, *(_operators(scope) for scope in node.children[name])))
        elif nonce in data:
            keys.append((name, *_outline(Attribute(node, proto))))
        else:
            keys.append((name, data))
    return tuple(sorted(keys, key=repr)) if len(keys) > 1 else tuple(keys)


def _operators(scope: Any) -> tuple[Any, ...]:
    counts = Counter(inner.op_type for nested in scope.walk() for inner in nested.nodes)
    return tuple(sorted(counts.items()))


def _outline(attribute: Attribute) -> tuple[Any, ...]:
    value = attribute.value
    if isinstance(value, Tensor):
        return ("tensor", value.dtype, value.shape)
    if isinstance(value, bytes):
        blob = attribute.node.scope.document.blobs.get(value)
        return ("string", blob.length if blob else value)
    return (attribute.kind,)


def attribute_fields(old: Node, new: Node, meter: Meter, notes: list[str]) -> Iterator[Field]:
    """Yield what differs between the attributes of two nodes, in the order of their names.

    Subgraphs that both have are scopes of their own and not compared here.
    """
    if not len(old.proto.attribute) and not len(new.proto.attribute):
        return
    before = {attribute.name: attribute for attribute in old.attributes()}
    after = {attribute.name: attribute for attribute in new.attributes()}
    for name in sorted({*before, *after}):
        first, second = before.get(name), after.get(name)
        label = f"attribute {name}"
        if first is None or second is None:
            yield Field(
                label,
                None if first is None else attribute_text(first),
                None if second is None else attribute_text(second),
            )
            continue
        if same_bytes(first.proto, second.proto) and name not in old.children:
            continue
        yield from _fields(label, first, second, meter, notes)


def _fields(
    label: str, old: Attribute, new: Attribute, meter: Meter, notes: list[str]
) -> Iterator[Field]:
    if old.reference != new.reference:
        yield Field(label, attribute_text(old), attribute_text(new))
        return
    if text_of(old.proto.doc_string) != text_of(new.proto.doc_string):
        yield Field(
            f"{label} doc_string", text_of(old.proto.doc_string), text_of(new.proto.doc_string)
        )
    first, second = old.node.children.get(old.name), new.node.children.get(new.name)
    if first is not None and second is not None and len(first) == len(second):
        return
    if old.kind != new.kind:
        yield Field(label, _with_kind(old), _with_kind(new))
        return
    try:
        yield from _value_fields(label, old, new, meter)
    except InputError as error:
        notes.append(f"{label} of {new.node.ref} cannot be compared: {error.message}")


def _with_kind(attribute: Attribute) -> str:
    text = attribute_text(attribute)
    return text if text.startswith(attribute.kind) else f"{attribute.kind} {text}"


def same_bytes(old: Any, new: Any) -> bool:
    """Return True when two messages are encoded alike; False says nothing.

    The mark of a payload that was cut out is one of its document, so a message with one is never
    like that of another document. External data may differ where its entries are the same.
    """
    data = old.SerializeToString()
    return data == new.SerializeToString() and not has_external(data)


def _value_fields(label: str, old: Attribute, new: Attribute, meter: Meter) -> Iterator[Field]:
    first, second = old.value, new.value
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        yield from tensor_fields(label, first, second, meter)
    elif old.kind == "tensors":
        if len(first) != len(second):
            yield Field(label, f"{len(first)} tensors", f"{len(second)} tensors")
            return
        for index, (tensor, other) in enumerate(zip(first, second, strict=True)):
            yield from tensor_fields(f"{label}[{index}]", tensor, other, meter)
    elif old.kind == "sparse_tensor":
        yield from _sparse_fields(label, old, new, meter)
    elif old.kind == "string":
        if string_value(old) != string_value(new):
            yield Field(label, attribute_text(old), attribute_text(new))
    elif not _same_message(old, new):
        yield _text_field(label, old, new)


def _sparse_fields(label: str, old: Attribute, new: Attribute, meter: Meter) -> Iterator[Field]:
    first, second = old.value, new.value
    if first.dims != second.dims:
        yield Field(f"{label} shape", fmt.shape(tuple(first.dims)), fmt.shape(tuple(second.dims)))
    for part in ("values", "indices"):
        tensors = [
            Tensor(getattr(attribute.value, part), attribute.node.scope.document)
            for attribute in (old, new)
        ]
        yield from tensor_fields(f"{label} {part}", tensors[0], tensors[1], meter)


def _text_field(label: str, old: Attribute, new: Attribute) -> Field:
    texts = attribute_text(old), attribute_text(new)
    if texts[0] == texts[1] and isinstance(old.value, list):
        # The texts are cut where lists are long: say where they part.
        first, second = old.value, new.value
        place = next(
            (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
            min(len(first), len(second)),
        )
        texts = tuple(  # type: ignore[assignment]
            f"{len(values)} values, [{place}] = {values[place] if place < len(values) else 'none'}"
            for values in (first, second)
        )
    return Field(label, *texts)


def _same_message(old: Attribute, new: Attribute) -> bool:
    """Return whether two attributes of one kind say the same, however they are encoded."""
    first, second = old.value, new.value
    if isinstance(first, list):
        if len(first) != len(second):
            return False
        return all(
            value == other or (value != value and other != other)
            for value, other in zip(first, second, strict=True)
        )
    if isinstance(first, float):
        return repr(first) == repr(second)  # NaN is itself, and -0.0 is not 0.0
    if hasattr(first, "SerializeToString"):
        return bool(first.SerializeToString() == second.SerializeToString())
    return bool(first == second)


def tensor_fields(label: str, old: Tensor, new: Tensor, meter: Meter) -> Iterator[Field]:
    """Yield what differs between two tensors of attributes.

    Raises:
        InputError: The values of one cannot be read.
    """
    if (old.dtype, old.shape) != (new.dtype, new.shape):
        yield Field(label, tensor_text(old), tensor_text(new))
        return
    difference = values_difference(old, new, meter)
    if isinstance(difference, TensorDifference):
        yield Field(label, tensor_text(old), f"{tensor_text(new)}: {difference.text}")
    elif difference is not None:
        yield Field(label, *difference)


def values_difference(
    old: Tensor, new: Tensor, meter: Meter
) -> TensorDifference | tuple[str, str] | None:
    """Compare the values of two tensors of one type and shape.

    Returns:
        None when they are the same; a pair of texts when only one of them has data.

    Raises:
        InputError: The values of one cannot be read.
    """
    if same_inline(old, new):
        return None
    without = [tensor.location == "none" for tensor in (old, new)]
    if all(without):
        return None
    if any(without):
        return "no data" if without[0] else "data", "no data" if without[1] else "data"
    return tensor_difference(old, new, meter)


def tensor_text(tensor: Tensor) -> str:
    """Return a tensor as a short literal, or its type and shape when it is large."""
    head = f"{tensor.dtype}{fmt.shape(tensor.shape)}"
    if 0 < tensor.element_count <= _SHOWN_ELEMENTS and tensor.location != "none":
        try:
            return clip(format_literal(tensor.read().reshape(tensor.shape), "tensor"), _LONG)
        except (InputError, LiteralError, ValueError):
            return head  # a broken tensor is shown by what it claims to be
    return head


def string_value(attribute: Attribute) -> bytes:
    """Return the bytes of a string attribute, read from the file when it is long."""
    blob = attribute.node.scope.document.blobs.get(attribute.value)
    return blob.read() if isinstance(blob, Blob) else bytes(attribute.value)


def nodes_text(count: int) -> str:
    """Return ``1 node`` or for example ``1,200 nodes``."""
    return f"{fmt.count(count)} node{'' if count == 1 else 's'}"


def attribute_text(attribute: Attribute, limit: int = _LONG) -> str:
    """Return the value of an attribute on one line, cut after `limit` cells. Untrusted text."""
    if attribute.reference is not None:
        return f"@{attribute.reference}"
    if (word := attribute_word(attribute)) is not None:
        return word
    value, kind = attribute.value, attribute.kind
    children = attribute.node.children.get(attribute.name)
    if children is not None:
        nodes = sum(len(nested.nodes) for scope in children for nested in scope.walk())
        return f"{kind} of {nodes_text(nodes)}"
    if isinstance(value, Tensor):
        return tensor_text(value)
    if kind == "string":
        return clip(format_literal(string_value(attribute)[:limit], "string"), limit)
    if kind in KINDS:
        shown = value[:limit] if isinstance(value, list) else value
        return clip(format_literal(shown, kind), limit)
    if kind == "tensors":
        return "[" + ", ".join(tensor_text(item) for item in value[:_SHOWN_ELEMENTS]) + "]"
    if kind == "type_proto":
        return (value_type_of(value) or ValueType(None, None)).text
    return kind
