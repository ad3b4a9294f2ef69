"""Operator sets and local functions that nodes need where they are put."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import SENTINEL_LENGTH, BlobTable, payload_digest
from dld_tui.core.files.external import dense_tensors
from dld_tui.core.files.proto_fields import (
    imported_versions,
    operator_key,
    set_items,
    set_text,
    text_of,
)
from dld_tui.core.model.document.local_functions import enclosing_function, key_of
from dld_tui.core.model.document.locations import bodies, nested_nodes, weight_names
from dld_tui.core.model.document.scope import INITIALIZERS_WITHOUT_INPUTS, Scope, ScopeOwner
from dld_tui.core.model.document.serialise import filled_scope
from dld_tui.core.model.document.transactions import SetList, SetText, Splice, Transaction, copies
from dld_tui.core.model.operators.registry import importable_version, schema_for
from dld_tui.core.text import quoted
from dld_tui.core.types import FIRST_IR_WITH_IMPORTS, plain_domain

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

FIRST_IR_WITH_FUNCTIONS = 8
"""The IR version from which on a model may have local functions."""
_FIRST_IR_WITH_METADATA = 10
_TYPES_SINCE = {
    17: 9, 18: 9, 19: 9, 20: 9,  # float8 of four kinds
    21: 10, 22: 10,  # uint4 and int4
    23: 11,  # float4e2m1
    24: 12,  # float8e8m0
    25: 13, 26: 13,  # uint2 and int2
}  # fmt: skip
"""The IR version from which on there is an element type."""


def import_opsets(
    document: Document, transaction: Transaction, home: Scope, model: onnx.ModelProto
) -> None:
    """Import the operator sets of a small model that are not imported in a scope.

    Raises:
        EditError: One is imported in a version in which an operator means something else.
    """
    function = enclosing_function(home)
    present = imports_of(home)
    missing: dict[str, int] = {}
    for entry in model.opset_import:
        domain = plain_domain(text_of(entry.domain))
        if domain not in present:
            missing[domain] = int(entry.version)
        elif present[domain] != entry.version:
            _require_same_operators(model, domain, int(entry.version), present[domain])
    if not missing:
        return
    _import(transaction, document.main, "model", document.model, missing)
    if function is not None:
        _import(transaction, function, "", function.proto, missing)


def copy_functions(
    document: Document, transaction: Transaction, home: Scope, model: onnx.ModelProto
) -> None:
    """Add the local functions of a small model that the document does not have.

    Raises:
        EditError: It has another function of the same name, or a function would call itself.
    """
    if not len(model.functions):
        return
    present = {key_of(scope): scope for scope in document.functions}
    own = enclosing_function(home)
    fresh: list[onnx.FunctionProto] = []
    for proto in model.functions:
        key = operator_key(proto)
        shown = quoted(f"{key[0]}:{key[1]}")
        if own is not None and key_of(own) == key:
            raise EditError(f"the function {shown} would call itself")
        known = present.get(key)
        if known is None:
            fresh.append(proto)
        elif message_content(document.blobs, proto) != _content_of(document, known):
            raise EditError(
                f"this model has another function called {shown}", hint="Rename one of them first"
            )
    if not fresh:
        return
    ensure_ir(transaction, document, FIRST_IR_WITH_FUNCTIONS)
    added = [Scope(proto, document) for proto in fresh]
    transaction.append(document.main, "function", *added)


def _import(
    transaction: Transaction, scope: Scope, list_name: str, message: Any, missing: dict[str, int]
) -> None:
    known = {plain_domain(text_of(entry.domain)) for entry in message.opset_import}
    new = [
        onnx.OperatorSetIdProto(domain=domain, version=version)
        for domain, version in missing.items()
        if domain not in known
    ]
    if new:
        wanted = [*copies(message.opset_import), *new]
        transaction.do(SetList(scope, None, list_name, message, "opset_import", wanted))


def _require_same_operators(model: onnx.ModelProto, domain: str, there: int, here: int) -> None:
    for node in nested_nodes(model.graph.node):
        if plain_domain(text_of(node.domain)) != domain:
            continue
        op_type = text_of(node.op_type)
        schemas = [schema_for(op_type, domain, version) for version in (there, here)]
        versions = [schema.since_version if schema is not None else None for schema in schemas]
        if versions[0] != versions[1]:
            shown = quoted(domain or "ai.onnx")
            raise EditError(
                f"{quoted(op_type)} is not the same in {shown} {there}, where the nodes come from, "
                f"and {here}, which this model imports",
                hint="Convert one of the models to the other's version first",
            )


def _content_of(document: Document, function: Scope) -> bytes:
    with filled_scope(function):
        return message_content(document.blobs, function.proto)


def message_content(blobs: BlobTable, proto: Any) -> bytes:
    """Return the content of a message, with a digest instead of each payload."""
    data: bytes = proto.SerializeToString()
    position = data.find(blobs.nonce)
    while position >= 0:
        end = position + SENTINEL_LENGTH
        blob = blobs.get(data[position:end])
        if blob is not None:
            data = data[:position] + bytes.fromhex(payload_digest(blob)) + data[end:]
        position = data.find(blobs.nonce, end)
    return data


FUNCTIONS_IR, DEFAULTS_IR, OVERLOADS_IR = 8, 9, 10
"""The first IR versions with functions, with defaults of their attributes, and with overloads."""


def imports_of(scope: Scope) -> dict[str, int]:
    """Return the operator set versions that hold in a scope, ``""`` being ai.onnx."""
    outer = scope
    while outer.parent is not None:
        outer = outer.parent
    imports = dict(scope.document.opset_imports)
    proto: Any = outer.proto
    if outer.is_function:
        own = {text_of(entry.domain): int(entry.version) for entry in proto.opset_import}
        imports.update({plain_domain(domain): v for domain, v in own.items()})
    return imports


def versions_by_domain(scope: Scope) -> dict[str, int]:
    """Return the operator sets that a scope's function imports itself, or the model."""
    return imported_versions(_holder(scope)[2])


def ensure_import(transaction: Transaction, scope: Scope, domain: str, version: int) -> None:
    """Import an operator set where a scope needs it, unless it is imported already."""
    if domain not in versions_by_domain(scope):
        record_scope, list_name, message = _holder(scope)
        imports = [*copies(message.opset_import), _opset_id(domain, version)]
        transaction.do(SetList(record_scope, None, list_name, message, "opset_import", imports))


def ensure_known_import(transaction: Transaction, scope: Scope, domain: str) -> None:
    """Import the operator set of a node at a known version, where a scope does not import it yet.

    The newest version that the model's IR version allows is taken.
    """
    domain = plain_domain(domain)
    if domain in versions_by_domain(scope):
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
    return [_opset_id(domain, version) for domain, version in imports.items()]


def ensure_ir(transaction: Transaction, document: ScopeOwner, version: int) -> None:
    """Raise the model's IR version to one that has what an edit or a conversion adds.

    Weights stay constants (:func:`constant_inputs`).
    """
    model, main = document.model, document.main
    if model.ir_version >= version:
        return
    weights = {name for kind in ("initializer", "sparse_initializer") for name in main.named(kind)}
    for place in constant_inputs(int(model.ir_version), version, main.inputs, weights)[::-1]:
        transaction.do(Splice(main, "input", place, [main.records["input"][place]], []))
    old = model.ir_version if model.HasField("ir_version") else None
    transaction.do(SetText(main, "model", None, model, "ir_version", old, version))


def raise_ir_version(model: onnx.ModelProto, version: int) -> None:
    """Raise the IR version of a message as :func:`ensure_ir` does that of a document."""
    if model.ir_version >= version:
        return
    inputs, weights = model.graph.input, weight_names(model.graph)
    names = (info.name for info in inputs)
    gone = constant_inputs(int(model.ir_version), version, names, weights)
    set_items(inputs, [info for place, info in enumerate(inputs) if place not in gone])
    model.ir_version = version


def least_ir_of(model: onnx.ModelProto) -> int:
    """Return the IR version that the content of a model needs, whatever its operators are.

    Source: the comments of ``enum Version`` in onnx.proto. Weights count as what they are from
    version 4 on, since inputs of the same name would be constants before.
    """
    needed = INITIALIZERS_WITHOUT_INPUTS if model.graph.initializer else FIRST_IR_WITH_IMPORTS
    if model.graph.sparse_initializer:
        needed = max(needed, 6)
    if model.training_info:
        needed = max(needed, 7)
    if model.functions:
        needed = max(needed, FIRST_IR_WITH_FUNCTIONS)
    for function in model.functions:
        if function.attribute_proto:
            needed = max(needed, 9)
        if function.overload or function.value_info or function.metadata_props:
            needed = max(needed, _FIRST_IR_WITH_METADATA)
    for tensor in dense_tensors(model):
        needed = max(needed, _TYPES_SINCE.get(tensor.data_type, 0))
        if tensor.metadata_props:
            needed = max(needed, _FIRST_IR_WITH_METADATA)
    for _, body in bodies(model):
        infos = (
            (*body.input, *body.value_info, *body.output) if hasattr(body, "initializer") else ()
        )
        for info in infos:
            needed = max(needed, _TYPES_SINCE.get(info.type.tensor_type.elem_type, 0))
        if any(one.metadata_props for one in (body, *infos, *body.node)):
            needed = max(needed, _FIRST_IR_WITH_METADATA)
    return needed


def constant_inputs(
    before: int, after: int, inputs: Iterable[str], weights: Container[str]
) -> list[int]:
    """Return the places of the inputs that a model loses when its IR version is raised.

    Before version 4 every initializer had to be an input, and was a constant all the same. From
    then on it would be the default of an input, of which runtimes fold and fuse nothing.

    Args:
        before: The IR version; 0 if the model has none.
        after: The new IR version.
        inputs: Those of the main graph.
        weights: Its initializers.
    """
    if not before < INITIALIZERS_WITHOUT_INPUTS <= after:
        return []
    return [place for place, name in enumerate(inputs) if name in weights]


def _holder(scope: Scope) -> tuple[Scope, str, Any]:
    """Return what :class:`SetList` needs to change the imports that hold in a scope."""
    function = enclosing_function(scope)
    if function is not None:
        return function, "", function.proto
    return scope.document.main, "model", scope.document.model


def _opset_id(domain: str, version: int) -> onnx.OperatorSetIdProto:
    message = onnx.OperatorSetIdProto(version=version)
    set_text(message, "domain", domain)
    return message
