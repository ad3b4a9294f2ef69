"""Renaming by pattern: what it renames, what follows, and what it refuses."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import profiles_of
from tests.support import models

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[2] x, bool choice) => (float[2] y) <float[2] w = {1, 2}> {
  [n1] a = Add (x, w)
  b = Relu (a)
  [n3] y = If (choice) <
    then_branch = left () => (float[2] l) { [i1] l = Mul (a, b) },
    else_branch = right () => (float[2] r) { [i2] c = Neg (w) [i3] r = Add (c, a) }
  >
}
"""


def names(graph: onnx.GraphProto) -> list[tuple[str, list[str], list[str]]]:
    rows = []
    for node in graph.node:
        rows.append((node.name, list(node.input), list(node.output)))
        for attribute in node.attribute:
            rows += names(attribute.g) if attribute.HasField("g") else []
    return rows


@pytest.mark.parametrize(
    ("edit", "arguments"),
    [
        ("rename_value", {"scope": [], "value": "x", "name": "new"}),
        ("rename_matches", {"kinds": ["inputs"], "pattern": "^x$", "replacement": "new"}),
    ],
)
def test_optimization_profiles_follow_their_inputs(edit: str, arguments: dict[str, Any]) -> None:
    model = models.parse(MODEL.replace("float[2] x", "float[n] x"))
    shapes: Any = {"min": [1], "opt": [2], "max": [4]}
    with closing(Document(model)) as document:
        document.apply("set_profiles", profiles=[{"x": shapes}])
        document.apply(edit, **arguments)
        assert [list(profile) for profile in profiles_of(document)] == [["new"]]
        document.undo()
        assert [list(profile) for profile in profiles_of(document)] == [["x"]]
