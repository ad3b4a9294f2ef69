"""Attribute values in a row, and as the text to edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Attribute, Document
from dld_tui.widgets.parameters.edit_bar import (
    attribute_text,
    edit_value,
    editable_text,
    literal_text,
)


def attributes(folder: Path) -> Document:
    node = helper.make_node("X", ["x"], ["y"], name="n", domain="d")
    values: dict[str, Any] = {
        "an_int": 3,
        "a_float": 0.1,
        "a_string": "it's",
        "ints": [1, 2],
        "many": list(range(1000)),
        "long": b"x" * 5000,
        "odd": b"\xff\x1b[",
        "tensor": numpy_helper.from_array(np.array([[1.5, 2]], np.float32)),
        "large": numpy_helper.from_array(np.zeros(5000, np.float32)),
        "texts": numpy_helper.from_array(np.array(["a"], dtype=object)),
        "tensors": [numpy_helper.from_array(np.zeros(1, np.float32))] * 2,
        "type": helper.make_tensor_type_proto(1, ["N", 3]),
    }
    node.attribute.extend(helper.make_attribute(name, value) for name, value in values.items())
    narrow = onnx.TensorProto(data_type=onnx.TensorProto.INT4, dims=[3], raw_data=b"\x21\x0f")
    node.attribute.append(helper.make_attribute("narrow", narrow))
    model = helper.make_model(helper.make_graph([node], "g", [], []))
    path = folder / "attributes.onnx"
    path.write_bytes(model.SerializeToString())
    return Document.open(path)


@pytest.fixture
def document(tmp_path: Path) -> Iterator[Document]:
    opened = attributes(tmp_path)
    yield opened
    opened.close()


def attribute(document: Document, name: str) -> Attribute:
    found = document.main.nodes[0].attribute(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("an_int", "3"), ("a_float", "0.1"), ("a_string", "'it\\'s'"), ("ints", "[1, 2]"),
        ("odd", "'\\xff\\x1b['"), ("tensor", "float32[1, 2]"), ("tensors", "2 tensors"),
        ("type", "float32[N, 3]"),
    ],
)  # fmt: skip
def test_short_values_are_literals(document: Document, name: str, text: str) -> None:
    assert attribute_text(attribute(document, name)) == text


def test_long_values_are_cut_and_counted_but_edited_whole(document: Document) -> None:
    # Long values are cut and counted.
    many = attribute_text(attribute(document, "many"))
    assert many.startswith("[0, 1, 2")
    assert many.endswith("31, … 1,000 values]")
    assert attribute_text(attribute(document, "long")).endswith("… 5,000 bytes'")
    assert len(attribute_text(attribute(document, "long"))) < 500
    # A long string that was left in the file is read to be edited.
    assert editable_text(attribute(document, "long")) == "'" + "x" * 5000 + "'"


def test_defaults_of_operators_and_what_is_refused() -> None:
    # Defaults of operators.
    assert literal_text(None, "int") == "–"
    assert literal_text(np.array([0.0], np.float32), "tensor") == "float32[1] [0.0]"
    # Strings in tensors are refused.
    with pytest.raises(UsageError, match="strings"):
        edit_value("string ['a']", "tensor")


@pytest.mark.parametrize("name", ["an_int", "a_float", "a_string", "ints", "many", "odd", "tensor"])
def test_what_is_edited_reads_back_the_same(document: Document, name: str) -> None:
    present = attribute(document, name)
    text = editable_text(present)
    assert text is not None
    done = document.apply(
        "set_attribute", scope=[], node="n", attribute=name, kind=present.kind,
        value=edit_value(text, present.kind),
    )  # fmt: skip
    assert not done.primitives or editable_text(attribute(document, name)) == text


def test_narrow_tensors_keep_their_type(document: Document) -> None:
    assert editable_text(attribute(document, "narrow")) == "int4 [1, 2, -1]"
    document.apply(
        "set_attribute",
        scope=[],
        node="n",
        attribute="narrow",
        kind="tensor",
        value=edit_value("[3, -8, 7]", "tensor", "int4"),
    )
    assert editable_text(attribute(document, "narrow")) == "int4 [3, -8, 7]"


@pytest.mark.parametrize("name", ["large", "texts", "tensors"])
def test_what_cannot_be_typed_is_not_offered(document: Document, name: str) -> None:
    assert editable_text(attribute(document, name)) is None
