"""Every figure of engine plans against those that a plain script makes of the raw JSON.

Two sets lie here; all sets of an A100 and an RTX 3090 below ``$DLD_ENGINES`` are compared where
that is given.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.export import plan_json
from dld_tui.core.tensorrt.plan.layer_work import above_roof
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import groups
from dld_tui.core.tensorrt.plan.tables import make_table
from tests.oracles.plans import recompute

DATA = Path(__file__).parent / "data"
WARM_UP_MS = 200.0


def compare(graph: Path, profile: Path, metadata: Path, timing: Path | None) -> int:
    """Compare all figures of a set and return how many there were."""
    device = json.loads(metadata.read_text())["device_information"]
    plan = open_plan(graph)
    shown: Any = plan_json(plan, mapping=map_plan(plan))
    expected = recompute.layers_of(graph, profile, device)
    figures = 0
    assert len(shown["layers"]) == len(expected)
    for layer, told in zip(shown["layers"], expected, strict=True):
        for key in told.keys() - {"gemm", "gb_per_s", "tmacs_per_s"}:
            assert layer[key] == pytest.approx(told[key], rel=1e-9), (told["name"], key)
            figures += 1
    figures += _products(plan, expected)
    figures += _wholes(shown, plan, expected)
    if timing is not None:
        for name, figures_of in recompute.timing_of(timing, WARM_UP_MS).items():
            for key, value in figures_of.items():
                assert shown["timing_ms"][name][key] == pytest.approx(value, rel=1e-9), (name, key)
                figures += 1
    return figures


def _products(plan: EnginePlan, expected: list[dict[str, Any]]) -> int:
    table = make_table(plan, "gemm")
    told = [layer for layer in expected if layer["gemm"] is not None]
    assert len(table.rows) == len(told)
    for row, layer in zip(table.rows, told, strict=True):
        cells = dict(zip(table.keys, table.values(row), strict=True))
        assert tuple(cells[key] for key in ("batch", "m", "n", "k")) == layer["gemm"]
        for key in ("gb_per_s", "tmacs_per_s"):
            assert cells[key] == pytest.approx(layer[key], rel=1e-9), (layer["name"], key)
    return 6 * len(told)


def _wholes(shown: Any, plan: EnginePlan, expected: list[dict[str, Any]]) -> int:
    summary = shown["summary"]
    assert summary["weights_bytes"] == sum(layer["weights_bytes"] for layer in expected)
    assert summary["activations_bytes"] == sum(layer["io_bytes"] for layer in expected)
    assert (summary["activations_complete"], summary["weights_estimated_bytes"]) == (True, 0)
    read = summary["activations_bytes"] - summary["unread_bytes"]
    assert read + summary["weights_bytes"] == sum(layer["footprint"] for layer in expected)
    count = 4
    for by in ("type", "precision"):
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
        for layer in expected:
            figures = (1, layer["time_ms"], layer["percent"], layer["footprint"])
            sums[layer[by]] = [a + b for a, b in zip(sums[layer[by]], figures, strict=True)]
        found = {
            group.key: [group.count, group.time_ms, group.percent, group.bytes]
            for group in groups(plan, by)
        }
        assert found == {key: pytest.approx(values, rel=1e-9) for key, values in sums.items()}
        count += 4 * len(sums)
    return count


@pytest.mark.parametrize("name", ["qat", "qat-residual-qgap"])
def test_the_sets_that_lie_here(name: str) -> None:
    timing = DATA / f"{name}.timing.json"
    graph, profile, metadata = (
        DATA / f"{name}.{role}.json" for role in ("graph", "profile", "profile.metadata")
    )
    assert compare(graph, profile, metadata, timing if timing.exists() else None) > 400


@pytest.mark.models
def test_all_sets_with_a_known_device(engines: Path) -> None:
    graphs = [
        path
        for path in sorted(engines.rglob("*.graph.json"))
        if {"A100", "RTX-3090"} & {*path.parts}
    ]
    assert graphs
    for graph in graphs:
        stem = graph.name.removesuffix(".graph.json")
        profile, metadata, timing = (
            graph.with_name(f"{stem}.{role}.json")
            for role in ("profile", "profile.metadata", "timing")
        )
        print(graph.parent.name, compare(graph, profile, metadata, timing), "figures")  # noqa: T201


@pytest.mark.models
def test_no_layer_is_faster_than_its_roof(engines: Path) -> None:
    """Of all files with times: the product leaves such a share out, and here there is none."""
    plans = [open_plan(path) for path in sorted(engines.rglob("*.graph*.json"))]
    assert sum(plan.total_ms is not None and bool(plan.device) for plan in plans) >= 10
    for plan in plans:
        assert above_roof(plan.layers, plan.device) == "", plan.path
