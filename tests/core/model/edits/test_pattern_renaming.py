"""Renaming by pattern: what it renames, what follows, and what it refuses."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import profiles_of
from tests.support import models
from tests.support.sessions import bytes_of

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


def renamed(model: str = MODEL, **arguments: Any) -> tuple[str, onnx.ModelProto]:
    with closing(Document(models.parse(model))) as document:
        before = bytes_of(document)
        title = document.apply("rename_matches", **arguments).title
        after = onnx.ModelProto.FromString(bytes_of(document))
        document.undo()
        assert bytes_of(document) == before
    onnx.checker.check_model(after, full_check=True)
    return title, after


def names(graph: onnx.GraphProto) -> list[tuple[str, list[str], list[str]]]:
    rows = []
    for node in graph.node:
        rows.append((node.name, list(node.input), list(node.output)))
        for attribute in node.attribute:
            rows += names(attribute.g) if attribute.HasField("g") else []
    return rows


def test_two_names_are_swapped() -> None:
    swapped = MODEL.replace("b = Relu", "ab = Relu").replace("(a, b)", "(a, ab)")
    swapped = swapped.replace("c = Neg (w) [i3] r = Add (c, a)", "ba = Neg (w) [i3] r = Add(ba, a)")
    _, after = renamed(swapped, kinds=["tensors"], pattern="^(a)(b)$|^(b)(a)$",
                       replacement=r"\2\1\4\3")  # fmt: skip
    assert names(after.graph)[1][2] == ["ba"]
    assert names(after.graph)[4][2] == ["ab"]


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
