"""Passes over a model: what each changes, and that undo takes it back."""

from __future__ import annotations

from contextlib import closing

from dld_tui.core.checks import check
from dld_tui.core.checks.findings import safe
from dld_tui.core.model.document import Document
from tests.support import models

MODEL = """
<ir_version: 8, opset_import: ["" : 17, "local" : 1, "gone" : 1]>
net (float[2] x, bool choice, float[2] w) => (float[2] y)
<float[2] w = {1, 2}, float[2] same = {1, 2}, float[2] other = {1, 2}, float[2] unused = {5, 5},
 float[2] shapes = {3, 4}>
{
  k = Constant <value = float[2] {7, 8}> ()
  l = Constant <value_floats = [1.0, 2.0]> ()
  b = local.twice (a)
  a = Add (x, same)
  dead = Neg (a)
  c = Sum (a, b, other, k, l, w, shapes)
  y = If (choice) <
    then_branch = left () => (float[2] l1) { d = Constant <value_int = 1> ()
      e = Cast <to = 1> (d) l1 = Mul (c, e) },
    else_branch = right () => (float[2] r1) { r1 = Add (c, other) }
  >
}
<opset_import: ["" : 17], domain: "local"> twice (a) => (b) { b = Add (a, a) }
<opset_import: ["" : 17], domain: "gone"> idle (a) => (b) { b = Neg (a) }
"""


def test_findings_offer_what_they_are_about() -> None:
    with closing(Document(models.parse(MODEL))) as document:
        assert "initializer-is-input" not in {one.rule for one in safe(check(document))}
        found = {one.rule: one.fix for one in check(document)}
        for rule in ("initializer-is-input", "unused-function"):
            fix = found[rule]
            assert fix is not None
            document.apply(fix)
        assert document.main.inputs == ("x", "choice")
        assert not {"initializer-is-input", "unused-function"} & {f.rule for f in check(document)}
