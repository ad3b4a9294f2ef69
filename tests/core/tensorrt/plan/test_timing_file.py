"""Times of whole inferences."""

from __future__ import annotations

import json
from pathlib import Path

from dld_tui.core.report.formats.trtexec_files import warm_up_ms
from dld_tui.core.statistics import trtexec_percentile
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.trtexec_log import timing_of_rows
from dld_tui.core.types import JSON
from tests.support.plans import write_layers


def row(start: float, took: float) -> dict[str, JSON]:
    return {
        "startEnqMs": start - 0.1, "endEnqMs": start, "startH2dMs": start, "endH2dMs": start + 0.1,
        "startComputeMs": start + 0.1, "endComputeMs": start + 0.1 + took,
        "startD2hMs": start + 0.1 + took, "endD2hMs": start + 0.2 + took, "h2dMs": 0.1,
        "computeMs": took, "d2hMs": 0.1, "latencyMs": took + 0.2,
    }  # fmt: skip


def test_warm_up_is_left_out_unless_there_is_nothing_else() -> None:
    metadata: dict[str, JSON] = {"inference_options": {"Duration": "3s (+ 200ms warm up)"}}
    assert warm_up_ms(metadata) == 200.0
    assert warm_up_ms({"inference_options": {"Duration": "3s"}}) == 0.0
    for rows in ([row(100, 9.0), row(250, 1.0)], [row(100, 1.0)]):
        found, _ = timing_of_rows(rows, warm_up=200.0)
        assert found is not None
        assert found.compute is not None
        assert (found.compute.count, found.compute.mean) == (1, 1.0)


def test_percentiles_are_those_of_trtexec() -> None:
    """Of 248 inferences trtexec printed 12.7775 where interpolation gives 12.700."""
    ordered = [float(value) for value in range(1, 249)]
    assert trtexec_percentile(ordered, 99) == 246.0
    assert trtexec_percentile(ordered, 90) == 224.0
    assert trtexec_percentile([5.0], 99) == 5.0
    # 1 - 0.99 is a little less than 0.01 in single precision: of 1,000 times nine are left out.
    assert trtexec_percentile([float(value) for value in range(1000)], 99) == 990.0


def engine(folder: Path, mark: str, layers: tuple[str, ...], sum_ms: float) -> Path:
    rows = [{"name": name, "averageMs": sum_ms / len(layers)} for name in layers]
    (folder / f"net.profile{mark}.json").write_text(json.dumps([{"count": 1}, *rows]))
    return write_layers(folder / f"net.graph{mark}.json", [{"Name": name} for name in layers])


def timing(path: Path, compute_ms: float) -> None:
    rows = [{"computeMs": compute_ms, "latencyMs": compute_ms, "startComputeMs": i} for i in (1, 2)]
    path.write_text(json.dumps(rows))


def test_a_timing_file_without_times_does_not_hide_the_summary(tmp_path: Path) -> None:
    one = engine(tmp_path, "", ("a", "b"), 0.4)
    times = {"GPU Compute Time": [0.3, 0.4, 0.351, 0.351, 0.36], "Throughput": 2500.0}
    (tmp_path / "net.profile.metadata.json").write_text(json.dumps({"performance_summary": times}))
    (tmp_path / "net.timing.json").write_text(json.dumps([{"computeMs": "?"}]))
    found = open_plan(one)
    assert found.timing is not None
    assert (found.timing.throughput, found.timing.source) == (2500.0, "metadata")


def test_files_named_with_a_dash_lie_beside(tmp_path: Path) -> None:
    graph = write_layers(tmp_path / "X-layer-info.json", [{"Name": "a"}])
    (tmp_path / "X-profile.json").write_text('[{"count": 1}, {"name": "a", "averageMs": 2.0}]')
    (tmp_path / "Y-profile.json").write_text('[{"count": 1}, {"name": "a", "averageMs": 3.0}]')
    assert open_plan(graph).total_ms == 2.0
