"""``dld profile tensorrt`` and ``dld refit`` as commands: what they refuse, and what they print."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from dld_tui.cli.jobs.results import phases_line
from tests.support.cli import Dld
from tests.support.engines import built, write_model
from tests.support.fake_tensorrt import fake_tensorrt


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    path = tmp_path / "small.engine"
    path.write_bytes(built(fake_tensorrt()))
    return path


def test_an_engine_must_be_trusted(dld: Dld, engine: Path, tmp_path: Path) -> None:
    model = write_model(tmp_path / "small.onnx")

    for arguments in (
        ("profile", "tensorrt", engine),
        ("profile", "tensorrt", model, "--engine", engine),
        ("refit", engine, model),
    ):
        line = dld.fails(2, *arguments)
        assert str(engine) in line
        assert "only if you trust who made it. Confirm with --trust" in line


@pytest.mark.skipif(importlib.util.find_spec("tensorrt_rtx") is None, reason="no TensorRT-RTX here")
@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_before_the_build(dld: Dld, tmp_path: Path) -> None:
    model = write_model(tmp_path / "small.onnx")

    line = dld.fails(4, "profile", "tensorrt", model, "--library", "tensorrt_rtx")
    assert "cannot run engines here" in line
    assert "only build the engine with dld build" in line


def test_what_is_no_engine_is_refused(dld: Dld, tmp_path: Path) -> None:
    model = write_model(tmp_path / "small.onnx")

    line = dld.fails(3, "profile", "tensorrt", model, "--engine", model, "--trust")
    assert "is not a TensorRT engine" in line
    assert "is not a TensorRT engine" in dld.fails(3, "refit", model, model, "--trust")


def test_an_existing_output_is_kept(dld: Dld, engine: Path, tmp_path: Path) -> None:
    model, output = write_model(tmp_path / "small.onnx"), tmp_path / "new.engine"
    output.write_text("precious")

    assert "--force" in dld.fails(2, "refit", engine, model, "--trust", "-o", output)
    assert output.read_text() == "precious"


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ({}, ""),
        ({"compute": {"median": 1.5}}, "compute 1.500 ms"),
        (
            {"h2d": {"median": 0.25}, "compute": {"median": 1}, "enqueue": {}},
            "copy to GPU 0.250  compute 1.000 ms",
        ),
    ],
)
def test_the_parts_of_a_pass_are_printed(result: dict[str, Any], line: str) -> None:
    assert phases_line(result) == line
