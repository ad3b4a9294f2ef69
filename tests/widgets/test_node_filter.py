"""Conditions of the advanced filter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.document.transactions import DocumentChange
from dld_tui.widgets.explorer.node_filter import NodeFilter, parse_conditions
from dld_tui.widgets.parameters.descriptions import default_of
from tests.support import models

MODEL = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
filtered (float[1, 4, 8, 8] x) => (float16[M] y)
<float[8, 4, 3, 3] w>
{
    [conv_a] a = Conv <kernel_shape = [3, 3], group = 1, strides = [1, 1]> (x, w)
    [conv_b] b = Conv <kernel_shape = [1, 1], group = 2, strides = [2, 2], name = "x and y"> (a, w)
    [soft] c = Softmax <axis = -2> (b)
    [leaky] d = LeakyRelu <alpha = 0.1> (c)
    [gelu] e = com.microsoft.FastGelu(d)
    [plain] f = Softmax (e)
    [cast] y = Cast <to = 10> (f)
}
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    document = Document.open(models.write(tmp_path, MODEL))
    yield document.main.nodes
    document.close()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("kernel_shape = [3, 3]", "conv_a"),
        ("kernel_shape=3", "conv_a"),
        ("kernel_shape contains 1", "conv_b"),
        ("group > 1", "conv_b"),
        ("group > 1 or alpha > 0", "conv_b leaky"),
        ("Conv where group = 1", "conv_a"),
        ("in[1].rank = 4 and group % 2 = 0", "conv_b"),
        ("out.dtype = float16", "cast"),
        ("group >= 1 and strides < 2", "conv_a"),
        ("strides > 1", "conv_b"),
        ("alpha = 0.1", "leaky"),
        ("alpha > 0.05", "leaky"),
        ("axis = -1", "plain"),
        ("axis != -1", "soft conv_a conv_b leaky gelu cast"),
        ("has axis", "soft"),
        ("not has axis and type = Softmax", "plain"),
        ("name contains CONV", "conv_a conv_b"),
        ("@name = 'x and y'", "conv_b"),
        ("domain = com.microsoft", "gelu"),
        ("type = Cast", "cast"),
        ("input = a", "conv_b"),
        ("output contains y", "cast"),
        ("inputs >= 2", "conv_a conv_b"),
        ("dtype = float16", "cast"),
        ("shape contains 'M'", "cast"),
        ("name contains nothing", ""),
        ("auto_pad = NOTSET", "conv_a conv_b"),
    ],
)
def test_conditions(nodes: list[Node], text: str, names: str) -> None:
    chosen = NodeFilter(frozenset(), parse_conditions(text), default_of)
    assert {node.name for node in nodes if chosen(node)} == set(names.split())


def test_types_are_told_apart_by_domain(nodes: list[Node]) -> None:
    chosen = NodeFilter(frozenset({("com.microsoft", "FastGelu"), ("", "Cast")}))
    assert [node.name for node in nodes if chosen(node)] == ["gelu", "cast"]


def test_active_counts_types_once_and_each_condition() -> None:
    assert NodeFilter().active == 0
    conditions = parse_conditions("a = 1 and b = 'p and q' and c contains [1, 2]")
    assert len(conditions) == 3
    assert NodeFilter(frozenset({("", "Conv")}), conditions).active == 4


def test_text_gives_the_same_conditions_again() -> None:
    chosen = NodeFilter(frozenset(), parse_conditions("a > 1  and not has b"))
    assert parse_conditions(chosen.text) == chosen.conditions


@pytest.mark.parametrize("text", ["group", "= 1", "a = 1 and", "a > x", "a = [1", "has", "a = 'x"])
def test_malformed_conditions_are_refused_with_a_reason(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_conditions(text)
    assert caught.value.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [("Mul(x, Add(Er", "is expected at the end"), ("_(_(x))", "matches everything"),
     ("c: Conv(x", "is expected at the end"), ("Conv where (", "is no condition")],
)  # fmt: skip
def test_what_a_pattern_lacks_is_said(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_conditions(text)


def test_empty_text_has_no_conditions() -> None:
    assert parse_conditions("   ") == ()


def test_a_pattern_lists_its_hits_and_follows_edits() -> None:
    document = Document(
        models.parse(
            '<ir_version: 10, opset_import: ["" : 18]>\ng (float[2] x) => (float[2] y)'
            " { [a] s = Sigmoid(x) [b] m = Mul(x, s) [c] t = Sigmoid(m) [d] u = Mul(t, m)"
            " [e] y = Neg(u) }"
        )
    )
    chosen = NodeFilter(frozenset(), parse_conditions("Mul(x, Sigmoid(x))"))
    assert chosen.conditions[0].text == "Mul(x, Sigmoid(x))"
    asked: set[str] = set()

    def listen(change: DocumentChange) -> None:
        asked.update(node.name for node in chosen.follow(change))

    def shown() -> str:
        return " ".join(node.name for node in document.main.nodes if chosen(node))

    for _ in chosen.prepare(document):
        assert not asked
    document.on_change.append(listen)
    assert shown() == "a b c d"
    document.apply("set_input", scope=[], node="d", index=1, value="x")
    assert shown() == "a b"
    assert {"c", "d"} <= asked
    document.undo()
    assert shown() == "a b c d"
