from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import CancelledError
from dld_tui.core.files.preview import preview
from tests.support import models


def never() -> bool:
    return False


def test_a_model_is_told_by_its_ends_operators_and_weights(tmp_path: Path) -> None:
    found = preview(str(models.write(tmp_path, models.CHAIN)), "ONNX", never)
    lines = dict(found.lines)
    parsed = models.parse(models.CHAIN)
    assert lines["in"].split()[0] == parsed.graph.input[0].name
    assert lines["out"].split()[0] == parsed.graph.output[0].name
    assert lines["nodes"].startswith(f"{len(parsed.graph.node)}: ")
    assert parsed.graph.node[0].op_type in lines["nodes"]
    assert "parameters" in lines["weights"]
    assert "profile" not in lines


@pytest.mark.parametrize(
    ("kind", "data"), [("ONNX", b""), ("ONNX", b"<html>"), ("REPORT", b"x" * 200)]
)
def test_a_file_that_is_something_else_is_one_line(tmp_path: Path, kind: str, data: bytes) -> None:
    path = tmp_path / "m"
    path.write_bytes(data)
    found = preview(str(path), kind, never)
    assert found.problem
    assert "\n" not in found.problem
    assert not found.lines


def test_a_file_that_is_gone_is_one_line(tmp_path: Path) -> None:
    assert preview(str(tmp_path / "gone.onnx"), "ONNX", never).problem
    assert preview(str(tmp_path / "gone.dldprof"), "REPORT", never).problem


def test_a_preview_can_be_stopped(tmp_path: Path) -> None:
    with pytest.raises(CancelledError):
        preview(str(models.write(tmp_path, models.CHAIN)), "ONNX", lambda: True)


def test_weights_in_constant_nodes_are_not_called_none(tmp_path: Path) -> None:
    text = """g (float[2] x) => (float[2] y)
        { c = Constant <value_floats = [1.0, 2.0]> () y = Add(x, c) }"""
    path = models.write(tmp_path, f'<ir_version: 10, opset_import: ["" : 18]>\n{text}')
    assert dict(preview(str(path), "ONNX", never).lines)["weights"] == "in 1 Constant node"


def test_long_dimensions_are_short_and_explained(tmp_path: Path) -> None:
    text = models.CHAIN.replace("[N", "[batch_size")
    lines = preview(str(models.write(tmp_path, text)), "ONNX", never).lines
    assert ("dims", "B batch_size") in lines
    assert not any("batch_size" in said for title, said in lines if title != "dims")
    assert any("[B" in said for _, said in lines)
