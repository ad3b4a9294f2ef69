"""Passes over a whole model that change how it is written down, and nothing that it computes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.errors import EditError, InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import payload_digest
from dld_tui.core.files.external import is_external
from dld_tui.core.files.proto_fields import get_text, set_text, text_of
from dld_tui.core.model.document.edit_registry import edit, strings
from dld_tui.core.model.document.index import record_name
from dld_tui.core.model.document.local_functions import called_by, functions_called, key_of
from dld_tui.core.model.document.node import Node, constant_node
from dld_tui.core.model.document.opset_imports import (
    drop_import,
    ensure_ir,
    ensure_known_import,
    versions_by_domain,
)
from dld_tui.core.model.document.parts.extraction import is_constant
from dld_tui.core.model.document.scope import INITIALIZERS_WITHOUT_INPUTS, Scope
from dld_tui.core.model.document.transactions import SetLinks, SetText, Splice, Transaction
from dld_tui.core.model.edits.nodes import free_node_name, remove_records
from dld_tui.core.model.edits.repairs import remove_unused, sort_nodes
from dld_tui.core.model.tensors.elements import raw_payload
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.text import quoted

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


_LISTS = {"value_float": 1, "value_floats": 1, "value_int": 7, "value_ints": 7}
"""Attributes of Constant other than tensors, with the type of their elements."""


def lift_scope(transaction: Transaction, scope: Scope, dtypes: Container[str] | None = None) -> int:
    """Turn Constant nodes of a graph into initializers; return how many.

    The documentation and metadata of a node become those of its initializer. What is a graph
    output stays, and so do strings and sparse tensors.

    Args:
        transaction: The transaction to make the changes in.
        scope: The graph.
        dtypes: Only tensors of these types; None for all.
    """
    lifted: list[onnx.TensorProto] = []
    places = [*enumerate(scope.nodes)]
    for index, node in reversed(places):  # from the end, so that places stay what they are
        proto = _initializer_of(node, dtypes)
        if proto is not None:
            lifted.append(proto)
            transaction.do(Splice(scope, "node", index, [node], []))
    if lifted:
        transaction.append(scope, "initializer", *lifted[::-1])
    return len(lifted)


def _initializer_of(node: Node, dtypes: Container[str] | None) -> onnx.TensorProto | None:
    if not is_constant(node) or len(node.outputs) != 1 or node.outputs[0] in node.scope.outputs:
        return None
    tensor = node.tensor("value")
    if tensor is None:
        proto = None if dtypes is not None else _listed(node)
    else:
        proto = deepcopy(tensor.proto) if dtypes is None or tensor.dtype in dtypes else None
    if proto is None:
        return None
    set_text(proto, "name", node.outputs[0])
    if node.proto.HasField("doc_string") and not proto.HasField("doc_string"):
        set_text(proto, "doc_string", text_of(node.proto.doc_string))
    proto.metadata_props.extend(node.proto.metadata_props)
    return proto


def _listed(node: Node) -> onnx.TensorProto | None:
    """Return the tensor of a Constant that has numbers instead of one."""
    for attribute in node.attributes():
        if attribute.name not in _LISTS or attribute.reference is not None:
            continue
        value = attribute.value
        proto = onnx.TensorProto(data_type=_LISTS[attribute.name])
        values = value if isinstance(value, list) else [value]
        if isinstance(value, list):
            proto.dims.append(len(value))
        (proto.float_data if proto.data_type == 1 else proto.int64_data).extend(values)
        return proto
    return None


def _constants_to_initializers(document: Document, transaction: Transaction) -> int:
    if not any(scope.nodes_of_type("Constant") for scope in document.main.walk()):
        return 0
    ensure_ir(transaction, document, INITIALIZERS_WITHOUT_INPUTS)
    return sum(lift_scope(transaction, scope) for scope in document.main.walk())


def _initializers_to_constants(document: Document, transaction: Transaction) -> int:
    count = 0
    for scope in document.main.walk():
        # The data of an attribute must be in the model, and an input keeps what it is without one.
        records = [
            tensor
            for tensor in scope.records["initializer"]
            if not is_external(tensor) and text_of(tensor.name) not in scope.inputs
        ]
        if not records:
            continue
        ensure_known_import(transaction, scope, "")
        nodes: list[Node] = []
        for tensor in records:
            name = text_of(tensor.name)
            nodes.append(scope.new_node(constant_node(name, tensor, name)))
        remove_records(transaction, scope, "initializer", records)
        taken = {node.name for node in scope.nodes}
        for node in nodes:
            if node.name in taken:
                set_text(node.proto, "name", free_node_name(scope, node.name))
        transaction.do(Splice(scope, "node", 0, [], nodes))
        count += len(nodes)
    return count


def _share_weights(document: Document, transaction: Transaction) -> int:
    """Keep one of several initializers of a graph that have the same type, shape and values."""
    count = 0
    for scope in document.main.walk():
        fixed = {*scope.inputs, *scope.outputs}
        gone: list[Any] = []
        for tensors in _alike(document, scope, fixed):
            kept: dict[str, str] = {}  # names by content
            for tensor in tensors:
                content = _content(tensor)
                if content is None:
                    continue
                first = kept.setdefault(content, tensor.name)
                if first != tensor.name and _can_stand_for(scope, first, tensor.name):
                    _use_instead(transaction, scope, tensor.name, first)
                    gone.append(tensor.proto)
        for proto in gone:
            transaction.drop(scope, "value_info", text_of(proto.name))
        remove_records(transaction, scope, "initializer", gone)
        count += len(gone)
    return count


def _alike(document: Document, scope: Scope, fixed: Container[str]) -> Iterator[list[Tensor]]:
    """Yield initializers of the same type and shape, where there are several."""
    groups: dict[tuple[str, tuple[int, ...]], list[Tensor]] = {}
    index = scope.named("initializer")
    for proto in scope.records["initializer"]:
        tensor = Tensor(proto, document)
        if tensor.name not in fixed and len(index.all(tensor.name)) == 1:
            groups.setdefault((tensor.dtype, tensor.shape), []).append(tensor)
    return (tensors for tensors in groups.values() if len(tensors) > 1)


def _content(tensor: Tensor) -> str | None:
    """Return a digest of the values; None where they cannot be read."""
    if tensor.dtype == "string":
        return None
    try:
        return payload_digest(raw_payload(tensor))
    except InputError:
        return None


def _can_stand_for(scope: Scope, first: str, other: str) -> bool:
    """Return whether a value is visible wherever another one of its scope is used."""
    return all(one is scope or one.definition(first) is None for one in scope.reach(other))


def _use_instead(transaction: Transaction, home: Scope, old: str, new: str) -> None:
    for scope in list(home.reach(old)):
        for node in dict.fromkeys(scope.links.consumers.get(old, ())):
            names = tuple(new if name == old else name for name in node.inputs)
            transaction.do(SetLinks(scope, node, "input", names))
        for record in scope.records.get("quantization_annotation", ()):
            for entry in record.quant_parameter_tensor_names:
                if text_of(entry.value) == old:
                    transaction.do(
                        SetText(scope, "quantization_annotation", record, entry, "value", old, new)
                    )


def _weights_off_inputs(document: Document, transaction: Transaction) -> int:
    main = document.main
    weights = {*main.named("initializer"), *main.named("sparse_initializer")}
    count = sum(name in weights for name in main.inputs)
    if count:
        ensure_ir(transaction, document, INITIALIZERS_WITHOUT_INPUTS)
        records = [r for r in main.records["input"] if record_name("input", r) in weights]
        remove_records(transaction, main, "input", records)
    return count


def _remove_unused(document: Document, transaction: Transaction) -> int:
    before = len(transaction.primitives)
    for scope in reversed(list(document.scopes())):  # what is inside first: it uses what is outside
        remove_unused.run(document, transaction, scope=scope.path)
        _drop_stray_types(transaction, scope)
    used = functions_called(document, called_by(document.main))
    gone = [function for function in document.functions if key_of(function) not in used]
    remove_records(transaction, document.main, "function", gone)
    for root in (document.main, *document.functions):
        domains = {node.domain for scope in root.walk() for node in scope.nodes}
        if root is document.main:  # a function's nodes may go by the model's imports
            domains.update(n.domain for s in document.scopes() for n in s.nodes)
        for domain in versions_by_domain(root):
            if domain and domain not in domains:
                drop_import(transaction, root, domain)
    return len(transaction.primitives) - before


def _drop_stray_types(transaction: Transaction, scope: Scope) -> None:
    stray = [
        record
        for record in scope.records.get("value_info", ())
        if scope.definition(record_name("value_info", record)) is None
        and record_name("value_info", record) not in scope.outputs
    ]
    remove_records(transaction, scope, "value_info", stray)


def _clear_docs(document: Document, transaction: Transaction) -> int:
    before = len(transaction.primitives)
    _clear_doc(transaction, document.main, None, "model", document.model)
    for scope in document.scopes():
        _clear_doc(transaction, scope, None, "", scope.proto)
        for list_name, records in scope.records.items():
            for record in records if list_name != "function" else ():
                message = record.proto if isinstance(record, Node) else record
                _clear_doc(transaction, scope, record, list_name, message)
    return len(transaction.primitives) - before


def _clear_doc(
    transaction: Transaction, scope: Scope, record: Any, list_name: str, message: Any
) -> None:
    if "doc_string" in message.DESCRIPTOR.fields_by_name:
        old = get_text(message, "doc_string")
        if old is not None:
            transaction.do(SetText(scope, list_name, record, message, "doc_string", old, None))


def _clear_shapes(document: Document, transaction: Transaction) -> int:
    count = 0
    for scope in document.scopes():
        records = scope.records.get("value_info", [])
        count += len(records)
        remove_records(transaction, scope, "value_info", [*records])
    return count


def _sort(document: Document, transaction: Transaction) -> int:
    before = len(transaction.primitives)
    for scope in document.scopes():
        sort_nodes.run(document, transaction, scope=scope.path)
    return len(transaction.primitives) - before


PASSES: dict[str, Callable[[Document, Transaction], int]] = {
    "weights-off-inputs": _weights_off_inputs,
    "constants-to-initializers": _constants_to_initializers,
    "initializers-to-constants": _initializers_to_constants,
    "share-weights": _share_weights,
    "remove-unused": _remove_unused,
    "clear-docs": _clear_docs,
    "clear-shapes": _clear_shapes,
    "sort": _sort,
}
"""The passes by name, in the order in which they are made. Each returns how many places it has
changed."""


@edit
def clean(document: Document, transaction: Transaction, *, passes: Sequence[str]) -> str:
    """Make passes over the whole model that change nothing that it computes.

    Args:
        document: The model.
        transaction: The transaction to make the changes in.
        passes: Some of :data:`PASSES`; their order does not matter.
    """
    counts = cleaned(document, transaction, strings(passes, "passes"))
    effects = [f"{name} ({fmt.plural(count, 'place')})" for name, count in counts.items() if count]
    return ", ".join(effects) or "clean nothing"


def cleaned(document: Document, transaction: Transaction, passes: Sequence[str]) -> dict[str, int]:
    """Make passes, and return how many places each has changed.

    Raises:
        EditError: There is no such pass, two undo each other, or the nodes have a cycle.
    """
    for name in passes:
        if name not in PASSES:
            raise EditError(f"there is no pass {quoted(name)}", hint=f"Known: {', '.join(PASSES)}")
    if not passes:
        raise EditError("no pass is given", hint=f"Known: {', '.join(PASSES)}")
    if {"constants-to-initializers", "initializers-to-constants"} <= set(passes):
        raise EditError(
            "constants-to-initializers and initializers-to-constants exclude each other"
        )
    return {name: run(document, transaction) for name, run in PASSES.items() if name in passes}
