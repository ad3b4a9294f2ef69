"""What a command writes is as sound as its model, or it says so and ends with status 1."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.conversions import REFUSED_WHEN_OPTIMIZED

KEPT = REFUSED_WHEN_OPTIMIZED.replace("z = T", "k = T").replace("(z, t)", "(k, t) z = Identity(k)")
BROKEN = {"edit": "set_input", "scope": [], "node": "wide", "index": 1, "value": "none"}
NARROW = """
<ir_version: 10, opset_import: ["" : 18]>
product (float[2, 4] x, float[4, 3] w, float[5, 3] none) => (float[2, 3] y) {
    [wide] y = MatMul(x, w)
}
"""


@pytest.mark.parametrize("in_place", [False, True])
def test_an_edit_that_breaks_a_model_is_told(dld: Dld, tmp_path: Path, in_place: bool) -> None:
    model, script = models.write(tmp_path, NARROW), tmp_path / "script.jsonl"
    script.write_text(json.dumps(BROKEN))
    output = model if in_place else tmp_path / "out.onnx"
    outcome = dld("edit", model, script, "-o", output, "--force", "--json")
    assert outcome.status == 1
    assert "not valid: wide: " in outcome.json["unsound"]
    assert outcome.json["unsound"] in outcome.err
    assert onnx.load(output).graph.node[0].input[1] == "none"


def test_a_rewrite_that_the_optimizer_cannot_take_is_told(dld: Dld, tmp_path: Path) -> None:
    model, output = models.write(tmp_path, KEPT), tmp_path / "out.onnx"
    outcome = dld("rewrite", model, "identity", "-o", output, "--json")
    assert (outcome.status, outcome.json["rewritten"]) == (1, 1)
    assert "optimization disabled" in outcome.json["unsound"]


def test_a_part_is_as_sound_as_its_model(dld: Dld, tmp_path: Path) -> None:
    model, output = models.write(tmp_path, KEPT), tmp_path / "out.onnx"
    outcome = dld("extract", model, "--outputs", "y", "-o", output, "--json")
    assert (outcome.status, outcome.json["unsound"]) == (0, None)


def test_a_conversion_without_verification_is_written_and_told(dld: Dld, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 13]>
    g (float[1, 2, 3] x) => (float[3, 2] y) <int8 z = {0}, float s = {0.03}, int64[1] axes = {0}> {
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        t = Transpose <perm = [0, 2, 1]> (d)
        y = Squeeze(t, axes)
    }"""
    model, output = models.write(tmp_path, text), tmp_path / "out.onnx"
    arguments = ("convert", "opset", model, "--to", 21, "-o", output)
    assert "disable_quant_qdq" in (line := dld.fails(5, *arguments))
    assert "--no-verify" in line
    assert not output.exists()
    outcome = dld(*arguments, "--no-verify", "--json")
    assert outcome.status == 1
    assert "optimizer" in outcome.json["unsound"]
    assert output.exists()


def test_a_model_that_cannot_run_itself_is_why_its_result_is_not_valid(
    dld: Dld, tmp_path: Path
) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[1, 4, 2, 2] x) => (float[1, 4, 2, 2] y) <float[4] s = {1, 2, 3, 4}>
    { [groups] y = GroupNormalization <num_groups = 2> (x, s, s) }"""
    model, output = models.write(tmp_path, text), tmp_path / "out.onnx"
    reason = "groups: GroupNormalization: before opset 21 there is one scale for each group"
    assert reason in dld("check", model).out.replace("operand-shape          ", "")
    assert f"the model itself cannot run: {reason}" in dld.fails(
        5, "convert", "opset", model, "--to", 21, "-o", output
    )
    assert not output.exists()
