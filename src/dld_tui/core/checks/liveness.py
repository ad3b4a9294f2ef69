"""Which nodes the outputs of a scope depend on: all at once, or again after an edit."""

from __future__ import annotations

from collections.abc import Iterator

from dld_tui.core.checks.findings import Finding, Repair, found
from dld_tui.core.checks.state import ScopeState
from dld_tui.core.document import Node

MOST_LISTED = 200
"""Unused nodes of a scope that are listed one by one; of more, one finding gives the number."""

_SLICE = 512
_REMOVE = Repair("remove_unused", {"initializers": False})


def say_unused(state: ScopeState) -> Iterator[tuple[int, Finding]]:
    """Yield the findings about nodes that no output depends on, with their places."""
    if not state.dead:
        return
    positions = state.positions
    if len(state.dead) > MOST_LISTED:
        last = max(state.dead, key=lambda node: positions.get(node, 0))
        text = f"and {len(state.dead) - 1} other nodes are not on the way to any output"
        yield (
            positions.get(last, 0),
            found("unused-node", text, state.scope, last, repair=_REMOVE),
        )
        return
    text = "is not on the way to any output"
    for node in state.dead:
        yield (
            positions.get(node, 0),
            found("unused-node", text, state.scope, node, repair=_REMOVE),
        )


def find_live(state: ScopeState) -> Iterator[None]:
    """Find all nodes that an output depends on from scratch; yields now and then."""
    producers = state.producers
    waiting = [node for name in state.outputs for node in producers.get(name, ())]
    live: set[Node] = set()
    steps = 0
    while waiting:
        node = waiting.pop()
        if node in live:
            continue
        live.add(node)
        for name in state.taken_by(node) if node.children else node.inputs:
            sources = producers.get(name)
            if sources:
                waiting += sources
        steps += 1
        if not steps % _SLICE:
            yield
    yield
    state.live = live
    state.dead = set(state.scope.nodes) - live


def update_live(state: ScopeState) -> Iterator[None]:
    """Find out again whether the nodes that are due are live, and those that they depend on.

    Right for graphs without cycles only: there, each node's answer follows from its users'. May be
    interrupted at any time: what is still to do stays due.
    """
    live, producers, waiting = state.live, state.producers, state.due.live
    steps = 0
    while waiting:
        steps += 1
        if not steps % _SLICE:
            yield
        node, _ = waiting.popitem()
        is_live = _is_used(state, node)
        (state.dead.discard if is_live else state.dead.add)(node)
        if is_live == (node in live):
            continue
        (live.add if is_live else live.discard)(node)
        for name in state.taken_by(node) if node.children else node.inputs:
            waiting.update(dict.fromkeys(producers.get(name, ())))


def _is_used(state: ScopeState, node: Node) -> bool:
    live, consumers = state.live, state.consumers
    for name in node.outputs:
        if not name:
            continue
        if name in state.outputs:
            return True
        for user in consumers.get(name, ()):
            if user in live:
                return True
        for child in state.captured_by.get(name, ()):
            if child.scope.owner in live:
                return True
    return False
