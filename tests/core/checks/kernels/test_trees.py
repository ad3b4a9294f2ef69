"""Whether rules of ensembles of trees refuse what ONNX Runtime refuses, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import onnx
import onnxruntime
import pytest
from onnx import helper

from dld_tui.core.checks.prediction import predict
from tests.support.runtime import needs_onnxruntime
from tests.support.tiers import first

pytestmark = needs_onnxruntime(31)


def grown(draw: random.Random) -> list[tuple[str, int, int]]:
    """Return the mode and the two children of each node of a tree."""
    nodes: list[tuple[str, int, int]] = []

    def add(depth: int) -> int:
        place = len(nodes)
        nodes.append(("LEAF", 0, 0))
        if depth and draw.random() < 0.7:
            ends = [add(depth - 1), add(depth - 1)]
            draw.shuffle(ends)
            nodes[place] = ("BRANCH_LEQ", ends[0], ends[1])
        return place

    add(draw.randint(1, 3))
    return nodes


def ensemble(draw: random.Random, leaves: str) -> dict[str, Any]:
    """Return the attributes of one to three trees over four features."""
    made: dict[str, Any] = {f"nodes_{name}": [] for name in (
        "treeids", "nodeids", "modes", "truenodeids", "falsenodeids", "featureids", "values",
    )}  # fmt: skip
    made |= {f"{leaves}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(draw.randint(1, 3)):
        for node, (mode, yes, no) in enumerate(grown(draw)):
            row = (tree, node, mode, yes, no, draw.randrange(4), draw.random())
            for values, value in zip(list(made.values())[:7], row, strict=True):
                values.append(value)
            if mode == "LEAF":
                weight = (tree, node, draw.randrange(3), draw.random())
                for values, value in zip(list(made.values())[7:], weight, strict=True):
                    values.append(value)
    count: dict[str, Any] = (
        {"n_targets": 3} if leaves == "target" else {"classlabels_int64s": [0, 1, 2]}
    )
    return made | count


def mutate(draw: random.Random, attributes: dict[str, Any]) -> None:
    """Change one attribute.

    Nodes never lead to node 0: a way back to the first root ends the process in ONNX Runtime.
    """
    name = draw.choice(sorted(attributes))
    values = attributes[name]
    if isinstance(values, int):
        attributes[name] = draw.choice([0, 1, 2, 4, -1])
        return
    place, other = draw.randrange(len(values)), draw.randrange(len(values))
    kind = draw.choice(["set", "set", "drop", "repeat", "swap"])
    if kind == "set" and name == "nodes_modes":
        values[place] = draw.choice(["LEAF", "BRANCH_LEQ", "BRANCH_GT", "FOO"])
    elif kind == "set" and isinstance(values[place], int):
        values[place] = draw.choice([1, 2, 3, 4, 5, -1, 7, 1000])
    elif kind == "drop":
        del values[place]
    elif kind == "repeat":
        values.append(values[place])
    elif name not in ("nodes_truenodeids", "nodes_falsenodeids", "nodes_nodeids"):
        values[place], values[other] = values[other], values[place]


@pytest.mark.parametrize("seed", first(12, range(60)))
@pytest.mark.parametrize("leaves", ["target", "class"])
def test_what_is_refused_of_ensembles(seed: int, leaves: str) -> None:
    draw = random.Random(f"{leaves} {seed}")
    attributes = ensemble(draw, leaves)
    mutate(draw, attributes)
    kind = "Regressor" if leaves == "target" else "Classifier"
    given = {name: value for name, value in attributes.items() if value != []}
    outputs = ["y"] if leaves == "target" else ["label", "y"]
    node = helper.make_node(f"TreeEnsemble{kind}", ["x"], outputs, domain="ai.onnx.ml", **given)
    graph = helper.make_graph(
        [node], "trees",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )  # fmt: skip
    model = helper.make_model(
        graph, ir_version=8,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)],
    )  # fmt: skip
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        refused = None
    except Exception as error:  # noqa: BLE001 - whatever ONNX Runtime raises is a refusal
        refused = str(error)
    said = [prediction.remark.message for prediction in predict(model)[1]]
    assert bool(said) == bool(refused), refused or said
