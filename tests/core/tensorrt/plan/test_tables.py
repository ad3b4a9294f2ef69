"""Tables, groups, the summary and the JSON document."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.report.groups import group_layers
from dld_tui.core.report.layer_table import select
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import FINE_MS, RATIO, SHORT, TEXT, Table
from dld_tui.core.tensorrt.plan.engine_plan import TimeStatistics, TimingSummary
from dld_tui.core.tensorrt.plan.export import plan_sheets
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.lint import findings
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import distribution, matching, summary_lines
from dld_tui.core.tensorrt.plan.tables import VIEWS, group_table, layers_of_row, make_table
from tests.support.engine_files import write_engine
from tests.support.known import known
from tests.support.plans import layer, plan
from tests.support.recorded import Recorded

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


def test_distribution() -> None:
    spread = known(distribution(PLAN))
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
    same = TimeStatistics(1.0, 1.0, 1.0, 1.0)
    times = TimingSummary(
        same, replace(same), replace(same, max=0.0), None, replace(same, mean=2.0), None
    )
    lines = list(summary_lines(replace(PLAN, timing=times)))
    assert [line[:12].strip() for line in lines if " ms median" in line] == [
        "GPU compute",
        "enqueue",
    ]


def test_records_are_grouped_by_a_detail(tmp_path: Path) -> None:
    plan = open_plan(write_engine(tmp_path))
    groups = group_layers(layer_records(plan, {}), "tactic")
    assert groups[0].key == "sm80_xmma_fprop_int8_half"
    assert groups[0].time_ms == 0.2


def test_the_sheets_of_a_plan() -> None:
    layers = [
        layer(0, "conv", of="fp16", time_ms=0.3),
        layer(1, "move", "Reformat", of="fp16", to="fp32", time_ms=0.1),
    ]
    engine = replace(plan(layers), notes=("1 layer without a name",), passes=1)
    found = findings(engine, {})
    sheets = dict(plan_sheets(engine, found))
    assert [*sheets][:4] == ["Summary", "Findings", "By type", "By precision"]
    assert sheets["Layers"].rows == make_table(engine, "layers").rows
    assert "Inference times" not in sheets  # none are known
    assert {one.rule for one in sheets["Findings"].rows} == {one.rule for one in found}
    named = sheets["Findings"].columns[-1]
    assert any("move" in str(named.value(one)) for one in sheets["Findings"].rows)
    name, value = (column.value for column in sheets["Summary"].columns)
    summary = [(name(row), value(row)) for row in sheets["Summary"].rows]
    assert ("plan", "net.json") in summary
    assert ("layer sum", "0.400 ms, mean of 1 pass") in summary
    assert ("note", "1 layer without a name") in summary


PLAN_of_filter = plan([
    layer(0, "/stem/conv + relu", of="int8", to="fp16", tactic="sm80_imma", time_ms=3.0,
          percent=60.0, metadata="[ONNX Layer: /stem/conv]", weights_bytes=100),
    layer(1, "QuantizeLinear_2", type="Reformat", origin="QDQ", of="fp16", to="int8", time_ms=1.0,
          percent=20.0),
    layer(2, "copy", type="Reformat", origin="REFORMAT", of="fp16", to="fp32", time_ms=1.0,
          percent=20.0),
])  # fmt: skip


def test_whole_filtered_tables(tmp_path: Path, recorded: Recorded) -> None:
    """Which rows of each view pass a filter, and what groups of the layers left sum to."""
    files = write_engine(tmp_path, timing=True)
    engines = {"small": PLAN, "formats": PLAN_of_filter, "file": open_plan(files)}
    texts = {}
    for name, engine in engines.items():
        mapping = map_plan(engine)
        lines = []
        for text in ("", " ", "conv", "type:reformat", "ms>0.2", "nothing", "node:stem"):
            for view in VIEWS:
                try:
                    table = make_table(engine, view, text, mapping)
                except (KeyError, UsageError) as error:
                    lines.append(f"{text!r} {view}: {error}")
                    continue
                rows = [f"{layers_of_row(row)}" for row in table.rows]
                shown = f"{len(rows)} rows" if len(rows) > 9 else "; ".join(rows)
                lines.append(f"{text!r} {view}, {table.title}: {shown}")
            for by in ("type", "precision", "tactic"):
                groups = group_table(engine, by, text, mapping)
                lines.append(f"{text!r} by {by}: " + "; ".join(
                    " ".join(column.shown_text(row) for column in groups.columns)
                    for row in groups.rows
                ))  # fmt: skip
        texts[name] = "\n".join(lines)
    recorded("whole_filtered_tables", texts)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [0, 1, 2]), ("origin:qdq", [1]), ("QDQ", [1]), ("type:conv", [0]),
        ("precision:int8", [0]),
        ("out:int8", [1]), ("conv relu", [0]), ("conv nothing", []), ("ms>1", [0]),
        ("%<=20", [1, 2]),
        ("tactic:imma", [0]), ("node:stem", [0]), ("scope:stem", [0]), ("bytes>0", [0, 1, 2]),
        ("weights>0", [0]), ("format:fp32", [2]), ("findings>0", [0, 1, 2]), ("1.2.3", []),
        ("kind:reformat ms<2", [1, 2]), ("ms<3", [1, 2]),
    ],
)  # fmt: skip
def test_as_on_the_screen(text: str, found: list[int]) -> None:
    mapping = map_plan(PLAN_of_filter)
    wrong = findings(PLAN_of_filter, mapping)
    records = layer_records(PLAN_of_filter, mapping, wrong)
    assert select(records, text, engine=True) == found
    if not text.startswith("findings"):
        assert [one.index for one in matching(PLAN_of_filter, text, mapping)] == found
