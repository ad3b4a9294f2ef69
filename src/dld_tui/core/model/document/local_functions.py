"""Local functions: their calls, and the rows of a list of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import VALUE_FIELDS, attribute_type, operator_key, text_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope, ScopeOwner
from dld_tui.core.reach import reached
from dld_tui.core.types import plain_domain

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

FunctionKey: TypeAlias = "tuple[str, str, str]"
"""Domain, name and overload of a function. Untrusted text."""


def key_of(function: Scope) -> FunctionKey:
    """Return the domain, name and overload by which nodes call a function."""
    proto: onnx.FunctionProto = function.proto  # type: ignore[assignment]
    return operator_key(proto)


def call_of(node: Node) -> FunctionKey:
    """Return which function a node calls, if there is one."""
    return node.domain, node.op_type, node.overload


def shown_key(key: FunctionKey) -> str:
    """Return ``domain.name`` or ``domain.name:overload``, for people. Untrusted text."""
    domain, name, overload = key
    return f"{domain or 'ai.onnx'}.{name}" + (f":{overload}" if overload else "")


def operator_of_text(text: str) -> tuple[str, str]:
    """Return domain and name of an operator that is written as ``trt.EfficientNMS_TRT``."""
    domain, _, name = text.strip().rpartition(".")
    return plain_domain(domain), name


def function_of(node: Node) -> Scope | None:
    """Return the local function that a node calls, or None."""
    called = call_of(node)
    return next((f for f in node.scope.document.functions if key_of(f) == called), None)


def body_of(node: Node) -> Scope | None:
    """Return the first subgraph of a node, or the function that it calls; None without one."""
    bodies = node.subgraphs()
    return bodies[0] if bodies else function_of(node)


def enclosing_function(scope: Scope) -> Scope | None:
    """Return the function that a scope is, or is inside of; None in the main graph."""
    outer: Scope | None = scope
    while outer is not None and outer.owner is not None:
        outer = outer.parent
    return outer if outer is not None and outer.is_function else None


def instances(document: Document) -> dict[FunctionKey, list[Node]]:
    """Return the calls of every function, in the order of the scopes; none are an empty list."""
    by_key: dict[FunctionKey, list[Node]] = {key_of(f): [] for f in document.functions}
    for node in _nodes_called(document, {name for _, name, _ in by_key}):
        calls = by_key.get(call_of(node))
        if calls is not None:
            calls.append(node)
    return by_key


def nodes_with_key(document: ScopeOwner, key: FunctionKey) -> list[Node]:
    """Return the nodes of all scopes that call a function of this key, be there one or not."""
    return [node for node in _nodes_called(document, {key[1]}) if call_of(node) == key]


def _nodes_called(document: ScopeOwner, names: set[str]) -> list[Node]:
    return [
        node for scope in document.scopes() for name in names for node in scope.nodes_of_type(name)
    ]


def called_by(function: Scope) -> set[FunctionKey]:
    """Return the operators and functions that the nodes of a function name."""
    return {call_of(node) for scope in function.walk() for node in scope.nodes}


def recursive(document: ScopeOwner) -> set[FunctionKey]:
    """Return the functions that call themselves, directly or through others."""
    calls = {key_of(f): called_by(f) for f in document.functions}
    calls = {key: called & calls.keys() for key, called in calls.items()}
    return {key for key in calls if key in reached(calls[key], calls.__getitem__)}


def functions_called(document: ScopeOwner, calls: Iterable[FunctionKey]) -> set[FunctionKey]:
    """Return the functions of a document that some calls reach, directly or through others."""
    functions = {key_of(function): function for function in document.functions}
    return reached(
        functions.keys() & set(calls), lambda key: called_by(functions[key]) & functions.keys()
    )


def calls_itself(function: Scope) -> bool:
    """Return whether a function calls itself, directly or through others."""
    return key_of(function) in functions_called(function.document, called_by(function))


def declared_attributes(function: Scope) -> dict[str, onnx.AttributeProto | None]:
    """Return the attributes that a function declares, with their defaults; None without one."""
    proto: onnx.FunctionProto = function.proto  # type: ignore[assignment]
    declared: dict[str, onnx.AttributeProto | None] = {
        text_of(name): None for name in proto.attribute
    }
    declared.update((text_of(default.name), default) for default in proto.attribute_proto)
    return declared


def references(function: Scope) -> dict[str, list[tuple[Node, onnx.AttributeProto]]]:
    """Return the attributes inside a function that refer to its parameters, by parameter."""
    by_name: dict[str, list[tuple[Node, onnx.AttributeProto]]] = {}
    for scope in function.walk():
        for node in scope.nodes:
            for attribute in node.proto.attribute:
                if attribute.ref_attr_name:
                    place = by_name.setdefault(text_of(attribute.ref_attr_name), [])
                    place.append((node, attribute))
    return by_name


_TYPED = {"int", "float", "string", "ints", "floats", "strings"}
_MOST_VALUES = 8


@dataclass(frozen=True)
class FunctionAttribute:
    """One attribute that a function declares. Its texts are foreign."""

    name: str
    kind: str
    """``float``, ``ints`` …; empty when neither a default nor a use determines it."""
    default: str | None
    """The default as a literal; None when there is none."""
    uses: int
    """Attributes inside that refer to it."""

    @property
    def text(self) -> str:
        """Return ``name: kind = default`` as far as it is known."""
        kind = f": {self.kind}" if self.kind else ""
        return self.name + kind + (f" = {self.default}" if self.default is not None else "")


@dataclass(frozen=True)
class FunctionRow:
    """One local function. Its texts are foreign."""

    scope: Scope
    key: FunctionKey
    attributes: tuple[FunctionAttribute, ...]
    nodes: int
    """In the function and the subgraphs in it."""
    instances: Sequence[Node]
    problem: str
    """Why no runtime takes it; empty when nothing is known to be wrong."""

    @property
    def signature(self) -> str:
        """Return ``domain.name(inputs) → outputs``."""
        inputs, outputs = ", ".join(self.scope.inputs), ", ".join(self.scope.outputs)
        return f"{shown_key(self.key)} ({inputs}) → ({outputs})"


def function_rows(document: Document) -> list[FunctionRow]:
    """Return a row for each local function, in the order of the file."""
    calls, endless = instances(document), recursive(document)
    keys = Counter(key_of(function) for function in document.functions)
    return [
        FunctionRow(
            scope=function,
            key=key_of(function),
            attributes=function_attributes(function),
            nodes=sum(len(scope.nodes) for scope in function.walk()),
            instances=calls[key_of(function)],
            problem=_problem(function, endless, keys),
        )
        for function in document.functions
    ]


def function_attributes(function: Scope) -> tuple[FunctionAttribute, ...]:
    """Return the attributes that a function declares, those without a default first."""
    used = references(function)
    attributes = []
    for name, default in declared_attributes(function).items():
        users = used.get(name, [])
        number = attribute_type(default) if default is not None else 0
        number = number or next((attribute_type(proto) for _, proto in users), 0)
        kind = _kind(number)
        text = None if default is None else _literal(default, kind)
        attributes.append(FunctionAttribute(name, kind, text, len(users)))
    return tuple(attributes)


def _kind(number: int) -> str:
    if number not in VALUE_FIELDS:
        return ""
    return onnx.AttributeProto.AttributeType.Name(number).lower()


def _literal(default: onnx.AttributeProto, kind: str) -> str:
    from dld_tui.core.model.tensors.literals import format_literal

    if kind not in _TYPED:
        return "…"
    value = getattr(default, VALUE_FIELDS[attribute_type(default)])
    items = value if isinstance(value, (int, float, bytes)) else list(value)
    if isinstance(items, list) and len(items) > _MOST_VALUES:
        return f"{len(items)} values"
    try:
        return format_literal(items, kind)
    except DldError:
        return "…"


def _problem(function: Scope, endless: set[FunctionKey], keys: Mapping[FunctionKey, int]) -> str:
    key = key_of(function)
    if key in endless:
        return "calls itself, directly or through others"
    if keys[key] > 1:
        return "another function has the same domain, name and overload"
    defined = set(function.inputs).union(function.links.producers)
    missing = [name for name in function.outputs if name not in defined]
    return f"no node produces its output {missing[0]}" if missing else ""
