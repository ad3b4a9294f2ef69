from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import ExitStatus
from tests.support.cli import Dld
from tests.support.engine_files import write_engine, write_model


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


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--format", "txt"], "Convolution"),
        (["--format", "txt", "--view", "rail"], "/pool/GlobalAveragePool"),
        (["--format", "txt", "--view", "overview", "--ascii"], "Reformat"),
        (["--format", "svg", "--folded"], "<svg"),
    ],
)
def test_every_view_of_an_engine(dld: Dld, engine: Path, options: list[str], part: str) -> None:
    outcome = dld("draw", engine, "-o", "-", *options)
    assert outcome.status == 0
    assert part in outcome.out


@pytest.mark.parametrize("options", [["--scope", "a"], ["--node", "a"], ["--constants"]])
def test_what_is_for_models_is_refused(
    dld: Dld, engine: Path, tmp_path: Path, options: list[str]
) -> None:
    outcome = dld("draw", engine, "-o", tmp_path / "a.svg", *options)
    assert outcome.status == ExitStatus.USAGE
    assert "only works for models" in outcome.err


def test_the_colour_is_for_engines(dld: Dld, tmp_path: Path) -> None:
    model = write_model(tmp_path)
    outcome = dld("draw", model, "-o", tmp_path / "a.svg", "--colour", "precision")
    assert outcome.status == ExitStatus.USAGE
