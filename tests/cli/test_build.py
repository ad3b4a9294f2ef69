"""``dld build``: trtexec's options, printed, explained and read; what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.build import Request, Result
from dld_tui.cli.jobs import build
from dld_tui.core.codec import decode
from tests.support import models
from tests.support.cli import Dld


class Runs:
    """Stands in for the job: keeps the request, gives a result."""

    def __init__(self) -> None:
        self.request: Request | None = None
        self.target: str | None = None
        self.result: dict[str, Any] = {
            "timing_cache": None, "guess": None, "engine": "m.engine", "bytes": 2_000_000,
            "seconds": 1.5, "library": "TensorRT 10.13.0", "layer_info": "m.trt.json",
            "layer_info_problem": "", "record": "m.build.json", "log": "m.build.log", "warnings": 0,
            "remarks": ["\x1b[31mred"],
        }  # fmt: skip

    def __call__(self, activity: str, request: Request, target: str | None) -> Result:
        assert activity == "build"
        self.request, self.target = request, target
        return decode(Result, self.result)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    found = Runs()
    monkeypatch.setattr(build, "run_activity", found)
    monkeypatch.chdir(tmp_path)
    return found


def request_of(dld: Dld, runs: Runs, *arguments: str) -> Request:
    outcome = dld("build", *arguments)
    assert outcome.status == 0, outcome.err
    assert runs.request is not None
    return runs.request


def test_the_result_and_its_stages_are_shown(dld: Dld, runs: Runs) -> None:
    # The result is shown.
    outcome = dld("build", "m.onnx")
    assert outcome.out == (
        "m.engine: 2 MB, in 1.5 s, with TensorRT 10.13.0\n"
        "Layers: m.trt.json\nRecord: m.build.json\nLog: m.build.log\n"
    )
    assert "\x1b" not in outcome.err
    assert dld("build", "m.onnx", "--json").json["engine"] == "m.engine"
    # The stages are shown.
    runs.result["stages"] = [
        {"name": "Parsing the model", "ms": 250.0},
        {"name": "\x1b[31mTactics", "ms": 1250.0},
    ]
    outcome = dld("build", "m.onnx")
    lines = outcome.out.splitlines()
    assert lines[-3].split() == ["stage", "ms"]
    assert lines[-2].split() == ["Parsing", "the", "model", "250.000"]
    assert lines[-1].endswith("1,250.000")
    assert "\x1b" not in outcome.out
    assert dld("build", "m.onnx", "--json").json["stages"][0]["ms"] == 250


def test_options_of_polygraphy(dld: Dld, runs: Runs) -> None:
    request = request_of(
        dld, runs, "m.onnx", "--trt-opt-shapes", "x:[1,3]", "y:[2]", "--pool-limit",
        "workspace:1048576", "--tactic-sources", "cublas", "--strongly-typed", "--use-dla",
        "--tiling-optimization-level", "full", "--no-timing-cache",
    )  # fmt: skip
    assert request == Request(
        Path("m.onnx"), opt_shapes=("x:1x3", "y:2"), workspace=1.0, tactic_sources=("CUBLAS",),
        typing="strong", dla_core=0, tiling_level=3, no_timing_cache=True,
    )  # fmt: skip


def test_a_pasted_command_and_what_comes_first(dld: Dld, runs: Runs) -> None:
    command = "trtexec --onnx=a.onnx --fp16 --optShapes=x:1 --duration=9 --nonsense"
    outcome = dld("build", "--from-trtexec", command, "--no-fp16", "--bf16")
    assert outcome.status == 0
    assert runs.request == Request(Path("a.onnx"), bf16=True, opt_shapes=("x:1",))
    assert "--nonsense: trtexec has no such option" in outcome.err
    assert "--duration: for dld profile tensorrt" in outcome.err
    assert request_of(dld, runs, "b.onnx", "--from-trtexec", command).model == Path("b.onnx")


def test_nothing_is_overwritten(dld: Dld, runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "m.engine").write_text("x")
    assert "m.engine" in dld.fails(2, "build", "m.onnx")
    assert request_of(dld, runs, "m.onnx", "--force").model == Path("m.onnx")


def test_a_range_that_does_not_fit_is_said_before_the_build(dld: Dld, tmp_path: Path) -> None:
    pytest.importorskip("tensorrt_rtx")
    path = models.write(tmp_path, models.CHAIN)
    outcome = dld(
        "build", path, "-o", tmp_path / "e.engine", "--library", "tensorrt_rtx",
        "--opt-shapes", "x:2x5",
    )  # fmt: skip
    assert outcome.status == 2
    assert "input x" in outcome.err
    assert list(tmp_path.iterdir()) == [path]
