"""``dld prepend`` and ``dld append``."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.conversions import IMAGE

pytest.importorskip("onnxruntime")


def test_before_and_behind(dld: Dld, tmp_path: Path) -> None:
    model = models.write(tmp_path, IMAGE.replace("OPSET", "18"))
    before, both = tmp_path / "before.onnx", tmp_path / "both.onnx"
    outcome = dld(
        "prepend", model, "-o", before, "--input", "x", "--layout", "nhwc", "--resize", "8x6",
        "--scale", "1/255", "--mean", "0.5,0.4,0.3", "--json",
    )  # fmt: skip
    assert outcome.status == 0, outcome
    assert outcome.json["changed"] == [
        "input x: float32[batch, 3, 8, 6] → uint8[batch, x_height, x_width, 3]"
    ]
    assert list(outcome.json["values"]["outputs"]) == ["y"]
    assert dld("append", before, "-o", both, "--step", "argmax", "--axis", "1").status == 0
    operators = [node.op_type for node in onnx.load(both).graph.node]
    assert operators == ["Transpose", "Cast", "Resize", "Mul", "Sub", "Neg", "ArgMax"]
