"""Nodes of one scope with all that they need, as a small model of its own.

This is what copying and extracting have in common: the nodes with their subgraphs, the initializers
and constants that they use, the declared types, operator sets and local functions. What they use
otherwise is left to the caller. Payloads stay sentinels of the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import onnx

from dld_tui.core.document.calls import key_of
from dld_tui.core.document.node import Node
from dld_tui.core.document.reach import terminals
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.serialise import filled, filled_scope
from dld_tui.core.document.values import type_proto_of, value_type_of
from dld_tui.core.document.wiretext import set_text, text_of
from dld_tui.core.domains import plain_domain

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@dataclass
class Parts:
    """What belongs together."""

    scope: Scope
    nodes: list[Node]
    """In the order of the file."""
    constants: list[Node] = field(default_factory=list)
    """Constant nodes outside of them that they use."""
    initializers: list[tuple[Scope, str, str]] = field(default_factory=list)
    """Scope, list and name of those that they use."""
    taken: list[str] = field(default_factory=list)
    """Other values that they take from outside."""
    given: list[str] = field(default_factory=list)
    """Values of theirs that others use, or nobody."""

    @property
    def made(self) -> set[str]:
        """The values that the nodes make."""
        return {name for node in self.nodes for name in node.outputs if name}


def parts_of(
    scope: Scope, nodes: Iterable[Node], *, more: Iterable[str] = (), cut: Iterable[str] = ()
) -> Parts:
    """Work out what belongs to nodes of a scope.

    Args:
        scope: The scope.
        nodes: Nodes of it.
        more: Values that are wanted beside those that the nodes use.
        cut: Values that count as taken even if an initializer or a constant gives them.
    """
    wanted = dict.fromkeys(nodes)
    ordered = [node for node in scope.nodes if node in wanted] if len(wanted) > 1 else list(wanted)
    taken, given = terminals(scope, ordered)
    parts = Parts(scope, ordered, given=given)
    made = parts.made
    apart = set(cut)
    waiting = [*taken, *(name for name in more if name not in made)]
    waiting += _quantization_names(scope, made)
    for name in dict.fromkeys(name for name in waiting if name):
        definition = scope.resolve(name)
        if name in apart or definition is None:
            parts.taken.append(name)
        elif definition.kind == "initializer":
            dense = name in definition.scope.named("initializer")
            parts.initializers.append(
                (definition.scope, "initializer" if dense else "sparse_initializer", name)
            )
        elif definition.node is not None and is_constant(definition.node):
            if definition.node not in wanted:
                parts.constants.append(definition.node)
        else:
            parts.taken.append(name)
    return parts


def is_constant(node: Node) -> bool:
    """Return whether a node is a Constant of ai.onnx: a weight in the form of a node."""
    return node.op_type == "Constant" and not node.domain and not node.inputs


def _quantization_names(scope: Scope, names: Iterable[str]) -> list[str]:
    """Return the scales and zero points of the annotations on values."""
    found: list[str] = []
    if scope.records.get("quantization_annotation"):
        index = scope.named("quantization_annotation")
        for name in names:
            for record in index.all(name):
                found += (text_of(e.value) for e in record.quant_parameter_tensor_names)
    return found


def small_model(document: Document, parts: Parts) -> onnx.ModelProto:
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


def typed(scope: Scope, name: str) -> onnx.ValueInfoProto:
    """Return a value's name and what is known of its type."""
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


# --- operator sets and functions ----------------------------------------------------------------


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


def _imports(document: Document, parts: Parts, functions: Sequence[Scope]) -> dict[str, int]:
    known = imports_of(parts.scope)
    domains = dict.fromkeys(node.domain for node in nested((*parts.constants, *parts.nodes)))
    for function in functions:
        proto: Any = function.proto
        domains[text_of(proto.domain)] = None
        domains.update(dict.fromkeys(text_of(entry.domain) for entry in proto.opset_import))
    names = dict.fromkeys(map(plain_domain, domains))
    return {domain: known[domain] for domain in names if domain in known}


def nested(nodes: Iterable[Node]) -> Iterable[Node]:
    """Yield nodes and those of their subgraphs."""
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        for child in node.subgraphs():
            waiting += child.nodes


def called_functions(document: Document, nodes: Iterable[Node]) -> list[Scope]:
    """Return the local functions that nodes call, and those that these call."""
    if not document.functions:
        return []
    known = {key_of(function): function for function in document.functions}
    found: dict[Scope, None] = {}
    waiting = list(nodes)
    while waiting:
        for node in nested(waiting):
            function = known.get((node.domain, node.op_type, node.overload))
            if function is not None:
                found.setdefault(function)
        waiting = [
            node
            for function in list(found)
            for node in nested(function.nodes)
            if (called := known.get((node.domain, node.op_type, node.overload))) is not None
            and called not in found
        ]
    return [function for function in document.functions if function in found]
