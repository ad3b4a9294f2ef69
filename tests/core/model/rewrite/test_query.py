"""Queries over nodes, and the expressions in them."""

from __future__ import annotations

import json

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.rewrite.expression import (
    FUNCTIONS,
    MOST_DEPTH,
    Expression,
    Reader,
    read_expression,
)
from dld_tui.core.model.rewrite.query import Completion, parse_query
from dld_tui.core.model.rewrite.views import NodeView
from tests.support.model_transcripts import FOLDER
from tests.support.models import parse
from tests.support.recorded import Answered

MODEL = """
<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
g (bool choice, float[1, 4, 8, N] x) => (float[1, 4, 8, N] y, float z)
<float[4, 2, 3, 3] w = {ZEROS}, float k = {2.5}>
{
    [a] y = Conv <group = 2, pads = [1, 1, 1, 1]> (x, w)
    [b] s = Conv <group = 2, strides = [1, 2]> (x, w)
    [c] r = my.Relu (s)
    [d] q = my.Up <mode = "linear"> (r)
    [h] v = my.Relu (q)
    [e] z = If (choice) <
        then_branch = yes () => (float t) { [f] t = Mul(q, k) },
        else_branch = no () => (float u) { [g] u = Relu(q) }
    >
}
""".replace("ZEROS", ", ".join(["0"] * 72))


@pytest.fixture(scope="module")
def document() -> Document:
    return Document(parse(MODEL))


def parse_expression(text: str) -> Expression:
    reader = Reader(text)
    expression = read_expression(reader)
    reader.end()
    return expression


def test_expression_has_no_way_to_python(document: Document) -> None:
    node = next(iter(parse_query("Conv").nodes(document)))
    for text in ("name.__class__", "in.__class__", "scope.path", "in[0].scope"):
        with pytest.raises(UsageError):
            parse_expression(text).value(NodeView(node).field)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("[", "]"), ("x[", "]"), ("abs(", ")"), ("-", ""), ("not ", "")],
)
def test_brackets_and_signs_are_nested_up_to_a_depth(opening: str, closing: str) -> None:
    def read(depth: int) -> None:
        few, many = (opening * count + "1" + closing * count for count in (1, depth))
        parse_expression(f"[{', '.join([few] * 99)}, {many}]")

    read(MOST_DEPTH - 1)  # in one more
    with pytest.raises(UsageError, match="nested more than 60 deep"):
        read(MOST_DEPTH)


def test_every_function_calculates() -> None:
    calculated = (FOLDER / "queries.txt").read_text("utf-8")
    assert [name for name in FUNCTIONS if f"{name}(" not in calculated] == []
    assert all(function.least <= function.most for function in FUNCTIONS.values())


COMPLETED = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
g (float[1, 1, 4, 4] x, float[1, 1, 1, 1] w) => (float[1, 1, P, Q] y)
{
    [stem] a = Conv <group = 1> (x, w)
    [block_one] b = Conv (a, w)
    [block_two] c = Concat <axis = 0> (b, b)
    y = com.microsoft.FastGelu(c)
}
"""


def test_last_word_is_completed_as_the_record_says(answered: Answered) -> None:
    nodes = Document(parse(COMPLETED)).main.nodes
    answered(
        "completions", lambda text: str(Completion(nodes, ["gelu"]).complete(json.loads(text)))
    )
