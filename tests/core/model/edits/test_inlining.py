"""An instance replaced by its function's body computes the same; what cannot be is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from tests.support import body_models, models
from tests.support.sessions import bytes_of, opened, run, type_in

HEAD = '<ir_version: 10, opset_import: ["" : 18, "local" : 1]>'


def same(first: list[np.ndarray], second: list[np.ndarray]) -> None:
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_swapped_names_and_inputs_handed_through(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
        g (float[3] x, float[3] y) => (float[3] a, float[3] b, float[3] c) {
            [call] a, b, c = local.swap(y, x)
        }
        <domain: "local", opset_import: ["" : 18]>
        swap (x, y) => (x, r, r) { [sub] r = Sub(x, y) }"""
    )
    document = opened(tmp_path, text)
    feeds = {"x": np.array([1, 2, 3], np.float32), "y": np.array([5, 5, 5], np.float32)}
    document.apply("inline_function", nodes=[[[], "call"]])
    document.apply("delete_function", scope=["function local:swap"])  # onnxruntime refuses (r, r)
    same(run(document, **feeds), [feeds["y"], feeds["y"] - feeds["x"], feeds["y"] - feeds["x"]])


def test_names_inside_bodies_do_not_hide_what_the_call_passes(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
        g (float[3] t, bool c) => (float[3] y) { [call] y = local.f(t, c) }
        <domain: "local", opset_import: ["" : 18]>
        f (v, c) => (r) { [if] r = If (c) <
            then_branch = a () => (u) { [x] t = Neg(v) [z] u = Add(t, v) },
            else_branch = b () => (v2) { [w] v2 = Identity(v) }> }"""
    )
    document = opened(tmp_path, text)
    document.apply("inline_function", nodes=[[[], "call"]])
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)
    t = np.array([1, 2, 3], np.float32)
    same(run(document, t=t, c=np.array(True)), [t - t])
    same(run(document, t=t, c=np.array(False)), [t])


def test_types_come_along_without_their_symbols() -> None:
    model = models.parse(body_models.SHAPES)
    info = onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, ["M", 3])
    model.functions[0].value_info.append(info)
    document = Document(model)
    document.apply("inline_function", nodes=[[[], "second"]])
    made = next(node for node in document.main.nodes if node.op_type == "LeakyRelu").outputs[0]
    assert type_in(document, made).text == "float32[?, 3]"


@pytest.mark.parametrize(
    ("text", "node", "reason"),
    [
        (body_models.RECURSIVE, "call", "'local.ping' calls itself"),
        (body_models.SHAPES, "pre", "calls no local function"),
        (body_models.SHAPES.replace("local.outer <scale: float = 3.0> (y)", "local.outer(y, h)"),
         "third", "has 2 inputs, 'local.outer' only 1"),
        (body_models.SHAPES.replace('"local", opset_import: ["" : 18]',
                                    '"local", opset_import: ["" : 12]').replace("Sub(", "Hardmax("),
         "first", "'Hardmax' is not the same in opset 12"),
    ],
)  # fmt: skip
def test_what_cannot_be_inlined_is_refused(
    tmp_path: Path, text: str, node: str, reason: str
) -> None:
    document = opened(tmp_path, text.replace("Hardmax(h, y)", "Hardmax(h)"))
    with pytest.raises(EditError, match=reason):
        document.apply("inline_function", nodes=[[[], node]])


def test_an_older_import_is_fine_where_the_operators_are_the_same(tmp_path: Path) -> None:
    text = body_models.SHAPES.replace(
        '"local", opset_import: ["" : 18]>\nleaky', '"local", opset_import: ["" : 16]>\nleaky'
    )
    document = opened(tmp_path, text)
    document.apply("inline_function", nodes=[[[], "first"]])
    arguments: dict[str, JSON] = {"domain": "", "version": None}
    with pytest.raises(EditError):
        document.apply("set_opset", **arguments)
