from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.foreign import (
    dims_of,
    first,
    number_of,
    objects_of,
    text_of,
    time_of,
    whole_of,
)
from dld_tui.core.types import JSON

VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(VALUES)
def test_every_value_is_read_as_its_type_or_as_nothing(value: JSON) -> None:
    assert isinstance(text_of(value), str)
    number, whole, time, dims = number_of(value), whole_of(value), time_of(value), dims_of(value)
    assert number is None or math.isfinite(number)
    assert whole is None or (type(whole) is int and whole == value and abs(whole) < 1 << 62)
    assert time is None or (time == number and time >= 0)
    assert dims is None or all(type(dim) is int and dim >= -1 for dim in dims)
    assert all(isinstance(item, dict) for item in objects_of(value))


@pytest.mark.parametrize(
    ("value", "text", "whole", "number"),
    [("a", "a", None, None), (True, "", None, None), (2.0, "2.0", 2, 2.0), (2.5, "2.5", None, 2.5),
     (10**400, str(10**400), None, None), ([1], "", None, None)],
)  # fmt: skip
def test_values(value: JSON, text: str, whole: int | None, number: float | None) -> None:
    assert (text_of(value), whole_of(value), number_of(value)) == (text, whole, number)


def test_dimensions_and_first_keys() -> None:
    assert dims_of([2, -7, 3.0]) == (2, -1, 3)
    assert dims_of([2, "n"]) is None
    assert first({"b": None, "c": 1}, "a", "b", "c") is None
