"""Graphs for tests of drawing: small ones by hand, and random ones with everything awkward."""

from __future__ import annotations

import random
from collections.abc import Sequence

from dld_tui.core.model.graph.graph import Graph


def graph_of_links(links: Sequence[tuple[str, str]], names: Sequence[str] = ()) -> Graph:
    """Return a graph of vertices named as they come up in links (from, to).

    Links from one vertex are one tensor. A label is the name without its digits.
    """
    graph = Graph()
    numbers: dict[str, int] = {}
    for name in (*names, *(name for link in links for name in link)):
        if name not in numbers:
            numbers[name] = graph.add(name.rpartition("/")[2].rstrip("0123456789"), name)
    targets: dict[str, list[int]] = {}
    for source, target in links:
        targets.setdefault(source, []).append(numbers[target])
    for source, found in targets.items():
        graph.link(f"{source}:0", numbers[source], found)
    return graph


def random_graph(seed: int, most: int = 40, *, cycles: bool = True) -> Graph:
    """Return a random graph: several tensors a vertex, loops, parts that are not linked."""
    rng = random.Random(seed)
    graph = Graph()
    count = rng.randint(1, most)
    for number in range(count):
        graph.add("Op" * rng.randint(1, 4), f"/s{number % 3}/n{number}")
    for number in range(count):
        for tensor in range(rng.randint(0, 2)):
            targets = []
            for _ in range(rng.randint(1, 3)):
                if cycles and rng.random() < 0.05:
                    targets.append(rng.randrange(count))
                elif number + 1 < count:
                    targets.append(rng.randint(number + 1, min(count - 1, number + 8)))
            graph.link(f"t{number}.{tensor}", number, targets)
    return graph


def tangled() -> Graph:
    """Return two vertices that give two others so much that a line goes on in another column."""
    graph = Graph()
    for label in ("T", "T", "EEE", "EE"):
        graph.add(label, f"{label}{len(graph)}")
    for source, targets in ((0, [2]), (0, [3]), (1, [2, 3]), (1, [2, 3])):
        graph.link(f"t{len(graph.nets)}", source, targets)
    return graph
