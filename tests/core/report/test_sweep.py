"""Sweeps: intervals against a binomial sum, the knee against a plain search, values as given."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.codec import decode, encode
from dld_tui.core.errors import UsageError
from dld_tui.core.report.sweep import (
    BATCH,
    THREADS,
    Sweep,
    SweepAxis,
    SweepPoint,
    knee,
    parse_values,
    places,
    sweep_lines,
    sweep_table,
)

TIMES = st.floats(0.01, 1e4)


def sweep_of(times: dict[int, float]) -> Sweep:
    points = [SweepPoint((batch,), (ms,) * 6) for batch, ms in times.items()]
    return Sweep("m.onnx", "ONNX Runtime", (SweepAxis(BATCH, tuple(times)),), tuple(points))


@given(st.dictionaries(st.integers(1, 512), TIMES, min_size=3, max_size=9))
def test_the_knee_is_the_first_size_that_is_nearly_best(times: dict[int, float]) -> None:
    rates = {batch: 1000 * batch / ms for batch, ms in times.items()}
    found = knee(sweep_of(times))
    assert found is not None
    good = [batch for batch in sorted(rates) if rates[batch] >= 0.95 * max(rates.values())]
    assert (found.at, found.is_last) == (good[0], good[0] == max(times))
    assert found.best == pytest.approx(max(rates.values()))


def test_six_turns_hold_the_median() -> None:
    """Between the smallest and the largest of six lies the true median in 97 % of the cases."""
    drawn = random.Random(7)
    held = 0
    for _ in range(2000):
        point = SweepPoint((1,), tuple(drawn.lognormvariate(0, 0.5) for _ in range(6)))
        assert point.low_ms is not None
        assert point.high_ms is not None
        held += point.low_ms <= 1.0 <= point.high_ms
    wanted = 2000 * (1 - 2 / 2**6)
    assert abs(held - wanted) < 5 * math.sqrt(2000 * 0.03)


def test_points_are_all_combinations() -> None:
    axes = (SweepAxis(THREADS, (1, 2)), SweepAxis(BATCH, (1, 4, 8)))
    assert places(axes) == [(1, 1), (1, 4), (1, 8), (2, 1), (2, 4), (2, 8)]
    with pytest.raises(UsageError, match="1,331 points"):
        places([SweepAxis(str(at), tuple(range(11))) for at in range(3)])


@pytest.mark.parametrize("text", ["", "1,,2", "0", "-1", "x", "1.5", str(1 << 31), "1;2"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_values(text, "--batch")


def test_the_answer_comes_first_and_failures_are_told() -> None:
    sweep = sweep_of({1: 10.0, 2: 12.0, 4: 20.0})
    failed = SweepPoint((8,), problem="out of memory")
    sweep = Sweep(sweep.model, sweep.backend, sweep.axes, (*sweep.points, failed))
    lines = sweep_lines(sweep)
    assert lines[0] == (
        "Lowest latency: 10.000 ms at batch 1. Highest throughput: 200 items/s at batch 4."
    )
    assert lines[1] == (
        "Batch 4 has 100 % of the highest throughput, 200 items/s; larger batches may give more."
    )
    assert lines[2] == "1 point not measured: out of memory"
    table = sweep_table(sweep)
    assert [column.key for column in table.columns][-1] == "problem"
    assert table.columns[4].value(sweep.points[1]) == pytest.approx(2000 / 12)
    assert decode(Sweep, encode(sweep)) == sweep
