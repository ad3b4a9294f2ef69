"""Passes over a model: what each changes, and that undo takes it back."""

from __future__ import annotations

from contextlib import closing

import onnx

from dld_tui.core.checks import check
from dld_tui.core.checks.findings import safe
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.sessions import bytes_of

MODEL = """
<ir_version: 8, opset_import: ["" : 17, "local" : 1, "gone" : 1]>
net (float[2] x, bool choice, float[2] w) => (float[2] y)
<float[2] w = {1, 2}, float[2] same = {1, 2}, float[2] other = {1, 2}, float[2] unused = {5, 5},
 float[2] shapes = {3, 4}>
{
  k = Constant <value = float[2] {7, 8}> ()
  l = Constant <value_floats = [1.0, 2.0]> ()
  b = local.twice (a)
  a = Add (x, same)
  dead = Neg (a)
  c = Sum (a, b, other, k, l, w, shapes)
  y = If (choice) <
    then_branch = left () => (float[2] l1) { d = Constant <value_int = 1> ()
      e = Cast <to = 1> (d) l1 = Mul (c, e) },
    else_branch = right () => (float[2] r1) { r1 = Add (c, other) }
  >
}
<opset_import: ["" : 17], domain: "local"> twice (a) => (b) { b = Add (a, a) }
<opset_import: ["" : 17], domain: "gone"> idle (a) => (b) { b = Neg (a) }
"""


def cleaned(*passes: str) -> onnx.ModelProto:
    model = models.parse(MODEL)
    model.graph.doc_string = "text"
    model.graph.node[3].doc_string = "more"
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, [2]))
    with closing(Document(model)) as document:
        before = bytes_of(document)
        document.apply("clean", passes=list(passes))
        after = onnx.ModelProto.FromString(bytes_of(document))
        document.undo()
        assert bytes_of(document) == before
    return after


def weights(model: onnx.ModelProto) -> list[str]:
    return [tensor.name for tensor in model.graph.initializer]


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_constants_become_initializers_and_back() -> None:
    after = cleaned("constants-to-initializers")
    assert weights(after)[-2:] == ["k", "l"]
    assert "Constant" not in operators(after)
    assert onnx.numpy_helper.to_array(after.graph.initializer[-1]).tolist() == [1, 2]
    left = after.graph.node[-1].attribute[0].g
    assert [tensor.name for tensor in left.initializer] == ["d"]
    assert onnx.numpy_helper.to_array(left.initializer[0]).tolist() == 1
    back = cleaned("initializers-to-constants")
    assert weights(back) == ["w"]  # an input keeps its value
    made = [node.output[0] for node in back.graph.node if node.op_type == "Constant"]
    assert made == ["same", "other", "unused", "shapes", "k", "l"]


def test_one_copy_of_equal_weights_is_kept() -> None:
    after = cleaned("share-weights")
    assert weights(after) == ["w", "same", "unused", "shapes"]  # w can be fed
    assert list(after.graph.node[5].input) == ["a", "b", "same", "k", "l", "w", "shapes"]
    assert list(after.graph.node[6].attribute[1].g.node[0].input) == ["c", "same"]


def test_unused_parts_texts_and_shapes_go_and_nodes_are_sorted() -> None:
    after = cleaned("remove-unused", "clear-docs", "clear-shapes", "sort")
    assert "unused" not in weights(after)
    assert operators(after) == ["Constant", "Constant", "Add", "twice", "Sum", "If"]
    assert [function.name for function in after.functions] == ["twice"]
    assert {entry.domain for entry in after.opset_import} == {"", "local"}
    assert not after.graph.doc_string
    assert not any(node.doc_string for node in after.graph.node)
    assert not after.graph.value_info
    onnx.checker.check_model(after, full_check=True)


def test_findings_offer_what_they_are_about() -> None:
    with closing(Document(models.parse(MODEL))) as document:
        assert "initializer-is-input" not in {one.rule for one in safe(check(document))}
        found = {one.rule: one.fix for one in check(document)}
        for rule in ("initializer-is-input", "unused-function"):
            fix = found[rule]
            assert fix is not None
            document.apply(fix)
        assert document.main.inputs == ("x", "choice")
        assert not {"initializer-is-input", "unused-function"} & {f.rule for f in check(document)}
