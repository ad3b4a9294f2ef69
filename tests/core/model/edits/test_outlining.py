"""Nodes made into a function compute the same through its instance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.edits.functions import unused_key
from dld_tui.core.types import JSON
from tests.support import body_models, models
from tests.support.sessions import bytes_of, opened, run

FEEDS = {"x": np.array([-3, 1, 4], np.float32), "z": np.array([1, -2, 3], np.float32)}

BRANCHES = models.BRANCHES.replace("x = Abs(a)", "q = Abs(a)").replace("Mul(x, x)", "Mul(q, q)")


def check(document: Document) -> None:
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)


def test_weights_become_inputs_or_constants(tmp_path: Path) -> None:
    x = np.array([[1, -2, 3, -4]], np.float32)
    expected = run(opened(tmp_path, models.CHAIN), x=x)[0]
    for constants, inputs, weights in ((False, ("a", "w"), 2), (True, ("a",), 1)):
        document = opened(tmp_path, models.CHAIN)
        document.apply(
            "make_function", scope=[], nodes=["second", "third"], name="Square", constants=constants
        )
        function = document.scope_at(["function local:Square"])
        assert (function.inputs, function.outputs) == (inputs, ("c",))
        assert [node.op_type for node in document.main.nodes] == ["Relu", "Square", "Sigmoid"]
        assert len(document.main.initializers) == weights
        check(document)
        np.testing.assert_array_equal(run(document, x=x)[0], expected)


def test_nodes_between_them_come_after_the_instance(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] y, float[2] z) {
            [one] a = Relu(x) [user] z = Neg(a) [other] o = Abs(x) [two] y = Add(x, o)
        }"""
    document = opened(tmp_path, text)
    document.apply("make_function", scope=[], nodes=["two", "one"], name="F", domain="mine")
    assert [node.name for node in document.main.nodes] == ["other", "F", "user"]
    assert document.opset_imports == {"": 18, "mine": 1}
    check(document)


def test_nodes_of_a_branch_take_what_they_capture_as_inputs(tmp_path: Path) -> None:
    document = opened(tmp_path, BRANCHES)
    document.apply(
        "make_function", scope=["choose:then_branch"], nodes=["inner", ">t"], name="Twice"
    )
    call = document.scope_at(["choose:then_branch"]).nodes
    assert [(node.op_type, node.inputs, node.outputs) for node in call] == [
        ("Twice", ("a",), ("t",))
    ]
    check(document)


def test_annotations_of_values_that_are_inside_now_go() -> None:
    model = models.parse(models.CHAIN)
    for name in ("b", "c"):
        info = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        model.graph.value_info.append(info)
        model.graph.quantization_annotation.add(tensor_name=name)
    document = Document(model)
    document.apply("make_function", scope=[], nodes=["second", "third"], name="F")
    for list_name in ("value_info", "quantization_annotation"):
        assert list(document.main.named(list_name)) == ["c"]


@pytest.mark.parametrize(
    ("nodes", "name", "reason"),
    [
        (["second", "last"], "F", "'third' is between the nodes"),
        (["second", "near", "last"], "F", "'third' is between the nodes"),
        ([], "F", "no nodes"),
        (["second"], "", "needs a name"),
        (["dead"], "F", "no output of these nodes is used"),
        (["second"], "Plug", "would become instances"),
    ],
)
def test_what_cannot_be_a_function_is_refused(
    tmp_path: Path, nodes: list[JSON], name: str, reason: str
) -> None:
    text = models.CHAIN.replace(
        "[last]",
        "[dead] d = Neg(c)\n [left] l = Neg(b)\n [right] r = Abs(b)\n"
        " [join] j = Add(l, r)\n [near] n = Neg(b)\n [plug] p = local.Plug(c)\n [last]",
    )
    document = opened(tmp_path, text)
    with pytest.raises(EditError, match=reason):
        document.apply("make_function", scope=[], nodes=nodes, name=name)


def test_a_free_name_for_a_function(tmp_path: Path) -> None:
    document = opened(tmp_path, body_models.SHAPES)
    assert unused_key(document, ("local", "leaky", "")) == ("local", "leaky_1", "")
    assert unused_key(document, ("mine", "leaky", "")) == ("mine", "leaky", "")
