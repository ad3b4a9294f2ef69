from __future__ import annotations

import math
import statistics as stdlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.statistics import median, percentile, summarise
from tests.support.known import known

SAMPLES = st.lists(st.floats(0.001, 1e4), min_size=1, max_size=60)


@given(SAMPLES, st.floats(0, 100))
def test_percentile_is_numpys_linear_one(values: list[float], percent: float) -> None:
    expected = float(np.percentile(values, percent))
    assert percentile(sorted(values), percent) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(SAMPLES)
def test_median_is_the_middle(values: list[float]) -> None:
    assert median(values) == pytest.approx(stdlib.median(values))


def test_summary_of_known_values() -> None:
    found = known(summarise([4.0, 1.0, 3.0, 2.0]))
    assert (found.count, found.median, found.min, found.max, found.mean) == (4, 2.5, 1, 4, 2.5)
    assert found.std == pytest.approx(stdlib.stdev([1, 2, 3, 4]))
    assert found.cov_percent == pytest.approx(100 * found.std / 2.5)
    assert found.throughput == pytest.approx(400)
    assert found.p90 == pytest.approx(3.7)


def test_summaries_of_little() -> None:
    assert summarise([]) is None
    assert summarise([math.nan, math.inf]) is None
    one, zeros = summarise([2.0]), summarise([0.0, 0.0])
    assert one is not None
    assert zeros is not None
    assert (one.std, one.cov_percent, one.p99) == (0, 0, 2)
    assert (zeros.throughput, zeros.cov_percent) == (0, 0)
