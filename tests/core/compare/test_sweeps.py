"""Sweeps point by point: ratios of medians, intervals of a plain bootstrap, what is missing."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping
from typing import Any

import pytest

from dld_tui.core.compare.sweeps import SweepComparison, point_table, sweeps_page
from dld_tui.core.errors import UsageError
from dld_tui.core.report.sweep import (
    BATCH,
    PRECISION,
    PROMPT,
    Sweep,
    SweepAxis,
    SweepPoint,
)


def sweep_of(name: str, turns: Mapping[Any, tuple[float, ...]], axis: str = BATCH) -> Sweep:
    points = [
        SweepPoint((value,), ms) if ms else SweepPoint((value,), problem="no memory")
        for value, ms in turns.items()
    ]
    axes = (SweepAxis(axis, tuple(turns)),)
    return Sweep(
        "m.onnx", "ONNX Runtime 1", axes, tuple(points), report=f"/{name}",
        settings={axis: list(turns)},
    )  # fmt: skip


def turns(drawn: random.Random, around: float, spread: float = 0.01) -> tuple[float, ...]:
    return tuple(around * drawn.uniform(1 - spread, 1 + spread) for _ in range(6))


def bootstrap(first: tuple[float, ...], second: tuple[float, ...]) -> tuple[float, float]:
    """Return the 95 % percentile interval of the difference of medians, drawn plainly."""
    drawn = random.Random(1)
    moved = sorted(
        statistics.median(drawn.choices(second, k=6)) - statistics.median(drawn.choices(first, k=6))
        for _ in range(4000)
    )
    return moved[100], moved[-101]


def test_differences_and_intervals_are_those_of_a_plain_bootstrap() -> None:
    drawn = random.Random(3)
    first = {batch: turns(drawn, 10.0 * batch) for batch in (1, 2, 4)}
    second = {batch: turns(drawn, 10.0 * batch * (1.5 if batch == 2 else 1)) for batch in first}
    compared = SweepComparison([sweep_of("a", first), sweep_of("b", second)])
    for row, batch in zip(compared.rows, first, strict=True):
        cell = row.cells[1]
        before, after = statistics.median(first[batch]), statistics.median(second[batch])
        assert row.key == f"batch {batch}"
        assert (cell.delta_ms, cell.ratio) == pytest.approx((after - before, after / before))
        assert cell.interval is not None
        low, high = bootstrap(first[batch], second[batch])
        width = high - low
        assert cell.interval.low_ms == pytest.approx(low, abs=0.25 * width)
        assert cell.interval.high_ms == pytest.approx(high, abs=0.25 * width)
        assert (cell.noise is False) is (batch == 2)
    assert compared.lines[0].startswith("B against A: 3 times in both, 0 faster and 1 slower")


def test_a_point_that_failed_is_no_difference() -> None:
    first = sweep_of("a", {1: (1.0,) * 6, 2: (2.0,) * 6, 4: ()})
    second = sweep_of("b", {1: (1.0,) * 6, 2: (), 8: (8.0,) * 6})
    compared = SweepComparison([first, second])
    assert [(row.key, row.cells[1].delta_ms) for row in compared.rows] == [
        ("batch 1", 0.0), ("batch 2", None), ("batch 4", None), ("batch 8", None)
    ]  # fmt: skip
    remarks = [column for column in point_table(compared, [], "text").columns if not column.title]
    notes = [remarks[-1].value(row) for row in compared.rows]
    assert notes[1:] == ["only A", "", "only B"]
    assert compared.lines[0].endswith("; 3 in one only")


def test_an_axis_of_one_value_is_a_setting() -> None:
    """A sweep of fp16 alone can be compared with one of the model as it is."""
    both = [SweepAxis(PRECISION, ("fp16",)), SweepAxis(BATCH, (1, 2))]
    points = (SweepPoint(("fp16", 1), (1.0,) * 6), SweepPoint(("fp16", 2), (2.0,) * 6))
    half = Sweep("m.onnx", "ONNX Runtime 1", tuple(both), points, report="/b")
    plain = sweep_of("a", {1: (2.0,) * 6, 2: (3.0,) * 6})
    assert [row.cells[1].ratio for row in SweepComparison([plain, half]).rows] == [
        0.5,
        pytest.approx(2 / 3),
    ]


def test_first_and_later_tokens_are_rows_of_their_own() -> None:
    def generated(scale: float) -> Sweep:
        point = SweepPoint((8,), (scale,) * 6, "", (3 * scale,) * 6)
        axes = (SweepAxis(PROMPT, (8,)),)
        return Sweep("m", "b", axes, (point,), report=f"/{scale}", tokens=4)

    rows = SweepComparison([generated(1.0), generated(2.0)]).rows
    assert [row.key for row in rows] == ["first token", "token"]
    assert [row.cells[1].delta_ms for row in rows] == [3.0, 1.0]


@pytest.mark.parametrize(
    ("axis", "values", "why"), [(BATCH, (16, 32), "no point in common"), ("n", (1, 2), "not all")]
)
def test_what_has_nothing_in_common_is_refused(axis: str, values: Any, why: str) -> None:
    first = sweep_of("a", {1: (1.0,) * 6, 2: (2.0,) * 6})
    second = sweep_of("b", {value: (1.0,) * 6 for value in values}, axis)
    with pytest.raises(UsageError, match=why):
        SweepComparison([first, second])


def test_the_page_has_no_foreign_markup() -> None:
    compared = SweepComparison(
        [sweep_of(f"<b>{n}", {1: (1.0,) * 6, 2: (2.0,) * 6}, "<i>") for n in "ab"]
    )
    page = sweeps_page(compared)
    assert "<b>a" not in page
    assert "<i>" not in page
