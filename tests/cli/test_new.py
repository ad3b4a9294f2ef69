from __future__ import annotations

from pathlib import Path

import onnx

from tests.support.cli import Dld


def test_empty_model(dld: Dld, tmp_path: Path) -> None:
    path = tmp_path / "new.onnx"
    outcome = dld("new", path, "--opset", 17, "--contrib")
    what = "ai.onnx 17, com.microsoft 1, 0 inputs, 0 outputs, no nodes"
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == f"written to {path}: {what}\n"
    model = onnx.load(path)
    assert {entry.domain: entry.version for entry in model.opset_import} == {
        "": 17,
        "com.microsoft": 1,
    }
    assert len(model.graph.node) == 0
    assert dld("inspect", path, "--json").json["nodes"] == 0


def test_default_is_an_opset_that_most_runtimes_take(dld: Dld, tmp_path: Path) -> None:
    path = tmp_path / "new.onnx"
    document = dld("new", path, "--json").json
    assert document == {"path": str(path), "opsets": {"": 20}, "inputs": [], "outputs": []}


def test_inputs_outputs_and_more_operator_sets(dld: Dld, tmp_path: Path) -> None:
    path = tmp_path / "new.onnx"
    dld("new", path, "--ml", "--input", "x:float32[N,3]", "--input", "n:int64", "--output", "y")
    report = dld("inspect", path, "--json").json
    assert report["opsets"] == {"": 20, "ai.onnx.ml": 4}
    assert [(entry["name"], entry["shape"]) for entry in report["inputs"]] == [
        ("x", ["N", 3]), ("n", [])
    ]  # fmt: skip
    assert [entry["name"] for entry in report["outputs"]] == ["y"]
    assert "no element type" in dld.fails(2, "new", tmp_path / "b.onnx", "--input", "x:float7")
    assert not (tmp_path / "b.onnx").exists()


def test_existing_file_is_kept_without_force(dld: Dld, tmp_path: Path) -> None:
    path = tmp_path / "new.onnx"
    path.write_bytes(b"precious")
    assert "--force" in dld.fails(2, "new", path)
    assert path.read_bytes() == b"precious"
    assert dld("new", path, "--force").status == 0
    assert path.read_bytes() != b"precious"


def test_wrong_opsets_are_usage_errors(dld: Dld, tmp_path: Path) -> None:
    assert "the newest that is known is" in dld.fails(2, "new", tmp_path / "n.onnx", "--opset", 999)
    dld.fails(2, "new", tmp_path / "n.onnx", "--opset", 0)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_not_there(dld: Dld, tmp_path: Path) -> None:
    path = tmp_path / "none" / "n.onnx"
    assert str(path) in dld.fails(5, "new", path)
