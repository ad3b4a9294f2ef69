"""Switches round what a node takes and makes, or leave it as it is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dld_tui.core.conversion.copies import infer
from dld_tui.core.model.document import Document
from dld_tui.core.model.edits.casting import add_switches
from tests.support import models


def opened(folder: Path, text: str) -> Document:
    document = Document.open(models.write(folder, text))
    infer(document, document.path)
    return document


@pytest.mark.parametrize(
    ("dims", "way"), [("N", "If"), ("4", "Where"), ("4096", "Where"), ("4097", "If")]
)
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
