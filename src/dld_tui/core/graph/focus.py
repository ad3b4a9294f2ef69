"""A part of a graph: what is some links away from a vertex, or lies on the way between two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dld_tui.core.graph.graph import Graph

HUB_DEGREE = 8
"""Hops do not go through a vertex with more neighbours: everything would be near everything."""


@dataclass
class Part:
    """Some vertices of a graph, as a graph of their own."""

    graph: Graph
    vertices: list[int]
    """The vertex of the whole graph that each one is."""
    cut_above: list[int]
    """How many tensors come to each vertex from outside of the part."""
    cut_below: list[int]
    """How many vertices outside of the part take tensors of each vertex."""


def neighbourhood(graph: Graph, vertex: int, hops: int, most: int = 200) -> Part:
    """Return what is at most some links away from a vertex, up or down.

    Args:
        graph: The whole graph.
        vertex: The vertex in the middle.
        hops: Links to go.
        most: Vertices of the part, about: the next ring is left out when it would be more.
    """
    chosen = {vertex: None}
    ring = [vertex]
    for hop in range(hops):
        following: dict[int, None] = {}
        for at in ring:
            near = graph.sources[at] + graph.targets[at]
            if hop and len(near) > HUB_DEGREE:
                continue
            following.update((other, None) for other in near if other not in chosen)
        # The first ring is what was asked for, however large; it is cut only when nobody could
        # look at it.
        room = most if hop else most * 2
        if hop and len(chosen) + len(following) > room:
            break
        ring = list(following)[:room]
        chosen.update(dict.fromkeys(ring))
    return part_of(graph, chosen)


def between(graph: Graph, first: int, last: int) -> Part:
    """Return everything on a way along links from one vertex to another, these two included.

    Where there is none in this direction, the other one is tried; else it is the two alone.
    """
    for start, end in ((first, last), (last, first)):
        both = _reach(graph.targets, start) & _reach(graph.sources, end)
        if both:
            return part_of(graph, both)
    return part_of(graph, (first, last))


def _reach(links: Sequence[Sequence[int]], start: int) -> set[int]:
    found = {start}
    waiting = [start]
    while waiting:
        for other in links[waiting.pop()]:
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def part_of(graph: Graph, vertices: Iterable[int]) -> Part:
    """Return some vertices with the links between them, in the order of the whole graph."""
    chosen = sorted(set(vertices))
    number = {vertex: at for at, vertex in enumerate(chosen)}
    part = Part(Graph(), chosen, [0] * len(chosen), [0] * len(chosen))
    for vertex in chosen:
        part.graph.add(
            graph.labels[vertex], graph.names[vertex], graph.kinds[vertex], graph.classes[vertex]
        )
    for at, vertex in enumerate(chosen):
        outside: set[int] = set()
        for net in (graph.nets[n] for n in graph.outputs[vertex]):
            inside = [number[target] for target in net.targets if target in number]
            outside.update(target for target in net.targets if target not in number)
            part.graph.link(net.name, at, inside, net.label)
        part.cut_below[at] = len(outside)
        part.cut_above[at] = sum(graph.nets[n].source not in number for n in graph.inputs[vertex])
    return part
