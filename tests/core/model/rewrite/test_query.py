"""Queries over nodes, and the expressions in them."""

from __future__ import annotations

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.rewrite.expression import (
    FUNCTIONS,
    MOST_DEPTH,
    UNKNOWN,
    Expression,
    Reader,
    read_expression,
)
from dld_tui.core.model.rewrite.query import Completion, parse_columns, parse_query, shown_value
from dld_tui.core.model.rewrite.views import NodeView
from tests.support.models import parse

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


CASES = {
    "Conv": "a b",
    "Relu": "g",
    "my.Relu": "c h",
    "Relu | my.Relu": "c h g",
    "my.Relu | my.Up": "c d h",
    "my.Up | If | my.Relu": "c d h e",
    "*": "a b c d h e f g",
    "Conv where group > 1 and out.shape[1] % 8 != 0": "a b",
    "Conv where out.shape[1] = 4 and out.shape[3] = 'N'": "a",
    "Conv where out.shape[3] > 1": "",  # a dimension with a name
    "Conv where not out.shape[3] > 1": "",  # is not known to be false either
    "* where strides contains 2": "b",
    "* where strides > 1": "b",
    "* where pads = 1": "a",
    "* where has strides": "b",
    "Conv where not has strides": "a",
    "* where mode = linear": "d",
    "* where mode = 'linear'": "d",
    "* where mode != cubic and domain = my": "c d h",
    "* where in[1] is constant": "a b f",
    "* where in[1].value = 2.5": "f",
    "* where in[1] is not constant": "",
    "* where in[0].producer = 'Conv'": "c",
    "* where in[0] = in[1]": "",
    "* where in[0] != in[1]": "a b f",
    "* where in[0] = in[0] and inputs = 2": "a b f",
    "* where out.uses = 0": "h",
    "* where out.uses = 1": "a b c e f g",  # outputs of graphs are uses
    "* where out.uses = 3": "d",  # two of them in bodies
    "* where inputs = 2 and type in ['Conv']": "a b",
    "* where (name = a or name = b) and not name = a": "b",
    "* where 2 * 3 - 1 = 5 and name = a": "a",
    "* where 1 / 0 = 1": "",
    "* where 10 // 3 = 3 and -7 % 4 = 1 and name = a": "a",
    "* where @name = 3": "",
    "* where scope contains else": "g",
    "* where in.dtype = bool": "e",
    "* where 1 < group <= 2": "a b",
    "* where 1 < 5 < 3": "",
    "* where 3 > 2 > 1 and name = a": "a",
    "Conv where not out.shape < 1": "",  # one of its dimensions is not known
    "Conv where not (out.shape[3] > 1 or group = 5)": "",  # not known
}


@pytest.mark.parametrize("text", CASES)
def test_query_finds_the_nodes(document: Document, text: str) -> None:
    assert " ".join(node.name for node in parse_query(text).nodes(document)) == CASES[text]


@pytest.mark.parametrize(
    "text",
    ["", "where x", "Conv where", "Conv where (group", "Conv where group >", "Conv group = 1",
     "Conv where f(1)", "Conv where sqrt(1, 2)", "Conv where 'a",
     "* where in.colour = 1", "* where [1, 2", "Conv where __import__('os')"],
)  # fmt: skip
def test_malformed_query_is_refused(document: Document, text: str) -> None:
    with pytest.raises(UsageError):
        list(parse_query(text).nodes(document))


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


CALCULATED: dict[str, object] = {
    "compose([0, 2, 1], [2, 0, 1])": [2, 1, 0],
    "invert([2, 0, 1])": [1, 2, 0],
    "compose(invert([2, 0, 1]), [2, 0, 1])": [0, 1, 2],
    "sqrt(16) + abs(-1) + exp(0) - log(1)": 6,
    "len([1, 2]) + min([3, 4]) * max([3, 4]) + sum([1, 1]) - prod([2, 3])": 10,
    "is_last([-1], 4)": True,
    "is_last([2, 3], 4)": True,
    "is_last([1], 4)": False,
    "close(1.41421, sqrt(2)) and not close(1.4, sqrt(2)) and close(1.4, sqrt(2), 0.1)": True,
    "reshape(range(4), [2, 2])": [[0, 1], [2, 3]],
    "transpose(reshape(range(4), [2, 2]))": [[0, 2], [1, 3]],
    "transpose(reshape(range(4), [2, 2]), [0, 1])": [[0, 1], [2, 3]],
    "full([2], 0.5) * 2": [1.0, 1.0],
    "zeros(full([2], 0.5))": [0.0, 0.0],
    "dtype(10)": "float16",
    "cast([1.5], 'int64')": [1],
    "clamped(reshape([3000000000, -3000000000, 7], [3]))": [2**31 - 1, -(2**31), 7],
    "leading([5, 6, 7])": [5, 6],
    "batch([5, 6, 7])": [5],
    "[either(1, 2), either(unknown, 2)]": [1, 2],
    "[known(1), known(unknown)]": [True, False],
    "larger(reshape([1, 4], [2]), reshape([3, 2], [2]))": [3, 4],
    "smaller(reshape([1, 4], [2]), reshape([3, 2], [2]))": [1, 2],
    "broadcast([2, 1], [3])": [2, 3],
    "merged([0], [0])": [0, 1],
    "merged([1], [0])": [0, 2],
    "padded([1, 2, 3, 4], [0, 0, 10, 20, 0, 0, 30, 40])": [11, 22, 33, 44],
    "padded([1, 2], [0, 0, 10, 0, 0, 20])": [11, 22],
    "padded([1, 2], [0, 1, 10, 0, 0, 20])": UNKNOWN,  # of channels
    "padded([1, 2], [0, 0, 10, 1, 0, 20])": UNKNOWN,
    "padded([1, 2], [0, 0, -1, 0, 0, 20])": UNKNOWN,
    "padded([1, 2], [0, 0, 10, 0, 0, -1])": UNKNOWN,
    "concat([1], [2, 3])": [1, 2, 3],
    "half(reshape(range(4), [2, 2]))": [[0], [2]],
    "repeats(concat([1, 2], [1, 2]))": True,
    "repeats(concat([1, 2], [1, 3]))": False,
    "repeats(concat([1, 1], [1]))": False,
    "maxima(reshape([1, -2, 0, 0], [2, 2]), 0)": [2, 1],
    "maxima(reshape([1, -2, 0, 0], [2, 2]), -1)": [1, 2],
    "sums(reshape(range(4), [2, 2]))": [1, 5],
    "quantized([1, -2.4, 500], 2)": [0, -1, 127],
    "grown(reshape(range(6), [3, 2]), 0, 2)": [[0, 1], [2, 3], [4, 5], [0, 0]],
    "grown(reshape(range(6), [3, 2]), 1, 2)": [[0, 1], [2, 3], [4, 5]],
    "full([100000, 100000], 0)": UNKNOWN,
    "unknown + 1": UNKNOWN,
}


@pytest.mark.parametrize("text", CALCULATED)
def test_an_expression_calculates(text: str) -> None:
    found = parse_expression(text).value(lambda name: UNKNOWN)
    assert (found.tolist() if hasattr(found, "tolist") else found) == CALCULATED[text]


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
    assert {name for name in FUNCTIONS if not any(f"{name}(" in text for text in CALCULATED)} == (
        set()
    )
    assert all(function.least <= function.most for function in FUNCTIONS.values())


def test_columns_are_values(document: Document) -> None:
    node = next(iter(parse_query("Conv").nodes(document)))
    columns = parse_columns(("group, out.shape", "in[1].shape[0] * 2"))
    found = [shown_value(column.value(NodeView(node).field)) for column in columns]
    assert found == [2, [1, 4, 8, "N"], 8]


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


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Con", "Conv"),  # the more frequent one
        ("Conc", "Concat"),
        ("con", "contains"),  # of the same case
        ("Conv", None),
        ("Conv wh", "Conv where"),
        ("Conv where gr", "Conv where group"),
        ("dil", "dilations"),  # not set, but the operator has it
        ("Conv where in[1].sh", "Conv where in[1].shape"),
        ("x where x.con", "x where x.constant"),
        ("Conv where lea", "Conv where leading("),
        ("has ax", "has axis"),
        ("@gr", "@group"),
        ("name = bl", "name = block_one"),
        ("name contains 'block_t", "name contains 'block_two"),
        ("name = block_twoo", None),
        ("Relu(Co", "Relu(Conv"),
        ("Relu(com.micro", "Relu(com.microsoft.FastGelu"),
        ("gel", "gelu"),
        ("group > 1 and ", None),
        ("zzz", None),
        ("", None),
    ],
)
def test_last_word_is_completed(text: str, whole: str | None) -> None:
    document = Document(parse(COMPLETED))
    assert Completion(document.main.nodes, ["gelu"]).complete(text) == whole
