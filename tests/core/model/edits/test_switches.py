"""Switches round what a node takes and makes, or leave it as it is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest

from dld_tui.core.conversion.copies import infer
from dld_tui.core.model.document import Document
from dld_tui.core.model.edits.casting import add_switches
from tests.support import models
from tests.support.sessions import bytes_of, type_in


def opened(folder: Path, text: str) -> Document:
    document = Document.open(models.write(folder, text))
    infer(document, document.path)
    return document


def test_each_node_gets_its_own_choice_of_a_value(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    nodes = [*document.main.nodes]
    found = add_switches(
        document, dict.fromkeys(nodes, "fp16"), {node: f"s_{node.name}" for node in nodes}
    )
    assert found == set(nodes)
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)
    counts = Counter(node.op_type for node in document.main.nodes)
    assert counts["If"] == 4 + 4, "what each takes and makes"
    assert counts["Where"] == 1, "the four elements of w"
    assert [*document.main.inputs] == ["x", *(f"s_{node.name}" for node in nodes)]
    known = type_in(document, "s_first")
    assert (known.dtype, known.dims) == ("bool", ())


@pytest.mark.parametrize(("dims", "way"), [("N", "If"), ("4", "Where"), ("4097", "If")])
def test_a_node_that_takes_a_value_twice_chooses_once(tmp_path: Path, dims: str, way: str) -> None:
    text = f"""
    <ir_version: 10, opset_import: ["" : 18]>
    two (float[{dims}] x) => (float[{dims}] y, float[{dims}] z) {{
        [one] y = Add(x, x)
        [two] z = Mul(x, x)
    }}
    """
    document = opened(tmp_path, text)
    one, two = document.main.nodes
    add_switches(document, {one: "fp16", two: "fp16"}, {one: "a", two: "b"})
    counts = Counter(node.op_type for node in document.main.nodes)
    assert counts[way] == 2 * 2
    assert one.inputs[0] == one.inputs[1] != two.inputs[0]
    choice = document.main.producer("y")
    assert choice is not None
    assert choice.inputs[0] == "a"
    bodies = [[node.op_type for node in body.nodes] for body in choice.subgraphs()]
    assert bodies == ([["Cast", "Cast"], ["Identity"]] if way == "If" else [])


def test_what_a_precision_does_not_change_has_no_switch(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    shapes (float[4] x) => (int64[1] y) {
        [shape] s = Shape(x)
        [same] y = Abs(s)
    }
    """
    document = opened(tmp_path, text)
    nodes = [*document.main.nodes]
    found = add_switches(document, dict.fromkeys(nodes, "fp16"), dict.fromkeys(nodes, "s"))
    names = {node.name for node in found}
    assert "same" not in names
    assert [*document.main.inputs] == ["x", *(["s"] if found else [])]


def test_bodies_see_the_switches_of_the_model(tmp_path: Path) -> None:
    document = opened(tmp_path, models.PLAIN_BRANCHES)
    body = document.scope_at(["choose:then_branch"])
    add_switches(document, {body.nodes[0]: "fp16"}, {body.nodes[0]: "switch"})
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)
    assert "switch" in document.main.inputs
    assert Counter(node.op_type for node in body.nodes)["If"] == 2
