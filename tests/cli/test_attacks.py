"""Inputs that once broke something: each as a command line would meet it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.payloads import weights


def script(folder: Path, *lines: Mapping[str, object]) -> Path:
    path = folder / "script.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("location", ["o.onnx", "./o.onnx", "sub/../o.onnx", "./././o.onnx"])
def test_a_data_file_is_never_the_model_itself(dld: Dld, tmp_path: Path, location: str) -> None:
    path, out = weights(tmp_path / "m.onnx", [5000]), tmp_path / "o.onnx"
    command = ("convert", "external", path, "-o", out, "--location", location)
    assert "is the same file" in dld.fails(5, *command)
    assert os.listdir(tmp_path) == ["m.onnx"]
    lines = script(
        tmp_path, {"edit": "set_external", "scope": [], "names": ["w0"], "location": location}
    )
    assert dld("edit", path, lines, "-o", out).status in (1, 5)
    if out.exists():
        onnx.checker.check_model(out)


@pytest.mark.broad
def test_links_and_spellings_of_one_file(dld: Dld, tmp_path: Path) -> None:
    path, out = weights(tmp_path / "m.onnx", [5000]), tmp_path / "o.onnx"
    out.write_bytes(b"old")
    os.link(out, tmp_path / "hard.data")
    os.symlink("o.onnx", tmp_path / "soft.data")
    for location in ("hard.data", "soft.data"):
        dld("convert", "external", path, "-o", out, "--location", location, "--force")
        onnx.checker.check_model(out)
        assert onnx.load(out).graph.initializer[0].raw_data


@pytest.mark.broad
def test_a_forced_conversion_leaves_one_data_file(dld: Dld, tmp_path: Path) -> None:
    path, out = weights(tmp_path / "m.onnx", [5000, 6000]), tmp_path / "o.onnx"
    for _ in range(4):
        assert dld("convert", "external", path, "-o", out, "--force").status == 0
        onnx.checker.check_model(out)
        assert len([name for name in os.listdir(tmp_path) if name.endswith(".data")]) == 1
    named = dld("convert", "external", path, "-o", out, "--force", "--location", "w.bin", "--json")
    assert named.json["data_file"] == "w.bin"
    assert (tmp_path / "w.bin").exists()


@pytest.mark.broad
def test_a_data_file_that_another_model_uses_stays(dld: Dld, tmp_path: Path) -> None:
    path, out = weights(tmp_path / "m.onnx", [5000]), tmp_path / "o.onnx"
    assert dld("convert", "external", path, "-o", out).status == 0
    (tmp_path / "other.onnx").write_bytes(out.read_bytes())
    assert dld("convert", "external", path, "-o", out, "--force").status == 0
    for model in ("o.onnx", "other.onnx"):
        onnx.checker.check_model(tmp_path / model)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"edit": "add_input", "scope": [], "name": "q", "dtype": "float32", "dims": 3},
         "dims must be a list"),
        ({"edit": "expose_input", "scope": [], "node": "first", "index": 200_000_000},
         "'Relu' does not take input 200000000"),
        ({"edit": "add_initializer", "scope": [], "name": "big", "dtype": "double",
          "dims": [2_147_483_648], "fill": {"kind": "zeros"}}, "--new-data-limit"),
        ({"edit": "add_initializer", "scope": [], "name": "big", "dtype": "float16",
          "dims": [1 << 40], "fill": {"kind": "normal"}}, "the limit for a model"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_is_left_out(
    dld: Dld, tmp_path: Path, line: dict[str, object], says: str
) -> None:
    path, out = models.write(tmp_path, models.CHAIN), tmp_path / "o.onnx"
    rename = {"edit": "rename_node", "scope": [], "node": "first", "name": "one"}
    outcome = dld("edit", path, script(tmp_path, line, rename), "-o", out)
    assert (outcome.status, outcome.out.strip()) == (1, "1 applied, 1 skipped")
    assert says in outcome.err
    assert onnx.load(out).graph.node[0].name == "one"


def test_the_limit_of_new_values_is_an_option(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, models.CHAIN), tmp_path / "o.onnx"
    line = {"edit": "add_initializer", "scope": [], "name": "n", "dtype": "float32",
            "dims": [300, 1000], "fill": {"kind": "zeros"}}  # fmt: skip
    lines = script(tmp_path, line)
    low, high = ("--new-data-limit", "0.001"), ("--new-data-limit", "0.002", "--force")
    assert dld("edit", path, lines, "-o", out, *low).status == 1
    assert dld("edit", path, lines, "-o", out, *high).status == 0


@pytest.mark.broad
def test_one_type_has_several_names(dld: Dld, tmp_path: Path) -> None:
    name, path, out = "DOUBLE", models.write(tmp_path, models.CHAIN), tmp_path / "o.onnx"
    outcome = dld("convert", "tensors", path, "--to", name, "--list", "--json")
    assert (outcome.status, outcome.json["to"]) == (0, "float64")
    assert dld("convert", "tensors", path, "--to", name, "-o", out).status == 0
    again = dld("convert", "tensors", out, "--to", name, "--from", name, "-o", tmp_path / "p.onnx")
    assert "nothing to convert" in again.out


def test_nothing_to_convert_is_said_and_adds_nothing(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, models.CHAIN), tmp_path / "o.onnx"
    outcome = dld("convert", "tensors", path, "--to", "float", "-o", out)
    assert "nothing to convert: no chosen tensor has a type other than float32" in outcome.out
    assert len(onnx.load(out).graph.node) == 4
