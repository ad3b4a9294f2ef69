from __future__ import annotations

import numpy as np
import onnx
import pytest
from google.protobuf.descriptor import Descriptor
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.errors import InputError
from dld_tui.core.files import wire
from dld_tui.core.files.proto_fields import MODEL_TAGS, read_varint, tag_of
from dld_tui.core.files.wire import Kind, fixed_width


def test_varints_and_tags() -> None:
    assert read_varint(b"\xff" * 9 + b"\x01", 0) == (2**64 - 1, 10)
    assert read_varint(b"\x81\x80\x00", 0) == (1, 3)  # longer than needed, but legal
    with pytest.raises(ValueError, match="more than 10 bytes"):
        read_varint(b"\xff" * 11, 0)
    with pytest.raises(ValueError, match="more than 5 bytes"):
        read_varint(b"\xff" * 11, 0, 5)
    with pytest.raises(IndexError):
        read_varint(b"\xff\xff", 0)
    expected = {
        field.number: tag_of(field.number, 2 if field.cpp_type in (9, 10) else 0)
        for field in onnx.ModelProto.DESCRIPTOR.fields
    }
    assert expected == MODEL_TAGS


PAYLOADS = {"raw_data", "float_data", "int32_data", "int64_data", "uint64_data", "double_data", "s"}


def paths_to_payloads(message: Descriptor) -> dict[int, Descriptor | str]:
    """Return what onnx's own description of a message says about where payloads may be."""
    found: dict[int, Descriptor | str] = {}
    for field in message.fields:
        tag = tag_of(field.number)
        if field.name in PAYLOADS:
            found[tag] = field.name
        elif field.message_type is not None and leads_to_payload(field.message_type, set()):
            found[tag] = field.message_type
    return found


def leads_to_payload(message: Descriptor, seen: set[str]) -> bool:
    if message.full_name in seen:
        return False
    seen.add(message.full_name)
    return any(
        field.name in PAYLOADS
        or (field.message_type is not None and leads_to_payload(field.message_type, seen))
        for field in message.fields
    )


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (wire.MODEL, onnx.ModelProto),
        (wire.GRAPH, onnx.GraphProto),
        (wire.NODE, onnx.NodeProto),
        (wire.ATTRIBUTE, onnx.AttributeProto),
        (wire.TENSOR, onnx.TensorProto),
        (wire.SPARSE_TENSOR, onnx.SparseTensorProto),
        (wire.FUNCTION, onnx.FunctionProto),
        (wire.TRAINING, onnx.TrainingInfoProto),
    ],
)
def test_tables_are_those_of_the_onnx_package(kind: Kind, message: type) -> None:
    tables = {
        "GraphProto": wire.GRAPH,
        "NodeProto": wire.NODE,
        "AttributeProto": wire.ATTRIBUTE,
        "TensorProto": wire.TENSOR,
        "SparseTensorProto": wire.SPARSE_TENSOR,
        "FunctionProto": wire.FUNCTION,
        "TrainingInfoProto": wire.TRAINING,
    }
    expected = {
        tag: target if isinstance(target, str) else tables[target.name]
        for tag, target in paths_to_payloads(message.DESCRIPTOR).items()  # type: ignore[attr-defined]
    }
    assert kind.keys() == expected.keys()
    assert all(kind[tag] is target or kind[tag] == target for tag, target in expected.items())


@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40),
    cut=st.integers(1, 30),
)
def test_numbers_are_those_that_protobuf_wrote(values: list[int], cut: int) -> None:
    tensor = onnx.TensorProto(int64_data=values)
    packed = tensor.SerializeToString()[len(tensor.SerializeToString()) - _length(values) :]
    parts = [packed[at : at + cut] for at in range(0, len(packed), cut)]
    found = np.frombuffer(b"".join(fixed_width(parts, 8)), "<i8")
    assert found.tolist() == values
    small = np.frombuffer(b"".join(fixed_width(parts, 1)), "<u1")
    assert small.tolist() == [value & 0xFF for value in values]


def _length(values: list[int]) -> int:
    return sum(max(((value % 2**64).bit_length() + 6) // 7, 1) for value in values)


@pytest.mark.parametrize("data", [b"\x80", b"\x01\xff", b"\xff" * 20 + b"\x01", b"\xff" * 30])
def test_what_is_no_varint_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="not a list of varints"):
        list(fixed_width([data], 4))
