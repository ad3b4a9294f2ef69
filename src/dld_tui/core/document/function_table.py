"""What a list of local functions shows: signature, attributes, size, instances, what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx

from dld_tui.core.document.calls import (
    FunctionKey,
    declared_attributes,
    instances,
    key_of,
    recursive,
    references,
    shown_key,
)
from dld_tui.core.document.literals import format_literal
from dld_tui.core.document.node import VALUE_FIELDS, Node, attribute_type
from dld_tui.core.document.scope import Scope
from dld_tui.core.errors import DldError

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

_TYPED = {"int", "float", "string", "ints", "floats", "strings"}
_MOST_VALUES = 8


@dataclass(frozen=True)
class FunctionAttribute:
    """One attribute that a function declares. Its texts are foreign."""

    name: str
    kind: str
    """``float``, ``ints`` …; empty when neither a default nor a use of it tells."""
    default: str | None
    """The default as a literal; None when there is none."""
    uses: int
    """Attributes inside that refer to it."""

    @property
    def text(self) -> str:
        """Return ``name: kind = default``, in so far as it is known."""
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
    found = []
    for name, default in declared_attributes(function).items():
        users = used.get(name, [])
        number = attribute_type(default) if default is not None else 0
        number = number or next((attribute_type(proto) for _, proto in users), 0)
        kind = _kind(number)
        text = None if default is None else _literal(default, kind)
        found.append(FunctionAttribute(name, kind, text, len(users)))
    return tuple(found)


def _kind(number: int) -> str:
    if number not in VALUE_FIELDS:
        return ""
    return onnx.AttributeProto.AttributeType.Name(number).lower()


def _literal(default: onnx.AttributeProto, kind: str) -> str:
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
    made = set(function.inputs).union(function.links.producers)
    missing = [name for name in function.outputs if name not in made]
    return f"nothing makes its output {missing[0]}" if missing else ""
