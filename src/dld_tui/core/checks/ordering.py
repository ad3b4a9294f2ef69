"""The order of nodes, cycles, and which nodes the outputs of a scope depend on."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from dld_tui.core.checks.findings import Finding, Repair, found, name_of
from dld_tui.core.checks.state import ScopeState
from dld_tui.core.document import Node

_SORT = Repair("sort_nodes")
_SLICE = 256
_MOST_SHOWN = 8


def is_late(state: ScopeState, node: Node, inputs: Iterable[str]) -> bool:
    """Return whether a node comes before one of its inputs.

    Where several nodes make a value, the first one counts.
    """
    positions = state.positions
    place = positions[node]
    producers = state.producers
    for name in state.taken_by(node) if node.children else inputs:
        sources = producers.get(name)
        if sources:
            source = sources[0] if len(sources) == 1 else state.first_producer(name)
            if source is not None and positions[source] >= place:
                return True
    return False


def search_order(state: ScopeState) -> Iterator[None]:
    """Find out whether late nodes mean a cycle or only a wrong order; yields now and then."""
    state.cycle = []
    if state.late:
        state.cycle = yield from _find_cycle(state)
    say_order(state)


def say_order(state: ScopeState) -> None:
    """Make the finding about the order; the refs in it change with other edits."""
    if state.cycle:
        cycle = state.cycle
        path = " -> ".join(name_of(node.ref) for node in cycle[:_MOST_SHOWN])
        if len(cycle) > _MOST_SHOWN:
            path += f" -> … ({len(cycle) - 1} nodes)"
        state.order_findings = [
            found("graph-cycle", f"Graph has a cycle: {path}", state.scope, cycle[0])
        ]
    elif state.late:
        state.order_findings = [_unsorted(state)]
    else:
        state.order_findings = []


def _unsorted(state: ScopeState) -> Finding:
    first = min(state.late, key=lambda node: state.positions[node])
    text = f"Nodes are not topologically sorted: {name_of(first.ref)} comes before its input"
    return found("unsorted-nodes", text, state.scope, first, repair=_SORT)


def _sources(state: ScopeState, node: Node) -> list[Node]:
    """Return the nodes that make what a node uses, in the order of its inputs."""
    names: Iterable[str] = state.taken_by(node) if node.children else node.inputs
    sources = []
    for name in names:
        source = state.first_producer(name) if name else None
        if source is not None:
            sources.append(source)
    return sources


def _span(state: ScopeState) -> tuple[int, int]:
    """Return the places between which a cycle must lie.

    Along all links but the late ones places only grow, so no cycle leaves this range.
    """
    positions = state.positions
    places = [positions[node] for node in state.late]
    ends = [positions[source] for node in state.late for source in _sources(state, node)]
    return min(places), max(ends)


def _find_cycle(state: ScopeState) -> Generator[None, None, list[Node]]:
    """Return a cycle in the direction of the data with its first node repeated, or nothing."""
    positions = state.positions
    low, high = _span(state)
    done: set[Node] = set()
    steps = 0
    for start in state.scope.nodes[low : high + 1]:
        if start in done:
            continue
        path: list[Node] = [start]
        on_path = {start: 0}
        stack = [iter(_sources(state, start))]
        while stack:
            steps += 1
            if not steps % _SLICE:
                yield
            source = next(
                (s for s in stack[-1] if s not in done and low <= positions[s] <= high), None
            )
            if source is None:
                stack.pop()
                node = path.pop()
                done.add(node)
                del on_path[node]
            elif source in on_path:
                return _from_first(path[on_path[source] :][::-1], positions)
            else:
                on_path[source] = len(path)
                path.append(source)
                stack.append(iter(_sources(state, source)))
    return []


def _from_first(loop: list[Node], positions: dict[Node, int]) -> list[Node]:
    first = min(range(len(loop)), key=lambda index: positions[loop[index]])
    loop = loop[first:] + loop[:first]
    return [*loop, loop[0]]


MOST_LISTED = 200
"""Unused nodes of a scope that are listed one by one; of more, one finding gives the number."""

_LIVENESS_SLICE = 512
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
        if not steps % _LIVENESS_SLICE:
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
        if not steps % _LIVENESS_SLICE:
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
