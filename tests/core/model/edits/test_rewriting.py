"""The edit ``rewrite``: what it makes, what it refuses, and that values stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.edits.hit_replacement import line_of
from dld_tui.core.model.edits.rewriting import planned_lines, preview
from dld_tui.core.model.rewrite import matcher
from dld_tui.core.model.rewrite.rule import rules_of, text_of_rules
from tests.core.model.rewrite.rewriting import copy_of, operators, rewritten, saved, values
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


def test_what_a_body_captures_stays() -> None:
    model = parse(
        f"""{HEAD}g (bool c, float[2] x) => (float[2] y, float[2] z) {{
            a = Relu(x)
            z = Neg(a)
            y = If (c) <then_branch = t () => (float[2] p) {{ p = Identity(a) }},
                        else_branch = e () => (float[2] q) {{ h = Identity(a) q = Abs(h) }}>
        }}"""
    )
    done = preview(Document(copy_of(model)), "Neg(Relu(x)) => Elu(x)")
    assert not done.counts
    assert "'a' is used elsewhere" in next(iter(done.refused))
    after = rewritten(model, "Identity(x) => x")
    onnx.checker.check_model(after)
    branches = after.graph.node[2].attribute
    assert [[node.op_type for node in one.g.node] for one in branches] == [["Identity"], ["Abs"]]


SIDE = "(x, y) => (a) { q = &Sin(x)  a = Add(x, y) } => Sub(q, y)"


def test_nodes_are_in_order_where_a_matched_one_that_stays_comes_later() -> None:
    model = small("{ n = Neg(x) a = Add(x, n) b = Abs(a) q = Sin(x) y = Mul(q, b) }")
    after = rewritten(model, SIDE)
    onnx.checker.check_model(after)
    assert operators(after) == ["Neg", "Sin", "Sub", "Abs", "Mul"]


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


def test_an_attribute_that_the_operator_set_lacks_is_refused() -> None:
    text = "g (int8[4, 8] x, float s) => (float[4, 8] y) { y = DequantizeLinear(x, s) }"
    rule = "DequantizeLinear(x, s) => Neg(Neg(DequantizeLinear<axis = 1>(x, s)))"
    older = parse(f'<ir_version: 6, opset_import: ["" : 12]>\n{text}')
    done = preview(Document(older), rule)
    assert "DequantizeLinear has no attribute axis in opset 12" in next(iter(done.refused))


def test_hits_are_previewed_and_one_can_be_chosen() -> None:
    model = small("{ [a] r = Relu(x) [b] s = Neg(r) [c] t = Relu(s) [d] y = Neg(t) }")
    document = Document(copy_of(model))
    done = preview(document, "Neg(Relu(x)) => Elu(x)")
    assert ("rule", (), ["r = Relu(x)", "s = Neg(r)"], ["s = Elu(x)"]) in done.hits
    assert len(done.hits) == 2
    assert saved(document) == saved(Document(copy_of(model)))
    assert not document.history.done
    transaction = document.apply("rewrite", rules="Neg(Relu(x)) => Elu(x)", at=[[[], "b"]])
    assert transaction.title == "rewrite 1 place by 'rule'"
    assert [line_of(node) for node in document.main.nodes] == [
        "s = Elu(x)", "t = Relu(s)", "y = Neg(t)",
    ]  # fmt: skip
    assert document.main.nodes[0].name == "b"


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


def test_constants_and_types_of_what_is_gone_go() -> None:
    model = small(
        "<float k = {2}, float one = {1}, float[2, 3] r> { r = Mul(x, k) y = Mul(r, one) }"
    )
    after = rewritten(model, "Mul(x, 1) => x")
    assert operators(after) == ["Mul"]
    assert [tensor.name for tensor in after.graph.initializer] == ["k"]
    assert not after.graph.value_info


def test_attribute_becomes_an_input_where_the_operator_set_wants_that() -> None:
    text = "{ y = ReduceMean <axes = [1]> (x) }"
    old = parse(f"{HEAD}g (float[2, 3] x) => (float[2, 1] y) {text}".replace("18", "13"))
    rule = "ReduceMean<axes = a>(x) => ReduceSum<axes = a>(x)"
    assert len(rewritten(old, rule).graph.node[0].input) == 2
    older = parse(f"{HEAD}g (float[2, 3] x) => (float[2, 1] y) {text}".replace("18", "11"))
    assert rewritten(older, rule).graph.node[0].attribute[0].name == "axes"


def test_functions_are_made_once_for_equal_hits() -> None:
    model = small(
        "<float a = {2}, float b = {3}> {"
        " p = Mul(x, a) q = Tanh(p) r = Mul(q, a) s = Tanh(r) t = Mul(s, b) y = Tanh(t) }"
    )
    after = rewritten(model, "Tanh(Mul(x, 2.0)) => function(my.Scaled)")
    assert operators(after) == ["Scaled", "Scaled", "Mul", "Tanh"]
    assert [function.name for function in after.functions] == ["Scaled"]
    onnx.checker.check_model(after)
    after = rewritten(model, "Tanh(Mul(x, a)) => operator(my.Plugin)")
    assert operators(after) == ["Plugin"] * 3
    assert [list(node.input)[1] for node in after.graph.node] == ["a", "a", "b"]


def test_actions_that_keep_the_nodes() -> None:
    model = small("{ r = Elu(x) [s] y = Softmax(r) }")
    after = rewritten(model, "s: Softmax(Elu(x)) => set(s.axis = 0)")
    assert after.graph.node[1].attribute[0].i == 0
    document = Document(copy_of(model))
    document.apply("rewrite", rules="Elu(x) => precision(fp16)")
    assert precision_of(document.main.nodes[0]) == "fp16"
    typed = onnx.shape_inference.infer_shapes(model)
    assert operators(rewritten(typed, "Elu(x) => cast(fp16)")) == ["Cast", "Elu", "Cast", "Softmax"]
    dead = small("{ y = Neg(x) r = Relu(x) }")
    assert operators(rewritten(dead, "Relu(x) => delete")) == ["Neg"]
    assert operators(rewritten(dead, "Neg(x) => delete")) == ["Neg", "Relu"]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("Gelu2(x) => x", ""),
        ("Relu(x) => Swish(x)", "from opset 24 on"),
        ("Relu(x) => Mul(x, {x + 1})", "is not known"),
        ("Relu(x) => Cast<to = 1 / 0>(x)", "is not known"),
        ("Relu(x) => Softmax<axis = 0.5>(x)", "whole numbers"),
        ('Relu(x) => Add(x, Constant<value = "abc">())', "a value does not fit"),
        ("Relu(x) => Unsqueeze(x, 99999999999999999999)", "a value does not fit"),
        ('Relu(x) => ConstantOfShape<value = "abc">(x)', "value takes numbers"),
        ("Neg(x) => delete", "is used"),
        ("Relu(x) => bypass where 1 = 1", ""),
    ],
)
def test_what_does_not_fit_is_left_with_the_reason(rule: str, reason: str) -> None:
    model = small("{ r = Neg(x) y = Relu(r) }")
    done = preview(Document(model), rule)
    assert bool(done.refused) is bool(reason)
    if reason:
        assert reason in next(iter(done.refused))
        assert not done.counts


@pytest.mark.parametrize(
    "rules",
    [
        "Relu(x) => Relu(Neg(Relu(x)))",
        "rule a: there\nRelu(x) => Neg(x)\nrule b: and back\nNeg(x) => Relu(x)",
        "Relu(x) => NoSuchOperator(x)",
    ],
)
def test_rules_that_do_not_end_or_make_sense_change_nothing(rules: str) -> None:
    model = small("{ r = Relu(x) y = Abs(r) }")
    document = Document(copy_of(model))
    with pytest.raises(EditError, match=r"never ends?|no operator"):
        document.apply("rewrite", rules=rules)
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


def test_one_place_that_is_refused_does_not_end_a_round() -> None:
    after = rewritten(small("{ r = Neg(x) y = Neg(x) }"), "Neg(x) => delete")
    assert operators(after) == ["Neg"], "the output is used, the other one is not"


def test_the_copy_that_an_output_becomes_stands_before_its_users() -> None:
    model = small("{ y = Relu(x) z = Neg(y) }", out="float[2, 3] y, float[2, 3] z")
    after = rewritten(model, "Relu(x) => x")
    onnx.checker.check_model(after)
    assert operators(after) == ["Identity", "Neg"]
