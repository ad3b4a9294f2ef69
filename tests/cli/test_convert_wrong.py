"""A conversion whose outputs are wrong writes nothing, whichever it is and whatever was there."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld

WIDE = """
<ir_version: 10, opset_import: ["" : 18]>
wide (float[4] x) => (float[4] y)
<float[4] w = {1e6, 1e6, 1e6, 1e6}>
{
    [one] a = Mul(x, w)
    [two] y = Neg(a)
}
"""
COARSE = """
<ir_version: 10, opset_import: ["" : 18]>
coarse (float[4, 32] x) => (float[4, 32] y) { y = MatMul(x, w) }
"""


def coarse(folder: Path) -> Path:
    """Return a model whose weights differ so much in a block that 4 bits lose most of them."""
    model = onnx.parser.parse_model(COARSE)
    values = [0.01 * (-1) ** (at // 32 + at) * (at // 32) for at in range(1024)]
    values[:32] = [0.0] * 31 + [1000.0]
    model.graph.initializer.append(
        onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [32, 32], values)
    )
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("fp16",),
        *(
            pytest.param(words, marks=pytest.mark.broad)
            for words in (
                ("fp16", "--library", "onnxruntime"),
                ("precisions", "--layer-precision", "one:fp16"),
                ("tensors", "--to", "float16", "--filter", "w"),
                ("quantize", "--weights-only", "--weights", "int4", "--block", "32"),
            )
        ),
    ],
    ids=" ".join,
)
def test_wrong_results_are_not_written(dld: Dld, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "in").mkdir()
    is_coarse = words[0] == "quantize"
    path = coarse(tmp_path / "in") if is_coarse else models.write(tmp_path / "in", WIDE)
    out = tmp_path / "out.onnx"
    out.write_bytes(b"what was there")
    asked = ("convert", *words[:1], path, *words[1:], "-o", out, "--force")
    if is_coarse:
        asked += ("--tolerance", "atol=1e-6,rtol=1e-6")
    done = dld(*asked, "--json")
    assert (done.status, done.json["is_written"]) == (1, False)
    assert not done.json["values"]["is_good"]
    assert out.read_bytes() == b"what was there"
    assert "--keep-wrong writes it anyway" in dld(*asked).out
    kept = dld(*asked, "--keep-wrong", "--json")
    assert (kept.status, kept.json["is_written"]) == (1, True)
    onnx.load(out)


def test_a_model_is_not_replaced_by_a_wrong_one(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    before = path.read_bytes()
    assert dld("convert", "fp16", path, "-o", path, "--in-place").status == 1
    assert path.read_bytes() == before
