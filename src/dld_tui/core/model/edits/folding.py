"""Folding: nodes that compute from constants alone are replaced by what they compute.

ONNX Runtime computes it, in a process of its own that has the limits of trials; the edit itself
imports no runtime.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.model_set import discard_view, external_view
from dld_tui.core.files.proto_fields import set_text
from dld_tui.core.files.source import Source
from dld_tui.core.model.document.edit_registry import edit, nodes_at, subject
from dld_tui.core.model.document.node import Node, constant_node
from dld_tui.core.model.document.opset_imports import ensure_ir
from dld_tui.core.model.document.parts.extraction import (
    called_functions,
    extract_between,
    is_constant,
    nested,
)
from dld_tui.core.model.document.scope import INITIALIZERS_WITHOUT_INPUTS, Scope
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.model.document.traversal import feeding, names_taken, outer_node, scope_of
from dld_tui.core.model.edits.nodes import delete_from
from dld_tui.core.model.edits.repairs import remove_unused
from dld_tui.core.model.edits.tensors import put_payload
from dld_tui.core.model.operators.categories import RANDOM_OPERATORS
from dld_tui.core.model.operators.native import trial_limits
from dld_tui.core.model.tensors.elements import require_dtype
from dld_tui.core.model.tensors.generate import require_room
from dld_tui.core.model.tensors.payloads import CHUNK, scratch_folder
from dld_tui.core.process.child import ask
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


@dataclass(frozen=True)
class Fold:
    """Nodes that are folded, and what of them stays."""

    scope: Scope
    nodes: list[Node]
    """In the order of the file."""
    outputs: list[str]
    """What others use of them; all of their outputs where nothing uses any."""
    sources: list[Node]
    """All nodes of the scope that they are computed from, and they themselves."""


def plan_fold(document: Document, nodes: Sequence[Node]) -> Fold:
    """Return what folding some nodes does.

    Raises:
        UsageError: There are no nodes, or they are of several scopes.
        EditError: What they compute depends on an input or on chance; the message names it.
    """
    scope = scope_of(nodes, "fold", "Fold those of one graph at a time")
    chosen = set(nodes)
    ordered = [node for node in scope.nodes if node in chosen]
    all_outputs = list(dict.fromkeys(name for node in ordered for name in node.outputs if name))
    if not all_outputs:
        raise EditError(f"{_title(ordered[0])} makes nothing")
    used = [name for name in all_outputs if name in scope.outputs or _users(scope, name) - chosen]
    sources = feeding(scope, all_outputs, ())
    for node in sources:
        _require_constant(node)
    called = [node for one in called_functions(document, sources) for node in one.nodes]
    for node in nested([*sources, *called]):
        if node.op_type in RANDOM_OPERATORS and not node.domain:
            raise EditError(f"{_title(node)} may make other values in each run")
    return Fold(scope, ordered, used or all_outputs, sources)


def _require_constant(node: Node) -> None:
    """Refuse a node that takes something that is no constant, and does not compute all of it."""
    for inner in nested([node]):
        for attribute in inner.attributes():
            if attribute.reference is not None:
                name = quoted(attribute.reference)
                raise EditError(f"{_title(node)} depends on attribute {name} of the function")
    for name in names_taken(node):
        definition = node.scope.resolve(name)
        if definition is None:
            raise EditError(f"{_title(node)} takes {quoted(name)}, which nothing makes")
        if definition.kind == "input" or definition.scope.is_default(name):
            raise EditError(f"{_title(node)} depends on input {quoted(name)}")
        maker = definition.node
        if maker is not None and definition.scope is not node.scope and not is_constant(maker):
            raise EditError(
                f"{_title(node)} depends on {quoted(name)}, which an outer graph computes",
                hint=f"Fold {_title(maker)} first",
            )


def _title(node: Node) -> str:
    return f"node {quoted(node.ref)} ({node.op_type})"


@edit
def fold_nodes(document: Document, transaction: Transaction, *, nodes: Sequence[JSON]) -> str:
    """Replace nodes by initializers with what they compute, which must depend on no input.

    Outputs of the graph and values of a function become Constant nodes. Constants, and other nodes
    that only the folded ones used, are removed. ONNX Runtime computes the values.

    Args:
        nodes: ``[[SCOPE, NODE], …]``, of one scope.
    """
    fold = plan_fold(document, nodes_at(document, nodes))
    tensors = dict(_computed(document, fold))
    scope, refs = fold.scope, [node.ref for node in fold.nodes]
    taken = {name for node in fold.sources for name in names_taken(node)}
    outside = {name: scope.resolve(name) for name in taken}
    gone = _no_longer_used(fold)
    replaced = _as_nodes(fold, tensors)
    for maker, constants in replaced.items():
        transaction.replace(scope, "node", maker, *constants)
    delete_from(
        transaction, scope, [node for node in gone if node not in replaced], reconnect=False
    )
    weights = [name for name in fold.outputs if scope.definition(name) is None]
    if weights:
        ensure_ir(transaction, document, INITIALIZERS_WITHOUT_INPUTS)
        transaction.append(scope, "initializer", *(tensors[name] for name in weights))
    for name in weights:  # the tensor has its type
        transaction.drop(scope, "value_info", name)
    homes: dict[Scope, list[str]] = {}
    for name, definition in outside.items():
        if definition is not None and definition.kind == "initializer":
            homes.setdefault(definition.scope, []).append(name)
    for home, names in homes.items():
        remove_unused.run(document, transaction, scope=home.path, nodes=False, names=names)
    results = fmt.listed(fold.outputs, 3 if len(fold.outputs) < 4 else 1, quoted)
    return f"fold {subject(refs, 'node')} to {results}"


def _no_longer_used(fold: Fold) -> list[Node]:
    """Return the folded nodes, and those that made something for these alone."""
    scope, kept = fold.scope, set(fold.outputs)
    gone = set(fold.nodes)
    for node in fold.sources[::-1]:  # users first, in a graph that is in order
        if node not in gone and not any(
            name in kept or name in scope.outputs or _users(scope, name) - gone
            for name in node.outputs
            if name
        ):
            gone.add(node)
    return [node for node in fold.sources if node in gone]


def _users(scope: Scope, name: str) -> set[Node]:
    """Return the nodes of a scope that use a value, in their subgraphs too."""
    return {outer_node(scope, use.node) for use in scope.users(name)}


def _as_nodes(fold: Fold, tensors: dict[str, onnx.TensorProto]) -> dict[Node, list[Node]]:
    """Return the Constant nodes in the place of folded ones: where no initializer can be."""
    scope = fold.scope
    replaced: dict[Node, list[Node]] = {}
    for node in fold.nodes:
        constants = [
            scope.new_node(constant_node(name, tensors[name], node.name if at == 0 else ""))
            for at, name in enumerate(name for name in node.outputs if name in tensors)
            if scope.is_function or name in scope.outputs
        ]
        if constants:
            replaced[node] = constants
    return replaced


_START = (
    "import sys; sys.path[:] = sys.argv.pop().split('\\n');"
    " from dld_tui.backends.onnxruntime.constants import main; main()"
)
_BY_THE_CLOCK = 10
"""How much longer than its processor time a process may take on a loaded machine."""
_START_S = 30.0
"""How long it may take to start there."""


def _computed(document: Document, fold: Fold) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yield the outputs of nodes as initializers.

    Raises:
        EditError: They cannot be computed.
        SaveError: The disk is full.
    """
    part = extract_between(document, fold.scope, outputs=fold.outputs).document
    with closing(part), scratch_folder() as folder:
        home = None if document.path is None else document.path.parent
        skeleton = skeleton_bytes(part)
        view = external_view(skeleton, part.blobs, home, external=part.external, values=True)
        try:
            weights = summarise(part, constants=False).weight_bytes
            limit_s = _BY_THE_CLOCK * trial_limits(len(skeleton), weights).seconds + _START_S
            answer = _ask([str(view), str(folder)], limit_s)
        finally:
            discard_view(view)
        if "error" in answer:
            hint = answer.get("hint")
            raise EditError(f"it cannot be computed: {answer['error']}", hint=hint)
        for number, (name, value) in enumerate(zip(fold.outputs, answer["values"], strict=True)):
            proto = onnx.TensorProto(data_type=require_dtype(value["dtype"]))
            set_text(proto, "name", name)
            proto.dims.extend(value["dims"])
            if value["dtype"] == "string":
                proto.string_data.extend(bytes.fromhex(text) for text in value["texts"])
                yield name, proto
                continue
            with closing(Source.open(folder / f"{number}.bin")) as source:
                require_room(document, source.size)
                values = Blob(source, 0, source.size, "raw_data")
                put_payload(document, proto, values.chunks(CHUNK))
            yield name, proto


def _ask(arguments: list[str], limit_s: float) -> dict[str, Any]:
    command = [sys.executable, "-c", _START, *arguments, "\n".join(sys.path)]
    try:
        answer = ask(command, limit_s)
    except subprocess.TimeoutExpired:
        raise EditError(f"it cannot be computed within {fmt.duration(limit_s)}") from None
    except OSError as error:
        raise EditError(f"it cannot be computed: {error.strerror or error}") from error
    try:
        folded = json.loads(answer.output)
    except ValueError:
        folded = None
    if not isinstance(folded, dict):
        last = (answer.errors.strip().splitlines() or ["ONNX Runtime ended without an answer"])[-1]
        raise EditError(f"it cannot be computed: {last}")
    return folded
