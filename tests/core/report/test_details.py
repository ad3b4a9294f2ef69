"""The details of layers: typed when they are read, one flat JSON object where they are stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.report.details import details_fields, details_of
from dld_tui.core.report.records import Cost, Layer, LayerInformation
from dld_tui.core.report.report import Report
from dld_tui.core.types import JSON
from tests.support.profiles import write_report

ALL: dict[str, JSON] = {
    "node_index": 3, "around": "If_0", "shared_by": "macs",
    "flops": 0, "moved_bytes": 24, "parameter_bytes": 12, "activation_bytes": 8,
    "output_bytes": 4, "in_use_bytes": 4096, "arena_bytes": 8192, "arena_peak_bytes": 9000,
    "roof_ms": 0.5, "bound": "compute", "peak": "fp32", "launch_ms": 0.001,
    "engine_layer": 7, "kind": "Convolution", "layer_type": "CaskConvolution",
    "output_precision": "fp16", "tactic": "sm80_xmma", "origin": "REFORMAT", "stream": 0,
    "inserted": True, "mapping": "name", "mapping_confidence": "exact", "findings": 0,
    "footprint": 10, "weights_bytes": 6, "io_bytes": 4, "total_ms": 30.0, "average_ms": 3.0,
    "median_ms": 2.5, "trtexec_percentage": 60.0,
}  # fmt: skip


def test_a_report_keeps_every_fact_and_those_of_later_versions(tmp_path: Path) -> None:
    stored: dict[str, JSON] = {**ALL, "new_in_2030": [{"a": None}]}
    fields: Any = details_fields(stored)
    path = write_report(tmp_path / "r.dldprof", [(Layer("a", "Conv", **fields), [1.0])])
    with Report.open(path) as report:
        (read,) = report.layers
        assert details_of(read) == stored
    assert read.cost == Cost(0, 24, 12, 8, 4, 4096, 8192, 9000, 0.5, "compute", "fp32", 0.001)
    assert (read.node_index, read.around, read.shared_by) == (3, "If_0", "macs")
    assert read.engine is not None
    assert (read.engine.engine_layer, read.engine.inserted, read.engine.findings) == (7, True, 0)


def test_what_is_not_known_takes_no_room() -> None:
    assert details_of(Layer("a", "Conv")) == {}
    assert details_fields({}) == {}
    assert details_of(Layer("a", "Conv", cost=Cost(), engine=LayerInformation())) == {}
    fields: Any = details_fields({"flops": 3})
    assert Layer("a", "Conv", **fields) == Layer("a", "Conv", cost=Cost(flops=3))


@pytest.mark.parametrize("found", [1e999, float("nan"), 10**400, -1, True, "7", None, [], {}])
def test_what_no_figure_can_be_is_not_known(found: JSON) -> None:
    damaged = {key: found for key, value in ALL.items() if type(value) in (int, float)}
    assert details_fields({**damaged, "bound": "disk", "tactic": 5, "inserted": 1}) == {}
