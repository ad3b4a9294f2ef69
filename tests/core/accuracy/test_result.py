"""Rows of a comparison: their verdict, their order, the first divergence, as text and as JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dld_tui.core.accuracy.result import (
    VIEWS,
    AccuracyRow,
    Result,
    RunSide,
    accuracy_table,
    as_type,
    carried_over,
    cosine_text,
    figure,
    in_order,
    listed,
    match_names,
    merged,
    rows_csv,
    side_text,
    signal_text,
    special_text,
    verdict,
)
from dld_tui.core.accuracy.search import SearchEstimate, cost_text
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


def test_figures_as_text() -> None:
    assert (figure(None), figure(0), figure(0.00123)) == ("", "0", "1.23e-03")
    assert (cosine_text(None), cosine_text(1), cosine_text(0.9)) == ("", "1", "0.9")
    assert cosine_text(1 - 2e-7) == "1-2e-07"
    assert signal_text(ROWS[0].error) == "same"
    assert signal_text(ROWS[2].error) == "6.0"
    odd = compare(np.array([1, np.inf]), np.array([np.nan, np.inf]))
    assert special_text(odd) == "1 NaN 1>1 Inf"
    assert signal_text(odd) == ""
    assert verdict(ROWS[0]) == "ok"
    assert "outside of atol 0.001" in verdict(ROWS[2])
    assert listed(ROWS, 2) == list(ROWS[:2])
    assert listed(ROWS, 0) == list(ROWS)


def test_a_row_of_csv_has_all_columns() -> None:
    fields = list(csv.DictReader(io.StringIO(rows_csv(ROWS))))[2]
    assert list(fields) == VIEWS["csv"].split()
    assert fields["tensor"] == "c"
    assert fields["shape"] == "4"
    assert fields["max_abs"] == "0.5"
    assert fields["outside"] == "4"
    assert fields["tolerance"] == TOLERANCE.text


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


def test_a_side_says_library_and_version() -> None:
    side = RunSide("", "", "", "TensorRT 10.13.0.35, fp16", "/a/net.onnx", "none")
    assert side_text(side) == "net.onnx (TensorRT 10.13.0.35, fp16)"
    side = RunSide("", "", "", "ONNX Runtime 1.31.1, CPU", "a\x1b.onnx", "bf16")
    assert side_text(side).endswith(".onnx (ONNX Runtime 1.31.1, CPU, rounded to bf16)")
    assert "\x1b" not in side_text(side)


@pytest.mark.parametrize(
    ("value", "error", "cosine"),
    [(None, "", ""), (0.0, "0", "0"), (1 - 1e-7, "1.00e+00", "1-1e-07")],
)
def test_figures(value: float | None, error: str, cosine: str) -> None:
    assert (figure(value), cosine_text(value)) == (error, cosine)


def test_the_cost_is_told_in_trials_and_time() -> None:
    estimate = SearchEstimate(300, "trial", 0.05, (1, 62), 0, 20, (0.05, 3.1))
    assert "about 20 more (1.0 s) for each node" in cost_text(estimate)
    text = cost_text(replace(estimate, ranking_trials=318, trial="build"))
    assert "A build takes 50 ms" in text
    assert "up to 318 to rank them (15.9 s)" in text
