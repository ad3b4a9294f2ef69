"""``dld check FOLDER``."""

from __future__ import annotations

from pathlib import Path

import onnx

from tests.support import decoders
from tests.support.cli import Dld


def test_a_folder_is_one_model_to_every_command(dld: Dld, tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "llm")
    decoders.grouped(folder / "embedding.onnx", layers=1)

    found = dld("inspect", folder, "--json").json
    assert found["folder"]["models"] == ["embedding.onnx", "model.onnx"]
    assert found["op_types"] == dld("inspect", folder / "model.onnx", "--json").json["op_types"]
    out = tmp_path / "opset.onnx"
    dld("convert", "external", folder, "-o", out)
    assert len(onnx.load(out).graph.node) == len(onnx.load(folder / "model.onnx").graph.node)
    (folder / "genai_config.json").unlink()
    (folder / "model.onnx").rename(folder / "other.onnx")
    assert "has 2 models" in dld.fails(3, "inspect", folder)
