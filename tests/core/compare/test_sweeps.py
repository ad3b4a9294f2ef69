"""Sweeps point by point: ratios of medians, intervals of a plain bootstrap, what is missing."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping
from typing import Any

import pytest

from dld_tui.core.compare.sweeps import SweepComparison, point_table, sweeps_page
from dld_tui.core.errors import UsageError
from dld_tui.core.report.sweep import BATCH, PRECISION, PROMPT, Sweep, SweepAxis, SweepPoint
from tests.support.recorded import Recorded, table_text


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


def generated(scale: float, tokens: int, *prompts: int) -> Sweep:
    points = [SweepPoint((one,), (scale * one,) * 6, "", (3 * scale,) * 6) for one in prompts]
    axes = (SweepAxis(PROMPT, prompts),)
    return Sweep("m", "b", axes, tuple(points), report=f"/{scale}", tokens=tokens)


def test_what_is_told_of_points(recorded: Recorded) -> None:
    """Of points that failed, of an axis of one value, which is a setting, and of tokens."""
    once, twice, four = ((ms,) * 6 for ms in (1.0, 2.0, 4.0))
    axes = (SweepAxis(PRECISION, ("fp16",)), SweepAxis(BATCH, (1, 2)))
    points = (SweepPoint(("fp16", 1), once), SweepPoint(("fp16", 2), twice))
    half = Sweep("m.onnx", "ONNX Runtime 1", axes, points, report="/b")
    plain = sweep_of("a", {1: twice, 2: four})
    cases = {
        "failed": [
            sweep_of("a", {1: once, 2: twice, 4: ()}),
            sweep_of("b", {1: once, 2: (), 8: four}),
        ],
        "three": [
            sweep_of("a", {1: once, 2: four}),
            plain,
            sweep_of("c", {1: four, 2: once, 3: once}),
        ],
        "one precision": [plain, half],
        "tokens": [generated(1.0, 4, 8), generated(2.0, 4, 8)],
        "other tokens": [generated(2.0, 4, 8, 16), generated(1.0, 6, 8, 16)],
        "no point": [plain, sweep_of("b", {16: once, 32: once})],
        "another axis": [plain, sweep_of("b", {1: once, 2: once}, "n")],
    }
    told = {}
    for title, sweeps in cases.items():
        try:
            compared = SweepComparison(sweeps)
        except UsageError as error:
            told[title] = str(error)
            continue
        table = point_table(compared, compared.rows, "text")
        told[title] = "\n".join([*compared.lines, table_text(table)])
    recorded("whole_points", told)


def test_the_page_has_no_foreign_markup() -> None:
    compared = SweepComparison(
        [sweep_of(f"<b>{n}", {1: (1.0,) * 6, 2: (2.0,) * 6}, "<i>") for n in "ab"]
    )
    page = sweeps_page(compared)
    assert "<b>a" not in page
    assert "<i>" not in page
