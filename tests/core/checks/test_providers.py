"""Partitions of models; what tables say of nodes is in transcripts/providers.txt."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from pathlib import Path

from dld_tui.core.checks.providers import partitions
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.node import Node
from tests.support.models import write


def fewest(nodes: list[Node], taken: set[Node]) -> int:
    """Return the fewest runs of taken nodes over all orders, by trying all."""
    made = {name: node for node in nodes for name in node.outputs}
    needs = {n: {made[i] for i in n.inputs if i in made} for n in nodes}
    best = {(frozenset[Node](), False): 0}
    while True:
        grown: dict[tuple[frozenset[Node], bool], int] = {}
        for (done, side), groups in best.items():
            for node in nodes:
                if node not in done and needs[node] <= done:
                    state = (done | {node}, node in taken)
                    cost = groups + (node in taken and not side)
                    grown[state] = min(grown.get(state, cost), cost)
        if not grown:
            return min(best.values())
        best = grown


def test_partitions_are_the_fewest_of_all_orders(tmp_path: Path) -> None:
    rng = random.Random(5)
    seen = Counter[int]()
    for _ in range(60):
        lines, names = [], ["x"]
        for at in range(8):
            first, second = rng.choice(names), rng.choice(names)
            lines.append(f"    v{at} = Add({first}, {second})")
            names.append(f"v{at}")
        text = (
            '<ir_version: 10, opset_import: ["" : 18]>\n'
            "g (float[1] x) => (float[1] v7) {\n" + "\n".join(lines) + "\n}"
        )
        with contextlib.closing(Document.open(write(tmp_path, text))) as document:
            nodes = list(document.main.nodes)
            taken = {node for node in nodes if rng.random() < 0.5}
            count = partitions(nodes, taken)
            assert count == fewest(nodes, taken)
            seen[count] += 1
    assert len(seen) > 2
