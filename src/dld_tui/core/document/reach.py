"""Which nodes of one scope a choice of nodes leads to, comes from, or has between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.traverse import sources


def captures(scope: Scope) -> dict[str, list[Node]]:
    """Return the nodes of a scope whose subgraphs use a value from outside, by value name."""
    found: dict[str, list[Node]] = {}
    for node in scope.holders:
        names = dict.fromkeys(name for child in node.subgraphs() for name in child.captured())
        for name in names:
            found.setdefault(name, []).append(node)
    return found


def names_taken(node: Node) -> list[str]:
    """Return the values that a node uses, through its subgraphs too, each once."""
    names = dict.fromkeys(name for name in node.inputs if name)
    for child in node.subgraphs():
        names.update(dict.fromkeys(name for name in child.captured() if name))
    return list(names)


def terminals(scope: Scope, nodes: Iterable[Node]) -> tuple[list[str], list[str]]:
    """Return the values that nodes of a scope take from outside, and those they give.

    They give what others, or an output of the scope, use of theirs, and what nobody uses at all.
    """
    inside = dict.fromkeys(nodes)
    made = dict.fromkeys(name for node in inside for name in node.outputs if name)
    taken = dict.fromkeys(name for node in inside for name in names_taken(node) if name not in made)
    outputs = set(scope.outputs)
    capturers = captures(scope)
    given = []
    for name in made:
        users = [*scope.links.consumers.get(name, ()), *capturers.get(name, ())]
        if not users or name in outputs or any(user not in inside for user in users):
            given.append(name)
    return list(taken), given


def upstream_of(nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes that some nodes are computed from, in their own scopes, and themselves."""
    found: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += sources(node.scope, node)
    return found


def downstream_of(nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes that are computed from some nodes, in their own scopes, and themselves."""
    found: set[Node] = set()
    by_scope: dict[Scope, list[Node]] = {}
    for node in nodes:
        by_scope.setdefault(node.scope, []).append(node)
    for scope, waiting in by_scope.items():
        capturers, consumers = captures(scope), scope.links.consumers
        while waiting:
            node = waiting.pop()
            if node in found:
                continue
            found.add(node)
            for name in node.outputs:
                if name:
                    waiting += consumers.get(name, ())
                    waiting += capturers.get(name, ())
    return found


def between(nodes: Sequence[Node]) -> set[Node]:
    """Return the nodes on all paths from one of some nodes to another, and themselves."""
    return downstream_of(nodes) & upstream_of(nodes) | set(nodes)


def feeding(scope: Scope, outputs: Iterable[str], inputs: Iterable[str]) -> list[Node]:
    """Return the nodes that `outputs` are computed from when `inputs` are given, in file order."""
    given = set(inputs)
    seen: set[str] = set()
    found: set[Node] = set()
    waiting = list(outputs)
    while waiting:
        name = waiting.pop()
        if name in given or name in seen:
            continue
        seen.add(name)
        for node in scope.links.producers.get(name, ()):
            if node not in found:
                found.add(node)
                waiting += names_taken(node)
    return [node for node in scope.nodes if node in found]
