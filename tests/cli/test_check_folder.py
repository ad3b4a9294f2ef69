"""``dld check FOLDER``."""

from __future__ import annotations

from pathlib import Path

import onnx

from tests.support import decoders
from tests.support.cli import Dld


def test_a_folder_is_checked_with_its_configuration(dld: Dld, tmp_path: Path) -> None:
    good = dld("check", decoders.folder(tmp_path / "good"), "--level", "error")
    assert (good.status, good.out) == (0, "")
    bad = dld("check", decoders.folder(tmp_path / "bad", head_size=8), "--rule", "decoder:config")
    assert bad.status == 1
    assert "genai_config.json: head_size is 8" in bad.out


def test_a_folder_is_one_model_to_every_command(dld: Dld, tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "llm")
    (folder / "tokenizer.json").write_text("{}")
    decoders.grouped(folder / "embedding.onnx", layers=1)

    said = dld("inspect", folder).out
    assert "decoder        model.onnx" in said
    assert "other models   embedding.onnx" in said
    assert "configuration  genai_config.json" in said
    assert "tokenizer      tokenizer.json" in said
    assert "num_hidden_layers 2" in said
    found = dld("inspect", folder, "--json").json
    assert found["folder"]["models"] == ["embedding.onnx", "model.onnx"]
    assert found["op_types"] == dld("inspect", folder / "model.onnx", "--json").json["op_types"]
    out = tmp_path / "opset.onnx"
    dld("convert", "external", folder, "-o", out)
    assert len(onnx.load(out).graph.node) == len(onnx.load(folder / "model.onnx").graph.node)
    (folder / "genai_config.json").unlink()
    (folder / "model.onnx").rename(folder / "other.onnx")
    assert "has 2 models" in dld.fails(3, "inspect", folder)
