"""Rows of a comparison: their verdict, their order, the first divergence, as text and as JSON."""

from __future__ import annotations

import json
import math

import numpy as np

from dld_tui.core.accuracy.result import (
    AccuracyRow,
    Result,
    accuracy_table,
    as_type,
    carried_over,
    in_order,
    match_names,
    merged,
)
from dld_tui.core.accuracy.tensor_errors import Tolerance, compare
from dld_tui.core.codec import decode, encode

ONES = np.ones(4, np.float32)
TOLERANCE = Tolerance(1e-3, 0.0)


def row(name: str, difference: float, order: int, *, is_output: bool = False) -> AccuracyRow:
    error = compare(ONES, ONES + np.float32(difference), TOLERANCE)
    problem = TOLERANCE.problem(error) or ""
    return AccuracyRow(
        name, name, f"make_{name}", "Add", order, is_output, TOLERANCE.text, problem, error
    )


ROWS = (row("a", 0, 0), row("b", 0.01, 3), row("c", 0.5, 2), row("y", 0, 7, is_output=True))


def test_the_verdict_is_of_the_outputs_and_the_divergence_of_all() -> None:
    found = Result(in_order(ROWS))
    assert found.is_good
    assert [one.order for one in found.rows] == [0, 1, 2, 3]
    assert found.first is not None
    assert found.first.name == "c", "the first as the model computes, not as it is listed"
    assert [one.name for one in found.worst()][:2] == ["c", "b"]
    assert not Result((*ROWS, row("z", 1, 9, is_output=True))).is_good
    assert Result(ROWS[:1]).first is None


def test_the_worse_stays_and_errors_are_parts_of_values() -> None:
    small, large = row("a", 0.1, 0), row("a", 0.2, 0)
    assert merged([], [small]) == [small]
    assert merged([small], [large]) == [large]
    assert merged([large], [small]) == [large]
    growth = Result((row("a", 0.5, 0), row("b", math.nan, 1))).growth
    assert math.isclose(growth["make_a"], 0.5, rel_tol=1e-6)
    assert growth["make_b"] == 1
    data = json.loads(json.dumps(encode(ROWS)))
    assert decode(tuple[AccuracyRow, ...], data) == ROWS


def test_bars_are_as_long_as_the_errors_that_rows_are_ordered_by() -> None:
    near_zero = np.array([1e-9, 1.0, 1.0, 1.0], np.float32)
    error = compare(near_zero, near_zero + np.float32(1e-3), TOLERANCE)
    small = AccuracyRow("n", "n", "make_n", "Add", 5, False, TOLERANCE.text, "", error)
    assert (error.max_rel or 0) > 1
    rows = Result((*ROWS, small, row("w", math.nan, 6))).worst()
    bars = [column for column in accuracy_table(rows, "screen").columns if column.key == "bar"]
    lengths = [float(str(bars[0].value(one))) for one in rows]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == 1
    assert math.isclose(lengths[rows.index(small)], 1e-3 * 2 / math.sqrt(3), rel_tol=1e-3)


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
