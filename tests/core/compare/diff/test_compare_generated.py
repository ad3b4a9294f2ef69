"""The comparison as a whole: what holds for any model and edit."""

from __future__ import annotations

from typing import Any

import onnx
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.compare.diff import ModelChange, ModelDiff, diff_documents
from dld_tui.core.document import Document
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


@settings(max_examples=60)
@given(graphs())
def test_a_model_is_the_same_as_itself(model: onnx.ModelProto) -> None:
    found = compare(model, model)
    assert found.same, brief(found)
    assert found.counts() == {}
    document = Document(copy_of(model))
    assert diff_documents(document, document).same


@settings(max_examples=60)
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


@settings(max_examples=60)
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


@settings(max_examples=100)
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


@settings(max_examples=60)
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


@settings(max_examples=100)
@given(graphs())
def test_other_names_are_all_renamed(model: onnx.ModelProto) -> None:
    found = compare(model, with_other_names(model))
    assert {change.status for _, change in found.all_changes()} <= {"renamed"}, brief(found)
    assert found.counts()["node"] == {"renamed": len(model.graph.node)}


@settings(max_examples=60)
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
