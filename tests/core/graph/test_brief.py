"""What a node does and which weight it has, in a few words."""

from __future__ import annotations

import pytest

from dld_tui.core.document import Document, Node
from dld_tui.core.graph.brief import weight_text, work_text
from tests.support import models

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
  y = Sum(c, d)
}
"""
STORED = """
main (float[1,2] x) => (float[1,2] y)
<int8[2,2] q = {1,2,3,4}, float scale = {0.5}, int8 zero = {0}, float[2] bias = {1,2},
 float16[2,2] half = {1,2,3,4}, float[2,2] w> {
  w = DequantizeLinear(q, scale, zero)
  v = Cast<to=1>(half)
  a = MatMul(x, w)
  b = MatMul(a, v)
  c = Add(b, bias)
  y = Gemm(c, half)
}
"""


def node(document: Document, output: str) -> Node:
    found = document.main.producer(output)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("output", "text"),
    [("c", "3x5/2 d1x2 g4"), ("d", "3x5 g4"), ("p", "2x2/2x1"), ("t", "0,2,3,1"), ("s", "axis -1"),
     ("h", "to f16"), ("r", "")],
)  # fmt: skip
def test_what_a_node_does(output: str, text: str) -> None:
    assert work_text(node(Document(models.parse(HEAD + CONV)), output)) == text


@pytest.mark.parametrize(
    ("output", "text"),
    [("a", "i8 → f32[2,2]"), ("b", "f16 → Cast"), ("c", ""), ("y", "f16[2,2]")],
)
def test_a_weight_says_what_is_stored_where_it_is_computed(output: str, text: str) -> None:
    document = Document(models.parse(HEAD + STORED))
    drawn = ("MatMul", "Add", "Gemm")
    found = weight_text(node(document, output), lambda other: other.op_type in drawn)
    assert found == text


def test_what_is_drawn_is_not_said_again() -> None:
    document = Document(models.parse(HEAD + STORED))
    assert weight_text(node(document, "a"), lambda other: True) == ""
