"""The comparison as a whole: what it must say of known edits."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.compare.diff import ModelChange, ModelDiff, diff_documents
from dld_tui.core.compare.diff.matching import out_of_order
from dld_tui.core.errors import CancelledError
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.diff_models import copy_of, graphs, with_other_names


def compare(old: onnx.ModelProto, new: onnx.ModelProto, **options: Any) -> ModelDiff:
    return diff_documents(Document(copy_of(old)), Document(copy_of(new)), **options)


def brief(found: ModelDiff) -> list[tuple[str, str, str | None, str | None]]:
    return [(c.kind, c.status, c.old, c.new) for _, c in found.all_changes()]


def only(found: ModelDiff) -> ModelChange:
    changes = [change for _, change in found.all_changes()]
    assert len(changes) == 1, brief(found)
    return changes[0]


def fields(change: ModelChange) -> list[tuple[str, str | None, str | None]]:
    return [(field.name, field.old, field.new) for field in change.fields]


def test_cancel() -> None:
    model = models.parse(models.CHAIN)
    with pytest.raises(CancelledError):
        compare(model, model, cancelled=lambda: True)


def test_real_models(real_models: Path, tmp_path: Path) -> None:
    for name in ("silero_vad_16k_op15", "functions_encoder_op18", "ppocrv2_cls"):
        path = real_models / "onnx" / f"{name}.onnx"
        old = Document.open(path)
        assert diff_documents(old, Document.open(path)).same
        renamed = tmp_path / "renamed.onnx"
        renamed.write_bytes(with_other_names(onnx.load(path)).SerializeToString())
        found = diff_documents(old, Document.open(renamed))
        assert {change.status for _, change in found.all_changes()} == {"renamed"}, name


@settings(max_examples=25)
@given(graphs())
def test_a_model_is_the_same_as_itself(model: onnx.ModelProto) -> None:
    found = compare(model, model)
    assert found.same, brief(found)
    assert found.counts() == {}
    document = Document(copy_of(model))
    assert diff_documents(document, document).same


@settings(max_examples=25)
@given(graphs(), st.data())
def test_a_renamed_node_is_all_that_differs(model: onnx.ModelProto, data: st.DataObject) -> None:
    edited = Document(copy_of(model))
    node = data.draw(st.sampled_from(edited.main.nodes))
    before = node.name
    edited.apply("rename_node", scope=[], node=node.ref, name="fresh")
    change = only(diff_documents(Document(copy_of(model)), edited))
    assert (change.kind, change.status, change.new) == ("node", "renamed", "fresh")
    assert fields(change) == [("name", before, "fresh")]
    assert change.new_node is node


@settings(max_examples=25)
@given(graphs(), st.data())
def test_a_set_attribute_is_all_that_differs(model: onnx.ModelProto, data: st.DataObject) -> None:
    edited = Document(copy_of(model))
    node = data.draw(st.sampled_from(edited.main.nodes))
    edited.apply(
        "set_attribute", scope=[], node=node.ref, attribute="alpha", kind="float", value=0.25
    )
    change = only(diff_documents(Document(copy_of(model)), edited))
    assert (change.kind, change.status, change.new_node) == ("node", "changed", node)
    before = "0.5" if node.op_type == "LeakyRelu" else None
    assert fields(change) == [("attribute alpha", before, "0.25")]


@settings(max_examples=30)
@given(graphs(), st.data())
def test_deleted_nodes_are_removed_and_no_other(
    model: onnx.ModelProto, data: st.DataObject
) -> None:
    old, edited = Document(copy_of(model)), Document(copy_of(model))
    count = len(edited.main.nodes)
    gone = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=max(1, count // 2)))
    refs = [edited.main.nodes[index].ref for index in sorted(gone)]
    outputs = {old.main.nodes[index].outputs[0] for index in gone}
    edited.apply("delete_nodes", scope=[], nodes=[*refs])
    found = diff_documents(old, edited)
    nodes = [change for _, change in found.all_changes() if change.kind == "node"]
    assert {(change.status, change.old_node) for change in nodes} == {
        ("removed", old.main.nodes[index]) for index in gone
    }
    # What is left without a source is a graph output at most: the inputs keep their names.
    others = [change for _, change in found.all_changes() if change.kind != "node"]
    assert all(change.kind == "output" and change.old in outputs for change in others)


@settings(max_examples=25)
@given(graphs(named=True), st.data())
def test_deleting_with_reconnect_changes_the_users_only(
    model: onnx.ModelProto, data: st.DataObject
) -> None:
    old, edited = Document(copy_of(model)), Document(copy_of(model))
    candidates = [
        node
        for node in edited.main.nodes
        if node.op_type in ("Relu", "Neg", "Abs") and node.outputs[0] not in edited.main.outputs
    ]
    if not candidates:
        return
    node = data.draw(st.sampled_from(candidates))
    if node.inputs[0].startswith("w"):
        return  # an initializer cannot stand for it
    name = node.name
    users = {use.node.name for use in edited.main.users(node.outputs[0])}
    edited.apply("delete_nodes", scope=[], nodes=[node.ref], reconnect=True)
    found = diff_documents(old, edited)
    assert {(c.status, c.name) for _, c in found.all_changes()} == {
        ("removed", name),
        *(("changed", user) for user in users),
    }


@settings(max_examples=30)
@given(graphs())
def test_other_names_are_all_renamed(model: onnx.ModelProto) -> None:
    found = compare(model, with_other_names(model))
    assert {change.status for _, change in found.all_changes()} <= {"renamed"}, brief(found)
    assert found.counts()["node"] == {"renamed": len(model.graph.node)}


@pytest.mark.broad
@settings(max_examples=25)
@given(graphs(), graphs())
def test_any_two_models_compare_and_both_ways_say_the_same(
    first: onnx.ModelProto, second: onnx.ModelProto
) -> None:
    found, back = compare(first, second), compare(second, first)
    assert found.same == back.same == (first == second)
    assert brief(found) == brief(compare(first, second))
    partners = found.scopes[0].partners
    matched = [partner for partner in partners if partner >= 0]
    assert len(set(matched)) == len(matched)
    counts = found.counts().get("node", {})
    assert len(partners) - len(matched) == counts.get("removed", 0)
    assert len(second.graph.node) - len(matched) == counts.get("added", 0)


class _Step(NamedTuple):
    number: int
    """What stays the same through all edits."""
    op_type: str
    inputs: tuple[int, ...]
    """Numbers of the steps; of weights from 1000 on, -1 is the input."""


def _network(draw: random.Random) -> list[_Step]:
    """Return blocks in a row: some with a weight of their own, some with a way around."""
    steps: list[_Step] = []
    last = -1
    for _ in range(draw.randint(3, 7)):
        before = last
        for op_type in draw.choice([("MatMul", "Relu"), ("MatMul", "Add", "Neg"), ("Abs",)]):
            number = len(steps)
            more = (1000 + number,) if op_type in ("MatMul", "Add") else ()
            steps.append(_Step(number, op_type, (last, *more)))
            last = number
        if draw.random() < 0.5:
            steps.append(_Step(len(steps), "Mul", (last, before)))
            last = len(steps) - 1
    return steps


def _edited(steps: list[_Step], kind: str, draw: random.Random) -> list[_Step]:
    at = draw.randrange(len(steps))
    number, _, (first, *more) = steps[at]
    if kind == "changed":
        other = "Tanh" if not more else "Sub"
        return [*steps[:at], _Step(number, other, (first, *more)), *steps[at + 1 :]]
    new, old = (first, number) if kind == "deleted" else (500, first)
    after = [
        step._replace(inputs=tuple(new if one == old else one for one in step.inputs))
        for step in steps[at + (kind == "deleted") :]
    ]
    return [*steps[:at], *([_Step(500, "Neg", (first,))] if kind == "added" else []), *after]


def _model(steps: list[_Step], naming: str) -> onnx.ModelProto:
    places = {step.number: at for at, step in enumerate(steps)}
    weights = [one for step in steps for one in step.inputs if one >= 1000]

    def name(number: int) -> str:
        if number == -1:
            return "x"
        if naming == "numbered":
            return f"w{weights.index(number)}" if number in weights else f"v{places[number]}"
        return f"{naming}{number}"

    make = onnx.helper.make_tensor_value_info
    nodes = [
        onnx.helper.make_node(
            op_type, [*map(name, inputs)], [name(number)],
            "" if naming == "other" else f"{op_type}_{name(number)}",
        )
        for number, op_type, inputs in steps
    ]  # fmt: skip
    stored = [
        onnx.numpy_helper.from_array(np.full((2, 2), one, np.float32), name(one)) for one in weights
    ]
    outputs = [make(nodes[-1].output[0], 1, [2, 2])]
    graph = onnx.helper.make_graph(nodes, "g", [make("x", 1, [2, 2])], outputs, stored)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])


@pytest.mark.parametrize(
    ("naming", "kind", "most"),
    [
        ("v", "deleted", 0), ("v", "added", 0), ("v", "changed", 0),
        ("numbered", "deleted", 14), ("numbered", "added", 2), ("numbered", "changed", 0),
        ("other", "deleted", 0), ("other", "added", 1), ("other", "changed", 0),
    ],
)  # fmt: skip
def test_nodes_are_found_again_whatever_their_names(naming: str, kind: str, most: int) -> None:
    """Where blocks are alike, another one may be taken for the one that was edited."""
    wrong = 0
    for seed in range(15):
        draw = random.Random(seed)
        steps = _network(draw)
        edited = _edited(steps, kind, draw)
        places = {step.number: at for at, step in enumerate(edited)}
        before = _model(steps, "v" if naming == "other" else naming)
        partners = compare(before, _model(edited, naming)).scopes[0].partners
        wrong += sum(
            partner != places.get(step.number, -1)
            for step, partner in zip(steps, partners, strict=True)
        )
    assert wrong <= most


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [(1, "renamed", []), (6, "changed", [("dtype", "float32", "int32")])],
)
def test_a_renamed_initializer_may_have_another_type(kind: int, status: str, told: Any) -> None:
    made = []
    for name, data_type in (("w", 1), ("v", kind)):
        text = f"""<ir_version: 10, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] y) {{ c = Cast<to = 1>({name}) y = Add(x, c) }}"""
        made.append(models.parse(text))
        made[-1].graph.initializer.add(name=name, data_type=data_type, dims=[2], raw_data=bytes(8))
    change = only(compare(*made))
    assert (change.kind, change.status) == ("initializer", status)
    assert fields(change) == [("name", "w", "v"), *told]


def test_branches_are_told_apart_by_their_weights() -> None:
    branches = [_Step(number, "MatMul", (-1, 1000 + number)) for number in range(5)]
    before = _model([*branches, _Step(5, "Sum", (0, 1, 2, 3, 4))], "v")
    for order in ((4, 3, 2, 1, 0), (1, 2, 3, 4, 0), (2, 0, 1, 4, 3)):
        after = _model([*(branches[at] for at in order), _Step(5, "Sum", order)], "other")
        partners = compare(before, after).scopes[0].partners
        assert partners == [*(order.index(at) for at in range(5)), 5]


def test_branches_that_begin_alike_are_told_apart_by_their_ends() -> None:
    graph = '<ir_version: 10, opset_import: ["" : 18]>\ng (float[2] x) => (float[2] y, float[2] z)'
    before = models.parse(
        f"""{graph} {{ a = Relu(x) b = Elu <alpha = 0.1> (a) y = Sin(b)
        c = Relu(x) d = Elu <alpha = 0.2> (c) z = Cos(d) }}"""
    )
    after = models.parse(
        f"""{graph} {{ p = Relu(x) q = Elu <alpha = 0.3> (p) z = Cos(q)
        r = Relu(x) s = Elu <alpha = 0.4> (r) y = Sin(s) }}"""
    )
    assert compare(before, after).scopes[0].partners == [3, 4, 5, 0, 1, 2]


def test_out_of_order() -> None:
    assert out_of_order([]) == 0
    assert out_of_order([1, 5, 9]) == 0
    assert out_of_order([9, 1, 5]) == 1
    assert out_of_order([3, 2, 1]) == 2
