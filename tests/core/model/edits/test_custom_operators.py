"""Operators of plugins: changed in place, attributes of any kind, and their domain imported."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import onnx
import pytest

from dld_tui.core.checks import check
from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.operator_listing import Origin, operator_palette
from tests.support import models
from tests.support.sessions import bytes_of

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[2, 3] x) => (float[2, 3] y) {
  [first] a = LeakyRelu <alpha = 0.5> (x)
  [second] b = Elu <alpha = 0.25> (a)
  [third] y = Softmax <axis = 1> (b)
}
"""


def changed(*edits: tuple[str, dict[str, Any]]) -> tuple[onnx.ModelProto, list[str]]:
    with closing(Document(models.parse(MODEL))) as document:
        for name, arguments in edits:
            document.apply(name, scope=[], **arguments)
        after = onnx.ModelProto.FromString(bytes_of(document))
        found = [one.rule for one in check(document) if one.level == "error"]
    return after, found


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}


@pytest.mark.parametrize(
    ("operator", "kept", "expected"),
    [
        (("", "Relu"), "known", {}),
        (("", "Elu"), "known", {"alpha": 0.5}),
        (("trt", "Plugin"), "known", {"alpha": 0.5}),
        (("", "Relu"), "all", {"alpha": 0.5}),
        (("trt", "Plugin"), "none", {}),
    ],
)
def test_an_operator_changes_in_place(
    operator: tuple[str, str], kept: str, expected: dict[str, Any]
) -> None:
    domain, op_type = operator
    arguments = {"nodes": ["first"], "domain": domain, "op_type": op_type, "attributes": kept}
    after, found = changed(("set_operator", arguments))
    node = after.graph.node[0]
    assert (node.name, node.op_type, node.domain) == ("first", op_type, domain)
    assert (list(node.input), list(node.output)) == (["x"], ["a"])
    assert attributes(node) == expected
    assert domain in {entry.domain for entry in after.opset_import}
    assert found == (["unknown-attribute"] if kept == "all" else [])


def test_attributes_of_every_kind() -> None:
    tensor = {"dtype": "int64", "dims": [1], "raw": "AQAAAAAAAAA="}
    kinds: dict[str, Any] = {
        "int": 1, "float": 0.5, "string": "a", "ints": [1, 2], "floats": [0.5], "strings": ["a"],
        "tensor": tensor, "tensors": [tensor, tensor], "type_proto": "float32[N, 3]",
        "type_protos": ["int64", "float32[2]"],
    }  # fmt: skip
    plugin = ("set_operator", {"nodes": ["first"], "op_type": "P", "domain": "my"})
    edits = [
        ("set_attribute", {"node": "first", "attribute": f"a_{kind}", "kind": kind, "value": value})
        for kind, value in kinds.items()
    ]
    edits.append(("set_attribute", {**edits[0][1], "kind": "strings", "value": ["b"]}))
    after, found = changed(plugin, *edits)
    made = attributes(after.graph.node[0])
    assert not found
    assert made["a_int"] == [b"b"]  # another kind than before
    assert made["a_type_proto"].tensor_type.shape.dim[0].dim_param == "N"
    assert [t.int64_data or t.raw_data for t in made["a_tensors"]] == [b"\1" + bytes(7)] * 2
    assert len(made) == len(kinds) + 1
    with pytest.raises(EditError, match="is not a value of kind type_proto"):
        changed(("set_attribute", {**edits[0][1], "kind": "type_proto", "value": "float99["}))


def test_a_search_offers_a_new_operator() -> None:
    with closing(Document(models.parse(MODEL))) as document:
        palette = operator_palette(document.main)
        for text, key in (
            ("trt.EfficientNMS_TRT", ("trt", "EfficientNMS_TRT")),
            ("EfficientNMS_TRT", ("", "EfficientNMS_TRT")),
        ):
            made = palette.search(text)[-1]
            assert (made.key, made.origin) == (key, Origin.CUSTOM)
            assert made.too_new is None
        assert all(item.origin is not Origin.CUSTOM for item in palette.search("conv"))
        assert not palette.search("no such operator")
