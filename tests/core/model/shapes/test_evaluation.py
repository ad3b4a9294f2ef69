"""Shapes through a whole model: names, functions, subgraphs, and where knowledge ends."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from dld_tui.core.model.document import Document
from dld_tui.core.model.shapes.evaluation import Evaluation
from dld_tui.core.model.shapes.size import UNKNOWN, symbol
from dld_tui.core.model.shapes.value import Value
from tests.support import models

N, T = symbol("N"), symbol("T")
DATA = """
<ir_version: 10, opset_import: ["" : 18, "other" : 1]>
g (float[4, 6] x) => (float[a, b] y, float[c, d] z)
{ i = NonZero (x) t = Transpose (i) f = Cast <to = 1> (t) y = Neg (f) z = other.Mystery (x) }
"""


PAIRED = "(float[p] v, float[r] u) => (float[q] w) { w = Concat <axis = 0> (v, u) }"


def test_where_knowledge_ends_sizes_are_unknown(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, DATA))) as document:
        evaluation = Evaluation(document, {"x": Value((4, 6))})
        assert evaluation.value(document.main, "y").dims == (UNKNOWN, 2)
