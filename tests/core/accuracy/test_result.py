"""Which values of two sides are compared, and in which type."""

from __future__ import annotations

import numpy as np

from dld_tui.core.accuracy.result import (
    as_type,
    carried_over,
    match_names,
)


def test_names_are_matched_then_places_and_inputs_carried_over() -> None:
    assert match_names(["a", "b"], ["b", "a"]) == {"a": "a", "b": "b"}
    assert match_names(["a", "b", "c"], ["x", "b", "y"]) == {"a": "x", "b": "b", "c": "y"}
    assert match_names(["a", "b"], ["b"]) == {"b": "b"}
    assert match_names(["a", "b"], ["x"]) == {}
    given, missing = carried_over({"a": 1, "b": 2}, ["a", "b"], ["x", "b"])
    assert given == {"x": 1, "b": 2}
    assert missing == []
    assert carried_over({"a": 1}, ["a"], ["a", "new"]) == ({"a": 1}, ["new"])


def test_values_get_the_other_type() -> None:
    value = np.array([1.5], np.float32)
    assert as_type(value, np.dtype(np.float16)).dtype == np.float16
    assert as_type(value, np.dtype(np.float32)) is value
    assert [item.dtype for item in as_type([value], np.dtype(np.float16))] == [np.float16]
