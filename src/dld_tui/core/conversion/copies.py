"""Copies of a document that share its payloads, and what conversions do to them first."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx

from dld_tui.core.document.calls import function_of
from dld_tui.core.document.document import Document
from dld_tui.core.document.edits.inlining import inline_function
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import SetLinks
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.document.type_inference import infer_types, take_in_small_data, take_types
from dld_tui.core.errors import DldError, EditError
from dld_tui.core.files.leftovers import PREFIX
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.files.tensors import dense_tensors, entries_of, is_external, set_inline
from dld_tui.core.types import JSON

_ROUNDS = 100
"""Local functions that call each other, one inside the other."""


def copy_of(document: Document) -> Document:
    """Return a copy of a document, without a path. Close it before the document itself."""
    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    return Document(model, blobs=document.blobs.again(), external=document.external.again())


def open_model(path: Path) -> Document:
    """Open a model that is to be converted.

    Of a view that stands for an open document (:mod:`dld_tui.core.files.view`), what is in the
    model's own file, or in the view's, becomes inline again.

    Raises:
        InputError: It cannot be opened.
    """
    document = Document.open(path)
    try:
        _undo_view(document, path)
    except BaseException:
        document.close()
        raise
    return document


def _undo_view(document: Document, path: Path) -> None:
    if not (path.name.startswith(PREFIX) or path.parent.name.startswith(PREFIX)):
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
        views = location.startswith(PREFIX) or location == "model.onnx.data"
        own[location] = views or recognise(path) is FileKind.ONNX
    if own[location]:
        set_inline(proto, document.blobs.add(document.external.blob(entries)))


def inline_calls(document: Document) -> int:
    """Replace all calls of local functions by their nodes; return how many.

    Calls that cannot be replaced, as of a function that calls itself, stay.
    """
    made, refused = 0, set[Node]()
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
            transaction = Transaction("inline_function", {})
            try:
                inline_function(document, transaction, nodes=place)
                made += 1
            except EditError:
                transaction.roll_back()
                refused.add(call)
    return made


def infer(copy: Document, path: Path | None) -> list[str]:
    """Give a copy the types that inference finds; return what does not fit together.

    Native code that can end the process: call this in a child.
    """
    model = onnx.ModelProto.FromString(skeleton_bytes(copy))
    if path is not None:
        take_in_small_data(model, path)
    try:
        inferred, remarks = infer_types(model, path)
    except DldError as error:
        return [error.message]  # what the file declares of types may be enough
    take_types(copy, inferred)
    return [remark.message for remark in remarks]


def relink(transaction: Transaction, node: Node, side: str, old: str, new: str) -> None:
    """Rename a value among the inputs or outputs of one node."""
    names = node.inputs if side == "input" else node.outputs
    changed = tuple(new if name == old else name for name in names)
    if changed != names:
        transaction.do(SetLinks(node.scope, node, side, changed))


def relink_users(
    transaction: Transaction, scope: Scope, old: str, new: str, but: Iterable[Node] = ()
) -> None:
    """Let the nodes that use a value use another one, in bodies below too."""
    skipped = set(but)
    for node in dict.fromkeys(use.node for use in scope.users(old)):
        if node not in skipped:
            relink(transaction, node, "input", old, new)


def is_graph_output(scope: Scope, name: str) -> bool:
    """Return whether a graph at a value's scope, or one below that captures it, gives it out."""
    return any(name in reached.outputs for reached in scope.reach(name))
