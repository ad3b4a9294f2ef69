"""The fewest nodes that still fail, in bodies and local functions, too.

The model that is left is in ``tests/core/model/transcripts/reduction.txt``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator

import onnx
import onnxruntime
import pytest
from onnx.helper import make_tensor_value_info

from dld_tui.core.conversion.reduction import (
    extract_kept,
    main_nodes,
    minimize_nodes,
    node_labels,
    reached,
)
from dld_tui.core.events import Event, result_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.locations import bodies_of, nested_nodes
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.shapes.inference import infer_types, store_types
from dld_tui.core.trials import (
    Answer,
    KnownOutcomes,
    Limits,
    Outcome,
    Subset,
    Trials,
    Words,
    subset_key,
)
from tests.support.body_models import LOOP, SHAPES
from tests.support.drawn_models import drawn_model
from tests.support.models import parse
from tests.support.tiers import first


def opened(model: onnx.ModelProto) -> Document:
    document = Document(model, path=None)
    store_types(
        document, infer_types(onnx.ModelProto.FromString(skeleton_bytes(document)), None)[0]
    )
    return document


def declared(graph: onnx.GraphProto) -> None:
    """Say what Loops of a drawn model make: inference takes a rank that may change for unknown."""
    known = {info.name for info in (*graph.value_info, *graph.output)}
    for node in graph.node:
        for body in bodies_of(node):
            declared(body)
        if node.op_type == "Loop" and node.output[0] not in known:
            graph.value_info.append(make_tensor_value_info(node.output[0], 1, [2, 2]))


def written(document: Document, nodes: set[Node]) -> onnx.ModelProto | None:
    """Return the model of some nodes, which onnx's checker takes."""
    part = extract_kept(document, nodes)
    if part is None:
        return None
    model = onnx.ModelProto.FromString(skeleton_bytes(part.document))
    onnx.checker.check_model(model, full_check=True)
    return model


def inner_types(model: onnx.ModelProto) -> list[str]:
    """Return the operators in bodies and functions."""
    holders = [node for function in model.functions for node in function.node]
    bodies = [graph for node in (*model.graph.node, *holders) for graph in bodies_of(node)]
    inner = nested_nodes([*holders, *(node for graph in bodies for node in graph.node)])
    return [node.op_type for node in inner]


def reduced(
    document: Document, fails: Callable[[onnx.ModelProto], bool]
) -> tuple[onnx.ModelProto, set[Node]]:
    """Return the smallest part that fails, of which no node can be taken away."""

    def check(nodes: set[Node]) -> bool:
        model = written(document, nodes)
        return model is not None and fails(model)

    order = main_nodes(document)
    assert order is not None
    labels = node_labels(document, order)
    by_label = {label: node for node, label in labels.items()}
    assert len(by_label) == len(labels)

    def oracle(part: Subset) -> Generator[Event, None, Outcome]:
        yield from ()
        nodes = {by_label[label] for label in part}
        return Outcome(Answer.SUFFICIENT if check(nodes) else Answer.INSUFFICIENT)

    trials = Trials(
        oracle, subset_key, KnownOutcomes(Outcome, None), Limits(), str, Words("fails", "does not")
    )
    smallest, found = result_of(minimize_nodes(document, order, labels, trials))
    assert found.is_whole
    kept = set(smallest)
    for node in kept:
        main = [left for left in document.main.nodes if left in kept and left is not node]
        assert not main or not check(set(reached(document, main, kept - {node})))
    model = written(document, kept)
    assert model is not None
    assert fails(model)
    return model, kept


@pytest.mark.parametrize("seed", first(6, range(60)))
def test_what_is_left_fails_and_no_node_can_go(seed: int) -> None:
    drawn = drawn_model(seed)
    declared(drawn.graph)
    document = opened(drawn)
    every = list(reached(document, main_nodes(document) or []))
    inner = [node.op_type for node in every if node.scope is not document.main]
    if not inner:
        pytest.skip("no bodies")
    wanted = random.Random(seed).choice(inner)
    model, kept = reduced(document, lambda model: wanted in inner_types(model))
    assert len(kept) <= 4
    onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    ("text", "fails", "left"),
    [
        (LOOP, "Mul", {"scan", "times"}),
        (LOOP, "Add", {"repeat", "more"}),
        (SHAPES, "Abs", {"third", "choose", "h"}),
        (SHAPES, "Sub", {"first", "sub"}),
    ],
    ids=["scan", "loop", "body of a function", "function"],
)
def test_bodies_and_functions_lose_what_the_failure_needs_not(
    text: str, fails: str, left: set[str]
) -> None:
    _, kept = reduced(opened(parse(text)), lambda model: fails in inner_types(model))
    assert {node.name for node in kept} == left
