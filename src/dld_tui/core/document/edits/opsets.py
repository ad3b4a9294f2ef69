"""Operator set imports and the IR version that an edit needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx

from dld_tui.core.document.calls import enclosing_function
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.primitives import SetList, SetText, copies
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.wiretext import set_text, text_of
from dld_tui.core.domains import plain_domain
from dld_tui.core.operators.opsets import importable_version

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

FUNCTIONS_IR, DEFAULTS_IR, OVERLOADS_IR = 8, 9, 10
"""The first IR versions with functions, with defaults of their attributes, and with overloads."""


def imports_of(scope: Scope) -> dict[str, int]:
    """Return the operator sets that hold in a scope: those of its function, or of the model."""
    message = _holder(scope)[2]
    return {plain_domain(text_of(item.domain)): int(item.version) for item in message.opset_import}


def ensure_import(transaction: Transaction, scope: Scope, domain: str, version: int) -> None:
    """Import an operator set where a scope needs it, unless it is imported already."""
    if domain not in imports_of(scope):
        record_scope, list_name, message = _holder(scope)
        imports = [*copies(message.opset_import), _import(domain, version)]
        transaction.do(SetList(record_scope, None, list_name, message, "opset_import", imports))


def ensure_known_import(transaction: Transaction, scope: Scope, domain: str) -> None:
    """Import an operator set that is known here, where a scope has none, for a node of it.

    The newest version that the model's IR version allows is taken.
    """
    domain = plain_domain(domain)
    if domain in imports_of(scope):
        return
    version = importable_version(domain, int(scope.document.model.ir_version))
    if version is not None:
        ensure_import(transaction, scope, domain, version)


def drop_import(transaction: Transaction, scope: Scope, domain: str) -> None:
    """Take away the import of an operator set."""
    record_scope, list_name, message = _holder(scope)
    kept = [i for i in copies(message.opset_import) if plain_domain(text_of(i.domain)) != domain]
    transaction.do(SetList(record_scope, None, list_name, message, "opset_import", kept))


def import_messages(imports: dict[str, int]) -> list[onnx.OperatorSetIdProto]:
    """Return the messages for a table of imports."""
    return [_import(domain, version) for domain, version in imports.items()]


def ensure_ir(transaction: Transaction, document: Document, version: int) -> None:
    """Raise the model's IR version to one that has what an edit adds."""
    model = document.model
    if model.ir_version < version:
        old = model.ir_version if model.HasField("ir_version") else None
        transaction.do(SetText(document.main, "model", None, model, "ir_version", old, version))


def _holder(scope: Scope) -> tuple[Scope, str, Any]:
    """Return what :class:`SetList` needs to change the imports that hold in a scope."""
    function = enclosing_function(scope)
    if function is not None:
        return function, "", function.proto
    return scope.document.main, "model", scope.document.model


def _import(domain: str, version: int) -> onnx.OperatorSetIdProto:
    message = onnx.OperatorSetIdProto(version=version)
    set_text(message, "domain", domain)
    return message
