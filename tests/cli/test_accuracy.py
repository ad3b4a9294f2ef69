"""``dld accuracy`` and its search."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from dld_tui.cli.jobs.accuracy import show_search
from dld_tui.core.accuracy.search import (
    KeptNode,
    PrecisionEstimate,
    PrecisionReport,
    SearchEstimate,
)
from dld_tui.core.accuracy.tensor_errors import TensorError
from tests.support import models
from tests.support.cli import Dld
from tests.support.conversions import OTHER, OVERFLOWS
from tests.support.recorded import Recorded

pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return models.write(tmp_path, models.CHAIN, "a.onnx"), models.write(tmp_path, OTHER, "b.onnx")


def test_outputs_and_status(dld: Dld, pair: tuple[Path, Path]) -> None:
    outcome = dld("accuracy", pair[0], "--against", pair[1])
    assert outcome.status == 1
    assert "y: 1 of 4 elements are outside of atol 1e-05, rtol 1e-05" in outcome.out
    assert "First divergence" not in outcome.out
    assert "--shape x:1x4 sets it" in outcome.err

    outcome = dld("accuracy", pair[0], "--against", pair[1], "--atol", 1, "--shape", "x:2x4")
    assert (outcome.status, outcome.err) == (0, "")
    assert "All outputs are within the tolerance (atol 1, rtol 1e-05)" in outcome.out


@pytest.mark.broad
def test_inner_tensors_in_both_orders(dld: Dld, pair: tuple[Path, Path]) -> None:
    flags = ("accuracy", pair[0], "--against", pair[1], "--tensors", "--shape", "x:1x4")
    worst = dld(*flags, "--rows", 2)
    assert "3 inner tensors, largest errors first, 2 shown" in worst.out
    assert "First divergence: b of Add second: 1 of 4 elements" in worst.out
    lines = dld(*flags, "--in-order").out.split("in order\n")[1].splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["a", "b", "c"]


def test_json_and_csv(dld: Dld, pair: tuple[Path, Path]) -> None:
    flags = ("accuracy", pair[0], "--against", pair[1], "--tensors")
    data = dld(*flags, "--json").json
    assert data["first"] == "b"
    assert data["reference"]["optimization"] == "disabled"
    rows = list(csv.DictReader(dld(*flags, "--csv").out.splitlines()))
    assert [row["tensor"] for row in rows] == ["a", "b", "c", "y"]
    assert float(rows[1]["max_abs"]) == pytest.approx(0.5)


def test_a_search_that_is_not_minimal_has_another_status(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, OVERFLOWS)
    alone = dld("accuracy", path, "--search", "--estimate")
    assert alone.out.startswith("6 nodes can be lowered"), "fp16 where no precision is given"
    assert alone.status == 0
    assert dld("accuracy", path, "--search", "--most-trials", 1).status == 1


ENDS: dict[str, dict[str, Any]] = {
    "found": {}, "with names": {"script": "n.txt"}, "all": {"kept": ()},
    "no candidate": {"kept": (), "candidates": 0}, "none": {"kept": None},
    "not minimal": {"minimal": False, "precision": "bf16"},
    "with a script": {"precision": "bf16", "script": "n.jsonl"}, "bf16": {"precision": "bf16"},
}  # fmt: skip


def test_each_end_of_a_search_says_what_to_do_next(
    capsys: pytest.CaptureFixture[str], recorded: Recorded
) -> None:
    found = PrecisionReport(
        "int8", "onnxruntime", sets=1, candidates=3, kept=(KeptNode((), "big", "Mul"),),
        minimal=True, untried=1, script=None, edits=(), lowered=2,
        errors={"y": TensorError((1,), 1, max_abs=0.5, cosine=1.0, snr_db=20.0)}, trials=4,
        seconds=5.0, estimate=cast("Any", None),
    )  # fmt: skip
    texts = {}
    for name, changed in ENDS.items():
        show_search(replace(found, **changed), Path("m.onnx"))
        texts[name] = capsys.readouterr().out
    for nodes, ranking in ((1, 0), (40, 78)):
        cost = SearchEstimate(nodes, "trial", 0.5, (2, 32), ranking, 8, (1.0, 16.0))
        show_search(PrecisionEstimate("fp16", "onnxruntime", cost), Path("m.onnx"))
        texts[f"estimate of {nodes}"] = capsys.readouterr().out
    recorded("accuracy_searches", texts)


def test_what_this_onnxruntime_has_not_is_named(dld: Dld, pair: tuple[Path, Path]) -> None:
    said = dld.fails(4, "accuracy", pair[0], "--against-provider", "ghost")
    assert "no ghost provider" in said
    said = dld.fails(2, "accuracy", pair[0], "--json", "--csv")
    assert "--json does not go with" in said
