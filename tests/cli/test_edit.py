"""``dld edit``, and nodes that edits and other commands name."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from dld_tui import api
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


MODEL = """<ir_version: 10, opset_import: ["": 18]> g (float[2,2] x) => (float[2,2] y)
<float[2,2] w = {1, 2, 3, 4}>
{
    [same] a = MatMul(x, w)
    [same] b = Relu(a)
    c = Neg(w)
    [d] e = Abs(c)
    y = Add(b, e)
}"""
BRANCH = """<ir_version: 10, opset_import: ["": 18]> g (float[2] x, bool c) => (float[2] y) {
    y = If (c) <then_branch = t () => (float[2] u) { u = Neg(x) },
                else_branch = e () => (float[2] v) { v = Abs(x) }> }"""


@pytest.fixture
def named(tmp_path: Path) -> Path:
    written = models.parse(MODEL.replace("[same] b", "[other] b"))
    written.graph.node[1].name = "same"
    onnx.save(written, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_several_of_one_name(dld: Dld, named: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    error = dld.fails(3, "convert", "fold", named, "-o", out, "--node", "same")
    assert "2 nodes are called 'same'. Name one by an output: '>a', '>b'" in error
    error = dld.fails(3, "convert", "fold", named, "-o", out, "--node", "zz")
    assert "there is no node 'zz', and no node makes a tensor of this name" in error
    assert not out.exists()


def test_a_name_goes_before_a_tensor(tmp_path: Path) -> None:
    path = models.write(tmp_path, MODEL.replace("[d] e", "[b] e").replace("[same] ", ""))
    with api.open_model(path) as document:
        document.edit.rename_node(node="b", name="found")
        assert [node.name for node in document.main.nodes if node.name] == ["found"]
        assert [node.op_type for node in document.main.nodes_named("found")] == ["Abs"]


def test_scripts_and_scopes(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, BRANCH), tmp_path / "out.onnx"
    script = tmp_path / "script.jsonl"
    lines = [
        {"edit": "rename_node", "scope": ["y:then_branch"], "node": "u", "name": "minus"},
        {"edit": "rename_node", "scope": ["#0:else_branch"], "node": "v", "name": "size"},
        {"edit": "rename_node", "node": "y", "name": "choose"},
    ]
    script.write_text("# by outputs\n" + "\n".join(map(json.dumps, lines)) + "\n")
    assert dld("edit", path, script, "-o", out).status == 0
    (node,) = onnx.load(out).graph.node
    assert node.name == "choose"
    assert [attribute.g.node[0].name for attribute in node.attribute] == ["minus", "size"]
    script.write_text('\n{"edit": "rename_node", "node": "y", "node": "u", "name": "z"}\n')
    outcome = dld("edit", path, script, "-o", out, "--force")
    assert outcome.status == 1
    assert "line 2 skipped: the line has node twice" in outcome.err


def test_a_name_may_have_a_comma(dld: Dld, tmp_path: Path) -> None:
    text = models.CHAIN.replace(
        "[second]", "[twoC2]"
    )  # the texts of models have no comma in a name
    path, out = models.write(tmp_path, text), tmp_path / "part.onnx"
    path.write_bytes(path.read_bytes().replace(b"twoC2", b"two,2"))
    for words, names in (
        (("--nodes", "two,2", "--nodes", "third"), ["two,2", "third"]),
        (("--nodes", "first,two,2,third"), ["first", "two,2", "third"]),
    ):
        assert dld("extract", path, "-o", out, "--force", *words).status == 0
        assert [node.name for node in onnx.load(out).graph.node] == names
