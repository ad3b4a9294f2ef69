"""Rules about how nodes are linked: sources, producers, order and cycles."""

from __future__ import annotations

from collections.abc import Iterator

from dld_tui.core.checks.findings import Finding, name_of, names_of
from dld_tui.core.document import Node, Scope
from dld_tui.core.document.traverse import live_nodes
from dld_tui.core.document.traverse import sources as producers_of


def check_sources(scope: Scope) -> Iterator[Finding]:
    """Yield node inputs and graph outputs that nothing produces, and values produced twice."""
    for node in scope.nodes:
        missing = [name for name in node.inputs if name and scope.resolve(name) is None]
        if missing:
            noun, verb = ("Input", "has") if len(missing) == 1 else ("Inputs", "have")
            yield Finding(
                "error",
                "undefined-input",
                f"{noun} {names_of(missing)} {verb} no producer",
                scope,
                node,
            )
    for name in scope.outputs:
        if name and scope.resolve(name) is None:
            yield Finding(
                "error",
                "missing-output",
                f"Graph output {name_of(name)} is never produced",
                scope,
            )
    for name, producers in scope.links.producers.items():
        if len(producers) > 1:
            yield Finding(
                "error",
                "duplicate-producer",
                f"Value {name_of(name)} is produced {len(producers)} times",
                scope,
                producers[1],
            )


def check_initializers(scope: Scope) -> Iterator[Finding]:
    """Yield initializers that are never used or defined twice."""
    if "initializer" not in scope.records:
        return
    used = scope.names_used()
    index = scope.named("initializer")
    for name in index:
        count = len(index.all(name))
        unused = name not in used
        if count > 1:
            times = "twice" if count == 2 else f"{count} times"
            tail = " and never used" if unused else ""
            yield Finding(
                "error",
                "duplicate-initializer",
                f"Initializer {name_of(name)} is defined {times}{tail}",
                scope,
            )
        elif unused:
            yield Finding(
                "warning", "unused-initializer", f"Initializer {name_of(name)} is never used", scope
            )


def check_unused_nodes(scope: Scope) -> Iterator[Finding]:
    """Yield nodes that no output of the graph depends on."""
    live = live_nodes(scope)
    for node in scope.nodes:
        if node not in live:
            yield Finding("warning", "unused-node", "is not on the way to any output", scope, node)


def check_order(scope: Scope) -> Iterator[Finding]:
    """Yield a cycle if there is one, else whether the nodes are in another order than they run."""
    position = {node: index for index, node in enumerate(scope.nodes)}
    sources = {node: producers_of(scope, node) for node in scope.nodes}
    late = [
        node
        for node in scope.nodes
        if any(position[source] >= position[node] for source in sources[node])
    ]
    if not late:
        return
    cycle = _find_cycle(scope.nodes, sources)
    if cycle:
        path = " -> ".join(name_of(node.ref) for node in cycle[:8])
        if len(cycle) > 8:
            path += f" -> … ({len(cycle) - 1} nodes)"
        yield Finding("error", "graph-cycle", f"Graph has a cycle: {path}", scope, cycle[0])
        return
    yield Finding(
        "error",
        "unsorted-nodes",
        f"Nodes are not topologically sorted: {name_of(late[0].ref)} comes before its input",
        scope,
        late[0],
    )


def _find_cycle(nodes: list[Node], sources: dict[Node, list[Node]]) -> list[Node]:
    """Return a cycle in the direction of the data with its first node repeated, or nothing."""
    done: set[Node] = set()
    for start in nodes:
        if start in done:
            continue
        path: list[Node] = []
        on_path: dict[Node, int] = {}
        stack = [(start, iter(sources[start]))]
        path.append(start)
        on_path[start] = 0
        while stack:
            node, rest = stack[-1]
            source = next((s for s in rest if s not in done), None)
            if source is None:
                stack.pop()
                done.add(path.pop())
                del on_path[node]
            elif source in on_path:
                loop = path[on_path[source] :][::-1]
                first = min(range(len(loop)), key=lambda i: nodes.index(loop[i]))
                loop = loop[first:] + loop[:first]
                return [*loop, loop[0]]
            else:
                on_path[source] = len(path)
                path.append(source)
                stack.append((source, iter(sources[source])))
    return []
