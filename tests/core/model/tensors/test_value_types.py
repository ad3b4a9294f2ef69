"""Types are read as they are written, and what is no type is refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.value_types import (
    ValueType,
    alias_legend,
    dimension_aliases,
    dtype_of,
    format_type,
    parse_type,
    shown,
    type_of_proto,
    type_of_value,
    types_text,
    value_type_of,
)
from tests.support import models
from tests.support.recorded import Answered


def test_types_are_read_and_refused_as_the_record_says(answered: Answered) -> None:
    answered("types", _told)


def _told(question: str) -> str:
    """Return the type that a text is and its text, or why it is none; or a legend of names."""
    word, _, quoted = question.partition(" ")
    text = json.loads(quoted)
    if word == "legend":
        return alias_legend(dimension_aliases(text))
    if word == "name":
        return f"{dtype_of(text)}, shown as {shown(text)!r}"
    try:
        found = parse_type(text)
    except UsageError as error:
        return f"! {error.message}"
    again = format_type(found)
    assert parse_type(again) == found
    return f"{found} as {again!r}"


def test_what_is_no_tensor_has_no_text() -> None:
    assert format_type(None) == ""
    assert format_type(ValueType("float32", (1,), "sequence")) == ""
    assert format_type(ValueType(None, (1,))) == ""


_FLOAT = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N"])
_SPARSE = helper.make_sparse_tensor_type_proto(TensorProto.DOUBLE, None)
_MAP = helper.make_map_type_proto(TensorProto.STRING, _FLOAT)
_SEQUENCE = helper.make_sequence_type_proto(_FLOAT)
_NOTHING = helper.make_tensor_type_proto(TensorProto.UNDEFINED, None)


@pytest.mark.parametrize(
    ("proto", "name", "people"),
    [
        (_FLOAT, "tensor(float)", "float32"),
        (_SPARSE, "sparse_tensor(double)", "sparse(float64)"),
        (_SEQUENCE, "seq(tensor(float))", "seq(float32)"),
        (
            helper.make_optional_type_proto(_SEQUENCE),
            "optional(seq(tensor(float)))",
            "optional(seq(float32))",
        ),
        (_NOTHING, None, ""),
        (helper.make_sequence_type_proto(_NOTHING), None, ""),
        (onnx.TypeProto(), None, ""),
    ],
)
def test_declared_and_known_types_have_the_same_names(
    proto: onnx.TypeProto, name: str | None, people: str
) -> None:
    assert type_of_proto(proto) == name
    assert type_of_value(value_type_of(proto)) == name
    if name is not None:
        assert shown(name) == people


def test_a_map_is_known_as_declared_only() -> None:
    assert type_of_proto(_MAP) == "map(string,tensor(float))"
    known = value_type_of(_MAP)
    assert known is not None
    assert (known.text, type_of_value(known)) == ("map(string → float32[N])", None)
    opaque = value_type_of(onnx.TypeProto(opaque_type=onnx.TypeProto.Opaque(name="x")))
    assert opaque is not None
    assert opaque.text == "opaque"
    assert type_of_value(ValueType("x", None, "opaque")) is None
    assert type_of_value(None) is None


def test_accepted_types_as_text() -> None:
    assert types_text(["tensor(float)", "tensor(int8)"]) == "float32, int8"
    assert types_text([f"tensor(int{n})" for n in range(9)], most=2) == "int0, int1 and 7 more"
    assert types_text([]) == "any type"


@pytest.fixture
def document(tmp_path: Path) -> Iterator[Document]:
    opened = Document.open(models.write(tmp_path, models.CHAIN))
    yield opened
    opened.close()


def test_while_edits_are_held_nothing_is_read(
    document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, main = document.shown_types, document.main
    before = shown.of(main, "y")
    document.hold_changes()
    with monkeypatch.context() as patch:
        patch.delattr(type(main), "value_type")  # reading fails
        assert shown.of(main, "y") == before
        assert shown.of(main, "w") == (None, False)
        document.apply("set_value_type", scope=[], value="y", dtype="float16", dims=[1])
        assert shown.of(main, "y") == before
    document.tell_changes()
    assert shown.of(main, "y") == (ValueType("float16", (1,)), False)
    assert shown.of(main, "w") == (ValueType("float32", (4,)), False)
