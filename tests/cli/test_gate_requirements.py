"""``dld gate MODEL --require``: verdicts, statuses, files, and requirements beside the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner

from dld_tui.activities import gate as activity
from dld_tui.cli.jobs.gate import command
from dld_tui.core.compare import gate as comparison
from dld_tui.core.compare.gate import RunFigures
from dld_tui.core.errors import CancelledError, UsageError
from dld_tui.core.process.confinement import confined_to
from tests.support.models import write

pytest.importorskip("onnxruntime")
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 8] x) => (float[1, 8] y) <float[1, 8] w = {1, 2, 3, 4, 5, 6, 7, 8}> { y = Mul(x, w) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path, MODEL)


def gate(*arguments: str) -> tuple[int, Any]:
    done = CliRunner().invoke(command, [*arguments, "--json"], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, json.loads(done.stdout)


def test_what_is_measured_is_judged(model: Path, tmp_path: Path) -> None:
    """Sizes, memory and accuracy in whole; `dld` itself is asked once, for the latency."""
    half = onnx.load(model)
    half.graph.initializer[0].CopyFrom(
        onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [1, 8], [1, 2, 3, 4, 5, 6, 7, 8.01])
    )
    onnx.save(half, tmp_path / "near.onnx")
    size = (tmp_path / "near.onnx").stat().st_size
    status, found = gate(
        str(tmp_path / "near.onnx"), "--reference", str(model), "--require", f"size <= {size} B",
        "--require", f"size < {size} B", "--require", "peak memory <= 1 MB",
        "--require", "snr >= 40 dB", "--require", "snr >= 90 dB",
        "--markdown", str(tmp_path / "m.md"), "--junit", str(tmp_path / "j.xml"),
    )  # fmt: skip
    outcomes = [one["outcome"] for one in found["judged"]]
    assert outcomes == ["PASS", "FAIL", "PASS", "PASS", "FAIL"]
    assert (status, found["outcome"]) == (1, "FAIL")
    assert found["judged"][2]["value"] > 32  # the weight's own bytes
    assert (tmp_path / "m.md").read_text().count("PASS") == 4  # three rows, and the line above them
    assert (tmp_path / "j.xml").read_text().count("<failure") == 2


def cancel() -> RunFigures:
    raise KeyboardInterrupt


def test_commands_are_compared_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"true": 3.0, "sleep 0.03": 33.0}
    monkeypatch.setattr(comparison, "time_command", lambda line, _: RunFigures(times[line]))
    status, found = gate("true", "sleep 0.03", "--commands", "--runs", "8")
    assert (status, found["verdict"], found["ratio"] > 1) == (1, "slower", True)
    runs = iter([RunFigures(1.0)] * 5)
    monkeypatch.setattr(comparison, "time_command", lambda *_: next(runs, None) or cancel())
    with pytest.raises(CancelledError, match=r"gate after 2 pairs of runs, .*s; no verdict"):
        gate("true", "true", "--commands", "--runs", "8")


def test_runs_go_on_until_all_is_decided(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1.0] * 8 + [3.0] * 100)
    monkeypatch.setattr(activity._Runs, "latency", lambda self, wanted: {"median": next(times)})
    status, found = gate(str(model), "--require", "median <= 2 ms")
    assert (status, found["judged"][0]["runs"]) == (0, 8)
    times = iter([1.0, 3.0] * 100)
    status, found = gate(str(model), "--require", "median <= 2 ms")
    assert (status, found["outcome"], found["judged"][0]["runs"]) == (5, "UNDECIDED", 24)
    times = iter([1.0, 3.0] * 100)
    status, found = gate(str(model), "--require", "median <= 2 ms", "--limit", "0")
    assert (status, found["judged"][0]["runs"]) == (5, 1)


def test_requirements_lie_beside_the_model(model: Path) -> None:
    beside = model.with_name("dld.toml")
    beside.write_text(f'[requirements]\n"{model.name}" = ["size <= 1 B", "size <= 1 MB"]\n')
    status, found = gate(str(model))
    assert (status, [one["outcome"] for one in found["judged"]]) == (1, ["FAIL", "PASS"])
    beside.write_text(f'[requirements."{model.name}"]\nrequire = ["snr > 90"]\n')
    with pytest.raises(UsageError, match="against a model"):
        gate(str(model))
    beside.write_text(
        f'[requirements."{model.name}"]\nrequire = ["snr > 90"]\nreference = "{model.name}"'
    )
    assert gate(str(model))[0] == 0
    beside.write_text('[requirements]\n"other.onnx" = ["size <= 1 B"]\n')
    with pytest.raises(UsageError, match="nothing is required"):
        gate(str(model))


def test_counts_need_no_run(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check and gate give the same verdicts, and the model's summary has them afterwards."""
    from dld_tui.cli.models.check import command as check
    from dld_tui.cli.models.inspect import command as inspect

    monkeypatch.setattr(activity, "_Runs", lambda request, run_job: None)
    texts = ["nodes <= 1", "operators < 1", "parameters >= 8", "opset > 17", "opset >= 17"]
    model.with_name("dld.toml").write_text(f'[requirements]\n"{model.name}" = {texts}\n')
    done = CliRunner().invoke(
        check, [str(model), "--requirements", "--json"], standalone_mode=False
    )
    status, found = done.return_value, json.loads(done.stdout)
    outcomes = ["PASS", "FAIL", "PASS", "FAIL", "PASS"]
    assert (status, [one["outcome"] for one in found["judged"]]) == (1, outcomes)
    assert gate(str(model)) == (status, found)
    shown = CliRunner().invoke(inspect, [str(model), "--json"], standalone_mode=False).stdout
    assert [one["outcome"] for one in json.loads(shown)["requirements"]] == outcomes
    written = CliRunner().invoke(inspect, [str(model)], standalone_mode=False).stdout
    assert "required   nodes <= 1  PASS, 1 (" in written
    monkeypatch.setenv(*next(iter(confined_to([model.parent / "elsewhere"]).items())))
    assert gate(str(model)) == (status, found)  # an agent's verdict is not remembered
    with pytest.raises(UsageError, match="checked alone"):
        check.main([str(model), "--requirements", "--speed"], standalone_mode=False)


def test_the_form_sends_what_is_required_here(model: Path, tmp_path: Path) -> None:
    """A target gets the model, not the file beside it."""
    from dld_tui.activities.registry import request_data

    reference = tmp_path / "base.onnx"
    model.with_name("dld.toml").write_text(
        f'[requirements."{model.name}"]\nrequire = ["size <= 1 MB", "snr > 1"]\n'
        f'reference = "{reference.name}"\n'
    )
    sent = request_data("gate", {"model": str(model)})
    assert sent["requirements"] == ["size <= 1 MB", "snr > 1"]
    assert sent["reference"] == str(reference)
    asked = request_data("gate", {"model": str(model), "requirements": ["nodes < 9"]})
    assert asked["requirements"] == ["nodes < 9"]
    two = request_data("gate", {"model": str(model), "new": str(reference)})
    assert (two["requirements"], two["reference"]) == ([], None)


@pytest.mark.slow
def test_latencies_come_from_processes_of_their_own(model: Path) -> None:
    status, found = gate(
        str(model), "--require", "p95 <= 10 s", "--require", "fps >= 1e9", "--duration", "0.01"
    )
    assert [one["outcome"] for one in found["judged"]] == ["PASS", "FAIL"]
    assert [one["runs"] for one in found["judged"]] == [8, 8]
    assert status == 1
