"""Repairs of types: what they make is what ONNX Runtime takes."""

from __future__ import annotations

from contextlib import closing

import pytest

from dld_tui.core.checks import check
from dld_tui.core.model.document import Document
from dld_tui.core.model.edits.links import exposed_type
from tests.oracles.edited_models import loads
from tests.support import models
from tests.support.known import known
from tests.support.sessions import bytes_of

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\nnet '
BRANCH = (
    "(int64[2] x, float[2] f, bool c) => (float[2] y) { y = If (c) <"
    " then_branch = t () => (float[2] p) { p = Add (f, x) },"
    " else_branch = e () => (float[2] q) { q = Relu (f) }> }"
)


@pytest.mark.parametrize(
    ("text", "casts"),
    [
        ("(int64[2] x, float[2] f) => (float[2] y) { y = Add (f, x) }", [1]),
        ("(int64[2] x) => (float[2] y) { y = Sigmoid (x) }", [1]),
        ("(float[2] x, float[1] i) => (float[1] y) { y = Gather (x, i) }", [7]),
        ("(int64[2] x, int64[2] b, float[2] f) => (float[2] y) { y = Sum (f, x, b) }", [1, 1]),
        (BRANCH, [1]),
    ],
)
def test_a_cast_repairs_types_that_do_not_fit(text: str, casts: list[int]) -> None:
    with closing(Document(models.parse(HEAD + text))) as document:
        for _ in casts:
            fix = known(next(one.fix for one in check(document) if one.level == "error"))
            document.apply(fix)
        assert not [one for one in check(document) if one.level == "error"]
        made = [node for scope in document.scopes() for node in scope.nodes_of_type("Cast")]
        assert [node.integer("to", 0) for node in made] == casts
        assert loads(bytes_of(document)) is None


def test_what_has_no_repair_and_what_has_the_type_of_a_terminal() -> None:
    text = "(string[2] x, float[2] f) => (float[2] y) { y = Add (f, x) }"
    with closing(Document(models.parse(HEAD + text))) as document:
        found = [one for one in check(document) if one.level == "error"]
        assert found
        assert not any(one.is_fixable for one in found)
    text = "(float16[2] x) => (float16[2] y) { a = Add (x, ) y = Gather (a, ) }"
    with closing(Document(models.parse(HEAD + text))) as document:
        for at, node in enumerate(document.main.nodes):
            known = exposed_type(node, 1)
            assert known.dtype == ("float16", None)[at]  # int32 or int64
