"""Refitting with the fakes of TensorRT and CUDA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.refit import Request, run
from dld_tui.core.errors import InputError, UsageError
from tests.support.activities import finished
from tests.support.engines import FIXED, built, write_model
from tests.support.fake_machine import install

OTHER = FIXED.replace("0.6", "0.7")


@pytest.fixture
def trt(monkeypatch: pytest.MonkeyPatch) -> Any:
    return install(monkeypatch)


@pytest.fixture
def engine(trt: Any, tmp_path: Path) -> Path:
    path = tmp_path / "small.engine"
    path.write_bytes(built(trt, flags=("REFIT",)))
    return path


def test_a_new_engine_has_the_weights_of_the_model(trt: Any, engine: Path, tmp_path: Path) -> None:
    before = engine.read_bytes()
    model = write_model(tmp_path / "other.onnx", OTHER)
    result = finished(run(Request(engine, model, trust=True)))
    assert (result.engine, result.weights) == (tmp_path / "small-refit.engine", 1)
    assert (tmp_path / "small-refit.engine").read_bytes() == built(trt, OTHER, flags=("REFIT",))
    assert engine.read_bytes() == before


def test_what_does_not_fit_leaves_no_file(engine: Path, tmp_path: Path) -> None:
    model = write_model(tmp_path / "other.onnx", FIXED.replace("kernel", "weights"))
    target = tmp_path / "out.engine"

    with pytest.raises(InputError, match="its weights do not fit the engine"):
        list(run(Request(engine, model, output=target, trust=True)))
    with pytest.raises(InputError, match="the file does not exist"):
        list(run(Request(engine, tmp_path / "no.onnx", output=target, trust=True)))
    with pytest.raises(UsageError, match="trust who made it"):
        list(run(Request(engine, model, output=target)))
    assert not target.exists()
