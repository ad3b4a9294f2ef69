"""Doc strings, metadata, operator sets, canvas positions, and settings for TensorRT."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.errors import EditError, InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import set_text, text_of
from dld_tui.core.model.document import metadata
from dld_tui.core.model.document.edit_registry import edit, node_at, nodes_at, strings
from dld_tui.core.model.document.metadata import (
    MOST,
    POSITION_KEY,
    PROFILES_KEY,
    Profile,
    parse_profiles,
    profiles_json,
    profiles_of,
    validate,
)
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.opset_imports import ensure_ir, import_messages
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import SetList, SetText, Transaction, copies
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

MODEL_TEXTS = ("producer_name", "producer_version", "domain", "doc_string")
MODEL_NUMBERS = ("ir_version", "model_version")


@edit
def set_model_field(
    document: Document, transaction: Transaction, *, field: str, value: str | int | None
) -> str:
    """Set a field of the model, of :data:`MODEL_TEXTS` or :data:`MODEL_NUMBERS`; None clears."""
    if field not in MODEL_TEXTS + MODEL_NUMBERS:
        raise EditError(f"there is no model field {field!r}")
    wanted: type[Any] = str if field in MODEL_TEXTS else int
    if value is not None and (isinstance(value, bool) or not isinstance(value, wanted)):
        raise EditError(f"{field} takes {'text' if wanted is str else 'a whole number'}")
    if isinstance(value, int) and not 0 <= value < 2**63:
        raise EditError(f"{field} is out of range")
    model = document.model
    old = getattr(model, field) if model.HasField(field) else None
    old = text_of(old) if isinstance(old, bytes) else old
    if field == "ir_version" and isinstance(value, int) and model.ir_version < value:
        ensure_ir(transaction, document, value)
    elif old != value:
        transaction.do(SetText(document.main, "model", None, model, field, old, value))
    return f"set {field}"


@edit
def set_doc_string(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    text: str,
    nodes: Sequence[str] | None = None,
) -> str:
    """Set the doc string of a graph or function, or of nodes in it; empty text clears it."""
    home = document.scope_at(scope)
    for record, list_name, message in _targets(document, scope, home, nodes):
        old = text_of(message.doc_string) if message.HasField("doc_string") else None
        if (old or "") != text:
            transaction.do(
                SetText(home, list_name, record, message, "doc_string", old, text or None)
            )
    return "set doc string"


@edit
def set_metadata(
    document: Document,
    transaction: Transaction,
    *,
    key: str,
    value: str | None,
    scope: Sequence[str] | None = None,
    nodes: Sequence[str] | None = None,
) -> str:
    """Set an entry of ``metadata_props``; None removes it.

    Args:
        key: The entry. Keys that start with ``dld.`` are this program's own.
        value: Its text.
        scope: The graph or function; None for the model.
        nodes: Refs of nodes in the scope; None for the graph or function itself.
    """
    if not key:
        raise EditError("a metadata entry needs a key")
    if scope is None:
        if nodes is not None:
            raise EditError("nodes need a scope")
        targets = [(None, "model", document.model)]
        home = document.main
    else:
        home = document.scope_at(scope)
        targets = _targets(document, scope, home, nodes)
    for record, list_name, message in targets:
        kept = copies(message.metadata_props)
        present = [entry for entry in kept if text_of(entry.key) == key]
        if value is None:
            wanted = [entry for entry in kept if text_of(entry.key) != key]
        elif present:
            set_text(present[-1], "value", value)  # the last one wins where a key is repeated
            wanted = kept
        else:
            entry = onnx.StringStringEntryProto()
            set_text(entry, "key", key)
            set_text(entry, "value", value)
            wanted = [*kept, entry]
        if list(message.metadata_props) != wanted:
            transaction.do(SetList(home, record, list_name, message, "metadata_props", wanted))
    return f"set {quoted(key)}" if value is not None else f"remove {quoted(key)}"


@edit
def set_opset(
    document: Document, transaction: Transaction, *, domain: str, version: int | None
) -> str:
    """Import an operator set in a version, or remove the import (None).

    The nodes are not converted: this says how they are to be read.
    """
    if version is not None and version < 1:
        raise EditError("an opset version is a whole number from 1")
    kept = copies(document.model.opset_import)
    same = [entry for entry in kept if _same_domain(text_of(entry.domain), domain)]
    if version is None:
        used = [
            node
            for scope in document.scopes()
            for node in scope.nodes
            if _same_domain(node.domain, domain)
        ]
        if used:
            raise EditError(
                f"{len(used)} nodes use the operator set {quoted(domain or 'ai.onnx')}",
                hint="Delete them first",
            )
        if not same:
            raise EditError(f"the operator set {quoted(domain)} is not imported")
        wanted = [entry for entry in kept if entry not in same]
    elif same:
        for entry in same:
            entry.version = version
        wanted = kept
    else:
        wanted = [*kept, *import_messages({domain: version})]
    if list(document.model.opset_import) != wanted:
        transaction.do(
            SetList(document.main, None, "model", document.model, "opset_import", wanted)
        )
    shown = quoted(domain or "ai.onnx")
    return f"remove operator set {shown}" if version is None else f"import {shown} {version}"


def _same_domain(first: str, second: str) -> bool:
    return {first, second} <= {"", "ai.onnx"} or first == second


def _targets(
    document: Document, path: Sequence[str], scope: Scope, nodes: Sequence[str] | None
) -> list[tuple[Any, str, Any]]:
    if nodes is None:
        return [(None, "", scope.proto)]
    chosen = [node_at(document, path, ref) for ref in strings(nodes, "nodes")]
    return [(node, "node", node.proto) for node in chosen]


@edit
def set_positions(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    positions: Mapping[str, JSON] | None,
) -> str:
    """Set how far nodes are drawn from where they would be arranged.

    Args:
        scope: The graph or function.
        positions: ``{NODE: [X, Y]}``: cells to the right and down by the ref of a node, null for a
            node that is to be arranged again; None for all nodes of the scope.
    """
    if positions is None:
        moved = [node for node in document.scope_at(scope).nodes if _entries(node)]
        for node in moved:
            _set(transaction, node, None)
        return f"arrange {fmt.plural(len(moved), 'node')} again"
    if not isinstance(positions, Mapping):
        raise EditError("positions must be places by node")
    targets = [(node_at(document, scope, ref), _text(place)) for ref, place in positions.items()]
    for node, text in targets:
        if [text_of(entry.value) for entry in _entries(node)] != ([] if text is None else [text]):
            _set(transaction, node, text)
    subject_text = quoted(targets[0][0].ref) if len(targets) == 1 else f"{len(targets)} nodes"
    return f"move {subject_text}"


def _text(place: JSON) -> str | None:
    if place is None:
        return None
    if isinstance(place, (list, tuple)) and len(place) == 2:
        x, y = place
        if type(x) is int and type(y) is int and max(abs(x), abs(y)) <= MOST:
            return f"{x},{y}"
    raise EditError(f"a position is two whole numbers from -{MOST} to {MOST}")


def _entries(node: Node) -> list[onnx.StringStringEntryProto]:
    return [entry for entry in node.proto.metadata_props if entry.key == POSITION_KEY]


def _set(transaction: Transaction, node: Node, text: str | None) -> None:
    props = node.proto.metadata_props
    kept = [entry for entry in copies(props) if text_of(entry.key) != POSITION_KEY]
    if text is not None:
        kept.append(onnx.StringStringEntryProto(key=POSITION_KEY, value=text))
    transaction.do(SetList(node.scope, node, "node", node.proto, "metadata_props", kept))


@edit
def set_precision(
    document: Document,
    transaction: Transaction,
    *,
    nodes: Sequence[JSON],
    precision: str | None,
) -> str:
    """Set the precision in which TensorRT is to run layers.

    Args:
        nodes: ``[[SCOPE, NODE], …]``: the path of a scope and the ref of a node in it.
        precision: One of :data:`~dld_tui.core.model.document.metadata.PRECISIONS`; None clears it.
    """
    if precision is not None and precision not in metadata.PRECISIONS:
        known = ", ".join(metadata.PRECISIONS)
        raise EditError(f"there is no precision {precision!r}", hint=f"Known: {known}")
    targets = nodes_at(document, nodes)
    for node in dict.fromkeys(targets):
        if metadata.precision_of(node) != (precision or ""):
            _set_entry(transaction, node, precision)
    subject_text = quoted(targets[0].ref) if len(targets) == 1 else f"{len(targets)} nodes"
    return (
        f"set precision of {subject_text} to {precision}"
        if precision
        else f"clear precision of {subject_text}"
    )


def _set_entry(transaction: Transaction, node: Node, precision: str | None) -> None:
    props = node.proto.metadata_props
    kept = [entry for entry in copies(props) if text_of(entry.key) != metadata.PRECISION_KEY]
    if precision is not None:
        kept.append(onnx.StringStringEntryProto(key=metadata.PRECISION_KEY, value=precision))
    transaction.do(SetList(node.scope, node, "node", node.proto, "metadata_props", kept))


def _present(document: Document) -> list[Profile]:
    try:
        return profiles_of(document)
    except InputError:
        return []  # damaged ones are replaced


@edit
def set_profiles(
    document: Document, transaction: Transaction, *, profiles: list[JSON] | None
) -> str:
    """Set the optimization profiles of the model.

    Existing ranges of the model are kept unchanged, even if they no longer fit its inputs.

    Args:
        profiles: ``[{INPUT: {"min": DIMS, "opt": DIMS, "max": DIMS}}, …]``; None or ``[]`` removes
            them.
    """
    if not profiles:
        set_metadata.run(document, transaction, key=PROFILES_KEY, value=None)
        return "remove optimization profiles"
    try:
        parsed = parse_profiles(profiles)
    except InputError as error:
        raise EditError(error.message) from None
    problems = validate(document, parsed, _present(document))
    if problems:
        raise EditError(problems[0])
    text = json.dumps(profiles_json(parsed), separators=(",", ":"), ensure_ascii=False)
    set_metadata.run(document, transaction, key=PROFILES_KEY, value=text)
    return f"set {len(parsed)} optimization profile{'' if len(parsed) == 1 else 's'}"


def rename_in_profiles(
    document: Document, transaction: Transaction, names: Mapping[str, str]
) -> None:
    """Let the ranges of inputs follow when these get other names.

    Args:
        document: The document.
        transaction: Takes in the change.
        names: New names by old ones.
    """
    present = profiles_json(_present(document))
    profiles = [
        {names.get(name, name): ranges for name, ranges in item.items()}
        for item in present
        if isinstance(item, dict)
    ]
    if profiles != present:
        text = json.dumps(profiles, separators=(",", ":"), ensure_ascii=False)
        set_metadata.run(document, transaction, key=PROFILES_KEY, value=text)


def permute_profiles(
    document: Document, transaction: Transaction, name: str, axes: Sequence[int]
) -> None:
    """Let the ranges of an input follow when its axes get another order.

    Args:
        document: The document.
        transaction: Takes in the change.
        name: The input.
        axes: Which axis each axis was before.
    """
    profiles = profiles_json(_present(document))
    ranges = [item[name] for item in profiles if isinstance(item, dict) and name in item]
    for own in ranges:
        for kind, shape in own.items() if isinstance(own, dict) else ():
            if isinstance(shape, list) and isinstance(own, dict) and len(shape) == len(axes):
                own[kind] = [shape[axis] for axis in axes]
    if ranges:
        text = json.dumps(profiles, separators=(",", ":"), ensure_ascii=False)
        set_metadata.run(document, transaction, key=PROFILES_KEY, value=text)
