"""The text of a comparison, and the text of one model."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from onnx import helper, numpy_helper

from dld_tui.core.compare.diff import diff_documents
from dld_tui.core.compare.diff.text import lines, model_lines, summary
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.diff_models import copy_of, graphs, with_other_names


def text(old: onnx.ModelProto, new: onnx.ModelProto) -> str:
    found = diff_documents(Document(copy_of(old)), Document(copy_of(new)))
    return "\n".join("".join(part for part, _ in line) for line in lines(found))


def canonical(model: onnx.ModelProto, **options: bool) -> list[str]:
    return list(model_lines(Document(copy_of(model)), **options))


def test_every_kind_of_change() -> None:
    old = models.parse(models.CHAIN)
    new = models.parse(
        models.CHAIN.replace(": 18", ": 19")
        .replace("{1, 2, 3, 4}", "{1, 2, 3.5, 4}")
        .replace("[third] c = Mul(b, b)", "[third] d = Mul(b, b)\n[new] c = Softmax<axis=1>(d)")
        .replace("unused", "other")
        .replace("[last]", "[end]")
    )
    assert text(old, new) == (
        "--- new model\n"
        "+++ new model\n"
        "model\n"
        "  ~ opset ai.onnx: 18 -> 19\n"
        "main\n"
        "  > node third  Mul(b, b) -> d\n"
        "      output 0: c -> d\n"
        "  + node new  Softmax(d) -> c\n"
        "  ~ node last -> end  Sigmoid(c) -> y\n"
        "      input 0: c of third -> c of new\n"
        "  ~ initializer w  float32[4]\n"
        "      values: 1 of 4 elements differ, max |Δ| 0.5, mean |Δ| 0.125\n"
        "  > initializer unused -> other  float32[2]\n"
        "\n"
        "model: 1 changed; nodes: 1 added, 1 changed, 1 renamed;"
        " initializers: 1 changed, 1 renamed"
    )


def test_the_same_model_has_no_lines() -> None:
    model = models.parse(models.BRANCHES)
    assert text(model, model) == ""
    old, new = Document(copy_of(model)), Document(copy_of(model))
    assert summary(diff_documents(old, new)) == "no differences"


def test_types_that_shape_inference_adds_are_counted() -> None:
    old = models.parse(models.CHAIN)
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], f"n{i}") for i in range(12)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("v0", 1, [2])], [info("v12", 1, [2])])
    old = helper.make_model(graph)
    shown = text(old, onnx.shape_inference.infer_shapes(old))
    assert "  + declared types of 11 values\n" in shown
    assert shown.count("\n") < 8


def test_foreign_names_are_shown_as_text() -> None:
    old = models.parse(models.CHAIN)
    new = copy_of(old)
    new.graph.node[0].name = "/blk[0]/Conv [/w]\x1b]0;x\x07"
    new.graph.node[1].doc_string = "a\nb\x1b[2J"
    new.producer_name = "\x1b[31m"
    shown = text(old, new) + "\n".join(canonical(new))
    assert "/blk[0]/Conv [/w]\\x1b]0;x\\x07" in shown
    assert not any(char in shown for char in "\x1b\x07")


@settings(max_examples=60)
@given(graphs(), graphs())
def test_models_that_differ_have_other_canonical_text(
    first: onnx.ModelProto, second: onnx.ModelProto
) -> None:
    same = diff_documents(Document(copy_of(first)), Document(copy_of(second))).same
    assert same == (canonical(first) == canonical(second))


def test_large_values_are_hashed() -> None:
    model = models.parse(models.CHAIN)
    values = np.arange(100, dtype=np.float32)
    del model.graph.initializer[:]
    model.graph.initializer.append(numpy_helper.from_array(values, "w"))
    model.graph.node.append(helper.make_node("Any", [], ["q"], domain="d", ints=[1] * 5000))
    before, without = canonical(model), canonical(model, weights=False)
    assert "  initializer w: float32[100]" in without
    values[50] = -1
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "w"))
    model.graph.node[-1].attribute[0].ints[4000] = 2
    after = canonical(model)
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert [line.split(":")[0].strip() for line, _ in changed] == ["initializer w", "ints"]
    assert all("blake2b" in line for pair in changed for line in pair)
    assert max(map(len, after)) < 1200


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 18])
def test_each_element_changes_the_canonical_text(count: int) -> None:
    model = models.parse(models.CHAIN)
    texts = []
    for changed in range(-1, count):
        values = np.arange(count, dtype=np.float32)
        if changed >= 0:
            values[changed] = -1
        del model.graph.initializer[:]
        model.graph.initializer.append(numpy_helper.from_array(values, "w"))
        texts.append("\n".join(canonical(model)))
    assert len(set(texts)) == count + 1


def test_many_renames_are_counted_and_what_comes_after_them_is_told() -> None:
    old = models.parse(models.layered(40))
    new = with_other_names(old)
    new.graph.node[-1].doc_string = "why"
    told = text(old, new).split("\n")
    assert len(told) < 40
    assert "  > 198 more nodes are renamed" in told
    assert any("doc_string: why" in line for line in told)
    assert told[-1].startswith("inputs: 1 renamed; outputs: 1 renamed; nodes: ")
