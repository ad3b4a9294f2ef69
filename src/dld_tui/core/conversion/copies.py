"""Copies of a document for conversions, and restoring what a library dropped from its result.

Nodes are matched by their first output, other records by name, or by the name that quantization
gives them. Only what the result lacks is restored, and only for records that it still has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.unknown_fields import UnknownFieldSet

from dld_tui.core.errors import DldError, EditError, InputError
from dld_tui.core.files.external import dense_tensors, entries_of, is_external, set_inline
from dld_tui.core.files.proto_fields import set_text, text_of
from dld_tui.core.files.recognise import recognise
from dld_tui.core.files.temporary import VIEW_PREFIX
from dld_tui.core.llm.folder import open_document
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.local_functions import function_of, key_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.opset_imports import raise_ir_version
from dld_tui.core.model.document.scope import INITIALIZERS_WITHOUT_INPUTS, Scope
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.document.transactions import SetLinks, Splice, Transaction
from dld_tui.core.model.edits.cleaning import lift_scope
from dld_tui.core.model.edits.functions import inline_function
from dld_tui.core.model.edits.initializers import to_dense
from dld_tui.core.model.operators.native import MOST_NODES, expansion
from dld_tui.core.model.shapes.inference import (
    TypeSource,
    infer_types,
    inline_small_data,
    spell_out_domains,
    store_types,
)
from dld_tui.core.types import FLOATS, JSON

_ROUNDS = 100
"""The deepest nesting of calls of local functions."""


def copy_of(document: Document) -> Document:
    """Return a copy of a document, without a path. Close it before the document itself.

    What the file leaves to its readers is written out in the copy, since libraries need it: which
    operator sets it uses (:func:`spell_out_domains`), and an IR version that allows for weights
    that are no inputs, if there are some.
    """
    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    spell_out_domains(model)
    inputs = {text_of(info.name) for info in model.graph.input}
    if any(text_of(tensor.name) not in inputs for tensor in model.graph.initializer):
        raise_ir_version(model, INITIALIZERS_WITHOUT_INPUTS)
    return Document(model, blobs=document.blobs.reopened(), external=document.external.reopened())


@contextmanager
def working_copy(document: Document) -> Iterator[Document]:
    """Yield a copy as :func:`copy_of` does. It stays open, unless the block fails."""
    copy = copy_of(document)
    try:
        yield copy
    except BaseException:
        copy.close()
        raise


def open_model(path: Path) -> Document:
    """Open a model that is to be converted.

    In a view of an open document (:mod:`dld_tui.core.files.model_set`), data from the model's own
    file, or the view's, become inline again.

    Raises:
        InputError: It cannot be opened.
    """
    document = open_document(path)
    try:
        _undo_view(document, path)
    except BaseException:
        document.close()
        raise
    return document


def write_copy(document: Document, target: Path) -> None:
    """Write a model with its weights to a file, or to one beside it where they are large.

    Raises:
        SaveError: It cannot be written.
    """
    from dld_tui.core.files.model_set import plan_model  # it needs NumPy

    plan_model(
        skeleton_bytes(document), document.blobs, target,
        external=document.external, spill=document.spill,
    ).write()  # fmt: skip


def _undo_view(document: Document, path: Path) -> None:
    if not (path.name.startswith(VIEW_PREFIX) or path.parent.name.startswith(VIEW_PREFIX)):
        return
    own: dict[str, bool] = {}
    for scope in document.scopes():
        for proto in scope.records.get("initializer", ()):
            _inline_own(document, proto, own)
        for node in scope.nodes:
            model = onnx.ModelProto()
            model.graph.node.append(node.proto)
            tensors = list(dense_tensors(model))
            if any(is_external(tensor) for tensor in tensors):
                for tensor in tensors:
                    _inline_own(document, tensor, own)
                node.proto.CopyFrom(model.graph.node[0])


def _inline_own(document: Document, proto: onnx.TensorProto, own: dict[str, bool]) -> None:
    if not is_external(proto):
        return
    entries = entries_of(proto)
    location = entries.get("location", "")
    if location not in own:
        path = document.external.resolve(location)
        views = location.startswith(VIEW_PREFIX) or location == "model.onnx.data"
        own[location] = views or _is_model(path)
    if own[location]:
        set_inline(proto, document.blobs.add(document.external.blob(entries)))


def _is_model(path: Path) -> bool:
    try:
        return recognise(path).is_model
    except InputError:  # a data file, which may begin with any bytes
        return False


def inline_calls(document: Document) -> int:
    """Replace all calls of local functions by their nodes; return how many.

    Calls that cannot be replaced, such as those of a recursive function, stay; and all, if they
    stand for more nodes than can be looked at.
    """
    if document.functions:
        counts = expansion(onnx.ModelProto.FromString(skeleton_bytes(document)))
        if max(counts.values(), default=0) > MOST_NODES:
            return 0
    inlined, refused = 0, set[Node]()
    for _ in range(_ROUNDS):
        calls = [
            node
            for scope in document.main.walk()
            for node in scope.nodes
            if node not in refused and function_of(node) is not None
        ]
        if not calls:
            break
        for call in calls:
            place: list[list[JSON]] = [[list(call.scope.path), call.ref]]
            transaction = Transaction.of(inline_function(nodes=place))
            try:
                inline_function.run(document, transaction, nodes=place)
                inlined += 1
            except EditError:
                transaction.roll_back()
                refused.add(call)
    return inlined


def infer(copy: Document, path: Path | None, extra_types: TypeSource | None = None) -> list[str]:
    """Give a copy the types that shape inference finds; return the messages of the inference.

    Native code that can end the process: call this in a child.

    Args:
        copy: The copy.
        path: The model's file, beside which its data files are.
        extra_types: As for :func:`~dld_tui.core.model.shapes.inference.infer`.
    """
    model = onnx.ModelProto.FromString(skeleton_bytes(copy))
    if path is not None:
        inline_small_data(model, path)
    try:
        inferred, remarks = infer_types(model, path, extra_types)
    except DldError as error:
        return [error.message]  # the types that the file declares may be enough
    store_types(copy, inferred)
    return [remark.told_of(copy) for remark in remarks]


def relink(transaction: Transaction, node: Node, side: str, old: str, new: str) -> None:
    """Rename a value among the inputs or outputs of one node."""
    names = node.inputs if side == "input" else node.outputs
    changed = tuple(new if name == old else name for name in names)
    if changed != names:
        transaction.do(SetLinks(node.scope, node, side, changed))


def relink_users(
    transaction: Transaction, scope: Scope, old: str, new: str, but: Iterable[Node] = ()
) -> None:
    """Rename a value among the inputs of all nodes that use it, also in nested graphs."""
    skipped = set(but)
    for node in dict.fromkeys(use.node for use in scope.users(old)):
        if node not in skipped:
            relink(transaction, node, "input", old, new)


_HEADER = ("producer_name", "producer_version", "domain", "model_version", "doc_string")
_NAMED = ("input", "output", "value_info", "initializer")
_QUANTIZED, _QUANT = "_quantized", "_quant"
"""What ONNX Runtime appends to the names of weights and of nodes."""


def restore_dropped(original: Document, result: Document) -> int:
    """Restore in a result what a library dropped; the result is changed in place.

    Model and graph: documentation, metadata, name, training information, quantization annotations.
    Local functions that are still called. Nodes: name, documentation and metadata. Inputs, outputs,
    values and initializers: documentation, metadata and the denotations of dimensions. All of
    these, and functions: fields of newer versions of the format.

    Returns:
        How many nodes something was restored for.
    """
    old, new = original.model, result.model
    for field in _HEADER:
        if old.HasField(field):
            value = getattr(old, field)
            set_text(new, field, value if isinstance(value, int) else text_of(value))
    _record(old, new)
    if not len(new.training_info):
        new.training_info.extend(old.training_info)
    pairs = _pairs(original.main, result.main)
    theirs = {key_of(function): function for function in result.functions}
    for function in original.functions:
        twin = theirs.get(key_of(function))
        pairs += [] if twin is None else _pairs(function, twin)
    _functions(original, result)
    return sum(_scope(scope, twin_scope) for scope, twin_scope in pairs)


def _pairs(old: Scope, new: Scope) -> list[tuple[Scope, Scope]]:
    """Return graphs with their counterparts in the result, matched by the nodes that hold them."""
    pairs = [(old, new)]
    for node in old.control_flow:
        twin = new.producer(node.outputs[0]) if node.outputs else None
        for name, scopes in node.children.items():
            theirs = [] if twin is None else twin.children.get(name, [])
            for mine, other in zip(scopes, theirs, strict=False):
                pairs += _pairs(mine, other)
    return pairs


def _scope(old: Scope, new: Scope) -> int:
    old_proto: Any = old.proto
    new_proto: Any = new.proto
    if old_proto.HasField("name"):
        set_text(new_proto, "name", text_of(old_proto.name))
    if old_proto.HasField("doc_string"):
        set_text(new_proto, "doc_string", text_of(old_proto.doc_string))
    _add_entries(old_proto, new_proto)
    _unknown(old_proto, new_proto)
    _annotations(old, new)
    for list_name in _NAMED:
        if list_name not in old.records:
            continue
        index = new.named(list_name)
        for record in old.records[list_name]:
            name = text_of(record.name)
            twin = index.first(name) or index.first(f"{name}{_QUANTIZED}")
            if twin is not None:
                _record(record, twin)
    return sum(_node(old, node) for node in new.nodes)


def _node(old: Scope, node: Node) -> bool:
    before = old.producer(node.outputs[0]) if node.outputs else None
    if before is None or before.op_type != node.op_type:
        return _quantized_node(old, node)
    changed = _record(before.proto, node.proto)
    if before.name and not node.name:
        node.scope.leave("node", node)
        set_text(node.proto, "name", before.name)
        node.scope.enter("node", node)
        changed = True
    return changed


def _quantized_node(old: Scope, node: Node) -> bool:
    """Restore the documentation and metadata of a node that quantization replaced."""
    if not node.name.endswith(_QUANT):
        return False
    before = old.nodes_named(node.name.removesuffix(_QUANT))
    return len(before) == 1 and _record(before[0].proto, node.proto)


def _record(old: Any, new: Any) -> bool:
    changed = _add_entries(old, new)
    changed |= _unknown(old, new)
    if isinstance(old, onnx.ValueInfoProto):
        changed |= _denotations(old.type, new.type)
    if old.HasField("doc_string") and not new.HasField("doc_string"):
        set_text(new, "doc_string", text_of(old.doc_string))
        changed = True
    return changed


def _denotations(old: onnx.TypeProto, new: onnx.TypeProto) -> bool:
    """Restore the denotations of a value and its dimensions."""
    parts: list[tuple[Any, Any]] = [(old, new)]
    shapes = old.tensor_type.shape.dim, new.tensor_type.shape.dim
    if len(shapes[0]) == len(shapes[1]):
        parts += zip(*shapes, strict=True)
    lost = [pair for pair in parts if pair[0].denotation and not pair[1].denotation]
    for old_part, new_part in lost:
        set_text(new_part, "denotation", text_of(old_part.denotation))
    return bool(lost)


def _unknown(old: Any, new: Any) -> bool:
    """Restore fields that are unknown to this version of the format."""
    if not len(UnknownFieldSet(old)) or len(UnknownFieldSet(new)):
        return False
    rest = deepcopy(old)
    for field, _ in old.ListFields():
        rest.ClearField(field.name)
    new.MergeFromString(rest.SerializeToString())
    return True


def _add_entries(old: Any, new: Any) -> bool:
    """Add the metadata that is missing."""
    present = {text_of(entry.key) for entry in new.metadata_props}
    missing = [entry for entry in old.metadata_props if text_of(entry.key) not in present]
    new.metadata_props.extend(missing)
    return bool(missing)


def _annotations(old: Scope, new: Scope) -> None:
    if "quantization_annotation" not in old.records:  # in a function
        return
    known = {text_of(record.tensor_name) for record in new.records["quantization_annotation"]}
    missing = []
    for annotation in old.records["quantization_annotation"]:
        name = text_of(annotation.tensor_name)
        if name not in known and new.definition(name) is not None:
            copied = deepcopy(annotation)
            missing.append(copied)
    if missing:
        end = len(new.records["quantization_annotation"])
        Splice(new, "quantization_annotation", end, [], missing).do()


def _functions(original: Document, result: Document) -> None:
    """Restore local functions that the result calls and does not have."""
    called = {
        (node.proto.domain, node.op_type) for scope in result.scopes() for node in scope.nodes
    }
    known = {(f.proto.domain, f.proto.name) for f in result.functions}  # type: ignore[union-attr]
    from dld_tui.core.model.document.serialise import filled_scope

    for function in original.functions:
        proto = function.proto
        assert isinstance(proto, onnx.FunctionProto)
        if (proto.domain, proto.name) in called - known:
            with filled_scope(function):
                copied = deepcopy(proto)
            result.functions.append(Scope(copied, result))


_SINCE_IR = 4
"""The version of the format from which an initializer need not be an input as well."""


def make_dense(copy: Document) -> int:
    """Make the sparse initializers of a copy dense; return how many there were.

    Raises:
        InputError: The values of one cannot be read.
    """
    transaction, count = Transaction("make_dense", {}), 0
    for scope in copy.main.walk():
        names = [text_of(record.values.name) for record in scope.records["sparse_initializer"]]
        count += len(names)
        to_dense.run(copy, transaction, scope=scope.path, names=names)
    return count


def lift_constants(copy: Document) -> int:
    """Turn the Constant nodes that hold floating point tensors into initializers.

    The documentation and metadata of a node become those of its initializer. Functions, which have
    no initializers, are left alone, as is a model in an old version of the format.

    Args:
        copy: A copy of a document, which is changed.

    Returns:
        How many nodes there were.
    """
    if copy.model.ir_version < _SINCE_IR:
        return 0
    transaction = Transaction("lift_constants", {})
    return sum(lift_scope(transaction, scope, FLOATS) for scope in copy.main.walk())
