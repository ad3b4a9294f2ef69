from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from dld_tui.core.model.tensors.elements import element_type
from dld_tui.core.model.tensors.value_types import (
    ValueType,
    dtype_of,
    parse_type,
    shown,
    type_of_proto,
    type_of_value,
    types_text,
    value_type_of,
)

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
    assert type_of_value(value_type_of(_MAP)) is None
    assert type_of_value(ValueType("x", None, "opaque")) is None
    assert type_of_value(None) is None


@pytest.mark.parametrize(
    ("text", "dtype", "short"),
    [
        ("tensor(float)", "float32", "float32"),
        ("tensor(int8)", "int8", "int8"),
        ("seq(tensor(double))", None, "seq(float64)"),
        ("T", None, "T"),
    ],
)
def test_type_names(text: str, dtype: str | None, short: str) -> None:
    assert dtype_of(text) == dtype
    assert shown(text) == short


def test_accepted_types_as_text() -> None:
    assert types_text(["tensor(float)", "tensor(int8)"]) == "float32, int8"
    assert types_text([f"tensor(int{n})" for n in range(9)], most=2) == "int0, int1 and 7 more"
    assert types_text([]) == "any type"


@pytest.mark.parametrize(
    ("names", "dtype"),
    [
        ("int long i64 INT64 int64 tensor(int64)", "int64"), ("float fp32 f32 single", "float32"),
        ("fp8 f8 e4m3 float8_e4m3fn FLOAT8E4M3FN", "float8e4m3fn"), ("u8 byte uint8", "uint8"),
        ("bf16 bfloat16", "bfloat16"), ("fp4 float4e2m1", "float4e2m1"), ("short i16", "int16"),
    ],
)  # fmt: skip
def test_one_type_has_all_its_names_everywhere(names: str, dtype: str) -> None:
    for name in names.split():
        assert element_type(name) == dtype
        typed = parse_type(f"{name}[2]") if "(" not in name else None
        assert typed is None or typed.dtype == dtype
