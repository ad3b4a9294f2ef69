from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld

RENAME = {"edit": "rename_node", "scope": [], "node": "first", "name": "start"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.CHAIN)


def script(folder: Path, *lines: object) -> Path:
    path = folder / "script.jsonl"
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def test_a_preview_writes_nothing(dld: Dld, model: Path, tmp_path: Path) -> None:
    edits = script(tmp_path, RENAME, {**RENAME, "node": "gone"})
    before = model.read_bytes()
    outcome = dld("edit", model, edits, "--preview")
    assert outcome.status == 1
    assert "start" in outcome.out
    assert "1 applied, 1 skipped" in outcome.out
    shown = dld("edit", model, edits, "--preview", "-o", tmp_path / "out.onnx", "--json").json
    assert shown["path"] is None
    written = dld("edit", model, edits, "-o", tmp_path / "out.onnx")
    assert written.status == 1
    compared = dld("diff", model, tmp_path / "out.onnx", "--json").json
    assert shown["changes"]["changes"] == compared["changes"]
    assert model.read_bytes() == before
    assert "OUT is missing" in dld.fails(2, "edit", model, edits)


def test_existing_output_is_kept_without_force(dld: Dld, model: Path, tmp_path: Path) -> None:
    edits = script(tmp_path, RENAME)
    assert "--force" in dld.fails(2, "edit", model, edits, "-o", model)
    assert dld("edit", model, edits, "-o", model, "--force").status == 0
    assert onnx.load(model).graph.node[0].name == "start"


def test_renamed_nodes_are_found_by_structure(dld: Dld, model: Path, tmp_path: Path) -> None:
    renamed = onnx.load(model)
    renamed.graph.node[0].name = "stem"
    onnx.save(renamed, tmp_path / "renamed.onnx")
    edits, output = script(tmp_path, RENAME), tmp_path / "out.onnx"
    assert dld("edit", tmp_path / "renamed.onnx", edits, "-o", output).status == 1
    outcome = dld(
        "edit", tmp_path / "renamed.onnx", edits, "--base", model, "-o", output, "--force", "--json"
    )
    assert outcome.status == 0
    assert outcome.json["relocated"] == [
        {"line": 1, "kind": "node", "name": "first", "found": "stem"}
    ]
    assert "line 1: node 'first' is 'stem' here, found by structure" in outcome.err
    assert onnx.load(output).graph.node[0].name == "start"


def test_the_model_that_a_script_names_is_its_base(dld: Dld, model: Path, tmp_path: Path) -> None:
    renamed = onnx.load(model)
    renamed.graph.node[0].name = "stem"
    onnx.save(renamed, tmp_path / "renamed.onnx")
    state = model.stat()
    base = {"model": model.name, "size": state.st_size, "mtime_ns": state.st_mtime_ns}
    edits, output = script(tmp_path, {**RENAME, "made_on": base}), tmp_path / "out.onnx"
    assert dld("edit", tmp_path / "renamed.onnx", edits, "-o", output).status == 0
    assert onnx.load(output).graph.node[0].name == "start"
    onnx.save(renamed, model)
    outcome = dld("edit", tmp_path / "renamed.onnx", edits, "-o", output, "--force")
    assert outcome.status == 1
    assert "has changed since the script was made on it" in outcome.err
