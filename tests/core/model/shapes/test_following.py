"""Single values that are followed backwards, with and without types."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.shapes.following import Following
from dld_tui.core.model.shapes.size import symbol, value_at
from tests.support.models import parse

HEAD = '<ir_version: 10, opset_import: ["" : 18]>'


def test_a_size_of_a_size_without_a_number() -> None:
    text = f"""{HEAD}
    g (float[N, 8] x) => (float[K, L] y) <int64[1] two = {{2}}, int64[1] last = {{-1}}>
    {{
        s = Shape <start = 0, end = 1> (x)  h = Div (s, two)  c = Concat <axis = 0> (h, last)
        f = Shape <start = 1> (x)  d = Mul (h, f)  e = Expand (two, d)  y = Reshape (x, c)
    }}
    """
    model = parse(text)
    following = Following()
    scope = Document(parse(text)).main
    (length,) = following.value(scope, "e").dims or ()
    for count in (2, 4, 6, 10):
        del model.graph.output[:]
        model.graph.output.append(onnx.helper.make_tensor_value_info("e", 7, [None]))
        given = {"x": np.zeros((count, 8), np.float32)}
        (made,) = ReferenceEvaluator(model).run(None, given)
        assert value_at(length, {"N": count}.__getitem__) == len(made)


@pytest.mark.parametrize("size", ["?", "unk__7", "M"])
def test_an_open_size_is_looked_for_in_what_makes_it(size: str) -> None:
    text = f"{HEAD} g (float[N, 4] x) => (y) <float[{size}, 4] a> {{ a = Relu (x) y = Neg (a) }}"
    dims = Following().value(Document(parse(text)).main, "a").dims
    assert dims == (symbol("M" if size == "M" else "N"), 4)


def test_a_chain_without_types_ends_and_a_cycle_does() -> None:
    steps = "".join(f"v{at + 1} = Add (v{at}, v{at})" for at in range(300))
    scope = Document(parse(f"{HEAD} g (float[N, 8] v0) => (y) {{ {steps} y = Neg (v300) }}")).main
    assert Following().value(scope, "v300").dims is None  # too far
    following = Following()
    for at in range(301):
        assert following.value(scope, f"v{at}").dims == (symbol("N"), 8)
    cycle = Document(
        parse(f"{HEAD} g (float[N] x) => (y) {{ a = Add (b, b) b = Neg (a) y = Neg (a) }}")
    )
    assert Following().value(cycle.main, "y").dims is None
