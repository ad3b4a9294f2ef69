"""Nodes made into a function compute the same through its instance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from dld_tui.core.model.document import Document
from dld_tui.core.model.edits.functions import unused_key
from tests.support import body_models, models
from tests.support.sessions import bytes_of, opened, run

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


def test_a_free_name_for_a_function(tmp_path: Path) -> None:
    document = opened(tmp_path, body_models.SHAPES)
    assert unused_key(document, ("local", "leaky", "")) == ("local", "leaky_1", "")
    assert unused_key(document, ("mine", "leaky", "")) == ("mine", "leaky", "")
