from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Dld
from tests.support.engine_files import write_engine


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
