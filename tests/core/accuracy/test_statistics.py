"""Figures agree with numpy's on whole arrays, and say what cannot be said."""

from __future__ import annotations

import json
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dld_tui.core.accuracy import statistics
from dld_tui.core.accuracy.statistics import Array, Tolerance, compare
from dld_tui.core.codec import encode


def test_known_figures() -> None:
    found = compare(np.array([1.0, -2.0, 4.0]), np.array([1.0, -2.5, 4.0]))
    assert found.max_abs == 0.5
    assert found.mean_abs == pytest.approx(0.5 / 3)
    assert found.max_rel == 0.25
    assert found.mean_rel == pytest.approx(0.25 / 3)
    assert found.cosine == pytest.approx(22 / math.sqrt(21 * 23.25))
    assert found.snr_db == pytest.approx(10 * math.log10(21 / 0.25))
    assert found.largest == 4.0
    assert (found.count, found.shape) == (3, (3,))


def test_equal_tensors_have_no_noise() -> None:
    found = compare(np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf]))
    assert found.is_equal
    assert (found.max_abs, found.snr_db, found.special) == (0.0, None, 0)
    assert (found.nan_reference, found.inf_other) == (1, 1)


def test_nan_and_infinity_are_counted_and_left_out_of_the_rest() -> None:
    found = compare(
        np.array([1.0, np.nan, np.inf, np.inf, 2.0]), np.array([1.0, 0.0, -np.inf, 3.0, np.nan])
    )
    assert found.special == 4
    assert (found.nan_reference, found.nan_other) == (1, 1)
    assert (found.inf_reference, found.inf_other) == (2, 1)
    assert found.max_abs == 0.0
    assert not found.is_equal


def test_what_cannot_be_said_is_none() -> None:
    nothing = compare(np.zeros((0, 3)), np.zeros((0, 3)))
    assert (nothing.max_abs, nothing.cosine, nothing.max_rel) == (None, None, None)
    zeros = compare(np.zeros(3), np.ones(3))
    assert (zeros.max_rel, zeros.cosine, zeros.snr_db, zeros.max_abs) == (None, None, None, 1.0)


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.int8, np.uint64, bool, ml_dtypes.float8_e4m3fn]
)
def test_every_kind_of_number(dtype: type) -> None:
    values: Array = np.array([0, 1, 1, 0]).astype(dtype)
    found = compare(values, np.array([0, 1, 0, 0]).astype(dtype))
    assert found.max_abs == 1.0
    assert found.mean_abs == 0.25


def test_other_shapes_and_kinds_are_told() -> None:
    assert "shape is [3], not [2]" in compare(np.zeros(2), np.zeros(3)).mismatch
    words = np.array(["a", "b"], object)
    assert compare(words, np.array(["a", "c"], object)).mismatch == "1 of 2 strings differ"
    assert compare(words, words).is_equal
    assert "strings" in compare(words, np.zeros(2)).mismatch


def test_figures_are_json() -> None:
    found = compare(np.array([1e308, -1e308]), np.array([-1e308, 1e308]))
    json.dumps(encode(found), allow_nan=False)


arrays = hnp.arrays(
    np.float32, st.integers(1, 40), elements=st.floats(-1e3, 1e3, width=32)
)  # fmt: skip


@given(arrays, st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_parts_add_up_to_the_whole(values: Array, seed: int, part: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.1, values.size)
    other: Array = values.astype(np.float64)
    other += noise
    tolerance = Tolerance(0.05, 1e-3)
    whole = compare(values, other, tolerance)
    kept, statistics._PART = statistics._PART, part
    try:
        parts = compare(values, other, tolerance)
    finally:
        statistics._PART = kept
    for name in ("max_abs", "mean_abs", "max_rel", "mean_rel", "cosine", "snr_db"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-9)
    wide = values.astype(np.float64), other.astype(np.float64)
    close = np.isclose(wide[1], wide[0], rtol=1e-3, atol=0.05)
    assert parts.outside == whole.outside == int(np.count_nonzero(~close))
