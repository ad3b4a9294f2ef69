"""Doc strings, metadata, producer fields and operator set imports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx

from dld_tui.core.document.edits.opsets import import_messages
from dld_tui.core.document.edits.registry import edit, node_at, quoted, strings
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.primitives import SetList, SetText, copies
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.wiretext import set_text, text_of
from dld_tui.core.errors import EditError

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

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
    if old != value:
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
        document: The document.
        transaction: The transaction to make the change in.
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
    found = [node_at(document, path, ref) for ref in strings(nodes, "nodes")]
    return [(node, "node", node.proto) for node in found]
