"""Whether a value is used: one answer of scopes, checks, edits and the list of initializers."""

from __future__ import annotations

import pytest

from dld_tui.core.checks import check
from dld_tui.core.model import edits
from dld_tui.core.model.document import Document
from dld_tui.widgets.tensors.initializers import initializer_rows
from tests.support import models

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
graph (float[2] x, bool chosen) => (float[2] y, float[2] of_graph)
<float[2] by_node = {1, 2}, float[2] in_branch = {1, 2}, float[2] of_branch = {1, 2},
 float[2] of_graph = {1, 2}, float scale = {1}, float[2] shadowed = {1, 2},
 float[2] inner_scale = {1}, float[2] unused = {1, 2}> {
    sum = Add (x, by_node)
    y = If (chosen) <
        then_branch = then () => (float[2] then_y) { then_y = Add (sum, in_branch) },
        else_branch = else () => (float[2] of_branch) <float[2] shadowed = {1, 2}> {
            lost = Add (sum, shadowed)
        }
    >
}
"""


@pytest.fixture
def document() -> Document:
    model = models.parse(MODEL)
    inner = model.graph.node[1].attribute[1].g
    for graph, tensor, scale in ((model.graph, "sum", "scale"), (inner, "lost", "inner_scale")):
        entry = graph.quantization_annotation.add(tensor_name=tensor)
        entry.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=scale)
    return Document(model)


UNUSED = {"shadowed", "unused"}


def test_what_refers_to_a_value_uses_it(document: Document) -> None:
    main = document.main
    names = {tensor.name for tensor in main.initializers}
    assert {name for name in names if not main.is_used(name)} == UNUSED
    assert names - main.references().keys() == UNUSED
    assert {name for name in names if main.is_output(name)} == {"of_graph", "of_branch"}


def test_checks_tell_of_no_others(document: Document) -> None:
    findings = [one for one in check(document) if one.scope is document.main]
    unused = {one.value for one in findings if one.rule == "unused-initializer"}
    assert unused == UNUSED


def test_nothing_else_is_removed(document: Document) -> None:
    before = {tensor.name for tensor in document.main.initializers}
    document.apply(edits.repairs.remove_unused(scope=[], nodes=False))
    assert before - {tensor.name for tensor in document.main.initializers} == UNUSED


def test_the_list_marks_no_others(document: Document) -> None:
    rows = initializer_rows([document.main])
    assert {row.name for row in rows if not row.uses} == UNUSED
