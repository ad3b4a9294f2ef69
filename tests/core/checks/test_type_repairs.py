"""Repairs of types: what they make is what ONNX Runtime takes."""

from __future__ import annotations

from contextlib import closing

from dld_tui.core.checks import check
from dld_tui.core.model.document import Document
from dld_tui.core.model.edits.links import exposed_type
from tests.support import models

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\nnet '
BRANCH = (
    "(int64[2] x, float[2] f, bool c) => (float[2] y) { y = If (c) <"
    " then_branch = t () => (float[2] p) { p = Add (f, x) },"
    " else_branch = e () => (float[2] q) { q = Relu (f) }> }"
)


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
