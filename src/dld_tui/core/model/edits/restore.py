"""The inverse of any transaction as plain data, for the journal.

Undoing an edit that was made before the last save cannot be replayed as "undo": a program that
opens the saved file has no history. So the journal records the inverse as a separate edit.
Records are addressed by their place in their list, which is exact in the state it is replayed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.message_factory import GetMessageClass

from dld_tui.core.errors import EditError, SaveError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document.edit_registry import INVERSES, edit
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.scripting.arguments import Entry
from dld_tui.core.model.document.serialise import filled, filled_scope
from dld_tui.core.model.document.transactions import (
    Primitive,
    SetAttribute,
    SetLinks,
    SetList,
    SetText,
    Splice,
    Transaction,
)
from dld_tui.core.model.edits.model_swap import PresentModel, SwapModel, read_model
from dld_tui.core.model.tensors.payloads import decode_message, encode_message
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

Step: TypeAlias = "dict[str, JSON]"
"""What undoes one primitive: ``{"step": KIND, …}``."""


def inverse_arguments(document: Document, transaction: Transaction) -> Entry:
    """Take a transaction back and return the arguments for :func:`restore` to do the same.

    Raises:
        SaveError: There is no room for a large payload; the transaction is taken back even so.
    """
    steps: list[JSON] = []
    failed: SaveError | None = None
    for primitive in reversed(transaction.primitives):
        describe = _DESCRIBE[type(primitive)]
        try:
            if failed is None:
                steps.append({"scope": list(primitive.scope.path), **describe(document, primitive)})
        except SaveError as error:
            failed = error
        primitive.undo()
    if failed is not None:
        raise failed
    return {"steps": steps, "title": transaction.title}


INVERSES["restore"] = inverse_arguments


@edit
def restore(document: Document, transaction: Transaction, *, steps: list[JSON], title: str) -> str:
    """Make the changes that :func:`inverse_arguments` described."""
    for step in steps:
        try:
            data: Any = step
            _check(data)
            scope = document.scope_at(data["scope"])
            transaction.do(_BUILD[data["step"]](scope, data))
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            raise EditError("a step of the journal does not fit this model") from None
    return f"undo {title}"


def _describe_text(document: Document, primitive: SetText) -> Step:
    return {"step": "text", **_place(primitive), "value": primitive.old}


def _describe_list(document: Document, primitive: SetList) -> Step:
    data: list[JSON] = [
        {"text": item} if isinstance(item, str) else {"data": encode_message(document, item)}
        for item in primitive.old
    ]
    return {"step": "list", **_place(primitive), "items": data}


def _place(primitive: SetText | SetList) -> Step:
    """Say where a field is: the list and place of its record, and the way into the record."""
    records = primitive.scope.records.get(primitive.list_name, [])
    index = next((i for i, record in enumerate(records) if record is primitive.record), None)
    owner = _owner(primitive.scope, primitive.list_name, index)
    return {
        "list": primitive.list_name,
        "index": index,
        "inner": list(_inner_path(owner, primitive.message)),
        "field": primitive.field_name,
    }


def _describe_links(document: Document, primitive: SetLinks) -> Step:
    node = primitive.node
    return {
        "step": "links",
        "index": None if node is None else primitive.scope.index_of(node),
        "side": primitive.side,
        "names": list(primitive.old),
    }


def _describe_attribute(document: Document, primitive: SetAttribute) -> Step:
    index = primitive.scope.index_of(primitive.node)
    replaces = primitive.new is not None
    # The message is complete only while it is in place, so look at it after the undo.
    primitive.undo()
    try:
        with filled(primitive.node):
            data = (
                None
                if primitive.old is None
                else encode_message(document, primitive.node.proto.attribute[primitive.position])
            )
    finally:
        primitive.do()
    return {
        "step": "attribute",
        "index": index,
        "position": primitive.position,
        "replaces": replaces,
        "data": data,
    }


def _describe_splice(document: Document, primitive: Splice) -> Step:
    data: list[JSON] = []
    for record in primitive.removed:
        if isinstance(record, Node):
            with filled(record):
                data.append(encode_message(document, record.proto))
        elif isinstance(record, Scope):
            with filled_scope(record):
                data.append(encode_message(document, record.proto))
        else:
            data.append(encode_message(document, record))
    return {
        "step": "splice",
        "list": primitive.list_name,
        "index": primitive.index,
        "count": len(primitive.inserted),
        "data": data,
    }


def _describe_model(document: Document, primitive: SwapModel) -> Step:
    primitive.undo()
    try:
        present = PresentModel(document)
    finally:
        primitive.do()
    return {"step": "model", "model": present.keep()}


def _owner(scope: Scope, list_name: str, index: int | None) -> Any:
    if list_name == "model":
        return scope.document.model
    if not list_name or index is None:
        return scope.proto
    record = scope.records[list_name][index]
    return record.proto if isinstance(record, Node) else record


def _inner_path(owner: Any, message: Any) -> tuple[JSON, ...]:
    """Return the fields and positions that lead from a record to a message inside it."""
    if owner is message:
        return ()
    for descriptor, value in owner.ListFields():
        if descriptor.message_type is None:
            continue
        items = enumerate(value) if descriptor.is_repeated else [(None, value)]
        for position, item in items:
            if item is message:
                return (descriptor.name, position)
            below = _inner_path(item, message)
            if below:
                return (descriptor.name, position, *below)
    return ()


def _is_place(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _are_items(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and _are_texts([*item.values()]) for item in value
    )


_FITS: dict[str, Callable[[object], bool]] = {
    "index": lambda value: value is None or _is_place(value),
    "position": _is_place,
    "count": _is_place,
    "names": _are_texts,
    "items": _are_items,
}
"""What a step may have, for what would be noticed only when half of a change is made."""


def _check(data: dict[str, Any]) -> None:
    """Raise a TypeError for a step that could be made in part only."""
    for name, fits in _FITS.items():
        if name in data and not fits(data[name]):
            raise TypeError(name)


def _build_text(scope: Scope, data: dict[str, Any]) -> Primitive:
    record, message = _locate(scope, data)
    old = getattr(message, data["field"]) if message.HasField(data["field"]) else None
    old = text_of(old) if isinstance(old, bytes) else old
    return SetText(scope, data["list"], record, message, data["field"], old, data["value"])


def _build_list(scope: Scope, data: dict[str, Any]) -> Primitive:
    record, message = _locate(scope, data)
    kind: Any = message.DESCRIPTOR.fields_by_name[data["field"]].message_type
    items: list[Any] = []
    for item in data["items"]:
        if kind is not None:
            items.append(decode_message(scope.document, item["data"], GetMessageClass(kind)))
        else:
            items.append(item["text"])
    return SetList(scope, record, data["list"], message, data["field"], items)


def _locate(scope: Scope, data: dict[str, Any]) -> tuple[Any, Any]:
    """Return the record and the message that :func:`_place` describes."""
    message = _owner(scope, data["list"], data["index"])
    inner = data["inner"]
    for name, position in zip(inner[::2], inner[1::2], strict=True):
        value = getattr(message, name)
        message = value if position is None else value[position]
    record = None if data["index"] is None else scope.records[data["list"]][data["index"]]
    return record, message


def _build_links(scope: Scope, data: dict[str, Any]) -> Primitive:
    node = None if data["index"] is None else scope.nodes[data["index"]]
    return SetLinks(scope, node, data["side"], tuple(data["names"]))


def _build_attribute(scope: Scope, data: dict[str, Any]) -> Primitive:
    node = scope.nodes[data["index"]]
    old = node.proto.attribute[data["position"]] if data["replaces"] else None
    new = None
    if data["data"] is not None:
        new = decode_message(scope.document, data["data"], onnx.AttributeProto)
    return SetAttribute(node, data["position"], old, new)


def _build_splice(scope: Scope, data: dict[str, Any]) -> Primitive:
    list_name, index = data["list"], data["index"]
    if list_name == "function":
        kind: Any = onnx.FunctionProto
    else:
        kind = GetMessageClass(scope.proto.DESCRIPTOR.fields_by_name[list_name].message_type)  # type: ignore[arg-type]
    inserted: list[Any] = [decode_message(scope.document, item, kind) for item in data["data"]]
    if list_name == "node":
        inserted = [scope.new_node(proto) for proto in inserted]
    elif list_name == "function":
        inserted = [Scope(proto, scope.document) for proto in inserted]
    if index + data["count"] > len(scope.records[list_name]):
        raise IndexError(index)
    removed = scope.records[list_name][index : index + data["count"]]
    return Splice(scope, list_name, index, removed, inserted)


def _build_model(scope: Scope, data: dict[str, Any]) -> Primitive:
    return SwapModel(scope.document, read_model(scope.document, data["model"]))


_DESCRIBE: dict[type[Any], Callable[[Document, Any], Step]] = {
    SetText: _describe_text,
    SetLinks: _describe_links,
    SetAttribute: _describe_attribute,
    SetList: _describe_list,
    Splice: _describe_splice,
    SwapModel: _describe_model,
}
_BUILD: dict[str, Callable[[Scope, dict[str, Any]], Primitive]] = {
    "text": _build_text,
    "links": _build_links,
    "attribute": _build_attribute,
    "list": _build_list,
    "splice": _build_splice,
    "model": _build_model,
}
