"""Renaming by pattern: what it renames, what follows, and what it refuses."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import onnx
import pytest

from dld_tui.core.errors import EditError
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


def test_prefix_and_suffix_follow_into_subgraphs() -> None:
    title, after = renamed(prefix="p.", suffix="'", kinds=["nodes", "tensors"])
    assert title == "rename 5 nodes, 6 tensors"  # the node without a name gets none
    assert names(after.graph) == [
        ("p.n1'", ["x", "p.w'"], ["p.a'"]),
        ("", ["p.a'"], ["p.b'"]),
        ("p.n3'", ["choice"], ["y"]),
        ("p.i1'", ["p.a'", "p.b'"], ["p.l'"]),
        ("p.i2'", ["p.w'"], ["p.c'"]),
        ("p.i3'", ["p.c'", "p.a'"], ["p.r'"]),
    ]
    assert [tensor.name for tensor in after.graph.initializer] == ["p.w'"]


def test_inputs_and_outputs_only_where_asked_for() -> None:
    _, after = renamed(kinds=["inputs", "outputs"], pattern="^(.).*", replacement=r"io_\1{n}")
    assert [value.name for value in after.graph.input] == ["io_x0", "io_c1"]
    assert [value.name for value in after.graph.output] == ["io_y0"]
    assert names(after.graph)[0] == ("n1", ["io_x0", "w"], ["a"])


def test_groups_numbers_and_operators() -> None:
    _, after = renamed(kinds=["nodes"], pattern=".*", replacement="{op}_{n}")
    assert [row[0] for row in names(after.graph)] == [
        "Add_0", "Relu_1", "If_2", "Mul_3", "Neg_4", "Add_5",
    ]  # fmt: skip
    _, after = renamed(kinds=["nodes"], pattern=r"(?P<kind>[a-z])(\d)", replacement=r"\2-\g<kind>")
    assert [row[0] for row in names(after.graph)] == ["1-n", "", "3-n", "1-i", "2-i", "3-i"]


def test_two_names_are_swapped() -> None:
    swapped = MODEL.replace("b = Relu", "ab = Relu").replace("(a, b)", "(a, ab)")
    swapped = swapped.replace("c = Neg (w) [i3] r = Add (c, a)", "ba = Neg (w) [i3] r = Add(ba, a)")
    _, after = renamed(swapped, kinds=["tensors"], pattern="^(a)(b)$|^(b)(a)$",
                       replacement=r"\2\1\4\3")  # fmt: skip
    assert names(after.graph)[1][2] == ["ba"]
    assert names(after.graph)[4][2] == ["ab"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"pattern": "[ab]", "replacement": "c", "kinds": ["tensors"]}, "'a' and 'b' would both"),
        ({"pattern": "^a$", "replacement": "c", "kinds": ["tensors"]}, "'a' and 'c' would both"),
        ({"pattern": "^a$", "replacement": "x", "kinds": ["tensors"]}, "'x' and 'a' would both"),
        ({"pattern": r"\d", "replacement": "", "kinds": ["nodes"]}, "'n1' and 'n3' would both"),
        ({"pattern": ".*", "replacement": "", "kinds": ["tensors"]}, "would have no name"),
        ({"pattern": "(", "replacement": ""}, "the pattern is wrong"),
        ({"pattern": "a", "replacement": r"\3"}, "the replacement is wrong"),
        ({"prefix": "x", "kinds": ["edges"]}, "'edges'"),
        ({}, "a pattern, a prefix or a suffix is needed"),
    ],
)
def test_nothing_changes_where_names_clash(arguments: dict[str, Any], problem: str) -> None:
    with closing(Document(models.parse(MODEL))) as document:
        before = bytes_of(document)
        with pytest.raises(EditError, match=problem):
            document.apply("rename_matches", **arguments)
        assert bytes_of(document) == before


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
