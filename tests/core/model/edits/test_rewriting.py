"""The edit ``rewrite``: what it makes, what it refuses, and that values stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.edits.rewriting import planned_lines, preview
from dld_tui.core.model.rewrite import matcher
from dld_tui.core.model.rewrite.rule import rules_of, text_of_rules
from tests.core.model.rewrite.rewriting import copy_of, rewritten, saved, values
from tests.support.drawn_models import drawn_model
from tests.support.models import parse

HEAD = '<ir_version: 10, opset_import: ["" : 18]>\n'


def small(body: str, given: str = "float[2, 3] x", out: str = "float[2, 3] y") -> onnx.ModelProto:
    return parse(f"{HEAD}g ({given}) => ({out}) {body}")


KEEPING = [
    "Identity(x) => x",
    "Transpose<perm = p>(&Transpose<perm = q>(x)) => x where compose(p, q) = range(len(p))",
    "u: Relu|Neg|Abs|Sigmoid(Transpose<perm = p>(x)) => Transpose<perm = p>(u(x))",
    "Relu(x) => Max(x, 0.0)",
    "Abs(Neg(x)) => Abs(x)",
    "Sub(x, y) => Add(x, Neg(y))",
    "Neg(Neg(x)) => x",
    "(x, y, z) => (a, b) { a = &Add(x, y)  b = Mul(a, z) } =>"
    " (x, y, z) => (a, b) { a = Add(y, x)  s = Neg(a)  b = Mul(Neg(s), z) }",
    "Relu(x) => operator(my.Relu) where 1 = 2",
    "Sigmoid(_(...)) => function(made.Both)",
]


@pytest.mark.parametrize("seed", range(8))
def test_rules_that_keep_the_function_keep_what_drawn_models_compute(seed: int) -> None:
    pytest.importorskip("onnxruntime")
    model = drawn_model(seed)
    before = values(model, seed)
    total = 0
    for number, rules in enumerate(KEEPING):
        if number % 4 != seed % 4 and number > 1:
            continue
        document = Document(copy_of(model))
        total += sum(preview(document, rules).counts.values())
        after = rewritten(model, rules)
        onnx.checker.check_model(after)
        for old, new in zip(before, values(after, seed), strict=True):
            np.testing.assert_allclose(old, new, rtol=1e-5, atol=1e-5)
    assert total


SIDE = "(x, y) => (a) { q = &Sin(x)  a = Add(x, y) } => Sub(q, y)"


@pytest.mark.parametrize("between", ["b = Abs(a) c = Mul(b, x)", "c = Neg(a)", "c = Identity(a)"])
def test_no_cycle_is_made_through_a_node_that_stays(between: str) -> None:
    model = small(f"{{ n = Neg(x) a = Add(x, n) {between} q = Pow(x, c) y = Mul(q, a) }}")
    rule = SIDE.replace("Sin(x)", "Pow(x, _)")
    done = preview(Document(copy_of(model)), rule)
    assert not done.counts
    assert done.refused


def test_what_is_refused_keeps_no_other_place_from_being_rewritten() -> None:
    good = "n = Neg(x) a = Add(x, n) q = Pow(x, x) p = Mul(q, a)"
    cycle = "m = Neg(p) b = Add(p, m) c = Neg(b) r = Pow(p, c) y = Mul(r, b)"
    done = preview(Document(small(f"{{ {good} {cycle} }}")), SIDE.replace("Sin(x)", "Pow(x, _)"))
    assert (sum(done.counts.values()), len(done.refused)) == (1, 1)


@pytest.mark.parametrize(
    ("rule", "went", "came"),
    [
        ("Relu(x) => Elu(x)", ["r = Relu(x)"], ["r = Elu(x)"]),
        ("Relu(x) => bypass", ["r = Relu(x)"], []),
        ("Relu(x) => precision(fp16)", ["r = Relu(x)"], ["precision(fp16)"]),
        ("Relu(x) => cast(fp16)", ["r = Relu(x)"], ["cast(fp16)"]),
        ("Neg(r) => set(domain = 1)", ["y = Neg(r)"], ["set(domain = 1)"]),
    ],
)
def test_lines_of_one_place_are_told_before_anything_is_changed(
    rule: str, went: list[str], came: list[str]
) -> None:
    model = small("{ [a] r = Relu(x) [b] y = Neg(r) }")
    document = Document(copy_of(model))
    (rewrite,) = rules_of([rule])[0].rewrites
    hit = next(matcher.Matcher(rewrite.pattern).hits(document))
    assert planned_lines(document, hit, rewrite) == (went, came)
    assert saved(document) == saved(Document(copy_of(model)))


def test_rules_that_undo_each_other_are_named() -> None:
    document = Document(
        parse("""<ir_version: 10, opset_import: ["" : 20]>
        g (float[4] x) => (float[4] y) { y = Gelu(x) }""")
    )
    rules = text_of_rules(rules_of(["gelu", "gelu-apart"]))
    with pytest.raises(EditError, match="'gelu' and 'gelu-apart' never end"):
        document.apply("rewrite", rules=rules)


def test_rules_without_an_end_are_found_out_before_the_model_is_large() -> None:
    """A rule that doubles what it finds is tried on one place before it is on all again."""
    lines = " ".join(f"v{n + 1} = Relu(v{n})" for n in range(200))
    text = f'<ir_version: 10, opset_import: ["" : 18]>\ng (float v0) => (float v200) {{ {lines} }}'
    document = Document(parse(text))
    tried: list[Node] = []
    new_node = document.main.new_node
    document.main.new_node = lambda proto: tried.append(new_node(proto)) or tried[-1]  # type: ignore[func-returns-value, method-assign]
    with pytest.raises(EditError, match="never ends"):
        document.apply("rewrite", rules="Relu(x) => Relu(Relu(x))")
    assert len(document.main.nodes) == 200
    assert len(tried) < 3 * 200


def test_a_search_that_gives_up_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "MOST_IN_ALL", 200)
    lines = " ".join(f"v{n} = Neg(x)" for n in range(40))
    document = Document(parse(
        '<ir_version: 10, opset_import: ["" : 18]>\n'
        f"g (float x) => (float y) {{ {lines} y = Sum({', '.join(f'v{n}' for n in range(40))}) }}"
    ))  # fmt: skip
    done = preview(document, "(x) => (a, b) { a = Neg(x) b = Neg(x) } => { a = Abs(x) b = Exp(x) }")
    assert 0 < sum(done.counts.values()) < 20
    assert any("too many ways" in reason for reason in done.refused)
