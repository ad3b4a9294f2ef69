from __future__ import annotations

from pathlib import Path

from dld_tui.core.document import Document
from dld_tui.core.graph.build import graph_of
from dld_tui.core.graph.lanes import demand_order, lay_rails
from dld_tui.core.graph.weights import Weights
from tests.support import models

HIDDEN = """
<ir_version: 10, opset_import: ["" : 18]>
hidden (float[N, 4] x) => (float[N, 4] y)
<int8[4] q = {1, 2, 3, 4}, float[1] scale = {1}, float[4] shared = {1, 2, 3, 4}>
{
    [widen] f = Cast<to = 1>(q)
    [scaled] w = Mul(f, scale)
    [shift] c = Constant<value = float[2] {1, 2}>()
    [first] a = Mul(x, w)
    [second] b = Add(a, c)
    [third] d = Add(b, shared)
    [fourth] y = Mul(d, shared)
}
"""


def weights_of(folder: Path, text: str) -> tuple[Weights, dict[str, int]]:
    """Return the weights, and the row of each vertex by its name."""
    drawn = graph_of(Document.open(models.write(folder, text)).main)
    rails = lay_rails(drawn.graph, demand_order(drawn.graph))
    return Weights(drawn, rails), {drawn.graph.names[v]: row for row, v in enumerate(rails.order)}


def test_weights_behind_nodes_that_are_not_drawn_count(tmp_path: Path) -> None:
    weights, rows = weights_of(tmp_path, HIDDEN)
    assert weights.used[rows["first"]] == 4 + 4
    assert weights.used[rows["second"]] == 8


def test_a_shared_weight_counts_once_in_a_sum(tmp_path: Path) -> None:
    weights, rows = weights_of(tmp_path, HIDDEN)
    assert weights.used[rows["third"]] == weights.used[rows["fourth"]] == 16
    assert weights.between(rows["third"], rows["fourth"] + 1) == 16
    assert weights.total == weights.between(0, len(rows)) == 8 + 8 + 16


def test_the_weights_of_bodies_are_those_of_the_node(tmp_path: Path) -> None:
    text = models.BRANCHES.replace(
        "[inner] h = Neg(a)", "[c] k = Constant<value = float[3] {1, 2, 3}>() [inner] h = Add(a, k)"
    )
    weights, rows = weights_of(tmp_path, text)
    assert weights.used[rows["choose"]] == weights.total == 12
