"""Costs of drawn models with functions, against the same models with their calls inlined."""

from __future__ import annotations

import random
from pathlib import Path

import onnx
import onnx.inliner
import pytest

from dld_tui.core.model.cost.nodes import ModelCosts
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.shapes.inference import infer, store_types
from tests.support.models import parse

_UNARY = ("Relu", "Softmax", "Sigmoid", "Transpose", "Neg")


def _body(dice: random.Random, callable_names: list[str], made: str) -> str:
    """Return nodes from ``u`` to `made`: rows and columns may change places, and no more."""
    names, steps = ["u"], []
    for at in range(dice.randint(1, 4)):
        name, source = f"t{at}", dice.choice(names)
        kind = dice.choice([*_UNARY, "square", *callable_names])
        if kind == "square":
            steps.append(f"x{at} = Transpose ({source})  {name} = MatMul ({source}, x{at})")
        elif kind in callable_names:
            steps.append(f"{name} = local.{kind} ({source})")
        else:
            steps.append(f"{name} = {kind} ({source})")
        names.append(name)
    return " ".join([*steps, f"{made} = Abs ({names[-1]})"])


def drawn(seed: int) -> onnx.ModelProto:
    """Return a model that calls functions, which call others, with different shapes."""
    dice = random.Random(seed)
    functions, names = [], list[str]()
    for at in range(dice.randint(1, 4)):
        body = _body(dice, names, "v")
        names.append(f"f{at}")
        functions.append(
            f'<domain: "local", opset_import: ["" : 18, "local" : 1]> f{at} (u) => (v) {{ {body} }}'
        )
    calls, inputs = [], []
    for at in range(dice.randint(2, 7)):
        rows = dice.choice(["N", "3", "8"])
        inputs.append(f"float[{rows}, {dice.choice([4, 5])}] i{at}")
        calls.append(f"o{at} = local.{dice.choice(names)} (i{at})")
    outputs = ", ".join(f"o{at}" for at in range(len(calls)))
    return parse(
        f'<ir_version: 10, opset_import: ["" : 18, "local" : 1]>'
        f" net ({', '.join(inputs)}) => ({outputs}) {{ {' '.join(calls)} }} {' '.join(functions)}"
    )


def counted(model: onnx.ModelProto, path: Path) -> ModelCosts:
    onnx.save(model, path)
    document = Document.open(path)
    store_types(document, infer(onnx.load(path)).model)
    return ModelCosts(document)


@pytest.mark.parametrize("seed", range(12))
def test_calls_cost_what_their_nodes_cost_in_their_place(seed: int, tmp_path: Path) -> None:
    model = drawn(seed)
    costs = counted(model, tmp_path / "m.onnx")
    flat = counted(onnx.inliner.inline_local_functions(model), tmp_path / "flat.onnx")
    assert None not in flat.total
    assert costs.total[:4] == flat.total[:4]
    assert costs.unknown == []
