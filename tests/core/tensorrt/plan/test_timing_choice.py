"""Which timing file is that of an engine."""

from __future__ import annotations

import json
from pathlib import Path

from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.reader import open_plan
from tests.support.known import known
from tests.support.plans import write_layers


def engine(folder: Path, mark: str, layers: tuple[str, ...], sum_ms: float) -> Path:
    rows = [{"name": name, "averageMs": sum_ms / len(layers)} for name in layers]
    (folder / f"net.profile{mark}.json").write_text(json.dumps([{"count": 1}, *rows]))
    return write_layers(folder / f"net.graph{mark}.json", [{"Name": name} for name in layers])


def timing(path: Path, compute_ms: float) -> None:
    rows = [{"computeMs": compute_ms, "latencyMs": compute_ms, "startComputeMs": i} for i in (1, 2)]
    path.write_text(json.dumps(rows))


def taken(plan: EnginePlan) -> str:
    return Path(plan.files.get("timing", "")).name


def test_the_slower_engine_has_the_slower_inferences(tmp_path: Path) -> None:
    fast = engine(tmp_path, ".aaaaaa", ("a", "b"), 0.47)
    slow = engine(tmp_path, ".bbbbbb", ("c", "d"), 0.65)
    timing(tmp_path / "net.timing.cccccc.json", 0.351)
    timing(tmp_path / "net.timing.dddddd.json", 0.448)
    assert taken(open_plan(fast)) == "net.timing.cccccc.json"
    found = open_plan(slow)
    assert taken(found) == "net.timing.dddddd.json"
    assert any("rank like the layers' times" in note for note in found.notes)


def test_nothing_is_taken_that_could_be_of_either(tmp_path: Path) -> None:
    one = engine(tmp_path, ".aaaaaa", ("a", "b"), 0.47)
    engine(tmp_path, ".bbbbbb", ("c", "d"), 0.65)
    timing(tmp_path / "net.timing.json", 0.35)
    found = open_plan(one)
    assert found.timing is None
    assert found.notes[-1] == (
        "1 timing file lies beside 2 engines, and nothing tells which belong together: --timing"
        " takes one"
    )
    assert taken(open_plan(one, timing=tmp_path / "net.timing.json")) == "net.timing.json"
    # Inferences that take the same tell nothing either.
    (tmp_path / "net.timing.json").unlink()
    timing(tmp_path / "net.timing.cccccc.json", 0.351)
    timing(tmp_path / "net.timing.dddddd.json", 0.352)
    assert open_plan(one).timing is None


def test_the_same_hash_is_evidence(tmp_path: Path) -> None:
    one = engine(tmp_path, ".aaaaaa", ("a", "b"), 0.47)
    engine(tmp_path, ".bbbbbb", ("c", "d"), 0.65)
    timing(tmp_path / "net.timing.aaaaaa.json", 0.60)
    timing(tmp_path / "net.timing.bbbbbb.json", 0.40)
    assert taken(open_plan(one)) == "net.timing.aaaaaa.json"


def test_a_summary_of_another_engine_is_left_out(tmp_path: Path) -> None:
    one = engine(tmp_path, ".aaaaaa", ("a", "b"), 0.47)
    other = engine(tmp_path, ".bbbbbb", ("c", "d"), 0.65)
    times = {"GPU Compute Time": [0.3, 0.4, 0.351, 0.351, 0.36], "Throughput": 2500.0}
    summary = {"performance_summary": times}
    (tmp_path / "net.profile.metadata.cccccc.json").write_text(json.dumps(summary))
    for path in (one, other):
        found = open_plan(path)
        assert found.timing is None
        assert any("its times are left out" in note for note in found.notes)
    # Where the timing that ranks like the engine says the same, it is of this engine.
    timing(tmp_path / "net.timing.cccccc.json", 0.351)
    timing(tmp_path / "net.timing.dddddd.json", 0.448)
    measured = known(open_plan(one).timing)
    assert measured.throughput == 2500.0  # by the wall clock, which the timing file lacks
    assert not any("left out" in note for note in open_plan(one).notes)
    assert any("left out" in note for note in open_plan(other).notes)


def test_a_timing_file_without_times_does_not_hide_the_summary(tmp_path: Path) -> None:
    one = engine(tmp_path, "", ("a", "b"), 0.4)
    times = {"GPU Compute Time": [0.3, 0.4, 0.351, 0.351, 0.36], "Throughput": 2500.0}
    (tmp_path / "net.profile.metadata.json").write_text(json.dumps({"performance_summary": times}))
    (tmp_path / "net.timing.json").write_text(json.dumps([{"computeMs": "?"}]))
    found = open_plan(one)
    assert found.timing is not None
    assert (found.timing.throughput, found.timing.source) == (2500.0, "metadata")


def test_a_timing_that_cannot_be_of_the_engine_is_told(tmp_path: Path) -> None:
    one = engine(tmp_path, "", ("a", "b"), 0.4)
    timing(tmp_path / "net.timing.json", 40.0)
    assert open_plan(one).notes[-1] == (
        "an inference takes 40.000 ms and the layers 0.400 ms: net.timing.json probably belongs"
        " to another engine"
    )


def test_files_named_with_a_dash_lie_beside(tmp_path: Path) -> None:
    graph = write_layers(tmp_path / "X-layer-info.json", [{"Name": "a"}])
    (tmp_path / "X-profile.json").write_text('[{"count": 1}, {"name": "a", "averageMs": 2.0}]')
    (tmp_path / "Y-profile.json").write_text('[{"count": 1}, {"name": "a", "averageMs": 3.0}]')
    assert open_plan(graph).total_ms == 2.0
