"""Extracts parts of a model as models: nodes, the nodes between values, a body, a function.

Extracts nodes of one scope, with everything that they need, as a small model.

This is what copying and extracting have in common: the nodes with their subgraphs, the
initializers and constants that they use, the declared types, operator sets and local functions.
What they use otherwise is left to the caller. Payloads stay sentinels of the document.

The new document shares the payloads of the old one, which has to stay open until it is saved;
they are never read into memory. Everything that the nodes do not use is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError, UsageError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import set_text, set_texts, text_of, texts_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.local_functions import call_of, functions_called, key_of
from dld_tui.core.model.document.locations import nested_nodes
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.opset_imports import imports_of
from dld_tui.core.model.document.scope import (
    INITIALIZERS_WITHOUT_INPUTS,
    Scope,
    ScopeOwner,
    unused_name,
)
from dld_tui.core.model.document.serialise import filled, filled_scope
from dld_tui.core.model.document.traversal import feeding, inputs_and_outputs, scope_of
from dld_tui.core.model.operators.registry import importable_version
from dld_tui.core.model.tensors.value_types import type_proto_of, value_type_of
from dld_tui.core.text import quoted
from dld_tui.core.types import FIRST_IR_WITH_IMPORTS, plain_domain


@dataclass
class Parts:
    """Nodes, and the values and weights that belong to them."""

    scope: Scope
    nodes: list[Node]
    """In the order of the file."""
    constants: list[Node] = field(default_factory=list)
    """Constant nodes outside of them that they use."""
    initializers: list[tuple[Scope, str, str]] = field(default_factory=list)
    """Scope, list and name of those that they use."""
    inputs: list[str] = field(default_factory=list)
    """Other values that they use."""
    outputs: list[str] = field(default_factory=list)
    """Their outputs that other nodes use, or no node at all."""

    @property
    def produced(self) -> set[str]:
        """All outputs of the nodes."""
        return {name for node in self.nodes for name in node.outputs if name}


def parts_of(
    scope: Scope, nodes: Iterable[Node], *, more: Iterable[str] = (), cut: Iterable[str] = ()
) -> Parts:
    """Work out what belongs to nodes of a scope.

    Args:
        nodes: Nodes of it.
        more: Values that are wanted beside those that the nodes use.
        cut: Values that count as taken even if an initializer or a constant gives them.
    """
    wanted = dict.fromkeys(nodes)
    ordered = [node for node in scope.nodes if node in wanted] if len(wanted) > 1 else list(wanted)
    inputs, outputs = inputs_and_outputs(scope, ordered)
    parts = Parts(scope, ordered, outputs=outputs)
    produced = parts.produced
    cut_values = set(cut)
    waiting = [*inputs, *(name for name in more if name not in produced)]
    # In the order of the nodes, unlike `produced`.
    outputs_in_order = (name for node in ordered for name in node.outputs if name)
    waiting += _quantization_names(scope, outputs_in_order)
    for name in dict.fromkeys(name for name in waiting if name):
        definition = scope.resolve(name)
        if name in cut_values or definition is None:
            parts.inputs.append(name)
        elif definition.kind == "initializer":
            dense = name in definition.scope.named("initializer")
            parts.initializers.append(
                (definition.scope, "initializer" if dense else "sparse_initializer", name)
            )
        elif definition.node is not None and is_constant(definition.node):
            if definition.node not in wanted:
                parts.constants.append(definition.node)
        else:
            parts.inputs.append(name)
    return parts


def is_constant(node: Node) -> bool:
    """Return whether a node is a Constant of ai.onnx: a weight in the form of a node."""
    return node.op_type == "Constant" and not node.domain and not node.inputs


def _quantization_names(scope: Scope, names: Iterable[str]) -> list[str]:
    """Return the scales and zero points of the annotations on values."""
    parameters: list[str] = []
    if scope.records.get("quantization_annotation"):
        index = scope.named("quantization_annotation")
        for name in names:
            for record in index.all(name):
                parameters += (text_of(e.value) for e in record.quant_parameter_tensor_names)
    return parameters


def small_model(document: ScopeOwner, parts: Parts) -> onnx.ModelProto:
    """Return the parts as a model without inputs and outputs, payloads as sentinels."""
    model = onnx.ModelProto(ir_version=document.model.ir_version)
    graph = model.graph
    for scope, list_name, name in parts.initializers:
        getattr(graph, list_name).append(scope.named(list_name).first(name))
    for node in (*parts.constants, *parts.nodes):
        with filled(node):
            graph.node.append(node.proto)
    for list_name in ("value_info", "quantization_annotation"):
        if parts.scope.records.get(list_name):
            index = parts.scope.named(list_name)
            for node in parts.nodes:
                for name in node.outputs:
                    getattr(graph, list_name).extend(index.all(name)[:1])
    functions = called_functions(document, (*parts.constants, *parts.nodes))
    for function in functions:
        with filled_scope(function):
            model.functions.append(function.proto)  # type: ignore[arg-type]
    for domain, version in _imports(document, parts, functions).items():
        entry = model.opset_import.add(version=version)
        set_text(entry, "domain", domain)
    return model


def typed_record(scope: Scope, name: str) -> onnx.ValueInfoProto:
    """Return a record of a value with its known type."""
    info = onnx.ValueInfoProto()
    set_text(info, "name", name)
    known = scope.value_type(name)
    record = _declaration(scope, name)
    if record is not None and value_type_of(record.type) == known:
        info.type.CopyFrom(record.type)  # it may say more, such as what a dimension denotes
    elif known is not None:
        proto = type_proto_of(known)
        if proto is not None:
            info.type.CopyFrom(proto)
    return info


def _declaration(scope: Scope, name: str) -> onnx.ValueInfoProto | None:
    home: Scope | None = scope
    while home is not None:
        for list_name in ("value_info", "output", "input"):
            record = home.named(list_name).first(name) if list_name in home.records else None
            if record is not None and record.HasField("type"):
                return record  # type: ignore[no-any-return]
        home = home.parent if home.definition(name) is None else None
    return None


def _imports(document: ScopeOwner, parts: Parts, functions: Sequence[Scope]) -> dict[str, int]:
    known = imports_of(parts.scope)
    domains = dict.fromkeys(node.domain for node in nested((*parts.constants, *parts.nodes)))
    for function in functions:
        proto: Any = function.proto
        domains[text_of(proto.domain)] = None
        domains.update(dict.fromkeys(text_of(entry.domain) for entry in proto.opset_import))
    local = {plain_domain(text_of(f.proto.domain)) for f in document.functions}  # type: ignore[union-attr]
    imports = {}
    for domain in dict.fromkeys(map(plain_domain, domains or ("",))):
        if domain in known:
            imports[domain] = known[domain]
        elif domain not in local:  # runtimes know the set that the model does not import
            imports[domain] = importable_version(domain, int(document.model.ir_version))
    return imports


def nested(nodes: Iterable[Node]) -> Iterable[Node]:
    """Yield nodes and those of their subgraphs."""
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        for child in node.subgraphs():
            waiting += child.nodes


def called_functions(document: ScopeOwner, nodes: Iterable[Node]) -> list[Scope]:
    """Return the local functions that nodes call, and those that these call."""
    if not document.functions:
        return []
    called = functions_called(document, map(call_of, nested(nodes)))
    return [function for function in document.functions if key_of(function) in called]


_FIRST_WITH_FUNCTIONS = 8
_MOST_CALLS = 20
"""Functions that are followed outwards from one to the next that calls it."""
_PROFILES = "dld.profiles"
"""Metadata about the inputs of the whole model."""


@dataclass
class Extraction:
    """A new document, and remarks on it."""

    document: Document
    """Not saved yet; close it before the one that it came from."""
    untyped: list[str] = field(default_factory=list)
    """Inputs and outputs of unknown type. Untrusted text."""
    remarks: list[str] = field(default_factory=list)
    """For the user. Untrusted text."""


def extract_part(
    document: Document,
    *,
    scope: Sequence[str] = (),
    nodes: Sequence[str] = (),
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    subgraph: str = "",
    function: str = "",
) -> Extraction:
    """Return a part of a model as a model, by names.

    Args:
        document: The model.
        scope: The path of the graph in which names are looked for first.
        nodes: Refs of nodes; or
        inputs: tensors to start at, with
        outputs: tensors to end at; or
        subgraph: ``NODE:ATTRIBUTE``; or
        function: ``DOMAIN:NAME``.

    Raises:
        UsageError: There is no such thing, or it is in several graphs.
    """
    home = body_at(document, scope)
    if nodes:
        home = scope_with(document, home, nodes, Scope.find)
        return extract_nodes(document, nodes_at(home, nodes))
    if subgraph:
        return extract_body(document, body_at(document, (*scope, subgraph)))
    if function:
        return extract_body(document, body_at(document, [f"function {function}"]))
    home = scope_with(document, home, outputs or inputs, Scope.definition)
    return extract_between(document, home, inputs, outputs)


def extract_nodes(document: Document, nodes: Sequence[Node]) -> Extraction:
    """Return nodes of one scope as a model. Links that are cut become inputs and outputs.

    Raises:
        UsageError: There are no nodes, or they are of several scopes.
    """
    scope = scope_of(nodes, "extract", "Extract those of one graph at a time")
    parts = parts_of(scope, nodes)
    return _assembled(document, parts, _in_order(scope.inputs, parts.inputs),
                      _in_order(scope.outputs, parts.outputs))  # fmt: skip


def extract_between(
    document: Document,
    scope: Scope,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
) -> Extraction:
    """Return what computes some values from others as a model.

    Args:
        scope: The scope of the values.
        inputs: Values to be given; further inputs of the scope that are needed become inputs, too.
        outputs: Values to be computed; the outputs of the scope when there are none.

    Raises:
        UsageError: There is no such value.
    """
    wanted = list(dict.fromkeys(outputs or scope.outputs))
    boundary = list(dict.fromkeys(inputs))
    for name in (*boundary, *wanted):
        if scope.resolve(name) is None:
            raise UsageError(f"there is no value {quoted(name)}", where=_place(scope))
    nodes = feeding(scope, wanted, boundary)
    if not nodes and all(name in boundary for name in wanted):
        raise UsageError("every output is an input: nothing is between", where=_place(scope))
    parts = parts_of(scope, nodes, more=wanted, cut=boundary)
    used = [name for name in boundary if name in parts.inputs or _is_made(nodes, name)]
    ordered = [*used, *_in_order(scope.inputs, [n for n in parts.inputs if n not in used])]
    extraction = _assembled(document, parts, ordered, wanted, cut=set(used))
    for name in boundary:
        if name not in used and name not in wanted:
            extraction.remarks.append(f"input {quoted(name)} is left out: no output depends on it")
    more = [name for name in ordered if name not in boundary]
    if boundary and more:
        listed = ", ".join(quoted(name) for name in more[:3]) + (", …" if len(more) > 3 else "")
        extraction.remarks.append(f"{fmt.plural(len(more), 'further input')} needed: {listed}")
    return extraction


def extract_body(document: Document, body: Scope, call: Node | None = None) -> Extraction:
    """Return a subgraph, a function or the main graph as a model, without unused parts.

    Outer values that a subgraph uses become inputs, unless they are initializers or constants.

    Args:
        body: The scope.
        call: A node that calls the function, for its parameters and types; by default they have
            their defaults, and types come from the first call.
    """
    nodes = feeding(body, body.outputs, ())
    parts = parts_of(body, nodes, more=body.outputs)
    inner = [name for name in body.inputs if not _is_stored(body, name)]
    ordered = [*inner, *(name for name in parts.inputs if name not in inner)]
    extraction = _assembled(document, parts, ordered, body.outputs, call=call)
    idle = len(body.nodes) - len(nodes)
    if idle:
        extraction.remarks.append(f"{fmt.plural(idle, 'node')} that no output depends on left out")
    return extraction


def declare_inferred(extraction: Extraction) -> None:
    """Declare inputs and outputs of unknown type as what shape inference has found since."""
    main = extraction.document.main
    for record in (*main.records["input"], *main.records["output"]):
        name = text_of(record.name)
        known = main.inferred.get(name)
        proto = type_proto_of(known) if known is not None else None
        if proto is not None and not record.HasField("type"):
            record.type.CopyFrom(proto)
            extraction.untyped.remove(name)


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
    # Weights alone use no operators, but a model must import some.
    model.opset_import.extend(small.opset_import or document.model.opset_import)
    if 0 < model.ir_version < FIRST_IR_WITH_IMPORTS:
        model.ir_version = FIRST_IR_WITH_IMPORTS
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
    document_part = Document(
        model, path=None, blobs=document.blobs.reopened(), external=document.external.reopened()
    )
    given = (*document_part.main.records["input"], *document_part.main.records["output"])
    untyped = [text_of(info.name) for info in given if not info.HasField("type")]
    return Extraction(document_part, untyped, remarks)


def _take_header(document: Document, model: onnx.ModelProto) -> None:
    """Copy the fields of the whole model: versions, producer, metadata."""
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
        if name in inputs:
            continue
        is_input = home.is_default(name)  # else an input of an old format is a constant
        is_input |= model.ir_version < INITIALIZERS_WITHOUT_INPUTS and list_name == "initializer"
        if is_input:
            graph.input.append(home.named("input").first(name) or typed_record(home, name))
    for name in outputs:
        graph.output.append(_terminal(scope, name, call))


def _terminal(scope: Scope, name: str, call: Node | None, depth: int = 0) -> onnx.ValueInfoProto:
    """Return an input or output with its type; that of a function from a node that calls it."""
    info = typed_record(scope, name)
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
    """Return a node that calls a function, for the types of its inputs and outputs."""
    if not scope.is_function:
        return None
    wanted = key_of(scope)
    for home in scope.document.scopes():
        for node in home.nodes:
            if (node.domain, node.op_type, node.overload) == wanted:
                return node
    return None


def _rename_made(graph: onnx.GraphProto, boundary: set[str]) -> None:
    """Give outputs of nodes another name where that value is an input now."""
    names = {name for node in graph.node for name in texts_of(node.output)} | boundary
    for node in graph.node:
        outputs = texts_of(node.output)
        if boundary.isdisjoint(outputs):
            continue
        fresh = []
        for name in outputs:
            if name in boundary:
                name = unused_name(f"{name}_unused", names.__contains__)
                names.add(name)
            fresh.append(name)
        set_texts(node, "output", fresh)


def _outermost(scope: Scope) -> Scope:
    while scope.parent is not None:
        scope = scope.parent
    return scope


def _set_parameters(graph: onnx.GraphProto, function: Scope, call: Node | None) -> list[str]:
    """Give attributes that refer to a parameter of a function its value; return remarks."""
    proto = function.proto
    if not isinstance(proto, onnx.FunctionProto):
        return []
    values = {text_of(entry.name): entry for entry in proto.attribute_proto}
    for entry in call.proto.attribute if call is not None else ():
        if not entry.ref_attr_name:  # a call in another function passes that one's parameter on
            values[text_of(entry.name)] = entry
    removed: dict[str, None] = {}
    for node in nested_nodes(graph.node):
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
        f"parameter {quoted(parameter)} has no value: attributes that take it are unset"
        for parameter in removed
    ]


def nodes_at(scope: Scope, refs: Iterable[str]) -> list[Node]:
    """Return nodes by their refs.

    Raises:
        UsageError: There is no such node.
    """
    nodes = []
    for ref in refs:
        node = scope.find(ref)
        if node is None:
            why, hint = scope.why_missing(ref)
            raise UsageError(why, where=_place(scope), hint=hint)
        nodes.append(node)
    return nodes


def body_at(document: Document, path: Sequence[str]) -> Scope:
    """Return a subgraph or function by its path.

    Raises:
        UsageError: There is none.
    """
    try:
        return document.scope_at(path)
    except EditError:
        wanted = " › ".join(path)
        raise UsageError(f"there is no graph {quoted(wanted)}") from None


def scope_with(
    document: Document, scope: Scope, names: Iterable[str], own: Callable[[Scope, str], object]
) -> Scope:
    """Return a scope, or the one subgraph or function in it that has names which it has not.

    Args:
        document: The model.
        scope: Where names are looked for first.
        names: Of nodes or values; those that are nowhere are left to the caller.
        own: Whether a name is of a scope itself.

    Raises:
        UsageError: Several have them, or none has all; the message says where they are.
    """
    wanted = list(names)
    missing = [name for name in wanted if not own(scope, name)]
    depth = len(scope.path)
    inner = [s for s in document.scopes() if s.path[:depth] == scope.path and s is not scope]
    homes = {name: [s for s in inner if own(s, name)] for name in missing}
    homes = {name: found for name, found in homes.items() if found}
    if not homes:
        return scope
    fitting = [s for s in inner if all(own(s, name) for name in wanted)]
    if len(fitting) == 1:
        return fitting[0]
    name, found = next(iter(homes.items()))
    places = fmt.listed(found, 3, lambda one: quoted(_place(one)))
    steps = " ".join(f"--scope {quoted(step)}" for step in found[0].path[depth:])
    raise UsageError(f"{quoted(name)} is in {places}", hint=f"Name one graph: {steps}")


def _place(scope: Scope) -> str:
    return " › ".join(scope.path) or "main"
