"""Graphs of scopes, whole, compared with the file beside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.graph.build import (
    ScopeGraph,
    Weights,
    constants_of,
    graph_of,
    weight_text,
    work_text,
)
from dld_tui.core.model.graph.rails import demand_order, lay_rails
from tests.support import models
from tests.support.recorded import Recorded

CONSTANTS = """
<ir_version: 10, opset_import: ["" : 18]>
constants (float[N, 4] x) => (float[N, 4] y, float[4] fixed)
<float[4] w = {1, 2, 3, 4}>
{
    [shape] s = Constant <value_ints = [2, 2]> ()
    [reshaped] r = Reshape(w, s)
    [fold] f = Flatten(r)
    [fixing] fixed = Neg(w)
    [noise] n = RandomNormal <shape = [4]> ()
    [sum] t = Add(x, f)
    [sum2] y = Add(t, n)
}
"""
BROKEN = """
<ir_version: 10, opset_import: ["" : 18]>
broken (float[4] x) => (float[4] y, float[4] nowhere)
{
    [twice] a = Relu(x)
    [twice] a = Neg(b)
    [loop] b = Add(b, ghost)
    [late] y = Abs(a)
}
"""
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
    [fourth] e = Mul(d, shared)
    [empty] g = Constant<value_int = 1>()
    [words] h = Constant<value = string[1] {"a"}>()
    [joined] i = Concat(f, w, g, c)
    [fifth] y = Sum(e, i, h, )
}
"""
BODIES = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
bodies (float[3] x, bool c) => (float[3] y)
<float[3] outer = {1, 2, 3}, float[3] later = {1, 2, 3}, float[3] x = {0, 0, 0}>
{
    [pre] a = Add(x, outer)
    [hidden] h = Neg(later)
    [choose] t = If (c) <
        then_branch = yes () => (p) <float[2] own = {1, 2}, string[1] word = {"a"}> {
            [k] k = Constant<value = float[3] {1, 2, 3}>()
            [inner] i = Sum(a, k, outer, h)
            [deep] p = If (c) <
                then_branch = more () => (q) { [q] q = Mul(i, later) },
                else_branch = less () => (r) { [r] r = Identity(own) }
            >
        },
        else_branch = no () => (s) { [s] s = Neg(a) }
    >
    [call] y = local.twice(t)
}
<domain: "local", opset_import: ["" : 18]>
twice (u) => (v) { [two] w = Constant<value_float = 2.0>() [mul] v = Mul(u, w) }
"""
HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
CONV = """
main (float[1,8,9,9] x) => (float y)
<float[8,2,3,5] w, float[8] b> {
  c = Conv<kernel_shape=[3,5], strides=[2,2], dilations=[1,2], group=4>(x, w, b)
  d = Conv<group=4>(x, w)
  p = MaxPool<kernel_shape=[2,2], strides=[2,1]>(x)
  t = Transpose<perm=[0,2,3,1]>(x)
  s = Softmax<axis=-1>(x)
  h = Cast<to=10>(x)
  r = Relu(x)
  u = Unsqueeze<axes=[0, 2]>(r)
  k = Other<kernel_shape=[2,2], strides=[3,3], dilations=[2,2], to=1, perm=[1,0]>(x, w)
  l = Other<to=1>(x)
  m = Cast<saturate=1>(x)
  n = Conv(x)
  o = Conv(x, unknown)
  q = Conv<kernel_shape=[100,200,300], strides=[100,200,300], group=1>(x, w)
  v = Concat<axis=0, perm=[1]>(x)
  z = Reduce<perm=[2147483647,2147483647,214]>(x)
  y = Sum(c, d)
}
"""
STORED = """
main (float[1,2] x) => (float[1,2] y)
<int8[2,2] q = {1,2,3,4}, float scale = {0.5}, int8 zero = {0}, float[2] bias = {1,2},
 float16[2,2] half = {1,2,3,4}, float[2,2] w, int8[1,2] tiny = {1,2}, int8[2,2] deep = {1,2,3,4},
 float factor = {2}> {
  w = DequantizeLinear(q, scale, zero)
  v = Cast<to=1>(half)
  a = MatMul(x, w)
  b = MatMul(a, v)
  c = Add(b, bias)
  y = Gemm(c, half)
  n = Neg(bias)
  i = Where(bias, n, half)
  one = Constant<value = float[2,3] {1,2,3,4,5,6}>()
  e = Add(bias, one)
  two = Mul(half, twice)
  twice = Concat(w, half, two, tiny, bias, open)
  f = MatMul(x, two)
  g = MatMul(, missing)
  h = Cast<to=1>(deep)
  late = Sub(factor, h)
  spread = Mul(factor, late)
  j = MatMul(x, spread)
}
"""


def told(drawn: ScopeGraph) -> Iterator[str]:
    """Yield vertices, tensors, and what rows say: work, weight, and bytes of weights."""
    graph = drawn.graph
    rails = lay_rails(graph, demand_order(graph))
    weights = Weights(drawn, rails)
    for at, subject in enumerate(drawn.subjects):
        assert drawn.vertex(subject) == drawn.subjects.index(subject)
        row = rails.rows[at]
        sizes = f"{weights.used[row]} {weights.between(row, row + 1)} B"
        about = f"{graph.labels[at]} {graph.kinds[at]} {graph.classes[at]}".rstrip()
        line = f"{at} {graph.names[at]}: {about}, {sizes}"
        if isinstance(subject, Node):
            weight = weight_text(subject, lambda node: drawn.vertex(node) is not None)
            made = [node.ref for node in constants_of(subject)]
            line += f" | {work_text(subject)} | {weight} | {' '.join(made)}"
        yield line.rstrip(" |")
    yield from (f"{net.name}: {net.source} -> {[*net.targets]} {net.label}" for net in graph.nets)
    yield f"{weights.total} B"


TEXTS = {
    "chain": models.CHAIN, "bodies": BODIES, "constants": CONSTANTS, "broken": BROKEN,
    "work": HEAD + CONV, "stored": HEAD + STORED, "hidden": HIDDEN,
}  # fmt: skip


def test_graphs_of_scopes(tmp_path: Path, recorded: Recorded) -> None:
    made = {}
    for title, text in TEXTS.items():
        with closing(Document.open(models.write(tmp_path, text))) as document:
            for scope in document.scopes():
                where = " › ".join([title, *scope.path])
                made[where] = "\n".join(told(graph_of(scope)))
                some = frozenset(scope.nodes[1::2])
                ways = {
                    "all": graph_of(scope, constants=True),
                    "with every second": graph_of(scope, exceptions=some),
                    "without every second": graph_of(scope, constants=True, exceptions=some),
                }
                usual = graph_of(scope, texts=scope.texts()).graph.names
                for way, drawn in ways.items():
                    if drawn.graph.names != usual:
                        made[f"{where}, {way}"] = "\n".join(told(drawn))
    recorded("built", made)


@pytest.mark.parametrize(
    ("rank", "shared", "varied"),
    [(1, "3/2 d3", "3/2 d3"), (2, "3x3/2 d3", "3x4/2x3 d3x4"),
     (3, "3x3x3/2 d3", "3x4x5/2x3x4 d3x4x5")],
)  # fmt: skip
@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "MaxPool"])
def test_a_window_of_any_rank(operator: str, rank: int, shared: str, varied: str) -> None:
    for grows, text in ((0, shared), (1, varied)):
        about: dict[str, Any] = {
            name: [least + grows * axis for axis in range(rank)]
            for name, least in (("kernel_shape", 3), ("strides", 2), ("dilations", 3))
        }
        made = onnx.helper.make_node(operator, ["x", "w"], ["y"], **about)
        document = Document(
            onnx.helper.make_model(onnx.helper.make_graph([made], "g", [], []), ir_version=10)
        )
        assert work_text(document.main.nodes[0]) == (text if len(text) <= 24 else "")
