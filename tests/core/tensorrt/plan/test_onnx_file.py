"""A plan as an ONNX file: its layers as nodes, accepted by onnx's checker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from dld_tui.core.tensorrt.plan.engine_plan import EngineTensor
from dld_tui.core.tensorrt.plan.export import write_plan_model
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.text import visible
from tests.support.plans import layer, plan, tensor


def named(name: str, dtype: str = "fp16") -> EngineTensor:
    return replace(tensor(dtype, (1, -1, 8, 8)), name=name)


def test_texts_that_no_file_can_have_are_as_they_are_shown(tmp_path: Path) -> None:
    ends = (named("y\ud83d"), named("y\\ud83d"))
    engine = plan([layer(0, "a\udc80\x1b", inputs=(named("x\n"),), outputs=ends, tactic="\ud800")])
    write_plan_model(engine, {}, tmp_path / "odd.onnx")
    (node,) = onnx.load(tmp_path / "odd.onnx").graph.node
    assert node.name == visible("a\udc80\x1b")
    assert len(set(node.output)) == 2
    assert all(name.isprintable() for name in (*node.input, *node.output))


@pytest.mark.broad
def test_real_engines(real_files: Path, tmp_path: Path) -> None:
    seen = 0
    for path in sorted((real_files / "engines").rglob("*.graph.json"))[:4]:
        engine = open_plan(path)
        target = tmp_path / f"{seen}.onnx"
        assert write_plan_model(engine, map_plan(engine, None), target) == []
        model = onnx.load(target)
        onnx.checker.check_model(model)
        assert [node.name for node in model.graph.node] == [one.name for one in engine.layers]
        writes = [name for node in model.graph.node for name in node.output]
        assert len(writes) == sum(len(one.outputs) for one in engine.layers)
        times = [one.time_ms for one in engine.layers if one.time_ms is not None]
        told = [a.f for n in model.graph.node for a in n.attribute if a.name == "time_ms"]
        assert told == pytest.approx(times, rel=1e-6)
        seen += 1
    assert seen
