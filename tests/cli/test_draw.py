from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.engine_files import write_engine


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.CHAIN)


def texts(path: Path) -> list[str]:
    root = ElementTree.parse(path).getroot()
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.jpg", b"\xff\xd8"), ("a.txt", b"")]
)
def test_other_formats_with_a_summary(
    dld: Dld, model: Path, tmp_path: Path, name: str, start: bytes
) -> None:
    output = tmp_path / name
    found = dld("draw", model, "-o", output, "--json", "--scheme", "dark", "--grid").json
    data = output.read_bytes()
    assert data.startswith(start)
    assert (found["nodes"], found["boxes"], found["crossings"]) == (4, 6, 0)
    assert found["bytes"] == len(data)
    assert found["width"] > 5


def test_repeated_blocks_folded(dld: Dld, tmp_path: Path) -> None:
    path, output = models.write(tmp_path, models.layered(20)), tmp_path / "deep.svg"
    found = dld("draw", path, "-o", output, "--folded", "--json", "--no-types").json
    assert found["nodes"] == 102
    assert found["boxes"] < 30
    assert "folded" in texts(output)


def test_schemes_are_those_that_there_are() -> None:
    from dld_tui.cli.models.draw import SCHEMES
    from dld_tui.core.model.graph.pictures import style

    assert tuple(style.SCHEMES) == SCHEMES


def test_what_viewers_do_not_open_is_folded_and_said(dld: Dld, tmp_path: Path) -> None:
    ops = ("Relu", "Abs", "Neg", "Exp")
    nodes = [f"v{i + 1} = {ops[i % 4]}(v{i})" for i in range(640)]
    text = f"""
    <ir_version: 10, opset_import: ["" : 18]>
    deep (float[4] v0) => (float[4] v640) {{ {" ".join(nodes)} }}
    """
    path = models.write(tmp_path, text)
    output = tmp_path / "deep.svg"

    found = dld("draw", path, "-o", output, "--json")
    assert "pixels exceed the limit of viewers: repeated blocks are folded" in found.err
    assert found.json["height"] <= 32_767
    assert not found.json["oversized"]
    whole = dld("draw", path, "-o", output, "--no-folded", "--json", "--force")
    assert whole.json["height"] > 32_767
    assert whole.json["oversized"]
    assert f"x {whole.json['height']:,} pixels exceed the limit of viewers" in whole.err


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    return write_engine(tmp_path)


def test_an_engine_is_drawn_as_svg(dld: Dld, engine: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.svg"
    found = dld("draw", engine, "-o", output, "--colour", "precision", "--json").json
    assert (found["nodes"], found["boxes"]) == (5, 7)
    drawn = output.read_text()
    assert "/block/conv1/Conv" in drawn
    assert "int8 → fp16" in drawn
    assert ".bf16 rect" not in drawn
    assert ".int8 rect" in drawn
