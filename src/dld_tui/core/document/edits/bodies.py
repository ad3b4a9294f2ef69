"""Copies of subgraphs and functions that are not in the document yet, made to fit a place in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import onnx

from dld_tui.core.document.edits.renaming import rename_everywhere
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.serialise import filled, filled_scope

if TYPE_CHECKING:
    from google.protobuf.message import Message

M = TypeVar("M", bound="Message")


def _copied(message: M) -> M:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def whole_node(node: Node) -> onnx.NodeProto:
    """Return a copy of a node's message, subgraphs included."""
    with filled(node):
        return _copied(node.proto)


def whole_attribute(node: Node, proto: onnx.AttributeProto) -> onnx.AttributeProto:
    """Return a copy of an attribute of a node, subgraphs included."""
    with filled(node):
        return _copied(proto)


def whole_graph(scope: Scope) -> onnx.GraphProto:
    """Return a copy of the message of a subgraph, with all that is in it."""
    assert isinstance(scope.proto, onnx.GraphProto)
    with filled_scope(scope):
        return _copied(scope.proto)


def whole_function(scope: Scope) -> onnx.FunctionProto:
    """Return a copy of the message of a function, with all that is in it."""
    assert isinstance(scope.proto, onnx.FunctionProto)
    with filled_scope(scope):
        return _copied(scope.proto)


def defined_names(scope: Scope) -> list[str]:
    """Return the values that a very scope defines, each once."""
    names = dict.fromkeys(name for name in scope.inputs if name)
    for list_name in ("initializer", "sparse_initializer"):
        names.update(dict.fromkeys(scope.named(list_name)))
    names.update(dict.fromkeys(scope.links.producers))
    return list(names)


class Names:
    """Free names for a copy that goes into a scope.

    Args:
        home: The scope that the copy goes into, or that the owner of the copy is in.
        avoid: Further names that must not be given: all that the copy uses.
    """

    def __init__(self, home: Scope, avoid: Iterable[str] = ()) -> None:
        self._home = home
        self._avoid = set(avoid)
        # Not home.walk(): it looks at every node to give the bodies in order.
        bodies = (body for node in home.holders for body in node.subgraphs())
        below = (scope for body in bodies for scope in body.walk())
        self._below = {
            name for scope in below for name in (*defined_names(scope), *scope.links.consumers)
        }

    def is_free(self, name: str) -> bool:
        """Return whether a name means nothing at the place yet."""
        home = self._home
        if not name or name in self._below or name in home.links.consumers:
            return False
        return home.resolve(name) is None

    def take(self, wanted: str) -> str:
        """Return a free name, `wanted` or with a number behind it, and never give it again."""
        name, number = wanted or "value", 0
        while name in self._avoid or not self.is_free(name):
            number += 1
            name = f"{wanted or 'value'}_{number}"
        self._avoid.add(name)
        return name

    def keep(self, wanted: str) -> str:
        """Return a name that the copy has itself if it is free at the place, else another."""
        return wanted if self.is_free(wanted) else self.take(wanted)


def all_names(scope: Scope) -> set[str]:
    """Return every value name that occurs in a scope or below it."""
    names = scope.names_used()
    for below in scope.walk():
        names.update(defined_names(below))
    return names


def rename_in_copy(body: Scope, mapping: Mapping[str, str]) -> None:
    """Rename values of a copy, all at once: a new name may be another's old one.

    Args:
        body: The scope that defines the values; not in the document.
        mapping: New names by old ones; ``""`` leaves a value out.
    """
    scratch = Transaction("", {})
    changed = {old: new for old, new in mapping.items() if old != new}
    used = all_names(body)
    passing: dict[str, str] = {}
    for number, old in enumerate(changed):
        name = f"{number}"
        while name in used:
            name += "'"
        passing[old] = name
        used.add(name)
        rename_everywhere(scratch, body, old, name)
    for old, name in passing.items():
        rename_everywhere(scratch, body, name, changed[old])


def free_inner_names(body: Scope, names: Names) -> None:
    """Give values of the subgraphs inside a copy other names where theirs are taken."""
    for scope in body.walk():
        if scope is not body:
            rename_in_copy(scope, {name: names.keep(name) for name in defined_names(scope)})
