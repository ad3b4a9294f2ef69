"""Histograms count every element once, whatever its kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.document.tensor import tensor_statistics
from dld_tui.core.errors import CancelledError
from dld_tui.core.tensors.elements import encoded, require_dtype
from dld_tui.core.tensors.histogram import tensor_histogram
from tests.core.tensors.test_conversion import tensor_of


@given(
    values=st.lists(st.floats(width=32), max_size=50),
    bins=st.integers(1, 20),
)
def test_everything_is_counted_once(values: list[float], bins: int) -> None:
    array = np.array(values, np.float32)
    histogram = tensor_histogram(tensor_of(array, "float32"), bins)
    if histogram is None:
        assert not np.isfinite(array).any()
        return
    assert len(histogram.counts) == bins
    odd = histogram.nans + histogram.negative_infinities + histogram.positive_infinities
    assert sum(histogram.counts) + odd == len(values)
    assert (histogram.edge(0), histogram.edge(bins)) == (histogram.low, histogram.high)


def test_bins_are_those_of_numpy() -> None:
    array = np.random.default_rng(0).normal(size=700_000)
    tensor = tensor_of(array, "float64")
    histogram = tensor_histogram(tensor, 50)
    assert histogram is not None
    expected, _ = np.histogram(array, 50)
    assert np.abs(np.array(histogram.counts) - expected).sum() <= 4, "but for rounding at edges"


def test_a_chosen_range_and_known_statistics() -> None:
    tensor = tensor_of(np.array([1, 2, 3, 9, math.nan, math.inf, -math.inf]), "float64")
    known = tensor_statistics(tensor)
    done: list[Any] = []
    histogram = tensor_histogram(
        tensor, 2, low=2, high=4, statistics=known, progress=lambda *step: done.append(step)
    )
    assert histogram is not None
    assert (histogram.counts, histogram.below, histogram.above) == ((1, 1), 1, 1)
    assert (histogram.nans, histogram.negative_infinities) == (1, 1)
    assert done == [(7, 7)]
    with pytest.raises(CancelledError):
        tensor_histogram(tensor, cancelled=lambda: True)


def test_the_widest_range_and_one_value() -> None:
    wide = tensor_histogram(tensor_of(np.array([-1.7e308, 0, 1.7e308]), "float64"), 3)
    assert wide is not None
    assert wide.counts == (1, 1, 1)
    same = tensor_histogram(tensor_of(np.array([5, 5], np.int8), "int4"), 4)
    assert same is not None
    assert same.counts == (2, 0, 0, 0)
    assert encoded(np.array([5, 5], np.int8), "int4") == b"\x55"
    assert require_dtype("int4")
    assert tensor_histogram(tensor_of(np.array([1 + 1j]), "complex128")) is None
