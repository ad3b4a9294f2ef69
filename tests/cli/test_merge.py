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
