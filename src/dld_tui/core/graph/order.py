"""An order of the vertices that a person can follow: each close to what it is computed from."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.graph.graph import Graph


def depths(graph: Graph) -> list[int]:
    """Return the longest distance of each vertex from a vertex without inputs, in links.

    Links that close a cycle do not count.
    """
    sources = graph.sources
    depth: list[int] = []
    for vertex, given in enumerate(sources):
        if len(given) == 1 and given[0] < vertex:
            depth.append(1 + depth[given[0]])
        elif given:
            if max(given) >= vertex:
                break  # the file is not in an order to compute in
            depth.append(1 + max([depth[source] for source in given]))
        else:
            depth.append(0)
    else:
        return depth
    depth = [-1] * len(graph)
    entered = bytearray(len(graph))
    for start in range(len(graph)):
        if depth[start] >= 0:
            continue
        stack = [start]
        while stack:
            vertex = stack[-1]
            if depth[vertex] >= 0:
                stack.pop()
                continue
            if entered[vertex]:
                stack.pop()
                depth[vertex] = 1 + max((depth[source] for source in sources[vertex]), default=-1)
                continue
            entered[vertex] = 1
            stack += [s for s in sources[vertex] if not entered[s]]
    return depth


def demand_order(graph: Graph, depth: Sequence[int] | None = None) -> list[int]:
    """Return the vertices so that each comes after what it needs, and soon after it.

    The sinks are asked for one after the other, those near the inputs first, and each asks for its
    sources, the deepest first, as a register allocator evaluates an expression (Sethi and Ullman
    1970): so few tensors are alive at a time, and the rails stay narrow. In a cycle, the link that
    closes it points upwards.
    """
    depth = depths(graph) if depth is None else depth
    sources = graph.sources
    sinks = [vertex for vertex, given in enumerate(graph.outputs) if not given]
    sinks.sort(key=lambda vertex: depth[vertex])  # stable: file order within a depth
    order: list[int] = []
    done = bytearray(len(graph))
    entered = bytearray(len(graph))
    for start in (*sinks, *range(len(graph))):  # a cycle may have no sink
        if done[start]:
            continue
        stack = [start]
        while stack:
            vertex = stack[-1]
            if done[vertex]:
                stack.pop()
            elif entered[vertex]:
                stack.pop()
                done[vertex] = 1
                order.append(vertex)
            else:
                entered[vertex] = 1
                given = sources[vertex]
                while len(given) == 1 and not entered[given[0]]:  # most of a network is chains
                    vertex = given[0]
                    entered[vertex] = 1
                    stack.append(vertex)
                    given = sources[vertex]
                if len(given) > 1:
                    # The last one is asked first: the deepest, of equals the first operand.
                    waiting = [source for source in reversed(given) if not entered[source]]
                    if len(waiting) > 1:
                        waiting.sort(key=lambda source: depth[source])
                    stack += waiting
    return order
