"""Types are read as they are written, and what is no type is refused with a reason."""

from __future__ import annotations

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.tensors.value_types import ValueType, format_type, parse_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("float32[N, 3, 224, ?]", ValueType("float32", ("N", 3, 224, None))),
        (" int64 [ 1,batch size ] ", ValueType("int64", (1, "batch size"))),
        ("f16[2]", ValueType("float16", (2,))),
        ("FLOAT16[-1]", ValueType("float16", (None,))),
        ("float8e4m3fn[1]", ValueType("float8e4m3fn", (1,))),
        ("bool", ValueType("bool", ())),
        ("bool[]", ValueType("bool", ())),
        ("string[...]", ValueType("string", None)),
        ("  ", None),
    ],
)
def test_types_that_are_understood(text: str, expected: ValueType | None) -> None:
    assert parse_type(text) == expected
    again = format_type(expected)
    assert parse_type(again) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("float33[1]", "no element type 'float33'"),
        ("undefined[1]", "no element type"),
        ("[1, 2]", "not a type"),
        ("float32[1, 2", "not a type"),
        ("float32[1,,2]", "missing between two commas"),
        ("float32[1x]", "'1x' is not a dimension"),
        ("float32[-2]", "'-2' is not a dimension"),
        ("float32[9223372036854775808]", "out of range"),
    ],
)
def test_what_is_no_type_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_type(text)


def test_what_is_no_tensor_has_no_text() -> None:
    assert format_type(None) == ""
    assert format_type(ValueType("float32", (1,), "sequence")) == ""
    assert format_type(ValueType(None, (1,))) == ""
