"""What the library says of whole models and plans, compared with the files beside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dld_tui import api
from dld_tui.api.plans import Plan
from dld_tui.core.errors import DldError
from tests.support import models
from tests.support.recorded import Recorded, settled
from tests.support.transcript_files import FILES

SCRIPT = """{"edit": "rename_node", "node": "start", "name": "a"}
{"edit": "rename_node", "node": "gone", "name": "b"}"""


def told(label: str, value: Any) -> str:
    return f"{label}: {value}"


def model_lines(folder: Path) -> Iterator[str]:
    """Yield what a model answers, is edited to, and is taken apart into."""
    path = models.write(folder, models.CHAIN)
    with api.open_model(path) as model:
        yield repr(model)
        yield model._repr_html_()
        yield told(
            "initializers",
            [(one.name, model.array(one.name).tolist()) for one in model.main.initializers],
        )
        for name in ("x", "nothing"):
            try:
                yield told(name, model.array(name))
            except DldError as error:
                yield told(name, error)
        yield told("find", [node.ref for node in model.find("Relu")])
        yield told("match", [(hit.nodes, hit.values) for hit in model.match("Relu(x)")])
        before = len(model.main.nodes)
        first = model.main.nodes[0]
        yield told("preview", model.rewrite("Relu(x) => Abs(x)", preview=True))
        assert len(model.main.nodes) == before
        yield told("rename", model.edit.rename_node(node=first, name="start"))
        yield told("rewrite", model.rewrite("Relu(x) => Abs(x)"))
        yield repr(model)
        yield told("operators", [node.op_type for node in model.main.nodes])
        model.undo()
        yield told("undone", [(node.name, node.op_type) for node in model.main.nodes])
        for wanted in ({}, {"nodes": [model.main.nodes[0]]}, {"outputs": [*model.main.outputs]}):
            try:
                part = model.extract(**wanted)
                yield told("part", (type(part).__name__, [node.name for node in part.main.nodes]))
            except DldError as error:
                yield told("part", error)
        yield told("script", model.run_script(SCRIPT))
        (folder / "one.jsonl").write_text(SCRIPT)
        (folder / "bad.jsonl").write_text("no JSON")
        one, bad = folder / "one.jsonl", folder / "bad.jsonl"
        scripts: list[str | Path] = [
            "none.jsonl", Path("none.jsonl"), one, str(one), bad, "bad\n", SCRIPT.partition("\n")[0]
        ]  # fmt: skip
        for script in scripts:
            try:
                yield told("script", model.run_script(script))
            except DldError as error:
                yield told("script", error)
        yield told("saved", model.save(folder / "copy.onnx"))
        model.edit.rename_node(node=model.main.nodes[1], name="other")
        other = models.write(folder, models.CHAIN, "other.onnx")
        for force in (False, True):
            try:
                yield told("again", model.save(path.with_name("copy.onnx"), force=force))
                yield told("another", model.save(other, force=force))
            except DldError as error:
                yield told("again", error)
        yield told("check", [finding.message for finding in model.check()])
    yield repr(model)
    yield told("diff", api.diff(path, folder / "copy.onnx").scopes[0].changes)


def test_whole_models(tmp_path: Path, recorded: Recorded) -> None:
    text = "\n".join(model_lines(tmp_path)).replace(str(tmp_path), "FOLDER")
    recorded("whole_models", {"chain": text})


def plan_lines(plan: Plan) -> Iterator[str]:
    yield f"{plan!r} {len(plan)} {plan.title} {plan.notes}"
    yield told("summary", json.dumps(plan.summary))
    yield told("timing", json.dumps(plan.timing))
    yield told("inferences", {name: len(some) for name, some in plan.inferences.items()})
    yield from (told("layer", json.dumps(one)) for one in plan.layers[:3])
    yield from (told("finding", json.dumps(one)) for one in plan.findings[:4])
    yield told("bindings", json.dumps(plan.bindings))
    yield told("by type", json.dumps(plan.table("type")))
    yield told("memory", json.dumps(plan.table("memory", "ms>0")[:2]))
    yield told("selected", [record["index"] for record in plan.select("ms>0")])
    with pytest.raises(ValueError, match="no view 'colour': there are layers, "):
        plan.table("colour")


def test_whole_plans(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for name in ("tiny.engine.graph.json", "resnet.graph.json", "slow.graph.json"):
        FILES[name](tmp_path / name)
        model = None
        if name.startswith("tiny"):
            model = tmp_path / "tiny.onnx"
            FILES[model.name](model)
        lines = plan_lines(Plan(tmp_path / name, model=model))
        texts[name] = settled("\n".join(lines), tmp_path)
    alone = Plan(tmp_path / "slow.graph.json", beside=False)
    FILES["fast.graph.json"](tmp_path / "fast.graph.json")
    given = Plan(tmp_path / "slow.graph.json", beside=False, profile=tmp_path / "fast.profile.json")
    texts["alone"] = settled(json.dumps([alone.summary, alone.timing, alone.inferences]))
    texts["other times"] = f"{settled(json.dumps(given.summary))} {given.notes}"
    recorded("whole_plans", texts)
