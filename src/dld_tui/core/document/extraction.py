"""Parts of a model as models of their own: nodes, what is between values, a body, a function.

The new document shares the payloads of the old one, which has to stay open until it is saved; they
are never read into memory. What is left out of it is what its nodes do not use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import onnx

from dld_tui.core import fmt
from dld_tui.core.document.calls import key_of
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.document.parts import Parts, parts_of, small_model, typed
from dld_tui.core.document.reach import feeding
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.values import type_proto_of
from dld_tui.core.document.wiretext import set_text, set_texts, text_of, texts_of
from dld_tui.core.errors import EditError, UsageError
from dld_tui.core.text import clip, visible

_NO_INITIALIZERS_APART = 4
"""The first IR version in which an initializer need not be a graph input."""
_FIRST_WITH_FUNCTIONS = 8
_MOST_CALLS = 20
"""Functions that are followed outwards from one to the next that calls it."""
_PROFILES = "dld.profiles"
"""Metadata about the inputs of the whole model."""


@dataclass
class Extraction:
    """A new document and what is to be said of it."""

    document: Document
    """Not saved yet; close it before the one that it came from."""
    untyped: list[str] = field(default_factory=list)
    """Inputs and outputs of unknown type. Foreign text."""
    remarks: list[str] = field(default_factory=list)
    """For the user. Foreign text."""


def extract_nodes(document: Document, nodes: Sequence[Node]) -> Extraction:
    """Return nodes of one scope as a model. Links that are cut become inputs and outputs.

    Raises:
        UsageError: There are no nodes, or they are of several scopes.
    """
    if not nodes:
        raise UsageError("there are no nodes to extract")
    scope = nodes[0].scope
    if any(node.scope is not scope for node in nodes):
        raise UsageError(
            "the nodes are in several graphs", hint="Extract those of one graph at a time"
        )
    parts = parts_of(scope, nodes)
    return _assembled(document, parts, _in_order(scope.inputs, parts.taken),
                      _in_order(scope.outputs, parts.given))  # fmt: skip


def extract_between(
    document: Document,
    scope: Scope,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
) -> Extraction:
    """Return what computes some values from others as a model.

    Args:
        document: The document.
        scope: The scope of the values.
        inputs: Values to be given; further inputs of the scope that are needed become inputs, too.
        outputs: Values to be computed; the outputs of the scope when there are none.

    Raises:
        UsageError: There is no such value.
    """
    wanted = list(dict.fromkeys(outputs or scope.outputs))
    given = list(dict.fromkeys(inputs))
    for name in (*given, *wanted):
        if scope.resolve(name) is None:
            raise UsageError(f"there is no value {_shown(name)}", where=_place(scope))
    nodes = feeding(scope, wanted, given)
    parts = parts_of(scope, nodes, more=wanted, cut=given)
    used = [name for name in given if name in parts.taken or _is_made(nodes, name)]
    ordered = [*used, *_in_order(scope.inputs, [n for n in parts.taken if n not in used])]
    found = _assembled(document, parts, ordered, wanted, cut=set(used))
    for name in given:
        if name not in used and name not in wanted:
            found.remarks.append(f"input {_shown(name)} is left out: no output depends on it")
    more = [name for name in ordered if name not in given]
    if given and more:
        listed = ", ".join(_shown(name) for name in more[:3]) + (", …" if len(more) > 3 else "")
        found.remarks.append(f"{fmt.plural(len(more), 'further input')} needed: {listed}")
    return found


def extract_body(document: Document, body: Scope, call: Node | None = None) -> Extraction:
    """Return a subgraph, a function or the main graph as a model, without what it does not use.

    Outer values that a subgraph uses become inputs, unless they are initializers or constants.

    Args:
        document: The document.
        body: The scope.
        call: A node that calls the function, for its parameters and types; by default they have
            their defaults, and types come from the first call.
    """
    nodes = feeding(body, body.outputs, ())
    parts = parts_of(body, nodes, more=body.outputs)
    inner = [name for name in body.inputs if not _is_stored(body, name)]
    ordered = [*inner, *(name for name in parts.taken if name not in inner)]
    found = _assembled(document, parts, ordered, body.outputs, call=call)
    idle = len(body.nodes) - len(nodes)
    if idle:
        found.remarks.append(f"{fmt.plural(idle, 'node')} that no output depends on left out")
    return found


def declare_inferred(found: Extraction) -> None:
    """Declare inputs and outputs of unknown type as what shape inference has found since."""
    main = found.document.main
    for record in (*main.records["input"], *main.records["output"]):
        name = text_of(record.name)
        known = main.inferred.get(name)
        proto = type_proto_of(known) if known is not None else None
        if proto is not None and not record.HasField("type"):
            record.type.CopyFrom(proto)
            found.untyped.remove(name)


def _is_stored(scope: Scope, name: str) -> bool:
    return not scope.is_function and name in scope.named("initializer")


def _is_made(nodes: Iterable[Node], name: str) -> bool:
    return any(name in node.outputs for node in nodes)


def _in_order(first: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return names with those of a scope's own list first, in its order."""
    known = set(names)
    return list(dict.fromkeys((*(name for name in first if name in known), *names)))


def _assembled(
    document: Document,
    parts: Parts,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    cut: set[str] | None = None,
    call: Node | None = None,
) -> Extraction:
    model = onnx.ModelProto()
    _take_header(document, model)
    small = small_model(document, parts)
    model.graph.CopyFrom(small.graph)
    model.functions.extend(small.functions)
    model.opset_import.extend(small.opset_import)
    if len(model.functions):
        model.ir_version = max(model.ir_version, _FIRST_WITH_FUNCTIONS)
    if cut:
        _rename_made(model.graph, cut)
    remarks = _set_parameters(model.graph, _outermost(parts.scope), call)
    _take_graph_header(parts.scope, model.graph)
    _set_terminals(model, parts, inputs, outputs, call or _call_of(parts.scope))
    terminal = {*inputs, *outputs}
    inner = [info for info in model.graph.value_info if text_of(info.name) not in terminal]
    del model.graph.value_info[:]
    model.graph.value_info.extend(inner)
    made = Document(
        model, path=None, blobs=document.blobs.again(), external=document.external.again()
    )
    given = (*made.main.records["input"], *made.main.records["output"])
    untyped = [text_of(info.name) for info in given if not info.HasField("type")]
    return Extraction(made, untyped, remarks)


def _take_header(document: Document, model: onnx.ModelProto) -> None:
    """Copy what is said of the whole model: versions, producer, metadata."""
    model.CopyFrom(document.model)
    for name in ("graph", "opset_import", "functions", "training_info"):
        model.ClearField(name)
    kept = [entry for entry in model.metadata_props if text_of(entry.key) != _PROFILES]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)


def _take_graph_header(scope: Scope, graph: onnx.GraphProto) -> None:
    graph.MergeFrom(_header_of(scope))
    if not graph.name:
        graph.name = "extracted"  # a graph without a name is not valid


def _header_of(scope: Scope) -> onnx.GraphProto:
    header = onnx.GraphProto()
    if isinstance(scope.proto, onnx.GraphProto):
        header.CopyFrom(scope.proto)  # its lists are in the scope
        return header
    for name in ("name", "doc_string"):
        if scope.proto.HasField(name):
            setattr(header, name, getattr(scope.proto, name))
    return header


def _set_terminals(
    model: onnx.ModelProto,
    parts: Parts,
    inputs: Sequence[str],
    outputs: Sequence[str],
    call: Node | None,
) -> None:
    scope, graph = parts.scope, model.graph
    for name in inputs:
        graph.input.append(_terminal(scope, name, call))
    for home, list_name, name in parts.initializers:
        stored_input = home.named("input").first(name) if name not in inputs else None
        if stored_input is not None:
            graph.input.append(stored_input)
        elif model.ir_version < _NO_INITIALIZERS_APART and list_name == "initializer":
            graph.input.append(typed(home, name))
    for name in outputs:
        graph.output.append(_terminal(scope, name, call))


def _terminal(scope: Scope, name: str, call: Node | None, depth: int = 0) -> onnx.ValueInfoProto:
    """Return an input or output with its type; that of a function from a node that calls it."""
    info = typed(scope, name)
    if info.HasField("type") or call is None or depth == _MOST_CALLS:
        return info
    home = _outermost(call.scope)
    for own, outer in ((scope.inputs, call.inputs), (scope.outputs, call.outputs)):
        for inner_name, outer_name in zip(own, outer, strict=False):
            if inner_name == name and outer_name:
                known = _terminal(home, outer_name, _call_of(home), depth + 1)
                if known.HasField("type"):
                    info.type.CopyFrom(known.type)
                    return info
    return info


def _call_of(scope: Scope) -> Node | None:
    """Return a node that calls a function, for the types of what goes in and out."""
    if not scope.is_function:
        return None
    wanted = key_of(scope)
    for home in scope.document.scopes():
        for node in home.nodes:
            if (node.domain, node.op_type, node.overload) == wanted:
                return node
    return None


def _rename_made(graph: onnx.GraphProto, given: set[str]) -> None:
    """Give outputs of nodes another name where that value is an input now."""
    names = {name for node in graph.node for name in texts_of(node.output)} | given
    for node in graph.node:
        outputs = texts_of(node.output)
        if given.isdisjoint(outputs):
            continue
        fresh = []
        for name in outputs:
            if name in given:
                number = 1
                while f"{name}_unused_{number}" in names:
                    number += 1
                name = f"{name}_unused_{number}"
                names.add(name)
            fresh.append(name)
        set_texts(node, "output", fresh)


# --- parameters of functions ---------------------------------------------------------------------


def _outermost(scope: Scope) -> Scope:
    while scope.parent is not None:
        scope = scope.parent
    return scope


def _set_parameters(graph: onnx.GraphProto, function: Scope, call: Node | None) -> list[str]:
    """Give attributes that stand for a function's parameter its value; return remarks."""
    proto = function.proto
    if not isinstance(proto, onnx.FunctionProto):
        return []
    values = {text_of(entry.name): entry for entry in proto.attribute_proto}
    for entry in call.proto.attribute if call is not None else ():
        if not entry.ref_attr_name:  # a call in another function passes that one's parameter on
            values[text_of(entry.name)] = entry
    removed: dict[str, None] = {}
    for node in _nested_protos(graph):
        for position in reversed(range(len(node.attribute))):
            attribute = node.attribute[position]
            parameter = text_of(attribute.ref_attr_name)
            value = values.get(parameter)
            if parameter and value is None:
                del node.attribute[position]
                removed[parameter] = None
            elif value is not None:
                name = text_of(attribute.name)
                attribute.CopyFrom(value)
                set_text(attribute, "name", name)
    return [
        f"parameter {_shown(parameter)} has no value: attributes that take it are unset"
        for parameter in removed
    ]


def _nested_protos(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            yield node
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    waiting.append(attribute.g)
                waiting += attribute.graphs


# --- finding what is meant -----------------------------------------------------------------------


def nodes_at(scope: Scope, refs: Iterable[str]) -> list[Node]:
    """Return nodes by their refs.

    Raises:
        UsageError: There is no such node.
    """
    found = []
    for ref in refs:
        node = scope.find(ref)
        if node is None:
            raise UsageError(
                f"there is no node {_shown(ref)}",
                where=_place(scope),
                hint="`dld inspect --nodes` lists them",
            )
        found.append(node)
    return found


def body_at(document: Document, path: Sequence[str]) -> Scope:
    """Return a subgraph or function by its path.

    Raises:
        UsageError: There is none.
    """
    try:
        return document.scope_at(path)
    except EditError:
        wanted = " › ".join(path)
        raise UsageError(f"there is no graph {_shown(wanted)}") from None


def _place(scope: Scope) -> str:
    return " › ".join(scope.path) or "main"


def _shown(name: str) -> str:
    return f"'{clip(visible(name), 60, keep='middle')}'"
