"""Attributes of functions: declared, defaulted, referred to, and refused where they contradict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.local_functions import declared_attributes
from dld_tui.core.types import JSON
from tests.support import body_models, models
from tests.support.sessions import bytes_of, run

LEAKY: list[JSON] = ["function local:leaky"]
OUTER: list[JSON] = ["function local:outer"]
FEEDS = {"x": np.array([-3, 1, 4], np.float32), "z": np.array([1, -2, 3], np.float32)}


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, body_models.SHAPES))


def test_declare_with_and_without_a_default(document: Document) -> None:
    leaky = document.scope_at(["function local:leaky"])
    document.apply("set_function_attribute", scope=LEAKY, attribute="axes", kind="ints", value=[1])
    document.apply("set_function_attribute", scope=LEAKY, attribute="mode")
    proto = leaky.proto
    assert list(proto.attribute) == ["mode"]  # type: ignore[union-attr]
    assert [item.name for item in proto.attribute_proto] == ["slope", "axes"]  # type: ignore[union-attr]
    document.apply("set_function_attribute", scope=LEAKY, attribute="axes")
    document.apply(
        "set_function_attribute", scope=LEAKY, attribute="mode", kind="string", value="a"
    )
    assert list(proto.attribute) == ["axes"]  # type: ignore[union-attr]
    assert list(declared_attributes(leaky)) == ["axes", "slope", "mode"]
    document.apply("remove_function_attribute", scope=LEAKY, attribute="axes")
    document.apply("remove_function_attribute", scope=LEAKY, attribute="mode")
    assert list(declared_attributes(leaky)) == ["slope"]


def test_a_default_is_what_instances_without_a_value_use(document: Document) -> None:
    before = run(document, **FEEDS)[0]
    document.apply(
        "set_function_attribute", scope=LEAKY, attribute="slope", kind="float", value=2.0
    )
    assert not np.array_equal(run(document, **FEEDS)[0], before)
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)))


def test_references_are_set_switched_and_removed(document: Document) -> None:
    inner: dict[str, JSON] = {"scope": OUTER, "node": "zero", "attribute": "value_float"}
    document.apply("set_attribute_reference", **inner, reference="scale")
    zero = document.scope_at(["function local:outer"]).find("zero")
    assert zero is not None
    attribute = zero.attribute("value_float")
    assert attribute is not None
    assert (attribute.reference, attribute.kind) == ("scale", "float")
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)))
    document.apply("set_function_attribute", scope=OUTER, attribute="other", kind="float", value=1)
    document.apply("set_attribute_reference", **inner, reference="other")
    assert zero.attribute("value_float").reference == "other"  # type: ignore[union-attr]
    document.apply("set_attribute", **inner, kind="float", value=4.0)
    attribute = zero.attribute("value_float")
    assert attribute is not None
    assert (attribute.reference, attribute.value) == (None, 4.0)
    document.apply("remove_function_attribute", scope=OUTER, attribute="other")


def test_a_new_attribute_inside_a_branch_takes_the_kind_of_the_default(document: Document) -> None:
    document.apply("set_function_attribute", scope=OUTER, attribute="n", kind="int", value=3)
    document.apply("set_function_attribute", scope=OUTER, attribute="bare")
    path = ["function local:outer", "choose:then_branch"]
    arguments: dict[str, JSON] = {"scope": list(path), "node": "neg", "attribute": "p"}
    with pytest.raises(EditError, match="the kind of the attribute is unknown"):
        document.apply("set_attribute_reference", **arguments, reference="bare")
    document.apply("set_attribute_reference", **arguments, reference="n")
    assert document.scope_at(path).find("neg").attribute("p").kind == "int"  # type: ignore[union-attr]
