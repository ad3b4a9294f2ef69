"""Searches and repairs that were killed go on where they were, with the same result."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Finished, Log, Progress
from dld_tui.core.params import from_json
from dld_tui.core.process.paths import cache_dir
from tests.support.conversions import detector
from tests.support.fork_server import python
from tests.support.precision_models import write_attention
from tests.support.tiers import first

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("replaces_all")

KILLED = """
import importlib, json, os, signal, sys
from dld_tui.core import trials
from dld_tui.core.params import from_json
name, values, count = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
add, left = trials.KnownOutcomes.add, [count]
def kept(self, key, outcome):
    add(self, key, outcome)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
trials.KnownOutcomes.add = kept
module = importlib.import_module(name)
list(module.run(from_json(module.Request, values)))
"""


def run(name: str, values: dict[str, Any]) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the result, the stages of trials, and the lines."""
    module = importlib.import_module(name)
    events = list(module.run(from_json(module.Request, values)))
    assert isinstance(events[-1], Finished)
    stages = [event.stage for event in events if isinstance(event, Progress)]
    stages = [stage for stage in stages if stage.startswith("Trial ") and not stage.endswith(")")]
    return encode(events[-1].result), stages, [e.text for e in events if isinstance(e, Log)]


def kill_after(name: str, values: dict[str, Any], count: int) -> None:
    command = python(KILLED, name, json.dumps(values), count)
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL


def journals() -> list[Path]:
    return sorted((cache_dir() / "trials").glob("*.jsonl"))


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    times = ("latency_ms", "seconds", "estimate", "trials", "path", "output", "bytes")
    return {name: value for name, value in result.items() if name not in times}


@pytest.mark.broad
@pytest.mark.parametrize("count", first(1, [3, 1, 11]))
def test_a_repair_of_float16_that_its_limit_ended_and_that_was_killed(
    tmp_path: Path, count: int
) -> None:
    name, model = "dld_tui.activities.convert.fp16", tmp_path / "m.onnx"
    write_attention(model)
    values = {"model": str(model), "output": str(tmp_path / "o.onnx"), "repair": True,
              "measure": False}  # fmt: skip
    whole, trials, _ = run(name, values)
    written = (tmp_path / "o.onnx").read_bytes()
    assert whole["values"]["is_good"]
    assert whole["values"]["repaired"]
    assert len(trials) > 12
    assert journals() == [], "a repair that came to its end forgets its trials"

    part, made, _ = run(name, {**values, "limit": 0.0})
    assert len(made) == 1
    assert not part["values"]["is_good"]
    assert "the limit ended the repair; the same command resumes it" in part["notes"]
    kill_after(name, values, count)
    assert len(journals()) == 1
    again, rest, _ = run(name, values)
    assert len(rest) == len(trials) - 1 - count, "no trial is made twice"
    assert without_times(again) == without_times(whole)
    assert (tmp_path / "o.onnx").read_bytes() == written
    assert journals() == []


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 8])
def test_a_repair_of_a_quantization_that_was_killed(tmp_path: Path, count: int) -> None:
    name, (model, folder) = "dld_tui.activities.convert.quantize", detector(tmp_path)
    values = {"model": str(model), "output": str(tmp_path / "o.onnx"), "repair": True,
              "calibration": str(folder), "measure": False}  # fmt: skip
    whole, trials, _ = run(name, values)
    assert [node["node"] for node in whole["values"]["repaired"]] == ["all"]
    assert len(trials) > 8
    kill_after(name, values, count)
    again, rest, _ = run(name, values)
    assert len(rest) == len(trials) - count, "no trial is made twice"
    assert without_times(again) == without_times(whole)
    assert journals() == []


@pytest.mark.parametrize("count", first(1, [20, 1]))
def test_a_precision_search_that_was_killed(tmp_path: Path, count: int) -> None:
    name, model = "dld_tui.activities.accuracy.search", tmp_path / "m.onnx"
    write_attention(model)
    values = {"model": str(model), "tolerance": ["snr=70"]}
    whole, trials, _ = run(name, values)
    _, once, _ = run(name, values)
    assert len(once) == 1, "only the result is tried again"
    journals()[0].unlink()
    kill_after(name, values, count)
    again, rest, _ = run(name, values)
    assert len(rest) == len(trials) - count
    assert without_times(again) == without_times(whole)


def test_a_precision_search_that_its_limit_ended_goes_on(tmp_path: Path) -> None:
    name, model = "dld_tui.activities.accuracy.search", tmp_path / "m.onnx"
    write_attention(model)
    values: dict[str, Any] = {"model": str(model)}
    with pytest.raises(ActivityError, match="no result after 1 trial"):
        run(name, {**values, "limit": 0.0})
    part, _, _ = run(name, {**values, "limit": 0.0})
    assert not part["minimal"]
    rest, trials, _ = run(name, values)
    assert rest["minimal"]
    again, whole, _ = run(name, {**values, "again": True})
    assert without_times(again) == without_times(rest)
    assert len(trials) == len(whole) - 2
