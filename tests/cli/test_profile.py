"""``dld profile onnxruntime`` and ``dld demo``: from a model to a printed report."""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.cli.jobs import demo
from dld_tui.cli.jobs.results import phases_line
from dld_tui.core.process.paths import cache_dir
from tests.support import models
from tests.support.cli import Dld, listen_to_interrupts
from tests.support.engines import built, write_model
from tests.support.fake_tensorrt import fake_tensorrt

needs_onnxruntime = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="no onnxruntime here"
)


@needs_onnxruntime
def test_the_optimised_model_is_saved_and_named(dld: Dld, tmp_path: Path) -> None:
    model, saved = models.write(tmp_path, models.CHAIN), tmp_path / "optimised.onnx"
    report = ["-o", tmp_path / "out.dldprof", "--iterations", 3, "--layer-passes", 0]
    outcome = dld("profile", "onnxruntime", model, *report, "--optimized-model", saved)
    assert outcome.out.endswith(f"\nOptimised model: {saved}\n")
    assert onnx.load(saved).graph.node


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _maps(process: Path) -> str:
    """Return what a process has mapped; nothing of one that is gone."""
    try:
        return (process / "maps").read_text()
    except OSError:
        return ""


@pytest.mark.broad
@needs_onnxruntime
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc here")
def test_interrupt_cancels_the_job_and_its_worker(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    command = [sys.executable, "-m", "dld_tui", "profile", "onnxruntime", str(model)]
    command += ["--duration", "600", "-o", str(tmp_path / "out.dldprof")]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, preexec_fn=listen_to_interrupts
    ) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        workers: list[Path] = []  # a guard of the children is a child, too

        def works() -> bool:
            found = [Path("/proc", child) for child in children.read_text().split()]
            workers[:] = [child for child in found if "onnxruntime" in _maps(child)]
            return bool(workers)

        wait_for(works)
        (worker,) = workers
        running.send_signal(signal.SIGINT)
        _, error = running.communicate(timeout=60)
    assert running.returncode == 130
    pattern = r"dld: cancelled: .+ of \S+\.onnx after [\d.]+ m?s(; nothing was written|\. .+)"
    assert re.fullmatch(pattern, error.decode().strip())
    assert not worker.exists()


@pytest.mark.broad
@needs_onnxruntime
def test_demo_prints_the_report_or_opens_it_in_a_terminal(
    dld: Dld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_SECONDS", 0.05)
    outcome = dld("demo")
    assert (outcome.status, outcome.err) == (0, "")
    assert "demo_classifier" in outcome.out
    assert "Conv" in outcome.out
    opened: list[list[Path]] = []
    monkeypatch.setattr(demo, "has_terminal", lambda: True)
    monkeypatch.setattr(demo, "open_paths", lambda paths: opened.append(paths))
    assert dld("demo").status == 0  # it can be repeated
    assert opened == [[cache_dir() / "demo" / "demo_classifier.dldprof"]]


@needs_onnxruntime
def test_demo_writes_its_models_and_replaces_none_unasked(dld: Dld, tmp_path: Path) -> None:
    paths = [tmp_path / f"demo_{name}.onnx" for name in ("classifier", "transformer")]
    paths[1].write_text("mine")
    refused = dld("demo", "-o", str(tmp_path))
    assert (refused.status, paths[0].exists(), paths[1].read_text()) == (2, False, "mine")
    outcome = dld("demo", "-o", str(tmp_path), "--force")
    assert outcome.out == "".join(f"written to {path}\n" for path in paths)
    paths[0].unlink()
    paths[1].unlink()
    made = json.loads(dld("demo", "-o", str(tmp_path), "--json").out)
    assert made == {"models": list(map(str, paths))}
    for path in paths:
        onnx.checker.check_model(path)
    assert dld("demo", "-o", str(tmp_path / "new" / "one")).status == 0  # it makes its folder
    assert (tmp_path / "new" / "one" / paths[0].name).is_file()
    assert dld("demo", "-o", str(paths[0])).status == 5


def test_demo_where_nothing_can_be_written(
    dld: Dld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(file / "cache"))
    assert str(file) in dld.fails(5, "demo")


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
