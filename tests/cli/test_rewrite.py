"""``dld rewrite``: files, preview, scripts; and the list of docs/reference/rewrites.md."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.tiers import first

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/rewrites.md"
LINES = re.findall(r"`(dld rewrite model\.onnx .*)`", PAGE.read_text(encoding="utf-8"))
HEAD = '<ir_version: 10, opset_import: ["" : 18]>\ng '
NORM = (
    "(float[2, 4] x) => (float[2, 4] y) <int64[1] a = {-1}, float two = {2}, float e = {1e-5},"
    " float[4] s = {1, 2, 3, 4}, float[4] b = {1, 0, 0, 2}> { m = ReduceMean(x, a) d = Sub(x, m)"
    " q = Pow(d, two) v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) n = Div(d, r) t = Mul(n, s)"
    " y = Add(t, b) }"
)
MODELS = [
    ("(float[2] x) => (float[2] y) { a = Identity(x) y = Neg(a) }", "Neg"),
    ("(float[2] x) => (float[2] y) { a = Dropout(x) y = Neg(a) }", "Neg"),
    ("(float[1, 2] x) => (float[1, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[2] b = {1, 2}>"
     " { a = MatMul(x, w) y = Add(a, b) }", "Gemm"),
    ("(float[1, 2] x) => (float[1, 2] y) { a = Transpose <perm = [1, 0]> (x)"
     " b = Transpose <perm = [1, 0]> (a) y = Neg(b) }", "Neg"),
    ("(float[1, 2] x) => (float[1, 2] y) { a = Transpose <perm = [1, 0]> (x) b = Elu(a)"
     " y = Transpose <perm = [1, 0]> (b) }", "Elu"),
    ("(float[2] x) => (float[2] y) <float k = {1.4142135}, float one = {1}, float half = {0.5}>"
     " { a = Div(x, k) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half) }", "Gelu"),
    ("(float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] y) <float[1, 1, 1, 1] w = {2}, float[1] s = {3}>"
     " { c = Conv(x, w) y = BatchNormalization(c, s, s, s, s) }", "Conv"),
    ("(float[2] x) => (float[2] y) <float s = {0.5}, int8 z = {0}> { q = QuantizeLinear(x, s, z)"
     " d = DequantizeLinear(q, s, z) y = Neg(d) }", "Neg"),
    (NORM, "LayerNormalization"),
    ("(float[1, 2] x) => (float[1, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[2] b = {1, 2},"
     " float s = {2}> { a = MatMul(x, w) c = Add(a, b) y = Mul(c, s) }", "MatMul Add"),
]  # fmt: skip


def test_the_page_lists_ten() -> None:
    assert len(LINES) == len(MODELS) == 10


@pytest.mark.parametrize("number", range(10))
def test_rewrite_of_the_page_is_one_line(
    number: int, dld: Dld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, wanted = MODELS[number]
    monkeypatch.chdir(tmp_path)
    typed = onnx.shape_inference.infer_shapes(models.parse(HEAD + body))
    onnx.save(typed, tmp_path / "model.onnx")
    done = dld(*shlex.split(LINES[number])[1:])
    assert done.status == 0, done
    after = onnx.load(tmp_path / "out.onnx")
    assert [node.op_type for node in after.graph.node] == wanted.split()
    onnx.checker.check_model(after)


@pytest.mark.parametrize("instead", first(1, ["Add(x, x)", "Pow(x, 2.0)"]))
def test_verify_runs_both(instead: str, dld: Dld, tmp_path: Path) -> None:
    """The result is written in any case, and the status says what came of it."""
    is_good = instead != "Add(x, x)"
    path, out = models.write(tmp_path, models.CHAIN), tmp_path / "out"
    done = dld("rewrite", path, f"Mul(x, x) => {instead}", "-o", out, "--verify", "--json")
    assert (done.status, done.json["verified"]) == (not is_good, is_good)
    assert out.is_file()
