"""``dld tactics``: what it prints, and its exit status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.cli.jobs import results
from dld_tui.core.accuracy.tactics import TacticReport
from dld_tui.core.codec import decode
from tests.support import models
from tests.support.cli import Dld

TACTIC = {"tactic": 102, "implementation": 0, "name": "kernel", "shown": "kernel (0x66)"}
FOUND: dict[str, Any] = {
    "verdict": "found", "way": "cache", "library": "TensorRT 11.1.0.0", "builds": 8, "good": 4,
    "bad": 4, "failed": 0, "variants": 5, "seconds": 80.0, "layers": 4,
    "problem": "y: 4 of 4 elements are outside", "avoid": "/tmp/m.tactics", "engine": None,
    "options": "--tf32", "remarks": ["a remark"], "estimate": None, "is_whole": True,
    "suspects": [{"layer": "0x1", "title": "three", "tactics": [TACTIC]}],
    "culprits": [{"layer": "0x1", "title": "three", "tactic": TACTIC, "instead": TACTIC,
                  "confirmed": True}],
}  # fmt: skip


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    data = dict(FOUND)
    monkeypatch.setattr(results, "run_activity", lambda *_: decode(TacticReport, data))
    return data


def test_what_was_found(dld: Dld, answer: dict[str, Any], tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    outcome = dld("tactics", model, "--fp16")
    assert outcome.status == 1
    assert outcome.out.startswith("1 tactic makes the result wrong\n")
    assert "kernel (0x66)" in outcome.out
    assert f"dld build {model} --tf32 --timing-cache /tmp/m.tactics" in outcome.out
    assert "a remark" in outcome.err
    assert dld("tactics", model, "--json").json == FOUND


def test_suspects_where_nothing_could_be_isolated(
    dld: Dld, answer: dict[str, Any], tmp_path: Path
) -> None:
    answer.update(verdict="unsteady", culprits=[], avoid=None)
    out = dld("tactics", models.write(tmp_path, models.CHAIN)).out
    assert "Tactics that occur only in wrong builds" in out
    assert "Build without" not in out


def test_all_is_right(dld: Dld, answer: dict[str, Any], tmp_path: Path) -> None:
    answer.update(verdict="none_bad", culprits=[], suspects=[], bad=0, problem="", avoid=None)
    outcome = dld("tactics", models.write(tmp_path, models.CHAIN))
    assert outcome.status == 0
    assert "No wrong result in 8 builds" in outcome.out


def test_no_library_is_one_line_and_files_are_not_overwritten(dld: Dld, tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    outcome = dld("tactics", model, "--library", tmp_path / "none")
    assert (outcome.status, outcome.err.count("dld: ")) == (4, 1)
    there = tmp_path / "there"
    there.touch()
    assert "exists" in dld("tactics", model, "-w", there).err
