"""The text of rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.rewrite.rule import own_rules, parse_rules, rules_of, text_of_rules
from dld_tui.core.model.rewrite.why import why_nothing
from tests.support import models


def test_rules_are_what_their_text_says() -> None:
    again = parse_rules(text_of_rules(own_rules()))
    assert [(rule.name, rule.about, len(rule.rewrites)) for rule in again] == [
        (rule.name, rule.about, len(rule.rewrites)) for rule in own_rules()
    ]
    texts = [one.text for rule in own_rules() for one in rule.rewrites]
    assert [one.text for rule in again for one in rule.rewrites] == texts


def test_file_has_rules_below_their_names() -> None:
    first, second = parse_rules(
        "# mine\nrule one: Does it.\ngains: all\nRelu(x) => x\n;\nNeg(x) => bypass\nrule two\n"
        "c: Conv(x, w) => set(group = 1, c.dilations = [1, 1]) where w.rank = 4\n"
    )
    assert (first.name, first.about, first.gains) == ("one", "Does it.", "all")
    assert [one.action.kind if one.action else "" for one in first.rewrites] == ["", "bypass"]
    assert second.rewrites[0].action is not None
    assert [(label, name) for label, name, _ in second.rewrites[0].action.values] == [
        ("", "group"), ("c", "dilations"),
    ]  # fmt: skip
    assert not second.rewrites[0].removes
    assert second.needs_types


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
        (["Cast(x) where x.rank = 2 => x"], ["rule: 1 place like cast, but not: x.rank = 2"]),
    ],
)
def test_the_reason_is_what_is_missing(
    tmp_path: Path, rules: list[str], reasons: list[str]
) -> None:
    document = Document.open(models.write(tmp_path, NORM))
    assert why_nothing(document, rules_of(rules)) == reasons
    document.close()
