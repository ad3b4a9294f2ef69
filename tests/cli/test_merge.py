"""``dld merge``: models joined by a command, and verified."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.conversions import FIRST, SECOND

pytest.importorskip("onnxruntime")


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, Path]:
    second = models.write(tmp_path, SECOND, "second.onnx")
    return models.write(tmp_path, FIRST, "first.onnx"), second


def test_a_line_of_an_edit_script(dld: Dld, parts: tuple[Path, Path], tmp_path: Path) -> None:
    script, out = tmp_path / "s.jsonl", tmp_path / "out.onnx"
    models_given = [{"file": str(parts[1])}]
    script.write_text(json.dumps({"edit": "merge_models", "models": models_given}))
    assert dld("edit", parts[0], script, "-o", out).status == 0
    assert [output.name for output in onnx.load(out).graph.output] == ["z", "y", "data"]
