from __future__ import annotations

import math
import statistics as stdlib
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.statistics import (
    FEW_FOR_P90,
    FEW_FOR_P99,
    LatencySummary,
    fastest_count,
    is_certain_knee,
    latency_json,
    median,
    median_ranks,
    percentile,
    share_percent,
    summarise,
    trtexec_percentile,
    undisturbed,
)

SAMPLES = st.lists(st.floats(0.001, 1e4), min_size=1, max_size=60)


@given(SAMPLES, st.floats(0, 100))
def test_percentile_is_numpys_linear_one(values: list[float], percent: float) -> None:
    expected = float(np.percentile(values, percent))
    assert percentile(sorted(values), percent) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(SAMPLES)
def test_median_is_the_middle(values: list[float]) -> None:
    assert median(values) == pytest.approx(stdlib.median(values))


@given(SAMPLES, st.sampled_from([90.0, 95.0, 99.0]))
def test_percentiles_of_trtexec_are_values(values: list[float], percent: float) -> None:
    """As it computes in single precision: so many of the largest are left out."""
    ordered, single = sorted(values), np.float32
    share = single(1.0 - float(single(percent) / single(100.0)))
    found = ordered[len(ordered) - 1 - int(share * single(len(ordered)))]
    assert trtexec_percentile(ordered, percent) == found
    assert trtexec_percentile(ordered, 0.0) == ordered[0]


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_ranks_of_the_median_cover_so_much(level: float) -> None:
    for count in range(1, 90):
        low, high = median_ranks(count, level)
        assert high == count - 1 - low

        def covered(rank: int, count: int = count) -> float:
            below = sum(math.comb(count, at) for at in range(rank + 1))
            return 1 - 2 * (below / float(2**count))

        assert low == max((r for r in range(count // 2) if covered(r) >= level), default=0)


SUMMARY = LatencySummary(
    4, 2.5, 1.0, 4.0, 2.5, stdlib.stdev([1, 2, 3, 4]), 40 * stdlib.stdev([1, 2, 3, 4]),
    3.7, 3.85, 3.97, 400.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("values", "summary"),
    [
        ([4.0, 1.0, 3.0, 2.0, -1.0, 2e18], SUMMARY),
        ([1e18], LatencySummary(1, 1e18, 1e18, 1e18, 1e18, 0, 0, 1e18, 1e18, 1e18, 1e-15)),
        ([0.0, 0.0], LatencySummary(2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
        ([1.0, 3.0], LatencySummary(2, 2, 1, 3, 2, 2**0.5, 50 * 2**0.5, 2.8, 2.9, 2.98, 500)),
        ([], None),
        ([math.nan, math.inf], None),
    ],
)
def test_whole_summaries(values: list[float], summary: LatencySummary | None) -> None:
    found = summarise(values)
    assert latency_json(found) == (None if summary is None else pytest.approx(asdict(summary)))


def test_percentiles_are_told_of_enough_passes() -> None:
    counts = (1, FEW_FOR_P90 - 1, FEW_FOR_P90, FEW_FOR_P99 - 1, FEW_FOR_P99)
    assert [replace(SUMMARY, count=count).supported_percentiles for count in counts] == [
        [("median", 2.5)], [("median", 2.5)], [("median", 2.5), ("p90", 3.7)],
        [("median", 2.5), ("p90", 3.7)], [("median", 2.5), ("p90", 3.7), ("p99", 3.97)],
    ]  # fmt: skip


def test_shares_and_the_fastest_quarter() -> None:
    parts = [(None, 1.0), (1.0, None), (1.0, 0.0), (1.0, -1.0), (0.0, 2.0), (1.0, 0.5), (3.0, 4.0)]
    assert [share_percent(*pair) for pair in parts] == [None, None, None, None, 0, 200, 75]
    assert [fastest_count(count) for count in (1, 4, 5, 8, 9)] == [1, 1, 2, 2, 3]
    assert [undisturbed([1.0, 2.0, 4.0, 8.0]), undisturbed([1.0, 2.0, 4.0, 8.0, 9.0])] == [1, 1.5]


@pytest.mark.parametrize(
    ("knee", "best", "smaller", "certain"),
    [
        ((95.0, 96.0), (99.0, 100.0), [(1.0, 94.0)], True),
        ((94.9, 96.0), (99.0, 100.0), [(1.0, 94.0)], False),
        ((95.0, 96.0), (99.0, 100.0), [(1.0, 2.0), (1.0, 94.06)], False),
        ((90.0, 100.0), (90.0, 100.0), [(1.0, 85.4)], True),  # the knee is the best
        ((90.0, 100.0), (90.0, 100.0), [(1.0, 85.5)], False),
        ((90.0, 100.0), (90.0, 100.0), [], True),
    ],
)
def test_a_knee_is_certain_where_no_interval_speaks_against_it(
    knee: tuple[float, float], best: tuple[float, float], smaller: list[Any], certain: bool
) -> None:
    assert is_certain_knee(knee, best, smaller) is certain
