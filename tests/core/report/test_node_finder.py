from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.report.formats.import_ort import NodeFinder, outwards
from dld_tui.core.report.formats.ort_profile import Clue
from tests.support import models

UNNAMED = """
<ir_version: 10, opset_import: ["" : 18]>
unnamed (float[4] x) => (float[4] y)
{
    a = Relu(x)
    two = Constant <value_float = 2.0> ()
    b = Mul(a, two)
    [named] c = Relu(b)
    y = Relu(c)
}
"""

TWICE = """
<ir_version: 10, opset_import: ["" : 18]>
twice (bool c, float[4] x) => (float[4] y)
{
    [pick] y = If (c) <
        then_branch = yes () => (float[4] t) { [same] t = Neg(x) },
        else_branch = no () => (float[4] e) { [same] e = Abs(x) }
    >
}
"""


def finder_of(folder: Path, text: str) -> NodeFinder:
    return NodeFinder(Document.open(models.write(folder, text)))


def test_unnamed_nodes_are_counted_without_constants(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, UNNAMED)
    assert [n.outputs for n in finder.find(Clue("index", "1"), "Mul")] == [("b",)]
    assert [n.outputs for n in finder.find(Clue("index", "3"), "Relu")] == [("y",)]
    assert finder.find(Clue("index", "2"), "Relu") == []  # has a name of its own
    assert finder.find(Clue("index", "1"), "Relu") == []
    assert finder.find(Clue("index", "99"), "Relu") == []


def test_the_operator_chooses_between_equal_names(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, TWICE)
    assert [n.op_type for n in finder.find(Clue("node", "same"), "Abs")] == ["Abs"]
    assert len(finder.find(Clue("node", "same"), "Exp")) == 2


def test_tensors_are_found_in_subgraphs(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, models.BRANCHES)
    (node,) = finder.find(Clue("tensor", "h"), "Neg")
    assert node.name == "inner"
    assert finder.path_of(node.scope) == ("choose:then_branch",)
    assert [scope.path for scope in outwards(node.scope)] == [("choose:then_branch",), ()]


@pytest.mark.parametrize(
    ("name", "path", "rest"),
    [
        ("choose_then_branch__Inline_0__inner", ("choose:then_branch",), "inner"),
        ("choose_else_branch__Inline_3__x", ("choose:else_branch",), "x"),
        ("other_then_branch__Inline_0__inner", None, "other_then_branch__Inline_0__inner"),
        ("plain", None, "plain"),
    ],
)
def test_names_of_inlined_branches(
    tmp_path: Path, name: str, path: tuple[str, ...] | None, rest: str
) -> None:
    scope, found = finder_of(tmp_path, models.BRANCHES).branch(name)
    assert (scope.path if scope else None, found) == (path, rest)


def test_search_within_a_branch(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, TWICE)
    (branch,) = finder.named("pick")[0].children["else_branch"]
    assert [n.op_type for n in finder.named("same", branch)] == ["Abs"]


def test_local_functions(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, models.FUNCTIONS)
    (call,) = finder.named("call")
    body = finder.function_of(call)
    assert body is not None
    assert [n.op_type for n in body.nodes] == ["Add"]
    assert finder.function_of(body.nodes[0]) is None
