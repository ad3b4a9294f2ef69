"""A plan as a workbook: what is on which sheet."""

from __future__ import annotations

from dataclasses import replace

from dld_tui.core.tensorrt.plan.export import plan_sheets
from dld_tui.core.tensorrt.plan.lint import findings
from dld_tui.core.tensorrt.plan.tables import make_table
from tests.support.plans import layer, plan


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
