"""``dld compare`` with engine plans."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.plans import write_layers
from tests.support.transcript_files import fast_engine, slow_engine


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return slow_engine(tmp_path / "slow.graph.json"), fast_engine(tmp_path / "fast.graph.json")


def test_json(dld: Dld, pair: tuple[Path, Path]) -> None:
    document: Any = json.loads(dld("compare", *pair, "--json", "--by", "precision").out)
    assert {row["key"]: row["time_ms"] for row in document["rows"]} == {
        "fp32": [4.0, 1.0],
        "fp16": [None, 1.0],
    }
    assert document["speed_ups"] == [1.0, 2.0]
    assert document["mismatches"][0]["tactic"] == ["scudnn", "h1688"]


def test_nodes_in_the_model(dld: Dld, pair: tuple[Path, Path], tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    document: Any = json.loads(dld("compare", *pair, "--json", "--by", "op", "--model", model).out)
    assert {row["key"] for row in document["rows"]} == {"Relu", "Add", "Mul"}
    assert document["reports"][0]["model"] == {"path": str(model)}
    assert dld("compare", *pair, "--model", tmp_path / "missing.onnx").status != 0


def test_without_profiles(dld: Dld, tmp_path: Path) -> None:
    paths = [
        write_layers(tmp_path / f"{name}.graph.json", [{"Name": "a", "of": of, "TacticName": name}])
        for name, of in (("x", "Float"), ("y", "Half"))
    ]
    result = dld("compare", *paths)
    assert (result.status, result.err) == (0, "")
    assert "there are no times" in result.out
    assert re.search(r"^a +fp32 +fp16", result.out, re.MULTILINE)


def test_names_only(dld: Dld, tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / f"{name}.json").write_text('{"Layers": ["a + b", "c"], "Bindings": []}')
    result = dld("compare", tmp_path / "x.json", tmp_path / "y.json")
    assert (result.status, result.err) == (0, "")


def test_page(dld: Dld, pair: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert dld("compare", *pair, "--html", page).status == 0
    assert "Other precisions and tactics" in page.read_text()


def test_hostile_names_are_shown_as_text(dld: Dld, tmp_path: Path) -> None:
    for name, tactic in (("x", "\x1b[31mred"), ("y", "other")):
        write_layers(tmp_path / f"{name}.json", [{"Name": "a\x1b[2J", "TacticName": tactic}])
    result = dld("compare", tmp_path / "x.json", tmp_path / "y.json")
    assert (result.status, result.err) == (0, "")
    assert "\x1b" not in result.out


@pytest.mark.parametrize(
    ("folder", "speed_ups"),
    [("tensorflow/resnet/RTX-3090", (3.03, 5.54)), ("pytorch/resnet/A100", (2.31, 2.25))],
)
def test_engines_of_trex(
    dld: Dld, real_files: Path, folder: str, speed_ups: tuple[float, float]
) -> None:
    examples = real_files / "engines" / "trex" / "examples"
    names = ("fp32/resnet.onnx", "fp16/resnet.onnx", "qat/resnet-qat.onnx")
    paths = [examples / folder / f"{name}.engine.graph.json" for name in names]
    document: Any = json.loads(dld("compare", *paths, "--json").out)
    assert document["speed_ups"][1:] == pytest.approx(speed_ups, abs=0.01)
    matched = [row for row in document["rows"] if all(row["layers"])]
    assert len(matched) > 0.5 * len(document["rows"])
    assert document["mismatches"]
