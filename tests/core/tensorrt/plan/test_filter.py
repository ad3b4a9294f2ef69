"""The filter of ``dld plan`` lets through what the Plan screen's does."""

from __future__ import annotations

import pytest

from dld_tui.core.report.layer_table import select
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.lint import findings
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.summary import matching
from tests.support.plans import layer, plan

PLAN = plan([
    layer(0, "/stem/conv + relu", of="int8", to="fp16", tactic="sm80_imma", time_ms=3.0,
          percent=60.0, metadata="[ONNX Layer: /stem/conv]", weights_bytes=100),
    layer(1, "QuantizeLinear_2", type="Reformat", origin="QDQ", of="fp16", to="int8", time_ms=1.0,
          percent=20.0),
    layer(2, "copy", type="Reformat", origin="REFORMAT", of="fp16", to="fp32", time_ms=1.0,
          percent=20.0),
])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [0, 1, 2]), ("origin:qdq", [1]), ("QDQ", [1]), ("type:conv", [0]),
        ("precision:int8", [0]),
        ("out:int8", [1]), ("conv relu", [0]), ("conv nothing", []), ("ms>1", [0]),
        ("%<=20", [1, 2]),
        ("tactic:imma", [0]), ("node:stem", [0]), ("scope:stem", [0]), ("bytes>0", [0, 1, 2]),
        ("weights>0", [0]), ("format:fp32", [2]), ("findings>0", [0, 1, 2]), ("1.2.3", []),
        ("kind:reformat ms<2", [1, 2]),
    ],
)  # fmt: skip
def test_as_on_the_screen(text: str, found: list[int]) -> None:
    mapping = map_plan(PLAN)
    wrong = findings(PLAN, mapping)
    records = layer_records(PLAN, mapping, wrong)
    assert select(records, text, engine=True) == found
    if not text.startswith("findings"):
        assert [one.index for one in matching(PLAN, text, mapping)] == found
