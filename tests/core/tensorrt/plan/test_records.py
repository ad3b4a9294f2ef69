from __future__ import annotations

from pathlib import Path

from dld_tui.core.report.groups import group_layers, output_bytes
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.lint import findings
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from tests.support.engine_files import write_engine


def test_layers_become_records_with_their_place(tmp_path: Path) -> None:
    plan = open_plan(write_engine(tmp_path))
    mapping = map_plan(plan)
    records = layer_records(plan, mapping, findings(plan, mapping))
    assert [record.index for record in records] == list(range(5))
    second = records[2]
    assert (second.type, second.precision, second.time_ms) == ("Convolution", "int8", 0.2)
    assert second.engine is not None
    assert second.engine.output_precision == "fp16"
    assert second.engine.tactic == "sm80_xmma_fprop_int8_half"
    assert second.engine.footprint == plan.layers[2].footprint
    assert second.engine.findings
    assert output_bytes(second) == 8 * 64 * 28 * 28 * 2
    assert [link.name for link in records[1].nodes] == ["/block/conv1/Conv"]


def test_records_are_grouped_by_a_detail(tmp_path: Path) -> None:
    plan = open_plan(write_engine(tmp_path))
    groups = group_layers(layer_records(plan, {}), "tactic")
    assert groups[0].key == "sm80_xmma_fprop_int8_half"
    assert groups[0].time_ms == 0.2
