"""What commands print of the results of jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile import onnxruntime, tensorrt
from dld_tui.activities.refit import Result as Refitted
from dld_tui.cli.jobs import results
from dld_tui.core.accuracy.tactics import TacticReport
from dld_tui.core.codec import decode
from dld_tui.core.conversion.reduction import Reduction
from dld_tui.core.conversion.result import TensorLosses
from dld_tui.core.conversion.tensor_casting import TensorLoss
from dld_tui.core.machine.health import FAILED, PASSED, SKIPPED, HealthStep, SelfTest
from dld_tui.core.report.latency import LatencyFigures
from tests.support import models, tuned_results
from tests.support.cli import Dld
from tests.support.recorded import Recorded, settled
from tests.support.report_files import make_report

TACTIC = {"tactic": 102, "implementation": 0, "name": "kernel\x1b", "shown": "kernel (0x66)"}
FOUND: dict[str, Any] = {
    "verdict": "found", "way": "cache", "library": "TensorRT 11.1.0.0", "builds": 8, "good": 4,
    "bad": 4, "failed": 0, "variants": 5, "seconds": 80.0, "layers": 4,
    "problem": "y\x1b: 4 of 4 elements are outside", "avoid": "/tmp/m.tactics", "engine": None,
    "options": "--tf32", "remarks": ["a remark"], "estimate": None, "is_whole": True,
    "suspects": [{"layer": "0x1", "title": "three", "tactics": [TACTIC]}],
    "culprits": [{"layer": "0x1", "title": "three", "tactic": TACTIC, "instead": TACTIC,
                  "confirmed": True}],
}  # fmt: skip
TACTICS: dict[str, dict[str, Any]] = {
    "found": {}, "suspects": {"verdict": "unsteady", "culprits": [], "avoid": None},
    "all is right": {"verdict": "none_bad", "culprits": [], "suspects": [], "bad": 0,
                     "problem": "", "avoid": None},
    "an estimate": {"verdict": None, "bad": 0, "estimate": {
        "layers": 4, "build_seconds": 5.0, "builds": [6, 70], "seconds": [30.0, 350.0]}},
}  # fmt: skip

Show = Callable[[bool], int | None]


def shows(folder: Path) -> dict[str, Show]:
    """Return what prints a result, as text or as JSON."""
    report = make_report(folder / "r.dldprof", 2, 3)
    figures = LatencyFigures(5, {"median": 1.0}, 9.0, {"50": 1.0, "99.9": 2.5, "12.5": 0.5})
    plain = onnxruntime.Result(report, None)
    phases = {
        "h2d": {"median": 0.1},
        "compute": {"median": 0.812},
        "d2h": {},
        "other": {"median": 1.0},
    }
    engine = tensorrt.Result(report, None, {}, "TensorRT 11")
    names = [f"n{at}\x1b" for at in range(11)]
    reduced = Reduction(folder / "m\x1b.onnx", 20, 11, names, 7, 5, 65.0, "1\n2\n3\n4\n5\n6\x1b")
    losses = [TensorLoss("w\x1b", (), "initializer", "float", (2, 3), 24, 1, 2, 3, 4, 0.5),
              TensorLoss("v", ("a",), "tensor", "float", (), None, 0, 0, 0, 0, 0.0)]  # fmt: skip
    steps = [
        HealthStep("cpu", "build", status, 1.25, "text") for status in (PASSED, FAILED, SKIPPED)
    ]
    tests = {
        name: SelfTest(tuple(rows), {"host": "h"}, [])
        for name, rows in (("failed", steps), ("passed", steps[:1]), ("skipped", steps[2:]))
    }
    tuned = tuned_results.found(folder)
    taken_back = replace(tuned_results.found(folder, confirmed=None), asked=("fp16",))
    return {
        "profile": lambda as_json: results.show_onnxruntime(plain, as_json),
        "profile with percentiles": lambda as_json: results.show_onnxruntime(
            replace(plain, summary=figures, optimized_model=Path("o\x1b.onnx")), as_json),
        "engine": lambda as_json: results.show_tensorrt(engine, as_json),
        "engine with all": lambda as_json: results.show_tensorrt(
            replace(engine, summary=figures, phases_ms=phases, engine=Path("e\x1b.engine"),
                    saved=[Path("a\x1b"), Path("b")]), as_json),
        "reduced": lambda as_json: results.show_reduction(reduced, as_json),
        "reduced to one": lambda as_json: results.show_reduction(
            replace(reduced, nodes=["a"], nodes_after=1, nodes_before=1, known=0, tried=1, said=""),
            as_json),
        "refitted": lambda as_json: results.show_refit(
            Refitted(Path("e\x1b.engine"), 2_000_000, 1, "TensorRT 11"), as_json),
        "tensors": lambda as_json: results.show_tensors(TensorLosses("float16", losses), as_json),
        "no tensor": lambda as_json: results.show_tensors(TensorLosses("float16", []), as_json),
        **{f"self-test, {name}": partial(results.show_selftest, test)
           for name, test in tests.items()},
        "tuned": lambda as_json: results.show_tune(tuned, as_json),
        "taken back": lambda as_json: results.show_tune(taken_back, as_json),
        "tuned on several": lambda as_json: results.show_several([Path(tuned.report)] * 2, as_json),
    }  # fmt: skip


def test_what_is_printed(
    recorded: Recorded, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    texts = {}
    for name, show in shows(tmp_path).items():
        status = show(False)
        text = "".join(capsys.readouterr())
        json_status = show(True)
        data = "".join(capsys.readouterr())
        data = settled(data, tmp_path)
        short = data if len(data) < 1200 else f"{data[:150]}…\n"
        texts[name] = f"{settled(text, tmp_path)}= {status}\n{short}= {json_status}"
    recorded("results", texts)


def test_tactics(
    dld: Dld, recorded: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, texts = models.write(tmp_path, models.CHAIN), {}
    for name, changes in TACTICS.items():
        found = decode(TacticReport, FOUND | changes)
        monkeypatch.setattr(results, "run_activity", lambda *_, found=found: found)
        done = dld("tactics", model, "--fp16")
        texts[name] = settled(f"{done.out}{done.err}= {done.status}", tmp_path)
        assert dld("tactics", model, "--json").json == FOUND | changes
    recorded("tactics", texts)


def test_no_library_is_one_line_and_files_are_not_overwritten(dld: Dld, tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    outcome = dld("tactics", model, "--library", tmp_path / "none")
    assert (outcome.status, outcome.err.count("dld: ")) == (4, 1)
    there = tmp_path / "there"
    there.touch()
    assert "exists" in dld("tactics", model, "-w", there).err
