"""Shapes through a whole model: names, functions, subgraphs, and where knowledge ends."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.shapes.evaluation import Evaluation
from dld_tui.core.model.shapes.size import UNKNOWN, symbol
from dld_tui.core.model.shapes.value import Dims, Value
from tests.support import models

N, T = symbol("N"), symbol("T")
DATA = """
<ir_version: 10, opset_import: ["" : 18, "other" : 1]>
g (float[4, 6] x) => (float[a, b] y, float[c, d] z)
{ i = NonZero (x) t = Transpose (i) f = Cast <to = 1> (t) y = Neg (f) z = other.Mystery (x) }
"""


PAIRED = "(float[p] v, float[r] u) => (float[q] w) { w = Concat <axis = 0> (v, u) }"


@pytest.mark.parametrize(
    ("body", "inputs", "made"),
    [
        ("(float[p] v) => (float[q] w) { w = Concat <axis = 0> (v, v) }", "s", (6,)),
        (PAIRED, "s, x", (10,)),
        (PAIRED, "s, r", (5,)),
        (PAIRED, "s, t",
         (UNKNOWN,)),
    ],
)  # fmt: skip
def test_a_body_is_followed_for_each_item_of_a_sequence(
    body: str, inputs: str, made: Dims, tmp_path: Path
) -> None:
    """The second of items of 2 and 3, with what is of another sequence, or the same for all."""
    text = f"""<ir_version: 10, opset_import: ["" : 18]>
    g (float[2] a, float[3] b, float[7] x, seq(float[n]) t) => (float[o] y) <int64 one = {{1}}> {{
        s = SequenceConstruct (a, b) r = SequenceConstruct (b, a)
        m = SequenceMap <body = k {body}> ({inputs}) y = SequenceAt (m, one) }}"""
    with closing(Document.open(models.write(tmp_path, text))) as document:
        given = {"a": Value((2,)), "b": Value((3,)), "x": Value((7,))}
        given["t"] = Value((UNKNOWN,), is_sequence=True)
        assert Evaluation(document, given).value(document.main, "y").dims == made


def test_where_knowledge_ends_sizes_are_unknown(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, DATA))) as document:
        evaluation = Evaluation(document, {"x": Value((4, 6))})
        assert evaluation.value(document.main, "y").dims == (UNKNOWN, 2)
