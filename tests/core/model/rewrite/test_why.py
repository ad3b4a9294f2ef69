"""A rule that replaces nothing says what it looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.rewrite.rule import rules_of
from dld_tui.core.model.rewrite.why import why_nothing
from tests.support import models

NORM = """
<ir_version: 8, opset_import: ["" : 18]>
net (float[1, 2, 4, 4] x) => (float[1, 2, 4, 4] y, float[1, 2, 4, 4] z)
<float[2] s = {1, 2}, float[2] t = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}>
{
    [norm] y = BatchNormalization(x, s, t, m, v)
    [cast] z = Cast<to = 1>(x)
}
"""


@pytest.mark.parametrize(
    ("rules", "reasons"),
    [
        (["gelu"], ["gelu: the model has no Mul and no Erf and no Add"]),
        (["batch-norm"], ["batch-norm: the model has no Conv"]),
        (
            ["Cast<to = 10>(x) => Identity(x)"],
            ["rule: its operators are there, but no place has its links and attributes"],
        ),
        (
            ["Cast(x) where x.rank = 2 => x"],
            ["rule: 1 place like cast, but not: x.rank = 2"],
        ),
    ],
)
def test_the_reason_is_what_is_missing(
    tmp_path: Path, rules: list[str], reasons: list[str]
) -> None:
    document = Document.open(models.write(tmp_path, NORM))
    assert why_nothing(document, rules_of(rules)) == reasons
    document.close()
