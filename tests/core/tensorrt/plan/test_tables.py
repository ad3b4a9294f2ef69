"""Tables, groups, the summary and the JSON document."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.report.schema import finite
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import FINE_MS, RATIO, SHORT, TEXT, Table
from dld_tui.core.tensorrt.plan.engine_plan import TimeStatistics, TimingSummary
from dld_tui.core.tensorrt.plan.export import plan_json
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import distribution, groups, matching, summary_lines
from dld_tui.core.tensorrt.plan.tables import VIEWS, group_table, make_table
from tests.support.plans import layer, plan

CONV = layer(
    0, "conv", of="int8", to="fp16", time_ms=3.0, percent=75.0, weights_bytes=100, tactic="t",
    attributes={"Kernel": [3, 3], "OutMaps": 16, "Stride": [1, 1]},
)  # fmt: skip
SLOW_REFORMAT = layer(
    1, "to fp16", "Reformat", of="fp32", to="fp16", origin="QDQ", time_ms=1.0, percent=25.0
)
SHAPE = layer(2, "shape", "kgen", inputs=(), outputs=(), tactic="__myl_MulSum_0x", time_ms=0.0)
PLAN = plan([CONV, SLOW_REFORMAT, SHAPE], device={"Name": "NVIDIA A100 80GB PCIe"})


def column(view: str, key: str) -> list[object]:
    return column_of(make_table(PLAN, view), key)


def column_of(table: Table[Any], key: str) -> list[Any]:
    return [table.column(key).value(row) for row in table.rows]


def test_every_view_has_a_value_for_every_column() -> None:
    for view in VIEWS:
        table = make_table(PLAN, view)
        rows = list(csv.reader(io.StringIO(csv_of(table))))
        assert len(rows) == 1 + len(table.rows)
        assert {len(row) for row in rows} == {len(table.columns)}


def test_layers() -> None:
    assert column("layers", "precision") == ["int8", "fp32", "fp32"]
    assert column("layers", "footprint") == [1024 + 2048 + 100, 4096 + 2048, 0]


def test_convolutions_and_products() -> None:
    assert column("convolutions", "macs") == [64 * 16 * 16 * 9]
    assert column("convolutions", "kernel") == ["3x3"]
    assert column("gemm", "k") == [144]
    [efficiency] = column("gemm", "efficiency_percent")
    assert isinstance(efficiency, float)
    assert 0 < efficiency < 1
    without_roof = make_table(replace(PLAN, device={}), "gemm")
    assert column_of(without_roof, "efficiency_percent") == [None]


def test_reformats_and_pointwise() -> None:
    assert column("reformats", "origin") == ["QDQ"]
    assert column("reformats", "converts") == ["type"]
    assert column("pointwise", "operations") == ["Mul, Sum"]


def test_timing_over_the_iterations() -> None:
    statistics = TimeStatistics(1, 2, 1.5, 1.5)
    timing = TimingSummary(
        None, statistics, None, None, None, 1.0, {"compute": tuple(map(float, range(100)))}
    )
    table = make_table(plan([], timing), "timing")
    assert column_of(table, "what")[:2] == ["GPU compute", "GPU compute, inferences 1 to 10"]
    assert column_of(table, "median_ms")[1] == 4.5


def test_filter_sort_and_groups() -> None:
    assert [found.name for found in matching(PLAN, "QDQ")] == ["to fp16"]
    assert column_of(make_table(PLAN, "layers", "INT8"), "name") == ["conv"]
    by_name = make_table(PLAN, "layers").sorted_by("name")
    assert column_of(by_name, "name") == ["conv", "shape", "to fp16"]
    by_bytes = make_table(PLAN, "layers").sorted_by("io_bytes")
    assert column_of(by_bytes, "name") == ["to fp16", "conv", "shape"]
    with pytest.raises(UsageError, match="--sort colour"):
        make_table(PLAN, "layers").sorted_by("colour")
    found = {group.key: group for group in groups(PLAN, "type")}
    assert (found["Convolution"].time_ms, found["Convolution"].percent) == (3.0, 75.0)
    assert column_of(group_table(PLAN, "precision"), "key") == ["int8", "fp32"]


def test_distribution() -> None:
    spread = distribution(PLAN)
    assert spread is not None
    assert (spread.half, spread.zero, spread.max_ms) == (1, 1, 3.0)
    assert distribution(plan([layer()])) is None


def test_cells() -> None:
    assert TEXT.shown(None) == TEXT.shown("") == "–"
    assert SHORT.shown(2_500_000) == "2.5 M"
    assert FINE_MS.shown(0.5) == "0.5000"
    assert RATIO.shown(1234.5) == "1,234"


def test_summary() -> None:
    lines = list(summary_lines(replace(PLAN, model_path="m.onnx", profile_count=2)))
    assert lines[:3] == [
        "plan         net.json", "device       NVIDIA A100 80GB PCIe", "model        m.onnx"
    ]  # fmt: skip
    assert "layer sum    4.000 ms, mean of 10 passes" in lines
    assert "weights      at least 100 B" in lines  # a generated kernel lists none
    assert "activations  9.22 kB" in lines
    assert "spread       half of the time is in 1 layer; 1 layer of no time" in lines
    assert "profile      0 of 2" in lines


def test_json_has_what_the_contract_says() -> None:
    document = plan_json(PLAN, [], map_plan(PLAN), make_table(PLAN, "layers"))
    summary = document["summary"]
    assert isinstance(summary, dict)
    wanted = {"layers": 3, "total_ms": 4.0, "weights_bytes": 100, "activations_bytes": 9216}
    assert {key: summary[key] for key in wanted} == wanted
    assert document["findings"] == []
    layers, table = document["layers"], document["table"]
    assert isinstance(layers, list)
    assert isinstance(table, dict)
    first = layers[0]
    assert isinstance(first, dict)
    assert first["nodes"] == ["conv"]
    assert isinstance(table["rows"], list)
    assert len(table["rows"]) == 3
    json.dumps(document, allow_nan=False)


def test_json_of_a_real_plan(real_files: Path) -> None:
    folder = real_files / "engines/trex/examples/pytorch/resnet/A100/fp16"
    found = open_plan(folder / "resnet.onnx.engine.graph.json")
    document = plan_json(found)
    json.dumps(finite(document), allow_nan=False)
    # ResNet-18 at batch 32 has 1.82 G multiply-accumulates an image.
    total = sum(count or 0 for count in column_of(make_table(found, "gemm"), "macs"))
    assert total == pytest.approx(32 * 1.82e9, rel=0.01)
