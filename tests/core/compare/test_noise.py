"""The bootstrap: against drawing the samples, and how often it is right."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from dld_tui.core.compare import matching
from dld_tui.core.compare.matching import Statistic, intervals
from dld_tui.core.compare.records import Interval
from tests.support.known import known


def ordered(values: list[float]) -> NDArray[np.float64]:
    return np.sort(np.array(values))


def one(first: list[float], second: list[float], step: float = 0.0) -> Interval:
    found = known(intervals([ordered(first)], [ordered(second)], step)[0])
    return found


@pytest.mark.parametrize("count", [5, 6, 30, 31])
@pytest.mark.parametrize("statistic", Statistic)
def test_it_is_the_bootstrap_that_draws_its_samples(count: int, statistic: Statistic) -> None:
    dice = np.random.default_rng(count)
    first, second = dice.lognormal(0, 0.3, count), dice.lognormal(0.4, 0.3, count)
    drawn = [np.sort(dice.choice(values, (20_000, count)), axis=1) for values in (second, first)]
    fewest = -(-count // 4)
    of = [np.median(values, axis=1) if statistic is Statistic.MEDIAN
          else values[:, :fewest].mean(axis=1) for values in drawn]  # fmt: skip
    low, high = np.percentile(of[0] - of[1], [2.5, 97.5])
    [found] = intervals([np.sort(first)], [np.sort(second)], statistic=statistic)
    assert found is not None
    width = high - low
    assert found.low_ms == pytest.approx(low, abs=0.12 * width)
    assert found.high_ms == pytest.approx(high, abs=0.12 * width)


@pytest.mark.parametrize(
    "draw",
    [lambda dice: dice.gauss(1, 0.1), lambda dice: dice.lognormvariate(0, 0.5)],
    ids=["normal", "skewed"],
)
def test_equal_runs_are_rarely_called_different(draw: Callable[[random.Random], float]) -> None:
    dice = random.Random(7)
    first, second = (
        [ordered([draw(dice) for _ in range(50)]) for _ in range(400)] for _ in range(2)
    )
    sure = [found for found in intervals(first, second) if found and not found.has_zero]
    assert len(sure) / 400 < 0.08  # the level says 0.05


def test_a_real_difference_is_found_and_bounded() -> None:
    dice = random.Random(3)
    first = [dice.gauss(1.0, 0.02) for _ in range(100)]
    found = one(first, [value + 0.05 for value in reversed(first)])
    assert found.low_ms > 0
    assert found.low_ms < 0.05 < found.high_ms


def test_the_same_data_give_the_same_interval() -> None:
    dice = random.Random(1)
    first, second = ([dice.random() for _ in range(40)] for _ in range(2))
    found = one(first, second)
    matching._weights.cache_clear()
    assert one(first, second) == found
