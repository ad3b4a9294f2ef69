"""Tables, groups, the summary and the JSON document."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.plan.export import plan_json
from dld_tui.core.plan.filter import matching
from dld_tui.core.plan.groups import distribution, groups
from dld_tui.core.plan.mapping import map_plan
from dld_tui.core.plan.model import TimeStatistics, TimingSummary
from dld_tui.core.plan.reader import open_plan
from dld_tui.core.plan.summary import summary_lines
from dld_tui.core.plan.table_values import TEXT
from dld_tui.core.plan.tables import (
    VIEWS,
    cell_text,
    group_table,
    make_table,
    sorted_table,
    table_csv,
    tensor_text,
)
from dld_tui.core.report.encoding import finite
from tests.support.plans import layer, plan, tensor

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
    table = make_table(PLAN, view)
    place = [column.key for column in table.columns].index(key)
    return [row[place] for row in table.rows]


def test_every_view_has_a_value_for_every_column() -> None:
    for view in VIEWS:
        table = make_table(PLAN, view)
        assert {len(row) for row in table.rows} <= {len(table.columns)}
        assert len(list(csv.reader(io.StringIO(table_csv(table))))) == 1 + len(table.rows)


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
    assert make_table(replace(PLAN, device={}), "gemm").rows[0][-2] is None


def test_reformats_and_pointwise() -> None:
    assert column("reformats", "origin") == ["QDQ"]
    assert column("reformats", "converts") == ["type"]
    assert column("pointwise", "operations") == ["Mul, Sum"]


def test_timing_over_the_iterations() -> None:
    statistics = TimeStatistics(1, 2, 1.5, 1.5)
    timing = TimingSummary(
        None, statistics, None, None, None, 1.0, {"compute": tuple(map(float, range(100)))}
    )
    rows = make_table(plan([], timing), "timing").rows
    assert [row[0] for row in rows[:2]] == ["GPU compute", "GPU compute, inferences 1 to 10"]
    assert rows[1][3] == 4.5


def test_filter_sort_and_groups() -> None:
    assert [found.name for found in matching(PLAN, "QDQ")] == ["to fp16"]
    assert [row[1] for row in make_table(PLAN, "layers", "INT8").rows] == ["conv"]
    by_name = sorted_table(make_table(PLAN, "layers"), "name")
    assert [row[1] for row in by_name.rows] == ["conv", "shape", "to fp16"]
    by_bytes = sorted_table(make_table(PLAN, "layers"), "io_bytes")
    assert [row[1] for row in by_bytes.rows] == ["to fp16", "conv", "shape"]
    with pytest.raises(UsageError, match="--sort colour"):
        sorted_table(make_table(PLAN, "layers"), "colour")
    found = {group.key: group for group in groups(PLAN, "type")}
    assert (found["Convolution"].time_ms, found["Convolution"].percent) == (3.0, 75.0)
    assert [row[0] for row in group_table(PLAN, "precision").rows] == ["int8", "fp32"]


def test_distribution() -> None:
    spread = distribution(PLAN)
    assert spread is not None
    assert (spread.half, spread.zero, spread.max_ms) == (1, 1, 3.0)
    assert distribution(plan([layer()])) is None


def test_cells() -> None:
    assert cell_text(None, TEXT) == cell_text("", TEXT) == "–"
    assert cell_text(2_500_000, "macs") == "2.5 M"
    assert cell_text(0.5, "ms") == "0.5000"
    assert cell_text(1234.5, "ratio") == "1,234"
    assert tensor_text([tensor("fp16", (1, -1)), tensor("", None)]) == "fp16[1,-1], ?[…]"


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
    total = sum(row[list(c.key for c in t.columns).index("macs")] or 0  # type: ignore[misc]
                for t in [make_table(found, "gemm")] for row in t.rows)  # fmt: skip
    assert total == pytest.approx(32 * 1.82e9, rel=0.01)
