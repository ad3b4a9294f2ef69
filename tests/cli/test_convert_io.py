"""``dld convert io``: types and layouts of inputs and outputs."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld

pytest.importorskip("onnxruntime")


def test_converted_and_verified(dld: Dld, tmp_path: Path) -> None:
    model, out = models.write(tmp_path, models.IMAGE), tmp_path / "out.onnx"
    outcome = dld(
        "convert", "io", model, "-o", out, "--images", "nhwc", "--type", "y=float16",
        "--layout", "z=0,2,3,1", "--json",
    )  # fmt: skip
    assert outcome.status == 0, outcome
    assert outcome.json["changed"] == [
        "y: float32[batch, 4, 5, 3] → float16[batch, 4, 5, 3]",
        "x: float32[batch, 3, 4, 5] → float32[batch, 4, 5, 3]",
        "z: float32[batch, 3, 4, 5] → float32[batch, 4, 5, 3]",
    ]
    assert outcome.json["values"]["is_good"] is True
    onnx.checker.check_model(onnx.load(out), full_check=True)


def test_refused_in_one_line(dld: Dld, tmp_path: Path) -> None:
    model, out = models.write(tmp_path, models.IMAGE), tmp_path / "out.onnx"
    command = ("convert", "io", model, "-o", out)
    assert "no input has the type int64" in dld.fails(3, *command, "--integers", "int32")
    assert "a type or layout is needed" in dld.fails(2, *command)
    assert "--layout is 'nhwc', and not NAME=VALUE" in dld.fails(2, *command, "--layout", "nhwc")
    assert not out.exists()
