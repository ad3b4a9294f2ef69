"""``dld merge``: models joined by a command, and verified."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.conversions import FIRST, SECOND
from tests.support.runtime import session_of

pytest.importorskip("onnxruntime")


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, Path]:
    second = models.write(tmp_path, SECOND, "second.onnx")
    return models.write(tmp_path, FIRST, "first.onnx"), second


@pytest.mark.parametrize("inner", ["t", "w"])
def test_what_is_no_output_becomes_an_input(dld: Dld, tmp_path: Path, inner: str) -> None:
    head = '<ir_version: 10, opset_import: ["": 18]>'
    first = models.write(tmp_path, f"""{head} a (float[2] x) => (float[2] y)
        <float[2] w = {{3, -4}}> {{ t = Add(x, w) y = Neg(t) }}""", "a.onnx")  # fmt: skip
    second = models.write(
        tmp_path, f"{head} b (float[2] p) => (float[2] z) {{ z = Abs(p) }}", "b.onnx"
    )
    out = tmp_path / "out.onnx"
    outcome = dld("merge", first, second, "-o", out, "--map", f"{inner}=p", "--json")
    assert outcome.status == 0, outcome
    assert sorted(outcome.json["values"]["outputs"]) == ["y", "z"]
    x, w = np.array([1, 2], np.float32), np.array([3, -4], np.float32)
    _, z = session_of(onnx.load(out)).run(None, {"x": x})
    assert np.array_equal(z, np.abs({"t": x + w, "w": w}[inner]))


def test_names_with_equals_signs(dld: Dld, tmp_path: Path) -> None:
    first = models.write(tmp_path, FIRST)
    made = {name: models.parse(text) for name, text in (("first", FIRST), ("second", SECOND))}
    made["first"].graph.output[0].name = made["first"].graph.node[0].output[0] = "y=1"
    made["second"].graph.input[0].name = made["second"].graph.node[0].input[0] = "a=b"
    made["second"].graph.output[1].name = "a=b"
    parts = [tmp_path / f"{name}.onnx" for name in made]
    for path, model in zip(parts, made.values(), strict=True):
        onnx.save(model, path)
    out = tmp_path / "out.onnx"
    links = ["--map", "y=1=a=b", "--keep", "y=1=seen"]
    outcome = dld("merge", *parts, "-o", out, *links, "--json")
    assert outcome.status == 0, outcome
    assert outcome.json["links"] == [{"a=b": "y=1"}]
    assert "seen" in [info.name for info in onnx.load(out).graph.output]
    assert "--map is '=x', and not OUT=IN" in dld.fails(2, "merge", first, first, "-o", out,
                                                       "--force", "--map", "=x")  # fmt: skip


def test_a_line_of_an_edit_script(dld: Dld, parts: tuple[Path, Path], tmp_path: Path) -> None:
    script, out = tmp_path / "s.jsonl", tmp_path / "out.onnx"
    models_given = [{"file": str(parts[1])}]
    script.write_text(json.dumps({"edit": "merge_models", "models": models_given}))
    assert dld("edit", parts[0], script, "-o", out).status == 0
    assert [output.name for output in onnx.load(out).graph.output] == ["z", "y", "data"]
