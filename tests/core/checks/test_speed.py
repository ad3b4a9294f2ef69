"""What costs speed is found where it is, not where it is not, and repairs keep the results."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.checks import Finding
from dld_tui.core.checks.findings import SPEED_RULES, repair_steps
from dld_tui.core.checks.speed import speed_findings
from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.edits.repairs import repair_of
from dld_tui.core.model.shapes.inference import infer_types, store_types
from tests.support import models
from tests.support.known import known
from tests.support.sessions import bytes_of, run

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


def opened(folder: Path, text: str) -> Document:
    document = Document.open(models.write(folder, text))
    inferred, _ = infer_types(onnx.ModelProto.FromString(skeleton_bytes(document)), None)
    store_types(document, inferred)
    return document


def found_in(folder: Path, text: str) -> list[Finding]:
    return speed_findings(opened(folder, text))


def layer(operator: str, shape: str, *, data: str = "float[1, 64, 8, 8]", more: str = "") -> str:
    kind = "float16" if "float16" in data else "float"
    values = ", ".join(["1"] * int(np.prod([int(n) for n in shape.split(",")])))
    return (
        f"{HEAD}g ({data} x) => ({kind} y)\n<{kind}[{shape}] w = {{{values}}}>\n"
        f"{{ [layer] y = {operator} {more} (x, w) }}"
    )


GELU = (
    HEAD
    + """g (float[4] x) => (float[4] y)
    <float r = {1.4142135}, float one = {1}, float half = {0.5}> {
    d = Div (x, r)
    e = Erf (d)
    o = Add (e, one)
    m = Mul (x, o)
    y = Mul (m, half)
}"""
)
CASES = {
    "speed:alignment": [
        layer("Conv", "66,64,1,1"),
        layer("MatMul", "65,64", data="float[4, 65]"),
        layer("MatMul", "64,68", data="float16[4, 64]"),
        layer("Gemm", "66,64", data="float[4, 64]", more="<transB = 1>"),
    ],
    "speed:transposes": [models.TRANSPOSES],
    "speed:casts": [
        HEAD + "g (float16[4] x) => (float16[4] y) { [out] a = Cast <to = 1> (x)\n"
        "[back] b = Cast <to = 10> (a)\n y = Relu(b) }",
    ],
    "speed:cast-in-loop": [
        HEAD
        + """g (int64 n, float[4] x) => (float[4] y) {
            t = Constant <value = bool {1}> ()
            y = Loop (n, t, x) <body = b (int64 i, bool c, float[4] s) => (bool d, float[4] r) {
                d = Identity (c)
                [inside] k = Cast <to = 1> (n)
                r = Add (s, k)
            }>
        }""",
    ],
    "speed:float64": [HEAD + "g (double[4] x) => (double[4] y) { y = Add (x, x) }"],
    "speed:int64": [HEAD + "g (int64[4096] x) => (int64[4096] y) { y = Mul (x, x) }"],
    "speed:data-dependent": [HEAD + "g (float[4] x) => (int64[1, N] y) { y = NonZero (x) }"],
    "speed:dynamic-channels": [
        HEAD + "g (float[1,8,9,9] x, float[M,8,3,3] w) => (float[1,M,7,7] y) { y = Conv (x, w) }"
    ],
    "speed:dynamic-input": [
        HEAD + "g (float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Relu (x) }",
    ],
    "speed:half-quantized": [
        HEAD
        + """g (int8[4, 8] x) => (float[4, 8] y)
        <float s = {0.1}, float[8, 8] w>
        { d = DequantizeLinear (x, s)
          y = MatMul (d, w) }""",
    ],
    "speed:float-residual": [
        HEAD
        + """g (int8[4, 8] x, float[4, 8] r) => (float[4, 8] y)
        <float s = {0.1}, int8[8, 8] q>
        { d = DequantizeLinear (x, s)
          w = DequantizeLinear (q, s)
          m = MatMul (d, w)
          y = Add (m, r) }""",
    ],
    "speed:requantized": [
        HEAD
        + """g (int8[4] x) => (int8[4] y)
        <float s = {0.1}, int8 z = {0}>
        { d = DequantizeLinear (x, s)
          y = QuantizeLinear (d, s, z) }""",
    ],
    "speed:rewrite": [
        GELU,
        HEAD + "g (float[4] x) => (float[4] y) { c = Constant <value_float = 1.0>()"
        "\n m = Mul (x, c)\n y = Relu (m) }",
    ],
}
QUIET = {
    "speed:rewrite": [GELU.replace("Erf", "Tanh")],
    "speed:alignment": [
        layer("Conv", "64,64,1,1"),
        layer("Conv", "66,3,3,3", data="float[1, 3, 8, 8]"),
        layer("Conv", "64,1,9,9", data="float[1, 64, 9, 9]", more="<group = 64>"),
        layer("MatMul", "64,68", data="float[4, 64]"),
    ],
    "speed:transposes": [
        models.TRANSPOSES.replace("Transpose <perm = [2, 0, 1]> (a)", "Relu (x)").replace(
            "[third] b = Transpose <perm = [1, 2, 0]> (a)", "[third] b = Relu (x)"
        ).replace("float[3, 4, 2] y", "float[2, 3, 4] y"),
    ],
    "speed:casts": [
        HEAD + "g (float[4] x) => (float[4] y) { a = Cast <to = 10> (x)\n y = Cast <to = 7> (a) }"
        .replace("float[4] y", "int64[4] y"),
    ],
    "speed:cast-in-loop": [
        HEAD + """g (int64 n, float[4] x) => (float[4] y) {
            t = Constant <value = bool {1}> ()
            y = Loop (n, t, x) <body = b (int64 i, bool c, float[4] s) => (bool d, float[4] r) {
                d = Identity (c)
                k = Cast <to = 1> (i)
                r = Add (s, k)
            }>
        }""",
    ],
    "speed:float64": [
        HEAD + "g (float[4] x) => (float[4] y) { y = Add (x, x) }",
        HEAD + "g (double[4] x) => (double[4] y) { y = Identity (x) }",  # it only moves
        HEAD.replace("21", '21, "my" : 1')
        + "g (double[4] x) => (double[4] y) { y = my.Add (x, x) }",
    ],
    "speed:int64": [HEAD + "g (int64[4] x) => (int64[4] y) { y = Mul (x, x) }"],
    "speed:dynamic-input": [HEAD + "g (float[N,3,8,W] x) => (float[N,3,8,W] y) { y = Relu (x) }"],
    "speed:dynamic-channels": [layer("Conv", "64,64,1,1")],
    "speed:half-quantized": [CASES["speed:float-residual"][0]],
    "speed:float-residual": [
        CASES["speed:float-residual"][0].replace("y = Add (m, r)", "y = Add (m, d)")
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule, texts in CASES.items() for text in texts]
)
def test_it_is_found(tmp_path: Path, rule: str, text: str) -> None:
    findings = [finding for finding in found_in(tmp_path, text) if finding.rule == rule]
    assert findings
    assert all(finding.level == SPEED_RULES[rule] and finding.message for finding in findings)


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule, texts in QUIET.items() for text in texts]
)
def test_it_is_not_found_where_it_is_not(tmp_path: Path, rule: str, text: str) -> None:
    assert [finding for finding in found_in(tmp_path, text) if finding.rule == rule] == []


def test_every_rule_has_a_case_and_is_documented() -> None:
    assert set(CASES) == set(SPEED_RULES)
    text = (Path(__file__).parents[3] / "docs/reference/checks.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"### `(speed:[\w-]+)`\n\n\*(\w+)\*", text))
    assert told == SPEED_RULES


def test_a_rule_is_advised_once_for_a_place(tmp_path: Path) -> None:
    text = CASES["speed:half-quantized"][0].replace("float[8, 8] w", "float[2, 2] w = {1, 2, 3, 4}")
    text = text.replace("4, 8", "4, 2")
    findings = [found for found in found_in(tmp_path, text) if "qdq-weights" in found.rules]
    assert [found.rule for found in findings] == ["speed:half-quantized"]
    other = text.replace("y = MatMul (d, w)", "y = MatMul (d, w)\n h = Neg (x)")
    assert "speed:rewrite" not in {found.rule for found in found_in(tmp_path, other)}
    # DequantizeLinear has no axis before opset 13.
    older = text.replace('"" : 21', '"" : 12')
    assert older != text
    assert [found for found in found_in(tmp_path, older) if found.rules] == []


def test_a_rule_is_carried_out_where_it_is_asked_for_alone(tmp_path: Path) -> None:
    document = opened(tmp_path, GELU)
    (finding,) = found_in(tmp_path, GELU)
    assert finding.command == "dld rewrite MODEL gelu -o OUT"
    assert repair_steps([finding]) == []
    x = np.linspace(-3, 3, 4, dtype=np.float32)
    (before,) = run(document, x=x)
    assert finding.fix is not None
    document.apply(finding.fix)
    assert [node.op_type for node in document.main.nodes] == ["Gelu"]
    np.testing.assert_allclose(run(document, x=x)[0], before, atol=1e-6)
    assert speed_findings(document) == []


def test_repairs_of_transposes_keep_the_results(tmp_path: Path) -> None:
    document = opened(tmp_path, models.TRANSPOSES)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    before = run(document, x=x)
    document.apply(repair_of(repair_steps(speed_findings(document))))
    assert [f for f in speed_findings(document) if f.repair is not None] == []
    for mine, theirs in zip(run(document, x=x), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    second = known(document.main.find("second"))
    assert second.inputs == ("x",)


def test_what_would_lose_something_has_no_repair(tmp_path: Path) -> None:
    text = CASES["speed:casts"][0].replace("float16[4]", "float[4]")
    text = text.replace("<to = 1>", "<to = 10> ").replace("Cast <to = 10> (a)", "Cast <to = 1> (a)")
    (finding,) = found_in(tmp_path, text)
    assert finding.repair is None
    assert "lost on the way" in finding.message
    text = models.TRANSPOSES.replace("z = Relu(b)", "z = Relu(x)").replace(
        "float[2, 3, 4] z", "float[2, 3, 4] z, float[2, 3, 4] b"
    )
    undoing = [f for f in found_in(tmp_path, text) if "undoes" in f.message]
    assert [f.repair for f in undoing] == [None]


@pytest.mark.parametrize("node", ["first", "last"])
def test_only_a_transpose_behind_another_is_merged(tmp_path: Path, node: str) -> None:
    document = opened(tmp_path, models.TRANSPOSES)
    before = bytes_of(document)
    with pytest.raises(EditError, match="not a Transpose behind"):
        document.apply("merge_transposes", scope=[], node=node)
    assert bytes_of(document) == before
